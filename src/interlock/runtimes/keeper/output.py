"""What tasks print: a pipe and one bounded file per attempt, with the times at which it grew.

A task prints into a pipe with a name, which it holds open for reading too: so it never ends for
want of a reader, and waits when the pipe is full. The logger moves what is in it into the file. The
keeper holds each pipe open from before its task begins until all that was in it is in the file, and
tells of the end of the task only then. The pipe goes then; the one of a silent task stays, in place
of a log. Once a second the keeper notes which files grew.

Tasks that were started by older versions write into their files themselves; those are cut once a
second.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from interlock.private_files import open_private
from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.draining import Drain
from interlock.runtimes.keeper.log_cut import KEPT_BYTES, SLACK_BYTES, cut
from interlock.runtimes.keeper.log_file import log_path, pipe_path
from interlock.runtimes.keeper.logger import unread
from interlock.runtimes.keeper.moments import monotonic

#: When no logger drained a pipe for so long, the end of its task is told without the rest.
GIVE_UP_S = 60.0
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
    return log_path(data_dir, _name(task))


def _name(task: TaskId) -> str:
    uid = _safe(task.job_uid)
    return f"{_shelf(uid)}/{uid}-{task.task}-{task.attempt}"


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


class Output(Struct, eq=False):
    """What one attempt prints."""

    number: int
    name: str
    log: str
    #: The pipe it prints into; below 0 when it writes into the file itself.
    pipe: int
    size: int = 0
    #: What is done once all of it is in the file, and since when that is waited for.
    then: Callable[[], None] | None = None
    ended_at: float = 0.0


class Outputs:
    """The output of tasks that are being started or run, or have just ended."""

    def __init__(self, data_dir: str) -> None:
        self._data_dir = data_dir
        self._running: dict[TaskId, Output] = {}
        self._ending: dict[int, Output] = {}
        self._next = 1
        #: Given once there is something to drain.
        self.drain: Drain

    def __bool__(self) -> bool:
        return bool(self._running or self._ending)

    def prepare(self, task: TaskId) -> None:
        """Make the pipe of an attempt that is to be started, unless that was done before.

        Raises:
            OSError: It cannot be made now.
        """
        if task not in self._running:
            self._add(task, _make_pipe(pipe_path(log_name(self._data_dir, task))))

    def adopt(self, task: TaskId) -> None:
        """An attempt was started by a keeper before this one."""
        if task not in self._running:
            self._add(task, _open_pipe(pipe_path(log_name(self._data_dir, task))))

    def _add(self, task: TaskId, pipe: int) -> None:
        output = Output(self._next, _name(task), log_name(self._data_dir, task), pipe)
        self._next += 1
        self._running[task] = output
        if pipe >= 0:
            self.drain.add(output.number, output.name, pipe)

    def end(self, task: TaskId, then: Callable[[], None]) -> None:
        """Nothing of an attempt lives any more: do something once its file is complete."""
        output = self._running.pop(task, None)
        if output is None:
            then()
        elif output.pipe < 0:
            cut(output.log)
            then()
        elif _is_silent(output):
            self.drain.drop(output.number)
            os.close(output.pipe)
            then()
        else:
            output.then, output.ended_at = then, monotonic()
            self._ending[output.number] = output
            self.drain.end(output.number)

    def drained(self, number: int) -> None:
        """All that an attempt printed is in its file."""
        output = self._ending.pop(number, None)
        if output is not None:
            os.close(output.pipe)
            assert output.then is not None
            output.then()

    def tell_all(self) -> None:
        """Tell a new logger what there is to drain."""
        for output in (*self._running.values(), *self._ending.values()):
            if output.pipe >= 0:
                self.drain.add(output.number, output.name, output.pipe)
        for number in self._ending:
            self.drain.end(number)

    def look(self, now: datetime, at: float) -> None:
        """Note which logs grew, and see that all are drained; `at` is the monotonic moment."""
        for output in self._running.values():
            size = _size(output.log)
            if size in (output.size, 0):
                continue
            output.size = size
            _note(output.log, size, now)
            if output.pipe < 0 and size > KEPT_BYTES + SLACK_BYTES:
                cut(output.log)
        self.drain.look()
        late = [each for each in self._ending.values() if each.ended_at < at - GIVE_UP_S]
        for output in late:
            sys.stderr.write(f"{output.name}: no logger drained its output for {GIVE_UP_S:.0f} s\n")
            sys.stderr.flush()
            self.drain.drop(output.number)
            self.drained(output.number)


def _is_silent(output: Output) -> bool:
    """Whether an attempt that is over printed nothing at all: then nothing is waited for.

    Its pipe stays there in place of a log: making an empty file costs much. The logger makes the
    file longer before, or when, it takes something out of the pipe. The file is looked at last, so
    that what was taken meanwhile is seen.
    """
    return _size(output.log) == 0 and unread(output.pipe) == 0 and _size(output.log) == 0


def _make_pipe(path: str) -> int:
    try:
        os.mkfifo(path, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)  # noqa: PTH103, PTH120
        os.mkfifo(path, 0o600)
    except FileExistsError:
        # No attempt is started twice: whatever it is, it is not in use.
        os.unlink(path)  # noqa: PTH108
        os.mkfifo(path, 0o600)
    return open_private(path, os.O_RDWR | os.O_NONBLOCK)


def _open_pipe(path: str) -> int:
    """The pipe of an attempt; below 0 when it has none."""
    try:
        fd = open_private(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError:
        return -1
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        return -1
    return fd


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
