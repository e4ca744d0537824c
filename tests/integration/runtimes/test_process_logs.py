"""What tasks print can be read whole, from its end, since a moment, and live."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.log_cap import KEPT_BYTES, SLACK_BYTES, LogCap
from interlock.runtimes.keeper.output import SAMPLE, log_of, times_of
from interlock.runtimes.keeper.wire import KEEPER_LOG_NAME
from interlock.runtimes.logs import LogReader
from interlock.testing.builders import T0
from interlock.testing.keepers import kill_keeper, living
from interlock.testing.runtime_contract import Exits, ExitsWhenTold, is_over
from interlock.testing.workshop import ProcessShop, until_so

TASK = TaskId("uid", 0, 1)
#: Runs a command in which no process can have the kernel tell of writes.
WITHOUT_INOTIFY = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"',
    "sh",
)


def a_log(place: Path, text: bytes) -> Path:
    log = log_of(place, TASK)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(text)
    return log


def read(place: Path, *, tail: int | None = None, since: datetime | None = None) -> bytes:
    async def pieces() -> bytes:
        stream = LogReader(place).stream(TASK, tail=tail, since=since)
        return b"".join([piece async for piece in stream])

    return asyncio.run(pieces())


@pytest.mark.parametrize(
    ("text", "tail", "expected"),
    [
        pytest.param(b"a\nb\nc\n", None, b"a\nb\nc\n", id="whole"),
        pytest.param(b"a\nb\nc\n", 2, b"b\nc\n", id="last two"),
        pytest.param(b"a\nb\nc", 1, b"c", id="without a newline"),
        pytest.param(b"a\nb\n", 9, b"a\nb\n", id="more than there are"),
        pytest.param(b"a\nb\n", 0, b"", id="none"),
        pytest.param(b"", 3, b"", id="empty"),
        pytest.param(b"\n\n\n", 2, b"\n\n", id="empty lines"),
        pytest.param(b"x" * 70_000 + b"\ny\n", 2, b"x" * 70_000 + b"\ny\n", id="a long line"),
    ],
)
def test_the_last_lines(text: bytes, tail: int | None, expected: bytes, tmp_path: Path) -> None:
    a_log(tmp_path, text)
    assert read(tmp_path, tail=tail) == expected


def test_a_log_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path) == b""


def test_the_output_of_one_job_is_told_from_that_of_others(tmp_path: Path) -> None:
    tasks = [
        TaskId("uid", 0, 1),
        TaskId("uid", 10, 0),
        TaskId("uid-0", 0, 0),
        TaskId("other", 0, 0),
    ]
    for task in tasks:
        log = log_of(tmp_path, task)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        times_of(log).touch()
    (log.parent / "notes.log").touch()
    reader = LogReader(tmp_path)

    assert reader.jobs() == ("other", "uid", "uid-0")
    assert reader.attempts("uid") == (tasks[0], tasks[1])
    asyncio.run(reader.remove("uid"))
    assert reader.jobs() == ("other", "uid-0")
    assert not times_of(log_of(tmp_path, tasks[0])).exists()


def test_since_a_moment(tmp_path: Path) -> None:
    log = a_log(tmp_path, b"first\nsecond\nthird\n")
    at = [T0, T0 + timedelta(seconds=10), T0 + timedelta(seconds=20)]
    sizes = (6, 13, 19)
    times_of(log).write_bytes(
        b"".join(
            SAMPLE.pack(size, int(moment.timestamp() * 1_000_000))
            for size, moment in zip(sizes, at, strict=True)
        )
    )
    os.utime(log, (at[2].timestamp(), at[2].timestamp()))
    assert read(tmp_path, since=T0 - timedelta(hours=1)) == b"first\nsecond\nthird\n"
    assert read(tmp_path, since=T0 + timedelta(seconds=5)) == b"second\nthird\n"
    assert read(tmp_path, since=T0 + timedelta(seconds=15)) == b"third\n"
    assert read(tmp_path, since=T0 + timedelta(hours=1)) == b""


def test_a_long_log_keeps_its_end_and_its_offsets(tmp_path: Path) -> None:
    lines = b"".join(b"line %07d\n" % number for number in range(400_000))
    log = a_log(tmp_path, lines)
    cap = LogCap(kept_bytes=1 << 20)
    cap.leave(str(log))
    cap.close()
    kept = read(tmp_path)
    assert log.stat().st_size == len(lines)
    assert lines.endswith(kept)
    assert (1 << 20) - 100 <= len(kept) <= (1 << 20) + 8192
    assert kept.startswith(b"line ")
    assert log.stat().st_blocks * 512 <= (1 << 20) + 65536
    assert read(tmp_path, tail=1) == b"line 0399999\n"


def wait_until(true: Callable[[], bool]) -> None:
    asyncio.run(until_so(true))


@contextlib.contextmanager
def writer(log: Path, count: int) -> Iterator[Path]:
    """A process that prints as fast as it can, and then waits; yields what it makes in between."""
    done = log.with_suffix(".done")
    script = f'head -c {count} /dev/zero; : > "$0"; exec sleep 100000'
    with log.open("ab") as file:
        process = subprocess.Popen(["sh", "-c", script, str(done)], stdout=file)
    try:
        yield done
    finally:
        process.kill()
        process.wait()


class TestLogCap:
    """A log is cut because it is written: no clock has anybody look at it here."""

    KEPT = 1 << 20
    MOST = KEPT + SLACK_BYTES + 65536
    WRITTEN = 200_000_000

    @pytest.fixture
    def cap(self) -> Iterator[LogCap]:
        cap = LogCap(self.KEPT)
        yield cap
        cap.close()

    def is_cut(self, log: Path, size: int = WRITTEN) -> bool:
        found = log.stat()
        return found.st_size == size and found.st_blocks * 512 <= self.MOST

    def test_a_log_is_cut_while_its_writer_lives(self, cap: LogCap, tmp_path: Path) -> None:
        log = a_log(tmp_path, b"")
        cap.watch(str(log))
        with writer(log, self.WRITTEN):
            wait_until(lambda: self.is_cut(log))

    def test_many_logs_in_many_places(self, cap: LogCap, tmp_path: Path) -> None:
        """Each is cut, also when others were written before it and its directory is young."""
        logs = [log_of(tmp_path, TaskId(f"{number % 4}-uid-{number}", 0, 1)) for number in range(8)]
        with contextlib.ExitStack() as stack:
            for log in logs:
                log.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(writer(log, self.WRITTEN // 8))
                cap.watch(str(log))
            wait_until(lambda: all(self.is_cut(log, self.WRITTEN // 8) for log in logs))

    def test_one_that_was_long_before_it_was_watched(self, cap: LogCap, tmp_path: Path) -> None:
        log = a_log(tmp_path, b"x" * (8 << 20))
        cap.watch(str(log))
        wait_until(lambda: self.is_cut(log, 8 << 20))

    def test_one_that_its_own_task_cuts_and_writes_anew(self, cap: LogCap, tmp_path: Path) -> None:
        log = a_log(tmp_path, b"x" * (8 << 20))
        cap.watch(str(log))
        wait_until(lambda: self.is_cut(log, 8 << 20))
        log.write_bytes(b"x" * (7 << 20))
        wait_until(lambda: self.is_cut(log, 7 << 20))

    def test_a_directory_that_is_removed_and_made_again(self, cap: LogCap, tmp_path: Path) -> None:
        cap.watch(str(a_log(tmp_path, b"x")))
        shutil.rmtree(log_of(tmp_path, TASK).parent)
        log = a_log(tmp_path, b"")
        cap.watch(str(log))
        with writer(log, self.WRITTEN):
            wait_until(lambda: self.is_cut(log))

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")
    def test_a_file_system_without_holes(self, cap: LogCap, tmp_path: Path) -> None:
        """All of a log that is too long goes; its writer appends, and so goes on at 0."""
        subprocess.run(["mount", "-t", "ramfs", "none", tmp_path], check=True)
        try:
            log = a_log(tmp_path, b"")
            cap.watch(str(log))
            with writer(log, self.WRITTEN) as done:
                wait_until(lambda: done.exists() and log.stat().st_size <= self.MOST)
        finally:
            subprocess.run(["umount", "--lazy", tmp_path], check=True)


@pytest.mark.skipif(
    subprocess.run([*WITHOUT_INOTIFY, "true"], capture_output=True, check=False).returncode != 0,
    reason="only who may make a user namespace can take inotify away",
)
def test_without_inotify_logs_are_cut_once_a_second(tmp_path: Path) -> None:
    place = str(Path(__file__).parent)
    script = (
        f"import sys; from pathlib import Path; sys.path.insert(0, {place!r});"
        "import test_process_logs; test_process_logs.play_a_long_log(Path(sys.argv[1]))"
    )
    command = [*WITHOUT_INOTIFY, sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = (tmp_path / "data" / KEEPER_LOG_NAME).read_text()
    assert told.count("logs are cut once a second only") == 1


def play_a_long_log(place: Path) -> None:
    """Have a task print more than is kept, and wait until that is given back."""
    size = 4 * KEPT_BYTES

    async def scene(shop: ProcessShop) -> None:
        script = f"head -c {size} /dev/zero; exec sleep 100000"
        order = replace(shop.order(Exits()), command=("sh", "-c", script))
        log = log_of(shop.data_dir, order.id)
        await shop.runtime.launch([order])
        await shop.until_so(log.exists)
        await shop.until_so(lambda: log.stat().st_size == size)
        await shop.until_so(lambda: log.stat().st_blocks * 512 <= KEPT_BYTES + SLACK_BYTES)

    ProcessShop.play(scene, place)  # type: ignore[arg-type]


def test_what_was_printed_without_a_keeper_is_cut_by_the_next(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        order = shop.order(ExitsWhenTold(0))
        size = 4 * KEPT_BYTES
        script = order.command[2].replace("exit 0", f"head -c {size} /dev/zero")
        order = replace(order, command=(*order.command[:2], script, *order.command[3:]))
        log = log_of(shop.data_dir, order.id)
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        shop.runtime.abandon()
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        shop.let_go(order.id)
        await shop.until_so(lambda: not living(shop.data_dir))
        assert log.stat().st_blocks * 512 >= size
        await shop.lead()
        await shop.until(is_over(order.id))
        await shop.until_so(lambda: log.stat().st_blocks * 512 <= KEPT_BYTES + SLACK_BYTES)

    ProcessShop.play(scene, tmp_path)  # type: ignore[arg-type]


def test_following_reads_all_until_the_end(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        order = shop.order(ExitsWhenTold(0))
        script = order.command[2].replace("exit 0", "echo last; exit 0")
        command = (*order.command[:2], f"echo first; {script}", *order.command[3:])
        order = replace(order, command=command)
        over = asyncio.Event()
        reader = LogReader(shop.data_dir)
        seen = b""

        async def follow() -> None:
            nonlocal seen
            async for piece in reader.stream(order.id, over=over):
                seen += piece

        # It begins before the task does: the file comes later.
        following = asyncio.ensure_future(follow())
        await shop.runtime.launch([order])
        await shop.until_so(lambda: seen == b"first\n")
        shop.let_go(order.id)
        await shop.until_so(lambda: seen == b"first\nlast\n")
        await shop.until(is_over(order.id))
        over.set()
        await following
        assert seen == b"first\nlast\n"
        assert reader.attempts(order.job_uid) == (order.id,)
        await reader.remove(order.job_uid)
        assert reader.attempts(order.job_uid) == ()

    ProcessShop.play(scene, tmp_path)  # type: ignore[arg-type]
