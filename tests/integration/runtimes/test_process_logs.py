"""What tasks print can be read whole, from its end, since a moment, and live."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from interlock.resources.tasks import TaskId, process_of
from interlock.runtimes.keeper.log_cut import cut
from interlock.runtimes.keeper.output import SAMPLE, log_of, times_of
from interlock.runtimes.logs import LogReader
from interlock.testing.builders import T0, with_process
from interlock.testing.runtime_contract import ExitsWhenTold, is_over
from support.workshop import ProcessShop

TASK = TaskId("uid", 0, 1)


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
    cut(str(log), kept_bytes=1 << 20)
    kept = read(tmp_path)
    assert log.stat().st_size == len(lines)
    assert lines.endswith(kept)
    assert (1 << 20) - 100 <= len(kept) <= (1 << 20) + 8192
    assert kept.startswith(b"line ")
    assert log.stat().st_blocks * 512 <= (1 << 20) + 65536
    assert read(tmp_path, tail=1) == b"line 0399999\n"


def test_following_reads_all_until_the_end(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        order = shop.order(ExitsWhenTold(0))
        given = process_of(order).command
        script = given[2].replace("exit 0", "echo last; exit 0")
        command = (*given[:2], f"echo first; {script}", *given[3:])
        order = with_process(order, command=command)
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
