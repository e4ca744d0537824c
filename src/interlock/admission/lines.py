"""The lines in front of locks: who waits, in which order, found without looking at everyone."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interlock.admission.decide import stands_in_line
from interlock.resources.job import Job, WhenTaken
from interlock.resources.metadata import Key

#: A lock: namespace and key.
LockKey = tuple[str, str]


class Place(NamedTuple):
    """Where a Job stands: the order of these is the order of every line."""

    #: The priority, negated: high goes first.
    rank: int
    #: The order of creation.
    sequence: int
    name: str


class Line:
    """The Jobs that wait for one lock."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        #: Jobs that start whether the lock is taken or not, so that no order binds them.
        self.allowed: dict[str, None] = {}

    def join(self, place: Place) -> None:
        """Take a place."""
        insort(self._places, place)

    def leave(self, place: Place) -> None:
        """Give a place up."""
        at = bisect_left(self._places, place)
        assert self._places[at] == place
        del self._places[at]

    def before(self, place: Place) -> int:
        """How many stand before a place."""
        return bisect_left(self._places, place)

    def names(self) -> Iterator[str]:
        """Who waits, first to last; the line must not change meanwhile."""
        return (each.name for each in self._places)

    def is_empty(self) -> bool:
        """Whether nobody waits, in order or not."""
        return not self._places and not self.allowed


class Lines:
    """Every line, kept up to date change by change."""

    def __init__(self) -> None:
        self._lines: dict[LockKey, Line] = {}
        #: Where each Job was put, so that it is found again after it changed.
        self._standing: dict[Key, tuple[Place, tuple[tuple[LockKey, bool], ...]]] = {}

    def of(self, lock: LockKey) -> Line | None:
        """The line of a lock, when there is one."""
        return self._lines.get(lock)

    def update(self, key: Key, job: Job | None) -> bool:
        """Put a Job where it belongs now; tells whether any line changed."""
        standing = _standing(job) if job is not None and stands_in_line(job) else None
        was = self._standing.get(key)
        if standing == was:
            return False
        if was is not None:
            self._leave(key, was[0], was[1])
        if standing is not None:
            self._join(key, standing[0], standing[1])
        return True

    def _join(self, key: Key, place: Place, locks: Iterable[tuple[LockKey, bool]]) -> None:
        for lock, is_allowed in locks:
            line = self._lines.setdefault(lock, Line())
            if is_allowed:
                line.allowed[place.name] = None
            else:
                line.join(place)
        self._standing[key] = (place, tuple(locks))

    def _leave(self, key: Key, place: Place, locks: Iterable[tuple[LockKey, bool]]) -> None:
        for lock, is_allowed in locks:
            line = self._lines[lock]
            if is_allowed:
                line.allowed.pop(place.name, None)
            else:
                line.leave(place)
            if line.is_empty():
                del self._lines[lock]
        del self._standing[key]


def place_of(job: Job) -> Place:
    """Where a Job stands in every line it is in."""
    sequence = job.status.admission.sequence or job.version
    return Place(-job.spec.priority, sequence, job.metadata.name)


def _standing(job: Job) -> tuple[Place, tuple[tuple[LockKey, bool], ...]] | None:
    if not job.spec.locks:
        return None
    namespace = job.metadata.namespace
    locks = {(namespace, r.key): r.when_taken is WhenTaken.ALLOW for r in job.spec.locks}
    return place_of(job), tuple(locks.items())
