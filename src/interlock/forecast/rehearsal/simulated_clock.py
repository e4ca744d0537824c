"""The clock of one simulated process: it follows the loop's time, and can be set."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from interlock.control.clock import listening
from interlock.forecast.rehearsal.simulated_loop import SimHandle, SimLoop, SimProcess

_MICROSECOND = timedelta(microseconds=1)


class SimTimer:
    """A moment that a process waits for."""

    __slots__ = ("_clock", "callback", "handle", "moment")

    def __init__(self, clock: SimClock, moment: datetime, callback: Callable[[], None]) -> None:
        self._clock = clock
        self.moment = moment
        self.callback = callback
        self.handle: SimHandle | None = None

    def cancel(self) -> None:
        """Make sure it does not ring any more."""
        if self.handle is not None:
            self.handle.cancel()
        self._clock.waiting.pop(self, None)


class SimClock:
    """What one process believes the time to be."""

    def __init__(self, loop: SimLoop, process: SimProcess, origin: datetime) -> None:
        self._loop = loop
        self._process = process
        self._origin = origin
        #: How far this clock is ahead of the world's own time.
        self._ahead_us = 0
        #: What was last told: it is asked for many times at one moment.
        self._told_us = -1
        self._told = origin
        #: The world's own time when it was made, and the earliest that it ever showed.
        self.made_at = origin + timedelta(microseconds=loop.now_us)
        self.earliest = self.made_at
        self.waiting: dict[SimTimer, None] = {}
        #: Whoever wants to know when it is set.
        self.jumps: list[Callable[[], None]] = []

    def now(self) -> datetime:
        """The wall clock of this process."""
        now_us = self._loop.now_us + self._ahead_us
        if now_us != self._told_us:
            self._told_us = now_us
            self._told = self._origin + timedelta(microseconds=now_us)
        return self._told

    def monotonic(self) -> float:
        """Seconds since the world began."""
        return self._loop.time()

    def call_at(self, moment: datetime, callback: Callable[[], None]) -> SimTimer:
        """Ring once this clock says `moment` or later."""
        timer = SimTimer(self, moment, callback)
        self.waiting[timer] = None
        self._arm(timer)
        return timer

    def call_later(self, seconds: float, callback: Callable[[], None]) -> SimHandle:
        """Ring after a length of time, whatever the clock does."""
        return self._loop.call_later(seconds, callback, context=self._process.context.copy())

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Ring whenever this clock was set, until the returned call is made."""
        return listening(self.jumps, callback)

    def jump(self, by: timedelta) -> None:
        """Set the clock forwards or backwards, and tell those who asked."""
        self._ahead_us += by // _MICROSECOND
        self.earliest = min(self.earliest, self.now())
        for timer in tuple(self.waiting):
            if timer.handle is not None:
                timer.handle.cancel()
            self._arm(timer)
        for callback in tuple(self.jumps):
            self._loop.call_soon(callback, context=self._process.context.copy())

    def _arm(self, timer: SimTimer) -> None:
        due_us = (timer.moment - self._origin) // _MICROSECOND - self._ahead_us
        if timer.moment - self._origin > timedelta(days=36500):
            return  # Farther than any world lives, and than the loop can count.
        timer.handle = self._loop.call_at_us(
            max(due_us, self._loop.now_us),
            self._ring,
            timer,
            context=self._process.context.copy(),
        )

    def _ring(self, timer: SimTimer) -> None:
        if self.waiting.pop(timer, timer) is None:
            timer.callback()
