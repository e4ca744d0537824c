"""The only module that reads the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol


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

    def on_jump(self, callback: Callable[[], None]) -> None:
        """Ring whenever the wall clock was set: times that were waited for may have moved."""
        ...
