"""The hand-out: which of the waiting orders a worker with room gets next, the oldest first.

Workers that can do the same make a crew, and orders that the same workers can do stand in one line.
Every step costs as much as what changed: neither all orders nor all workers are ever gone through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.runtimes.workers.attempts import Attempt, Worker

#: What has to be loaded, and the queue that has to be served.
Need = tuple[str, str]
#: All functions that are loaded, and all queues that are served.
Abilities = tuple[frozenset[str], frozenset[str]]


class Line:
    """The orders that wait for one function of one queue."""

    __slots__ = ("crews", "need", "tell_at", "waiting")

    def __init__(self, need: Need) -> None:
        self.need = need
        self.waiting: dict[Attempt, None] = {}
        self.crews: dict[Crew, None] = {}
        #: When it is told that nobody can do these; never while somebody can.
        self.tell_at = -inf

    @property
    def due_at(self) -> float:
        """When there is something to be told of it."""
        return self.tell_at


class Crew:
    """Workers that have loaded the same functions and serve the same queues.

    They are gone through as the first of them named them, so that nothing hangs on luck.
    """

    __slots__ = ("free", "functions", "key", "members", "oldest", "queues")

    def __init__(self, key: Abilities, functions: Iterable[str], queues: Iterable[str]) -> None:
        self.key = key
        self.functions = tuple(dict.fromkeys(functions))
        self.queues = tuple(dict.fromkeys(queues))
        self.members: dict[Worker, None] = {}
        #: Those with room, the one that was given something last at the end.
        self.free: dict[Worker, None] = {}
        #: What waits for it by arrival; some of it may be gone.
        self.oldest: list[tuple[int, Attempt]] = []

    def needs(self) -> Iterator[Need]:
        """Everything that it can do."""
        return ((function, queue) for function in self.functions for queue in self.queues)


class Crews:
    """All lines and all crews."""

    def __init__(self) -> None:
        self._lines: dict[Need, Line] = {}
        self._crews: dict[Abilities, Crew] = {}
        #: How many orders wait.
        self.waiting = 0

    def enter(self, worker: Worker) -> Iterable[Line]:
        """A worker is there; returns the lines that nobody could do before."""
        functions, queues = worker.hello.functions, worker.hello.queues or ("",)
        key = (frozenset(functions), frozenset(queues))
        crew = self._crews.get(key)
        served: list[Line] = []
        if crew is None:
            crew = self._crews[key] = Crew(key, functions, queues)
            for need in crew.needs():
                line = self._line(need)
                if not line.crews:
                    served.append(line)
                    line.tell_at = inf
                line.crews[crew] = None
                crew.oldest.extend((one.arrival, one) for one in line.waiting)
            heapify(crew.oldest)
        crew.members[worker] = None
        worker.crew = crew
        self.room_changed(worker)
        return served

    def leave(self, worker: Worker, tell_at: float) -> Iterable[Line]:
        """A worker takes nothing more; returns the lines that nobody can do now.

        What waits there is told so at `tell_at`, unless somebody has come by then.
        """
        crew, worker.crew = worker.crew, None
        if crew is None:
            return ()
        crew.free.pop(worker, None)
        del crew.members[worker]
        if crew.members:
            return ()
        del self._crews[crew.key]
        left: list[Line] = []
        for need in crew.needs():
            line = self._lines[need]
            del line.crews[crew]
            if line.crews:
                continue
            line.tell_at = tell_at
            left.append(line)
            self._drop_if_done(line)
        return left

    def room_changed(self, worker: Worker) -> None:
        """A worker was given something, or is done with it."""
        crew = worker.crew
        if crew is None:
            return
        crew.free.pop(worker, None)
        if worker.has_room:
            crew.free[worker] = None

    def wait(self, attempt: Attempt) -> Line:
        """Have an order wait for its turn."""
        line = self._line(attempt.need)
        line.waiting[attempt] = None
        for crew in line.crews:
            heappush(crew.oldest, (attempt.arrival, attempt))
        self.waiting += 1
        return line

    def stop_waiting(self, attempt: Attempt) -> None:
        """An order does not wait any more."""
        line = self._lines[attempt.need]
        del line.waiting[attempt]
        self.waiting -= 1
        self._drop_if_done(line)

    def free_for(self, need: Need, preferred: Worker | None) -> Worker | None:
        """A worker that can do this now: the preferred one if it can, else whoever had least."""
        line = self._lines.get(need)
        if line is None:
            return None
        if preferred is not None and preferred.has_room and preferred.crew in line.crews:
            return preferred
        for crew in line.crews:
            for worker in crew.free:
                return worker
        return None

    def next_for(self, crew: Crew) -> Attempt | None:
        """The oldest order that waits for a crew."""
        while crew.oldest:
            _, attempt = crew.oldest[0]
            line = self._lines.get(attempt.need)
            if line is not None and attempt in line.waiting:
                return attempt
            heappop(crew.oldest)
        return None

    def _line(self, need: Need) -> Line:
        line = self._lines.get(need)
        if line is None:
            line = self._lines[need] = Line(need)
        return line

    def _drop_if_done(self, line: Line) -> None:
        if not line.waiting and not line.crews:
            self._lines.pop(line.need, None)
