"""The timers of the dispatcher: leases and graces that end, and what is told once it lasts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

from interlock.runtimes.workers.attempts import Attempt, Phase
from interlock.runtimes.workers.crews import Line


class Alarms:
    """What time alone makes a difference to, the earliest first."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Attempt | Line]] = []
        self._set = 0
        #: Attempts that run and were not told of yet, and when they are; in that order.
        self._quiet: deque[tuple[float, Attempt]] = deque()
        #: The same of those that wait.
        self._waiting: deque[tuple[float, Attempt]] = deque()

    def watch(self, due: Attempt | Line) -> None:
        """Ring once something is due; set anew whenever that became earlier."""
        if due.due_at < inf:
            self._set += 1
            heappush(self._due, (due.due_at, self._set, due))

    def tell_later(self, attempt: Attempt, tick: float) -> None:
        """Have it told at `tick` that an attempt runs, if it still does."""
        self._quiet.append((tick, attempt))

    def tell_waiting_later(self, attempt: Attempt, tick: float) -> None:
        """Have it told at `tick` that an attempt waits, if it still does."""
        self._waiting.append((tick, attempt))

    def next_at(self) -> float | None:
        """When time alone makes a difference next."""
        while self._due and self._due[0][2].due_at == inf:
            heappop(self._due)
        while self._quiet and self._quiet[0][1].phase is not Phase.AT_WORK:
            self._quiet.popleft()
        while self._waiting and not _waits_untold(self._waiting[0][1]):
            self._waiting.popleft()
        moments = [queue[0][0] for queue in (self._due, self._quiet, self._waiting) if queue]
        return min(moments, default=None)

    def is_late(self, tick: float, by_s: float) -> bool:
        """Whether something was due longer ago than that."""
        return bool(self._due) and self._due[0][0] + by_s < tick

    def take_lasting(self, tick: float) -> Iterator[Attempt]:
        """The attempts that have lasted so long that it is told that they run."""
        while self._quiet and self._quiet[0][0] <= tick:
            attempt = self._quiet.popleft()[1]
            if attempt.phase is Phase.AT_WORK:
                yield attempt

    def take_waiting(self, tick: float) -> Iterator[Attempt]:
        """The attempts that have waited so long that it is told that they do."""
        while self._waiting and self._waiting[0][0] <= tick:
            attempt = self._waiting.popleft()[1]
            if _waits_untold(attempt):
                yield attempt

    def take_due(self, tick: float) -> Iterator[Attempt | Line]:
        """What is due by now."""
        while self._due and self._due[0][0] <= tick:
            _, _, due = heappop(self._due)
            if due.due_at > tick:
                self.watch(due)
            else:
                yield due


def _waits_untold(attempt: Attempt) -> bool:
    return attempt.phase is Phase.WAITING and not attempt.told_waiting
