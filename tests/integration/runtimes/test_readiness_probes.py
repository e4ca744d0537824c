"""Readiness probes of real processes: what they see, and that a bad one harms nobody."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.control.runtime import OrderDeniedError
from interlock.resources.process import (
    ExecProbe,
    FileProbe,
    HttpProbe,
    ReadinessProbe,
    Scheme,
    TcpProbe,
)
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, is_ready
from interlock.resources.values.durations import Duration
from interlock.runtimes.keeper import kernel
from interlock.testing.builders import with_process
from interlock.testing.keepers import keeper_pid, kill_keeper
from interlock.testing.runtime_contract import (
    FOREVER_S,
    ExitsWhenTold,
    ReadyWhenTold,
    RunsOn,
    Told,
    is_over,
    stop_of,
)
from support.dead_files import can_mount, dead_file_system
from support.workshop import ProcessShop, until_so

needs_mount = pytest.mark.skipif(not can_mount(), reason="only root may mount a file system")
CERTIFICATES = Path(__file__).resolve().parents[1] / "api" / "certificate"
OFTEN = Duration(milliseconds=100)
#: No look that is meant to end takes as long, however slow the machine is.
PATIENT = Duration(minutes=2)


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[Path]:
    with dead_file_system(tmp_path / "dead") as place:
        yield place


def play(scene: Callable[[ProcessShop], Awaitable[None]], place: Path) -> None:
    ProcessShop.play(scene, place)  # type: ignore[arg-type]


def probed(shop: ProcessShop, index: int = 0, **probe: Any) -> TaskOrder:
    """An order for work that runs on, and is looked at often; one bad look is enough."""
    given = {"period": OFTEN, "timeout": PATIENT, "failure_threshold": 1, **probe}
    order = shop.order(RunsOn(), index=index)
    return with_process(order, readiness_probe=ReadinessProbe(**given))


def turned(task: TaskId, ready: bool, words: str = "") -> Callable[[Told], bool]:
    return lambda told: task in told and told[task].ready is ready and words in told[task].message


def probers(shop: ProcessShop) -> list[int]:
    """The probers of a keeper: one, or none."""
    children = kernel.children_of(keeper_pid(shop.data_dir) or 0)
    return [pid for pid in children if b"keeper.prober" in kernel.read_file(f"/proc/{pid}/cmdline")]


def numbers_in(file: Path) -> list[int]:
    """The whole lines of a file that is still being written."""
    text = file.read_text() if file.exists() else ""
    return list(map(int, text[: text.rfind("\n") + 1].split()))


def lives(pid: int) -> bool:
    stat = kernel.stat_of(pid)
    return stat is not None and not stat.is_dead


def test_a_file_is_there_or_not(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        order = with_process(probed(shop, file=FileProbe(path="up")), working_dir=str(tmp_path))
        await shop.runtime.launch([order])
        await shop.until(turned(order.id, False, "readiness probe: up: No such file or directory"))
        (tmp_path / "up").touch()
        report = (await shop.until(turned(order.id, True)))[order.id]
        assert (report.state, report.message) == (ReportState.RUNNING, "")
        assert report.ready_at is not None

    play(scene, tmp_path)


def test_a_port_takes_connections_or_not(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        order = probed(shop, tcp_socket=TcpProbe(port=port))
        await shop.runtime.launch([order])
        await shop.until(turned(order.id, True))
        server.close()
        await server.wait_closed()
        await shop.until(turned(order.id, False, f"127.0.0.1:{port}: Connection refused"))

    play(scene, tmp_path)


def test_a_server_answers_well_or_not(tmp_path: Path) -> None:
    asked: list[bytes] = []
    answers = {"now": b"HTTP/1.1 503 Not Yet\r\nContent-Length: 0\r\n\r\n"}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answers["now"])
        writer.close()

    async def scene(shop: ProcessShop) -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        order = probed(shop, http_get=HttpProbe(port=port, path="/healthz?of=a b"))
        await shop.runtime.launch([order])
        await shop.until(turned(order.id, False, "readiness probe: answered with 503"))
        for answer in (b"HTTP/1.1 204 Fine\r\n\r\n", b"HTTP/1.0 302 Elsewhere\r\n\r\n"):
            answers["now"] = b"no HTTP at all\r\n"
            await shop.until(turned(order.id, False))
            answers["now"] = answer
            await shop.until(turned(order.id, True))
        server.close()

    play(scene, tmp_path)
    assert asked[0].startswith(b"GET /healthz?of=a%20b HTTP/1.1\r\nHost: 127.0.0.1:")


def test_a_server_with_any_certificate_answers_well(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Fine\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def scene(shop: ProcessShop) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "localhost.crt", CERTIFICATES / "localhost.key")
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        good = probed(shop, http_get=HttpProbe(port=port, scheme=Scheme.HTTPS))
        plain = probed(shop, 1, http_get=HttpProbe(port=port))
        await shop.runtime.launch([good, plain])
        await shop.until(turned(good.id, True))
        await shop.until(turned(plain.id, False))
        server.close()

    play(scene, tmp_path)


def test_a_command_exits_well_or_not(tmp_path: Path) -> None:
    """It runs where the task does and with its variables, and no shell sees it."""
    (tmp_path / "ready $(now)").write_text("yes\n")
    program = 'test "$WHO" = me && test "$(cat "$1")" = "$2"'

    async def scene(shop: ProcessShop) -> None:
        command = ("/bin/sh", "-c", program, "probe", "ready $(now)", "yes")
        good = with_process(
            probed(shop, exec=ExecProbe(command=command)),
            env={"WHO": "me"},
            working_dir=str(tmp_path),
        )
        bad = probed(shop, 1, exec=ExecProbe(command=("/bin/sh", "-c", "echo why; exit 7")))
        gone = probed(shop, 2, exec=ExecProbe(command=("no-such-program",)))
        await shop.runtime.launch([good, bad, gone])
        await shop.until(turned(good.id, True))
        await shop.until(turned(bad.id, False, "readiness probe: exit code 7: why"))
        await shop.until(turned(gone.id, False, "no-such-program: no such program on the PATH"))

    play(scene, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run tasks as others")
def test_a_command_runs_as_whom_the_task_does(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        command = ("/bin/sh", "-c", 'test "$(id -u)" = 65534')
        look = ExecProbe(command=command)
        probe = ReadinessProbe(exec=look, period=OFTEN, timeout=PATIENT)
        order = with_process(shop.order(ExitsWhenTold()), readiness_probe=probe)
        other = with_process(
            probed(shop, 1, exec=ExecProbe(command=command)),
            command=("sleep", "100000"),
            user="65534",
            working_dir="/",
        )
        await shop.runtime.launch([order, other])
        await shop.until(turned(other.id, True))
        await shop.until(turned(order.id, False, "exit code 1"))

    play(scene, tmp_path)


def test_a_probe_that_hangs_is_cut_off_and_harms_no_other(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    async def scene(shop: ProcessShop) -> None:
        hangs = ("/bin/sh", "-c", 'echo $$ >> "$1"; exec sleep 100000', "probe", str(pids))
        stuck = probed(shop, exec=ExecProbe(command=hangs), timeout=Duration(milliseconds=300))
        chatty = probed(shop, 1, exec=ExecProbe(command=("yes",)), timeout=OFTEN)
        other = probed(shop, 2, file=FileProbe(path="/"))
        await shop.runtime.launch([stuck, chatty, other])
        await shop.until(turned(other.id, True))
        await shop.until(turned(stuck.id, False, "readiness probe: no answer within 0.3 s"))
        await shop.until(turned(chatty.id, False, "readiness probe: no answer within 0.1 s"))
        # It is looked again, and each look is gone before the next one.
        await until_so(lambda: len(numbers_in(pids)) > 2)
        assert not any(map(lives, numbers_in(pids)[:2]))

    play(scene, tmp_path)


@needs_mount
def test_a_file_that_never_answers_hangs_its_own_task_alone(tmp_path: Path, dead: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        stuck = probed(shop, file=FileProbe(path=str(dead / "up")), timeout=OFTEN)
        other = probed(shop, 1, file=FileProbe(path="/"))
        await shop.runtime.launch([stuck, other])
        await shop.until(turned(other.id, True))
        await shop.until_begun(stuck.id)
        await shop.runtime.stop([stop_of(stuck, FOREVER_S)])
        await shop.until(is_over(stuck.id))

    play(scene, tmp_path)


def test_nothing_of_a_probe_is_left_when_its_task_is_over(tmp_path: Path) -> None:
    """It is gone before the end of the task is told; what set itself apart, right after."""
    looks, left = tmp_path / "looks", tmp_path / "left"
    program = (
        '(setsid /bin/sh -c \'echo $$ >> "$1"; exec sleep 100000\' sh "$2" &) ;'
        ' sleep 100000 & echo $! >> "$2"; echo $$ > "$1"; wait'
    )

    async def scene(shop: ProcessShop) -> None:
        command = ("/bin/sh", "-c", program, "probe", str(looks), str(left))
        order = probed(shop, exec=ExecProbe(command=command), timeout=Duration(hours=1))
        await shop.runtime.launch([order])
        await until_so(lambda: len(numbers_in(left)) == 2 and len(numbers_in(looks)) == 1)
        await shop.runtime.stop([stop_of(order, FOREVER_S)])
        await shop.until(is_over(order.id))
        (look,) = numbers_in(looks)
        assert not lives(look)
        await until_so(lambda: not any(map(lives, numbers_in(left))))

    play(scene, tmp_path)


def test_a_task_without_a_probe_has_no_prober(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        plain, with_probe = shop.order(RunsOn()), shop.order(ReadyWhenTold(), index=1)
        await shop.runtime.launch([plain])
        await shop.until_begun(plain.id)
        assert probers(shop) == []
        await shop.runtime.launch([with_probe])
        await shop.until(turned(with_probe.id, False))
        # Unready is told of what has not been asked about yet.
        await shop.until_so(lambda: len(probers(shop)) == 1)

    play(scene, tmp_path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_prober_that_is_gone_or_hangs_is_replaced(how: signal.Signals, tmp_path: Path) -> None:
    """What was known stays so meanwhile."""

    async def scene(shop: ProcessShop) -> None:
        order = shop.order(ReadyWhenTold())
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        shop.make_ready(order.id, True)
        await shop.until(turned(order.id, True))
        (pid,) = probers(shop)
        os.kill(pid, how)
        shop.make_ready(order.id, False)
        await shop.until(turned(order.id, False))
        assert pid not in probers(shop)

    play(scene, tmp_path)


def test_a_killed_keeper_takes_its_prober_along_and_the_next_one_looks_on(tmp_path: Path) -> None:
    """A task that it finds again was ready or not: nothing is said of it before it was looked."""

    async def scene(shop: ProcessShop) -> None:
        up, down = shop.order(ReadyWhenTold()), shop.order(ReadyWhenTold(), index=1)
        await shop.runtime.launch([up, down])
        await shop.until_begun(up.id)
        await shop.until_begun(down.id)
        shop.make_ready(up.id, True)
        await shop.until(turned(up.id, True))
        (pid,) = probers(shop)
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        await until_so(lambda: not lives(pid))
        told = await shop.until(lambda told: up.id in told and told[up.id].ready is not None)
        assert is_ready(told[up.id])
        await shop.until(turned(down.id, False))
        shop.make_ready(down.id, True)
        await shop.until(turned(down.id, True))
        await shop.runtime.stop([stop_of(up, FOREVER_S), stop_of(down, FOREVER_S)])
        await shop.until(is_over(up.id, down.id))

    play(scene, tmp_path)


def test_a_probe_outlives_one_keeper_after_another(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        order = shop.order(ReadyWhenTold())
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        for _ in range(2):
            await asyncio.to_thread(kill_keeper, shop.data_dir)
            shop.make_ready(order.id, True)
            await shop.until(turned(order.id, True))
            shop.make_ready(order.id, False)
            await shop.until(turned(order.id, False))

    play(scene, tmp_path)


def test_a_keeper_of_an_older_version_is_given_no_task_with_a_probe(tmp_path: Path) -> None:
    """It would take it for ready at once. The others of the same call are started."""

    async def scene(shop: ProcessShop) -> None:
        plain, with_probe = shop.order(RunsOn()), shop.order(ReadyWhenTold(), index=1)
        await shop.runtime.reports()
        shop.runtime._abilities = ()
        with pytest.raises(OrderDeniedError, match="knows no readiness probes"):
            await shop.runtime.launch([with_probe, plain])
        await shop.until_begun(plain.id)
        assert [report.id for report in await shop.runtime.reports()] == [plain.id]

    play(scene, tmp_path)
