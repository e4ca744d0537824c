"""What attempts write in their workers, in the files in which the output of processes is."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from pathlib import Path

from interlock.control.clock import Clock
from interlock.private_files import open_private
from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.log_cut import KEPT_BYTES, SLACK_BYTES, first_byte, give_back
from interlock.runtimes.keeper.log_file import open_log
from interlock.runtimes.keeper.output import SAMPLE, log_of, times_of

#: How often at most it is noted when a log grew.
_NOTE_EVERY_S = 1.0


class WorkerOutput:
    """Writes what workers send, bounded for each attempt as that of processes is."""

    def __init__(self, data_dir: Path, clock: Clock) -> None:
        self._data_dir = data_dir
        self._clock = clock

    async def write(self, task: TaskId, text: str) -> None:
        """Add lines to the output of an attempt; a disk that is full loses them, and no more."""
        data = text.encode()
        if not data.endswith(b"\n"):
            data += b"\n"
        await asyncio.to_thread(self._write, task, data, self._clock.now())

    def _write(self, task: TaskId, data: bytes, now: datetime) -> None:
        log = log_of(self._data_dir, task)
        try:
            fd = open_log(str(log))
        except OSError:
            return
        try:
            begins = os.fstat(fd)
            size = begins.st_size
            size += os.pwrite(fd, data[-KEPT_BYTES:], size)
            if size - first_byte(fd) > KEPT_BYTES + SLACK_BYTES:
                give_back(fd, size, KEPT_BYTES)
            if not begins.st_size or now.timestamp() - begins.st_mtime >= _NOTE_EVERY_S:
                _note(log, size, now)
        except OSError:
            return
        finally:
            os.close(fd)


def _note(log: Path, size: int, now: datetime) -> None:
    """Note that everything before `size` was written by now."""
    fd = open_private(times_of(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(fd, SAMPLE.pack(size, int(now.timestamp() * 1_000_000)))
    finally:
        os.close(fd)
