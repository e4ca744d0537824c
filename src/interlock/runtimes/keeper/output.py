"""What tasks print: one file per attempt, bounded, with the times at which it grew.

A task writes straight into its file; no pipe and no keeper is in the way. Once a second the keeper
looks at the sizes and notes when a file grew. The oldest part of one that is too long is given back
to the disk (`log_cap`). That leaves a hole at its beginning and every offset as it is, so readers
go on undisturbed and no line is lost between a copy and a cut.
"""

from __future__ import annotations

import os
import struct
from datetime import datetime
from pathlib import Path

from interlock.private_files import open_private
from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.log_cap import KEPT_BYTES, SLACK_BYTES, LogCap

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

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._cap = LogCap()

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def add(self, log: str) -> None:
        """A task writes to it from now on."""
        self._sizes[log] = 0
        self._cap.watch(log)

    def drop(self, log: str) -> None:
        """Nobody writes to it any more."""
        self._sizes.pop(log, None)
        self._cap.leave(log)

    def look(self, now: datetime) -> None:
        """Note which logs grew."""
        for log, known in self._sizes.items():
            size = _size(log)
            if size in (known, 0):
                continue
            self._sizes[log] = size
            _note(log, size, now)
            if size > KEPT_BYTES + SLACK_BYTES:
                # Most were cut by now, but not where the kernel tells of no writes.
                self._cap.watch(log)

    def close(self) -> None:
        """Cut what is too long for the last time."""
        self._cap.close()


def _size(log: str) -> int:
    try:
        return os.stat(log).st_size  # noqa: PTH116  Once a second for every task.
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
