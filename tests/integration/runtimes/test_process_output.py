"""What tasks print is bounded on the disk and complete in the log, whoever is killed or stopped.

No test here waits for a moment: those who could interfere are stopped, and what must be so then is
so for as long as they are.
"""

from __future__ import annotations

import asyncio
import fcntl
import marshal
import os
import select
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from interlock.resources.tasks import ReportState, TaskId, TaskOrder, process_of
from interlock.runtimes.keeper.draining import Drain
from interlock.runtimes.keeper.log_cut import KEPT_BYTES, SLACK_BYTES
from interlock.runtimes.keeper.log_file import pipe_path
from interlock.runtimes.keeper.logger import CHUNK, Channel, Logger, unread
from interlock.runtimes.keeper.moments import monotonic
from interlock.runtimes.keeper.output import GIVE_UP_S, Outputs, log_of
from interlock.runtimes.keeper.timers import Timers
from interlock.runtimes.logs import LogReader
from interlock.testing.builders import T0, with_process
from interlock.testing.keepers import keeper_pid, kill_and_wait, kill_keeper, living, logger_pid
from interlock.testing.runtime_contract import Exits, ExitsWhenTold, is_over
from support.workshop import ProcessShop

#: No log takes more of the disk; the rest is what a file system needs to keep a file.
MOST = KEPT_BYTES + SLACK_BYTES + 65536
LONG = 4 * KEPT_BYTES


def play(scene: Callable[[ProcessShop], Awaitable[None]], place: Path) -> None:
    ProcessShop.play(scene, place)  # type: ignore[arg-type]


def printing(shop: ProcessShop, script: str) -> TaskOrder:
    """An order for a task that says that it runs, and prints once it is told to."""
    order = shop.order(ExitsWhenTold(0))
    given = process_of(order).command
    script = given[2].replace("exit 0", script)
    return with_process(order, command=(*given[:2], script, *given[3:]))


def taken(log: Path) -> int:
    """What a log takes of the disk."""
    return log.stat().st_blocks * 512


async def begun(shop: ProcessShop, order: TaskOrder) -> Path:
    """Have a task begin, with a logger that serves it; returns its log."""
    await shop.runtime.launch([order])
    await shop.until_begun(order.id)
    await shop.until_so(lambda: logger_pid(shop.data_dir) is not None)
    return log_of(shop.data_dir, order.id)


def logger(shop: ProcessShop) -> int:
    pid = logger_pid(shop.data_dir)
    assert pid is not None
    return pid


def keeper(shop: ProcessShop) -> int:
    pid = keeper_pid(shop.data_dir)
    assert pid is not None
    return pid


async def read(shop: ProcessShop, task: TaskId) -> bytes:
    return b"".join([piece async for piece in LogReader(shop.data_dir).stream(task)])


class TestBound:
    """Nobody has to be quick for a log to be short: who prints too fast waits."""

    def test_whoever_prints_waits_for_the_logger(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, f'head -c {LONG} /dev/zero; : > "$1.done"; exec sleep 100000')
            log = await begun(shop, order)
            done = Path(process_of(order).command[-1] + ".done")
            os.kill(keeper(shop), signal.SIGSTOP)
            os.kill(logger(shop), signal.SIGSTOP)
            shop.let_go(order.id)
            pipe = os.open(pipe_path(str(log)), os.O_RDWR | os.O_NONBLOCK)
            await shop.until_so(lambda: unread(pipe) == fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ))
            assert not log.exists()
            assert not done.exists()

            # The logger needs no keeper to go on.
            os.kill(logger(shop), signal.SIGCONT)

            def is_written() -> bool:
                assert not log.exists() or taken(log) <= MOST
                return done.exists() and log.stat().st_size == LONG

            await shop.until_so(is_written)
            os.close(pipe)
            os.kill(keeper(shop), signal.SIGCONT)

        play(scene, tmp_path)

    def test_nothing_more_is_taken_without_a_keeper(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, f"head -c {LONG} /dev/zero; echo; echo last")
            log = await begun(shop, order)
            shop.runtime.abandon()
            await asyncio.to_thread(kill_keeper, shop.data_dir)
            shop.let_go(order.id)
            await shop.until_so(lambda: not living(shop.data_dir))
            assert taken(log) <= MOST
            # It has nothing to do any more, and so it goes.
            await shop.until_so(lambda: logger_pid(shop.data_dir) is None)
            assert taken(log) <= MOST
            assert log.stat().st_size == LONG + 6
            await shop.lead()
            await shop.until(is_over(order.id))
            assert (await read(shop, order.id)).endswith(b"\nlast\n")
            assert taken(log) <= MOST

        play(scene, tmp_path)

    def test_one_that_prints_without_end_keeps_nobody_else_waiting(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            loud = with_process(shop.order(Exits(), index=1), command=("yes",))
            await shop.runtime.launch([loud])
            log = log_of(shop.data_dir, loud.id)
            await shop.until_so(lambda: log.exists() and log.stat().st_size > LONG)
            for index in range(2, 10):
                order = with_process(shop.order(Exits(), index=index), command=("echo", str(index)))
                await shop.runtime.launch([order])
                await shop.until(is_over(order.id))
                assert await read(shop, order.id) == b"%d\n" % index
                assert taken(log) <= MOST

        play(scene, tmp_path)


class TestCompleteness:
    """When the end of a task is told, all that it printed is in its log, once and in order."""

    #: Prints numbered lines until it is told to end.
    COUNT = 'n=0; while [ ! -e "$1.end" ]; do n=$((n+1)); echo $n; done; echo last'

    async def check(self, shop: ProcessShop, order: TaskOrder, state: ReportState) -> None:
        Path(process_of(order).command[-1] + ".end").touch()
        told = await shop.until(is_over(order.id))
        assert told[order.id].state is state
        *lines, last = (await read(shop, order.id)).split()
        numbers = [int(line) for line in lines]
        assert last == b"last"
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert not Path(pipe_path(str(log_of(shop.data_dir, order.id)))).exists()

    async def until_more(self, shop: ProcessShop, log: Path) -> None:
        size = log.stat().st_size if log.exists() else 0
        await shop.until_so(lambda: log.exists() and log.stat().st_size > size)

    async def kill_logger(self, shop: ProcessShop) -> None:
        """Kill the logger; another one takes its place."""
        pid = logger(shop)
        await asyncio.to_thread(kill_and_wait, pid)
        await shop.until_so(lambda: logger_pid(shop.data_dir) not in (None, pid))

    def test_the_logger_is_killed(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, self.COUNT)
            log = await begun(shop, order)
            shop.let_go(order.id)
            for _ in range(4):
                await self.until_more(shop, log)
                await self.kill_logger(shop)
            await self.until_more(shop, log)
            await self.check(shop, order, ReportState.ENDED)

        play(scene, tmp_path)

    def test_the_keeper_is_killed(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, self.COUNT)
            log = await begun(shop, order)
            shop.let_go(order.id)
            for _ in range(3):
                await self.until_more(shop, log)
                shop.runtime.abandon()
                await asyncio.to_thread(kill_keeper, shop.data_dir)
                # Without a keeper too.
                await self.until_more(shop, log)
                await shop.lead()
            await self.check(shop, order, ReportState.UNKNOWN)

        play(scene, tmp_path)

    def test_both_are_killed(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, self.COUNT)
            log = await begun(shop, order)
            shop.let_go(order.id)
            for _ in range(3):
                await self.until_more(shop, log)
                shop.runtime.abandon()
                await asyncio.to_thread(kill_keeper, shop.data_dir)
                await asyncio.to_thread(kill_and_wait, logger(shop))
                await shop.lead()
                await shop.until_so(lambda: logger_pid(shop.data_dir) is not None)
            await self.until_more(shop, log)
            await self.check(shop, order, ReportState.UNKNOWN)

        play(scene, tmp_path)

    def test_it_ends_while_there_is_no_logger(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, "echo last")
            await begun(shop, order)
            os.kill(keeper(shop), signal.SIGSTOP)
            await asyncio.to_thread(kill_and_wait, logger(shop))
            shop.let_go(order.id)
            await shop.until_so(lambda: not living(shop.data_dir))
            os.kill(keeper(shop), signal.SIGCONT)
            await shop.until(is_over(order.id))
            assert await read(shop, order.id) == b"last\n"

        play(scene, tmp_path)

    def test_it_ends_while_there_is_no_keeper(self, tmp_path: Path) -> None:
        """And nothing was moved when the next one comes."""

        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, "echo last")
            log = await begun(shop, order)
            shop.runtime.abandon()
            await asyncio.to_thread(kill_keeper, shop.data_dir)
            os.kill(logger(shop), signal.SIGSTOP)
            shop.let_go(order.id)
            await shop.until_so(lambda: not living(shop.data_dir))
            assert not log.exists()
            await shop.lead()
            await shop.until(is_over(order.id))
            assert await read(shop, order.id) == b"last\n"

        play(scene, tmp_path)

    def test_a_logger_that_does_not_answer_is_replaced(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, "echo last")
            await begun(shop, order)
            pid = logger(shop)
            os.kill(pid, signal.SIGSTOP)
            shop.let_go(order.id)
            await shop.until(is_over(order.id))
            assert await read(shop, order.id) == b"last\n"
            assert logger_pid(shop.data_dir) != pid

        play(scene, tmp_path)

    def test_an_end_is_told_when_no_logger_can_be_had(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It is told late, and without the output."""
        with select.epoll() as poll:
            outputs = Outputs(str(tmp_path))
            # It never begins.
            outputs.drain = Drain(
                poll, Timers(), str(tmp_path), set(), outputs.drained, outputs.tell_all
            )
            task, told = TaskId("uid", 0, 1), list[str]()
            outputs.prepare(task)
            with Path(pipe_path(str(log_of(tmp_path, task)))).open("wb", buffering=0) as pipe:
                pipe.write(b"last")
                outputs.end(task, lambda: told.append("over"))
                ended_by = monotonic()
                outputs.look(T0, ended_by)
                assert outputs
                assert not told
                outputs.look(T0, ended_by + GIVE_UP_S + 1)
            assert told == ["over"]
            assert not outputs
        assert (
            f"uid-0-1: no logger drained its output for {GIVE_UP_S:.0f} s"
            in capsys.readouterr().err
        )

    def test_the_last_words_of_many(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            orders = [
                with_process(shop.order(Exits(), index=index), command=("echo", f"last of {index}"))
                for index in range(200)
            ]
            await shop.runtime.launch(orders)
            await shop.until(is_over(*(order.id for order in orders)))
            for order in orders:
                assert await read(shop, order.id) == f"last of {order.index}\n".encode()

        play(scene, tmp_path)

    def test_a_silent_task_is_known_to_have_been_started(self, tmp_path: Path) -> None:
        async def scene(shop: ProcessShop) -> None:
            order = shop.order(Exits())
            await shop.runtime.launch([order])
            await shop.until(is_over(order.id))
            assert LogReader(shop.data_dir).attempts(order.job_uid) == (order.id,)
            assert LogReader(shop.data_dir).jobs() == (order.job_uid,)
            assert await read(shop, order.id) == b""
            assert not list(log_of(shop.data_dir, order.id).parent.glob("*.log"))
            await LogReader(shop.data_dir).remove(order.job_uid)
            assert not list(log_of(shop.data_dir, order.id).parent.iterdir())

        play(scene, tmp_path)

    def test_a_task_that_was_started_by_an_older_version(self, tmp_path: Path) -> None:
        """It has no pipe, and writes into its log itself."""

        async def scene(shop: ProcessShop) -> None:
            order = printing(shop, f"head -c {LONG} /dev/zero; echo; echo last")
            log = log_of(shop.data_dir, order.id)
            given = process_of(order).command
            script = f'exec >>"{log}" 2>&1; {given[2]}'
            order = with_process(order, command=(*given[:2], script, *given[3:]))
            await begun(shop, order)
            shop.runtime.abandon()
            await asyncio.to_thread(kill_keeper, shop.data_dir)
            # Nobody else prints: it may have gone by itself.
            if (pid := logger_pid(shop.data_dir)) is not None:
                await asyncio.to_thread(kill_and_wait, pid)
            Path(pipe_path(str(log))).unlink()
            await shop.lead()
            shop.let_go(order.id)
            await shop.until(is_over(order.id))
            assert log.stat().st_size == LONG + 6
            assert taken(log) <= MOST
            assert (await read(shop, order.id)).endswith(b"\nlast\n")

        play(scene, tmp_path)


class TestChannel:
    """One pipe and its log, moved by hand."""

    @pytest.fixture
    def pipe(self, tmp_path: Path) -> Iterator[int]:
        os.mkfifo(tmp_path / "pipe")
        fd = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
        yield fd
        os.close(fd)

    def fill(self, channel: Channel, count: int, log: Path) -> None:
        """Print zeros until so many have gone through the pipe."""
        while count > 0:
            count -= os.write(channel.pipe, bytes(min(count, 65536)))
            channel.move()
            if log.exists():
                assert taken(log) <= MOST

    def test_it_is_bounded_at_every_moment(self, pipe: int, tmp_path: Path) -> None:
        log = tmp_path / "new" / "log"
        channel = Channel(pipe, str(log))
        self.fill(channel, LONG, log)
        os.write(pipe, b"last\n")
        # Another one takes over, and knows nothing of the holes.
        Channel(pipe, str(log)).drain()
        assert log.stat().st_size == LONG + 5
        assert KEPT_BYTES <= taken(log) <= MOST
        assert log.stat().st_mode & 0o777 == 0o600

    def test_no_more_is_drained_than_there_was(self, pipe: int, tmp_path: Path) -> None:
        channel = Channel(pipe, str(tmp_path / "log"))
        channel.drain()
        assert channel.move() == 0
        os.write(pipe, b"some")
        channel.drain()
        assert (tmp_path / "log").read_bytes() == b"some"

    @pytest.mark.parametrize("cut", [Path.unlink, lambda log: os.truncate(log, 0)])
    def test_a_log_that_somebody_removes_or_cuts(
        self, cut: object, pipe: int, tmp_path: Path
    ) -> None:
        log = tmp_path / "log"
        channel = Channel(pipe, str(log))
        self.fill(channel, LONG, log)
        assert callable(cut)
        cut(log)
        os.write(pipe, b"after\n")
        channel.drain()
        assert log.read_bytes() == b"after\n"
        self.fill(channel, LONG, log)
        assert log.stat().st_size == LONG + 6

    @pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda log: log.symlink_to("else")])
    def test_something_else_in_its_place(self, plant: object, pipe: int, tmp_path: Path) -> None:
        """It is not written to, nobody hangs, and what is missing is told."""
        log = tmp_path / "log"
        assert callable(plant)
        plant(log)
        channel = Channel(pipe, str(log))
        os.write(pipe, b"12345")
        channel.drain()
        assert unread(pipe) == 0
        assert not (tmp_path / "else").exists()
        log.rename(tmp_path / "planted")
        os.write(pipe, b"after\n")
        channel.drain()
        *mark, after = log.read_text().splitlines()
        assert "5 bytes of the output are missing here" in mark[1]
        assert after == "after"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")
    def test_a_disk_that_is_full(self, pipe: int, tmp_path: Path) -> None:
        """What finds no room is dropped, so that no task hangs; a mark says how much."""
        place = tmp_path / "small"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", place], check=True)
        try:
            log, ballast = place / "log", place / "ballast"
            ballast.write_bytes(bytes(65536))
            channel = Channel(pipe, str(log))
            for _ in range(4):
                os.write(pipe, bytes(40_000))
                channel.drain()
                assert unread(pipe) == 0
            kept = log.stat().st_size
            assert kept <= 65536
            ballast.unlink()
            os.write(pipe, b"after\n")
            channel.drain()
            said = log.read_bytes()[kept:].decode().splitlines()[1:]
            missing = 160_000 - kept
            why = "No space left on device"
            assert said == [f"[{missing} bytes of the output are missing here: {why}]", "after"]
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")
    def test_a_file_system_without_holes(self, pipe: int, tmp_path: Path) -> None:
        """All of a log that is too long goes."""
        place = tmp_path / "plain"
        place.mkdir()
        subprocess.run(["mount", "-t", "ramfs", "none", place], check=True)
        try:
            log = place / "log"
            channel = Channel(pipe, str(log))
            for _ in range(LONG // 65536):
                os.write(pipe, bytes(65536))
                channel.move()
                assert log.stat().st_size <= MOST
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)

    def test_a_file_system_that_takes_nothing_from_pipes(self, pipe: int, tmp_path: Path) -> None:
        channel = Channel(pipe, str(tmp_path / "log"))
        log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
        assert channel.copy(log, 0) == 0
        assert os.fstat(log).st_size == 0
        os.write(pipe, bytes(CHUNK // 8))
        assert channel.copy(log, 0) == CHUNK // 8
        os.write(pipe, b"after")
        assert channel.copy(log, CHUNK // 8) == 5
        assert os.pread(log, CHUNK, 0) == bytes(CHUNK // 8) + b"after"
        os.close(log)


def test_what_a_keeper_said_before_it_was_killed_is_heard(tmp_path: Path) -> None:
    """Also when it never read the last answer: the kernel tells of that first."""
    keeper, door = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.setblocking(False)
    logger = Logger(door, str(tmp_path))
    keeper.send(marshal.dumps(((), (7,), ())))
    logger.turn()
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    os.write(pipe, b"last")
    socket.send_fds(keeper, [marshal.dumps((((8, "ab/uid-0-1"),), (9,), ()))], [pipe])
    os.close(pipe)
    keeper.close()
    logger.run()
    assert (tmp_path / "logs/ab/uid-0-1.log").read_bytes() == b"last"
