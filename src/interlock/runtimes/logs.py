"""Reading what tasks print: from the beginning, the last lines, since a moment, or live.

The file of an attempt may begin with a hole, where the oldest output was given back to the disk;
reading starts at the first whole line after it. When each part was written is known to a second.
"""

from __future__ import annotations

import asyncio
import bisect
import ctypes
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from interlock.private_files import open_private
from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.output import (
    SAMPLE,
    attempt_of,
    log_of,
    logs_of,
    logs_place,
    times_of,
)

_CHUNK = 64 << 10
#: How far back the beginning of a line is looked for.
_LONGEST_LINE = 64 << 10
#: How often a follower looks where the kernel does not tell.
_LOOK_S = 0.25
_OUTPUT = (".log", ".pipe")
_IN_MODIFY, _IN_CREATE = 0x2, 0x100
_IN_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


class LogReader:
    """The output of every attempt under one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def jobs(self) -> tuple[str, ...]:
        """The uids of the Jobs that have output."""
        found = map(attempt_of, logs_place(self._data_dir).glob("*/*.[lp]*"))
        return tuple(sorted({task.job_uid for task in found if task is not None}))

    def attempts(self, job_uid: str) -> tuple[TaskId, ...]:
        """The attempts of a Job that were started, in order; a silent one has a pipe and no log."""
        found = (attempt_of(path) for path in self._files(job_uid) if path.suffix in _OUTPUT)
        return tuple(sorted({task for task in found if task is not None}))

    async def stream(
        self,
        task: TaskId,
        *,
        tail: int | None = None,
        since: datetime | None = None,
        over: asyncio.Event | None = None,
    ) -> AsyncIterator[bytes]:
        """What an attempt printed, in pieces; live until `over` is set, when that is given.

        `tail` gives the last lines only, `since` what was printed from a moment on. Whoever
        follows sets `over` once the attempt is known to have ended; all it printed is then read.
        """
        log = log_of(self._data_dir, task)
        fd = await _open_when_there(log, over)
        if fd is None:
            return
        try:
            at = await asyncio.to_thread(_begin, fd, log, tail, since)
            async for piece in _pieces(fd, log, at, over):
                yield piece
        finally:
            os.close(fd)

    async def remove(self, job_uid: str) -> None:
        """Delete the output of all attempts of a Job."""
        await asyncio.to_thread(self._remove, job_uid)

    def _remove(self, job_uid: str) -> None:
        for path in self._files(job_uid):
            path.unlink(missing_ok=True)

    def _files(self, job_uid: str) -> list[Path]:
        """Every file of a Job; the files of other Jobs beside them are passed over quickly."""
        place = logs_of(self._data_dir, job_uid)
        try:
            with os.scandir(place) as entries:
                names = [entry.name for entry in entries if entry.name.startswith(f"{job_uid}-")]
        except OSError:
            return []
        paths = (place / name for name in names)
        return [path for path in paths if (task := attempt_of(path)) and task.job_uid == job_uid]


async def _pieces(fd: int, log: Path, at: int, over: asyncio.Event | None) -> AsyncIterator[bytes]:
    watch = None if over is None else Watch(log)
    try:
        while True:
            # Asked before reading: what was printed before the end is then never missed.
            last = over is None or over.is_set()
            while piece := await asyncio.to_thread(os.pread, fd, _CHUNK, at):
                at += len(piece)
                yield piece
            if last or os.fstat(fd).st_nlink == 0:
                return
            assert watch is not None
            assert over is not None
            at = min(at, os.fstat(fd).st_size)
            await watch.changed(over)
    finally:
        if watch is not None:
            watch.close()


class Watch:
    """Wakes a follower when a file grows, or when one is made in a directory."""

    def __init__(self, path: Path, what: int = _IN_MODIFY) -> None:
        self._fd = _libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
        self._is_watching = self._fd >= 0 and (
            _libc.inotify_add_watch(self._fd, os.fsencode(path), what) >= 0
        )

    async def changed(self, over: asyncio.Event) -> None:
        """Wait until that happened or the attempt is over; without inotify, for a while."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        if self._is_watching:
            loop.add_reader(self._fd, woken.set)
        waits = [loop.create_task(over.wait()), loop.create_task(woken.wait())]
        try:
            timeout = 10.0 if self._is_watching else _LOOK_S
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            if self._is_watching:
                loop.remove_reader(self._fd)
                self._drain()

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _drain(self) -> None:
        try:
            while os.read(self._fd, 4096):
                pass
        except BlockingIOError:
            return


async def _open_when_there(log: Path, over: asyncio.Event | None) -> int | None:
    """The open file; None when there is none, and for a follower when there will be none."""
    while True:
        last = over is None or over.is_set()
        try:
            return open_private(log, os.O_RDONLY)
        except OSError:
            if last:
                return None
        assert over is not None
        watch = Watch(log.parent, _IN_CREATE)
        try:
            # Once more: it may have been made before anybody watched.
            if not log.exists():
                await watch.changed(over)
        finally:
            watch.close()


def _begin(fd: int, log: Path, tail: int | None, since: datetime | None) -> int:
    """The offset at which reading starts."""
    begin = _first_line(fd)
    if since is not None:
        begin = max(begin, _written_since(fd, log, since))
    if tail is not None:
        begin = max(begin, _last_lines(fd, tail, begin))
    return begin


def _first_line(fd: int) -> int:
    """Where the first whole line begins: 0, or behind the hole and the line it cut."""
    try:
        begin = os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0
    if begin == 0:
        return 0
    newline = os.pread(fd, _LONGEST_LINE, begin).find(b"\n")
    return begin + newline + 1


def _written_since(fd: int, log: Path, since: datetime) -> int:
    """Where the first line begins that may have been written at or after a moment."""
    stat = os.fstat(fd)
    if datetime.fromtimestamp(stat.st_mtime, UTC) < since:
        return stat.st_size
    try:
        data = times_of(log).read_bytes()
    except OSError:
        return 0
    samples = list(SAMPLE.iter_unpack(data[: len(data) // SAMPLE.size * SAMPLE.size]))
    moment = int(since.timestamp() * 1_000_000)
    # All before the offset of a sample was written by its time.
    later = bisect.bisect_left(samples, moment, key=lambda sample: sample[1])
    return _line_begin(fd, samples[later - 1][0]) if later else 0


def _line_begin(fd: int, at: int) -> int:
    """The beginning of the line that an offset is in."""
    start = max(0, at - _LONGEST_LINE)
    newline = os.pread(fd, at - start, start).rfind(b"\n")
    return start + newline + 1 if newline >= 0 else start


def _last_lines(fd: int, count: int, begin: int) -> int:
    """Where the last lines begin, not before an offset."""
    end = os.fstat(fd).st_size
    if count <= 0:
        return end
    # A newline at the very end closes the last line and does not begin another.
    left, at = count, max(begin, end - 1)
    while at > begin:
        start = max(begin, at - _CHUNK)
        block = os.pread(fd, at - start, start)
        place = len(block)
        while (place := block.rfind(b"\n", 0, place)) >= 0:
            left -= 1
            if left == 0:
                return start + place + 1
        at = start
    return begin
