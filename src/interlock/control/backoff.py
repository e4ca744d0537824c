"""Exponential backoff: how long to wait before trying again."""

from __future__ import annotations

from random import Random

#: The first delay, and the longest.
FIRST_S = 0.05
LONGEST_S = 30.0


def delay_after(failures: int, luck: Random) -> float:
    """Seconds to wait after so many failures in a row: doubling, capped, spread by luck."""
    full = min(FIRST_S * 2.0 ** min(failures - 1, 30), LONGEST_S)
    return full * (0.5 + 0.5 * luck.random())


class Backoff:
    """Counts the failures of one activity."""

    def __init__(self, luck: Random) -> None:
        self._luck = luck
        self._failures = 0

    @property
    def failures(self) -> int:
        """How often in a row it failed."""
        return self._failures

    def failed(self) -> float:
        """Seconds to wait before the next attempt."""
        self._failures += 1
        return delay_after(self._failures, self._luck)

    def reset(self) -> None:
        """It went well."""
        self._failures = 0
