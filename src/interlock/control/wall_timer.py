"""A kernel timer on the wall clock, which also says when the clock was set (Linux timerfd).

Python has no call for it before 3.13, so the C library is asked.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_CLOCK_REALTIME = 0
_TFD_TIMER_ABSTIME = 1
_TFD_TIMER_CANCEL_ON_SET = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: An armed timer tells that the clock was set; this moment is for when nothing else is due.
_NEVER = datetime(2200, 1, 1, tzinfo=UTC)


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class WallTimer:
    """One timer on the running event loop; arming it again replaces what it waits for."""

    def __init__(
        self, fd: int, libc: ctypes.CDLL, on_ring: Callable[[], None], on_set: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._libc = libc
        self._on_ring = on_ring
        self._on_set = on_set
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._readable)

    @classmethod
    def open(cls, on_ring: Callable[[], None], on_set: Callable[[], None]) -> WallTimer | None:
        """A timer, or None where the kernel or the event loop has none."""
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            fd = libc.timerfd_create(_CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            return None
        if fd < 0:
            return None
        try:
            return cls(fd, libc, on_ring, on_set)
        except (NotImplementedError, OSError):
            os.close(fd)
            return None

    def arm(self, moment: datetime | None) -> None:
        """Ring at a moment, at once when it has passed; None only waits for the clock to be set."""
        micros = max(((moment or _NEVER) - _EPOCH) // _MICROSECOND, 1)
        value = _TimeSpec(micros // 1_000_000, micros % 1_000_000 * 1000)
        spec = _TimerSpec(_TimeSpec(0, 0), value)
        flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
        if self._libc.timerfd_settime(self._fd, flags, ctypes.byref(spec), None) == 0:
            return
        code = ctypes.get_errno()
        if code != errno.ECANCELED:
            raise OSError(code, os.strerror(code))
        # The clock was set since the last call. The kernel armed the timer all the same.
        self._loop.call_soon(self._on_set)

    def close(self) -> None:
        """Give the timer back to the kernel."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _readable(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ECANCELED:
                raise
            self._on_set()
        else:
            self._on_ring()
