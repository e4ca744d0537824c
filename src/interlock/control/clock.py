"""The clock: the only module that reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from interlock.control.timer_heap import TimerHeap
from interlock.control.wall_timer import WallTimer


class Timer(Protocol):
    """Something that will happen, unless it is cancelled."""

    def cancel(self) -> None:
        """Make sure it does not happen any more."""
        ...


class Clock(Protocol):
    """Tells the time and rings at moments; the simulation has its own."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def call_at(self, moment: datetime, callback: Callable[[], None]) -> Timer:
        """Ring once the wall clock says `moment` or later, also when the clock is set."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Ring after a length of time, whatever the wall clock does."""
        ...

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Ring whenever the wall clock was set, until the returned call is made.

        Times that were waited for may have moved.
        """
        ...


def listening(
    listeners: list[Callable[[], None]], callback: Callable[[], None]
) -> Callable[[], None]:
    """Add a listener; the returned call takes it away again."""
    listeners.append(callback)

    def leave() -> None:
        if callback in listeners:
            listeners.remove(callback)

    return leave


async def pause(clock: Clock, seconds: float) -> None:
    """Wait for a length of time."""
    over = asyncio.Event()
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


#: Counts the time a machine is suspended too, where there is such a clock: a leader that slept must
#: not find the gate open when it wakes, because others did not sleep.
_ELAPSED: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
#: Where the kernel cannot tell that the wall clock was set, it is compared this often.
_COMPARE_EVERY_S = 5.0
#: Wall and monotonic clock that drift apart by more than this were set apart.
_JUMP_S = 0.5


class _Alarm:
    """One ring that was asked for."""

    __slots__ = ("_clock", "callback")

    def __init__(self, clock: SystemClock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self.callback = callback

    def cancel(self) -> None:
        self._clock.forget_alarm(self)


class SystemClock:
    """The machine's clock, on the running event loop.

    Alarms at wall-clock moments wait on one kernel timer that follows the wall clock and says
    when it was set. Without such a timer the two clocks are compared every few seconds.
    """

    def __init__(self) -> None:
        self._alarms: TimerHeap[_Alarm, datetime] = TimerHeap()
        self._jumps: list[Callable[[], None]] = []
        self._timer: WallTimer | None = None
        self._started = False
        self._closed = False
        self._comparison: asyncio.TimerHandle | None = None
        self._apart_s = 0.0

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.clock_gettime(_ELAPSED)

    def call_at(self, moment: datetime, callback: Callable[[], None]) -> Timer:
        """Ring once the wall clock says `moment` or later."""
        self._start()
        alarm = _Alarm(self, callback)
        self._alarms.put(alarm, moment)
        self._arm()
        return alarm

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Ring after a length of time."""
        return asyncio.get_running_loop().call_later(max(seconds, 0.0), callback)

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Ring whenever the wall clock was set, until the returned call is made."""
        self._start()
        return listening(self._jumps, callback)

    def forget_alarm(self, alarm: _Alarm) -> None:
        """Let an alarm not ring; the timer finds out when it wakes."""
        self._alarms.cancel(alarm)

    def close(self) -> None:
        """Ring no more."""
        self._closed = True
        self._alarms.take_all()
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        if self._comparison is not None:
            self._comparison.cancel()

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        self._timer = WallTimer.open(self._ring, self._was_set)
        if self._timer is not None:
            self._timer.arm(None)
        else:
            self._apart_s = time.time() - time.monotonic()
            self._compare()

    def _arm(self) -> None:
        if self._closed:
            return
        earliest = self._alarms.earliest()
        if self._timer is not None:
            self._timer.arm(earliest)
        elif earliest is not None:
            self._compare_in((earliest - self.now()).total_seconds())

    def _ring(self) -> None:
        for alarm in self._alarms.take_due(self.now()):
            alarm.callback()
        self._arm()

    def _was_set(self) -> None:
        for callback in tuple(self._jumps):
            callback()
        self._ring()

    def _compare_in(self, seconds: float) -> None:
        if self._comparison is not None:
            self._comparison.cancel()
        delay = min(max(seconds, 0.0), _COMPARE_EVERY_S)
        self._comparison = asyncio.get_running_loop().call_later(delay, self._compare)

    def _compare(self) -> None:
        apart_s = time.time() - time.monotonic()
        jumped = abs(apart_s - self._apart_s) > _JUMP_S
        self._apart_s = apart_s
        self._compare_in(_COMPARE_EVERY_S)
        if jumped:
            self._was_set()
        else:
            self._ring()
