"""The lines of Queues: who waits, grouped by what they ask for.

Jobs that ask for the same are alike to a quota: where the first of them does not fit, none of them
does. So they are kept together, and a look at a line takes time in proportion to its *shapes*.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from interlock.admission.claims.claim import Ask, ClaimKey
from interlock.admission.lines import Place, place_of, stands_in_line
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.queue import Demand


class Shape(NamedTuple):
    """What alike Jobs ask for."""

    tasks: int
    least: int
    #: What each task takes, in thousandths.
    each: tuple[tuple[str, int], ...]
    #: Locks that it needs besides, with the limits it asks with.
    locks: tuple[tuple[ClaimKey, int], ...]
    namespace: str
    is_of_pods: bool = False


class _Standing(NamedTuple):
    queue: str
    shape: Shape
    place: Place


class QueueLines:
    """Every line in front of a quota, kept up to date change by change."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[Shape, list[Place]]] = {}
        #: Where each Job was put, so that it is found again after it changed.
        self._standing: dict[Key, _Standing] = {}
        #: How many Jobs in the line of each Queue need a lock.
        self._by_lock: dict[ClaimKey, dict[str, int]] = {}

    def shapes(self, queue: str) -> Mapping[Shape, Sequence[Place]]:
        """Who waits, by what they ask for, the first first; it must not be changed."""
        return self._lines.get(queue, {})

    def waiting(self, queue: str) -> int:
        """How many wait."""
        return sum(map(len, self.shapes(queue).values()))

    def before(self, queue: str, place: Place) -> int:
        """How many stand before a place."""
        return sum(bisect_left(places, place) for places in self.shapes(queue).values())

    def needing(self, lock: ClaimKey) -> Iterable[str]:
        """The Queues in whose lines somebody needs a lock."""
        return self._by_lock.get(lock, ())

    def update(self, key: Key, job: Job | None, demand: Demand | None, asks: Iterable[Ask]) -> bool:
        """Put a Job where it belongs now; tells whether its line changed."""
        standing = None
        if job is not None and demand is not None and stands_in_line(job):
            standing = _Standing(demand.queue, shape_of(job, demand, asks), place_of(job))
        was = self._standing.get(key)
        if standing == was:
            return False
        if was is not None:
            self._leave(was)
            del self._standing[key]
        if standing is not None:
            self._join(standing)
            self._standing[key] = standing
        return True

    def _join(self, standing: _Standing) -> None:
        queue, shape, place = standing
        insort(self._lines.setdefault(queue, {}).setdefault(shape, []), place)
        for lock, _ in shape.locks:
            queues = self._by_lock.setdefault(lock, {})
            queues[queue] = queues.get(queue, 0) + 1

    def _leave(self, standing: _Standing) -> None:
        queue, shape, place = standing
        shapes = self._lines[queue]
        places = shapes[shape]
        at = bisect_left(places, place)
        assert places[at] == place
        del places[at]
        if not places:
            del shapes[shape]
            if not shapes:
                del self._lines[queue]
        for lock, _ in shape.locks:
            queues = self._by_lock[lock]
            queues[queue] -= 1
            if not queues[queue]:
                del queues[queue]
                if not queues:
                    del self._by_lock[lock]


def shape_of(job: Job, demand: Demand, asks: Iterable[Ask]) -> Shape:
    """What the Job asks for, as far as it matters to whether it may be let in."""
    return Shape(
        tasks=demand.tasks,
        least=demand.least,
        each=tuple(sorted(demand.each.items())),
        locks=tuple(_locks(asks)),
        namespace=job.metadata.namespace,
        is_of_pods=demand.is_of_pods,
    )


def _locks(asks: Iterable[Ask]) -> Iterator[tuple[ClaimKey, int]]:
    """The locks that may keep it waiting: one that starts whether a lock is taken or not has none.

    The terms on which it waits matter to nobody else.
    """
    for ask in asks:
        if ask.is_in_order:
            yield ask.key, sum(ask.limits.values())
