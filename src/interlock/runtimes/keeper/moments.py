"""The keeper's clock: it is a process of its own, and this is its only module that reads it."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def wall_clock() -> datetime:
    """The moment that goes into reports."""
    return datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), UTC)


def monotonic() -> float:
    """Seconds that never go back, for grace periods and waiting."""
    return time.monotonic()
