"""Things the keeper does later, on a clock that never goes back."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from interlock.runtimes.keeper.moments import monotonic


class Timers:
    """A heap of what is due when."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Ring once, after a length of time."""
        self._count += 1
        heapq.heappush(self._heap, (monotonic() + seconds, self._count, callback))

    def run_due(self) -> None:
        """Ring all that is due."""
        while self._heap and self._heap[0][0] <= monotonic():
            heapq.heappop(self._heap)[2]()

    def patience(self) -> float | None:
        """How long to wait for something else; None when nothing is due ever."""
        return max(0.0, self._heap[0][0] - monotonic()) if self._heap else None
