"""What tasks print: one file per attempt, bounded, with the times at which it grew.

A task writes straight into its file; no pipe and no keeper is in the way. Once a second the keeper
looks at the sizes: it notes when a file grew, and gives the oldest part of one that is too long
back to the disk. That leaves a hole at its beginning and every offset as it is, so readers go on
undisturbed and no line is lost between a copy and a cut.
"""

from __future__ import annotations

import errno
import os
import struct
from datetime import datetime
from pathlib import Path

from interlock.private_files import open_private
from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.kernel import punch_hole

#: How much of an attempt's output is kept, from its end.
KEPT_BYTES = 16 << 20
#: It may grow by this much more before the oldest part goes: a hole at a time, not at every look.
_SLACK = 1 << 20
_BLOCK = 4096
#: An offset, and the moment by which everything before it was written, in microseconds.
SAMPLE = struct.Struct("<QQ")


def logs_place(data_dir: Path) -> Path:
    """Where the output of all Jobs is, in directories that many Jobs share.

    A directory for each Job would cost more than all the rest of starting a process.
    """
    return data_dir / "logs"


def logs_of(data_dir: Path, job_uid: str) -> Path:
    """The directory with the output of a Job's attempts, and that of other Jobs."""
    return logs_place(data_dir) / _shelf(_safe(job_uid))


def log_of(data_dir: Path, task: TaskId) -> Path:
    """The file with what an attempt printed."""
    return Path(log_name(str(data_dir), task))


def log_name(data_dir: str, task: TaskId) -> str:
    """As `log_of`, for the keeper: making a `Path` costs as much as opening the file."""
    uid = _safe(task.job_uid)
    return f"{data_dir}/logs/{_shelf(uid)}/{uid}-{task.task}-{task.attempt}.log"


def attempt_of(log: Path) -> TaskId | None:
    """Which attempt a file belongs to; None when it is no file of ours."""
    parts = log.stem.rsplit("-", 2)
    if len(parts) != 3 or not (parts[1].isdigit() and parts[2].isdigit()):
        return None
    return TaskId(parts[0], int(parts[1]), int(parts[2]))


def times_of(log: Path) -> Path:
    """The file with the times at which a log grew; a short one has none."""
    return log.with_suffix(".times")


def _safe(job_uid: str) -> str:
    """Identities of Jobs are made by the server, but a path is never built on trust."""
    return job_uid.replace("/", "_").replace("..", "_")


def _shelf(safe_uid: str) -> str:
    """A directory that random identities fill evenly: few entries each, however many Jobs."""
    return safe_uid[:2]


class Outputs:
    """The logs of running tasks."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept = kept_bytes
        self._sizes: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def add(self, log: str) -> None:
        """A task writes to it from now on."""
        self._sizes[log] = 0

    def drop(self, log: str) -> None:
        """Nobody writes to it any more."""
        if self._sizes.pop(log, None) is not None and _size(log) > self._kept + _SLACK:
            self._trim(log)

    def look(self, now: datetime) -> None:
        """Note which logs grew, and cut those that are too long."""
        for log, known in self._sizes.items():
            size = _size(log)
            if size in (known, 0):
                continue
            self._sizes[log] = size
            _note(log, size, now)
            if size > self._kept + _SLACK:
                self._trim(log)

    def _trim(self, log: str) -> None:
        """Give back all but the newest part."""
        try:
            fd = open_private(log, os.O_RDWR)
        except OSError:
            return
        try:
            size = os.fstat(fd).st_size
            begins = _first_byte(fd)
            if size - begins <= self._kept + _SLACK:
                return
            punch_hole(fd, (size - self._kept) // _BLOCK * _BLOCK)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS):
                # A file system without holes: bounded is better than whole.
                os.ftruncate(fd, 0)
        finally:
            os.close(fd)


def _size(log: str) -> int:
    try:
        return os.stat(log).st_size  # noqa: PTH116  Once a second for every task.
    except OSError:
        return 0


def _first_byte(fd: int) -> int:
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0


def _note(log: str, size: int, now: datetime) -> None:
    try:
        fd = open_private(times_of(Path(log)), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError:
        return
    try:
        os.write(fd, SAMPLE.pack(size, int(now.timestamp() * 1_000_000)))
    except OSError:
        return
    finally:
        os.close(fd)
