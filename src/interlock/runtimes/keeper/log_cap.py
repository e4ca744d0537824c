"""Log truncation: what a task prints takes little more of the disk than its cap, however fast.

A thread of the keeper cuts logs, so that the loop waits for none. The kernel wakes it when a log is
written, and not the clock: it then looks at the logs in that directory, gives the oldest part of
those that are too long back to the disk, and rests for a moment, however many writes there are.
While nothing is written nothing is done.

It is no limit of the kernel's. `RLIMIT_FSIZE` would bound every file of the task, and counts what
was given back. A pipe would need somebody who reads it, and a task would end with its keeper.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import sys
import threading
from queue import Empty, SimpleQueue

from interlock.private_files import open_private
from interlock.runtimes.keeper.kernel import punch_hole
from interlock.runtimes.keeper.moments import monotonic

#: How much of an attempt's output is kept, from its end.
KEPT_BYTES = 16 << 20
#: It may grow by this much more before the oldest part goes: a hole at a time, not at every look.
SLACK_BYTES = 1 << 20
#: What is written within this time is looked at together.
_REST_S = 0.02
#: Thousands of logs are looked at less often, so that looking stays a small part of it.
_REST_PER_LOOK = 9
_BLOCK = 4096
_IN_MODIFY, _IN_ONESHOT = 0x2, 0x8000_0000
_EVENT = struct.Struct("=iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class LogCap:
    """The logs of running tasks, each cut when it is written and too long.

    All that is known is the thread's own; the others only hand over names.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept = kept_bytes
        #: A log, and whether a task writes to it from now on, or not any more.
        self._handed: SimpleQueue[tuple[str, bool]] = SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._closing = threading.Event()
        self._writes = Writes()
        #: Where the output begins that was not given back, by directory and log.
        self._begins: dict[str, dict[str, int]] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def watch(self, log: str) -> None:
        """Look at a log now, and from now on whenever it is written."""
        self._handed.put((log, True))
        os.eventfd_write(self._wake, 1)

    def leave(self, log: str) -> None:
        """Look at a log for the last time: nobody writes to it any more."""
        self._handed.put((log, False))
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Cut what was handed over, and end the thread."""
        self._closing.set()
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        self._writes.close()
        os.close(self._wake)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self._writes.fd >= 0:
            poll.register(self._writes.fd, select.POLLIN)
        while True:
            poll.poll()
            # Asked before looking: what was handed over before the end is then never missed.
            last = self._closing.is_set()
            began = monotonic()
            long = self._take_handed() + self._look(self._writes.read())
            looked_s = monotonic() - began
            for log in long:
                self._cut(log)
            if last:
                return
            self._closing.wait(max(_REST_S, _REST_PER_LOOK * looked_s))

    def _take_handed(self) -> list[str]:
        """Take in the names that were handed over; returns the logs that are too long."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        handed: dict[str, bool] = {}
        with contextlib.suppress(Empty):
            while True:
                log, runs = self._handed.get_nowait()
                handed[log] = runs
        return [log for log, runs in handed.items() if self._is_too_long(log, runs=runs)]

    def _is_too_long(self, log: str, *, runs: bool) -> bool:
        place = _place_of(log)
        if runs:
            self._begins.setdefault(place, {}).setdefault(log, 0)
            # Before the look: what is written after it is told.
            self._writes.await_one(place)
        is_long = self._is_long(log, self._begins.get(place, {}).get(log, 0))
        if not runs and place in self._begins:
            self._begins[place].pop(log, None)
            if not self._begins[place]:
                del self._begins[place]
        return is_long

    def _look(self, places: set[str]) -> list[str]:
        """The logs that are too long, of directories in which something was written."""
        long = []
        for place in places:
            logs = self._begins.get(place)
            if not logs:
                continue
            self._writes.await_one(place)
            long += [log for log, begins in logs.items() if self._is_long(log, begins)]
        return long

    def _is_long(self, log: str, begins: int) -> bool:
        try:
            found = os.stat(log)  # noqa: PTH116  Often, for every task.
        except OSError:
            return False
        # What it takes of the disk counts too: a task may cut its own output and begin anew. It is
        # not enough, as some file systems tell of it late.
        taken = max(found.st_size - begins, found.st_blocks * 512)
        return taken > self._kept + SLACK_BYTES

    def _cut(self, log: str) -> None:
        begins = cut(log, self._kept)
        logs = self._begins.get(_place_of(log), {})
        if log in logs:
            logs[log] = begins


class Writes:
    """Tells in which directories a file was written: once for each time that it is awaited.

    A directory that nobody waits for costs its writers nothing, and the kernel keeps no more than
    one event of each, so that none is ever dropped.
    """

    def __init__(self) -> None:
        self.fd = int(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._awaited: dict[int, str] = {}
        self._has_complained = False
        if self.fd < 0:
            self._complain(ctypes.get_errno())

    def await_one(self, place: str) -> None:
        """Have the next write in a directory told; without inotify it never is."""
        if self.fd < 0 or place in self._awaited.values():
            return
        watch = _libc.inotify_add_watch(self.fd, os.fsencode(place), _IN_MODIFY | _IN_ONESHOT)
        if watch >= 0:
            self._awaited[watch] = place
        elif ctypes.get_errno() != errno.ENOENT:
            self._complain(ctypes.get_errno())

    def read(self) -> set[str]:
        """The directories in which something was written, or that are gone."""
        found: set[str] = set()
        with contextlib.suppress(OSError):
            while self.fd >= 0 and (data := os.read(self.fd, 1 << 16)):
                at = 0
                while at < len(data):
                    watch, _, _, length = _EVENT.unpack_from(data, at)
                    at += _EVENT.size + length
                    place = self._awaited.pop(watch, None)
                    if place is not None:
                        found.add(place)
        return found

    def close(self) -> None:
        """Wait for no more."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _complain(self, code: int) -> None:
        if not self._has_complained:
            self._has_complained = True
            sys.stderr.write(
                f"logs are cut once a second only, and not when they are written: inotify: "
                f"{os.strerror(code)}\n"
            )
            sys.stderr.flush()


def cut(log: str, kept_bytes: int) -> int:
    """Give back all but the newest part of a log that is too long; returns where it then begins."""
    try:
        fd = open_private(log, os.O_RDWR)
    except OSError:
        return 0
    try:
        size = os.fstat(fd).st_size
        begins = _first_byte(fd)
        if size - begins > kept_bytes + SLACK_BYTES:
            begins = (size - kept_bytes) // _BLOCK * _BLOCK
            _give_back(fd, begins)
        # Also when that failed: it is tried again when the log has grown by as much once more.
        return min(begins, os.fstat(fd).st_size)
    except OSError:
        return 0
    finally:
        os.close(fd)


def _give_back(fd: int, length: int) -> None:
    try:
        punch_hole(fd, length)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS):
            # A file system without holes: bounded is better than whole.
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)


def _first_byte(fd: int) -> int:
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0


def _place_of(log: str) -> str:
    return log.rpartition("/")[0]
