"""The lines of Queues: who waits, grouped by what they ask for.

Jobs that ask for the same are alike to a quota: where the first of them does not fit, none of them
does. So they are kept together, and a look at a line takes time in proportion to its *shapes*; and
these are kept by what they need, so that those need not be looked at for which there is no room.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from interlock.admission.claims.claim import Ask, ClaimKey
from interlock.admission.lines import Place, place_of, stands_in_line
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.queue import TASKS, Demand


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

    @property
    def needs(self) -> Iterator[tuple[str, int]]:
        """What one such Job cannot start without. Of what pods ask for that is not known: a Queue
        may have it under another name, or not count it.
        """
        yield TASKS, self.least * 1000
        for name, amount in () if self.is_of_pods else self.each:
            if name != TASKS:
                yield name, self.least * amount


def lacks_room(shape: Shape, free: Mapping[str, int]) -> bool:
    """Whether what is free is too little for the least that such a Job starts with."""
    return any(need > free.get(name, need) for name, need in shape.needs)


class _Standing(NamedTuple):
    queue: str
    shape: Shape
    place: Place


class Head(NamedTuple):
    """Where alike Jobs are looked at: a list of these in order is a heap, too."""

    place: Place
    #: How many alike were looked at before.
    at: int
    shape: Shape


class _Line:
    """Who waits for one quota, by what they ask for."""

    def __init__(self) -> None:
        self.places: dict[Shape, list[Place]] = {}
        #: The first of each shape, in order.
        self.heads: list[Head] = []
        #: How much each shape needs of a resource, the least first, with the number of the shape.
        self._needs: dict[str, list[tuple[int, int]]] = {}
        self._numbers: dict[Shape, int] = {}
        self._shapes: dict[int, Shape] = {}
        self._last = 0

    def join(self, place: Place, shape: Shape) -> None:
        """Take a place."""
        places = self.places.get(shape)
        if places is None:
            places = self.places[shape] = []
            self._add(shape)
        elif place < places[0]:
            self._remove_head(places[0], shape)
        if not places or place < places[0]:
            insort(self.heads, Head(place, 0, shape))
        insort(places, place)

    def leave(self, place: Place, shape: Shape) -> None:
        """Give a place up."""
        places = self.places[shape]
        at = bisect_left(places, place)
        assert places[at] == place
        del places[at]
        if at == 0:
            self._remove_head(place, shape)
            if places:
                insort(self.heads, Head(places[0], 0, shape))
        if not places:
            del self.places[shape]
            self._remove(shape)

    def has_room_for_any(self, free: Mapping[str, int]) -> bool:
        """Whether what is free may be enough for anybody: there is none who needs so little of a
        resource that all of them need.
        """
        return all(self._fitting(name, room) for name, room in free.items())

    def within(self, free: Mapping[str, int]) -> list[Head]:
        """The heads of those for whom there may be room, in order; some for whom there is none may
        be among them.
        """
        few, best = len(self.places), ""
        for name, room in free.items():
            if (count := self._fitting(name, room)) < few:
                few, best = count, name
        if few * _WORTH_SORTING > len(self.places):
            return self.heads.copy()
        chosen = (self._shapes[number] for _, number in self._needs[best][:few])
        return sorted(Head(self.places[shape][0], 0, shape) for shape in chosen)

    def _fitting(self, name: str, room: int) -> int:
        """How many shapes may have room of a resource; all where not all of them need it."""
        needs = self._needs.get(name, ())
        if len(needs) < len(self.places):
            return len(self.places)
        return bisect_right(needs, (room, self._last))

    def _add(self, shape: Shape) -> None:
        self._last += 1
        self._numbers[shape], self._shapes[self._last] = self._last, shape
        for name, need in shape.needs:
            insort(self._needs.setdefault(name, []), (need, self._last))

    def _remove(self, shape: Shape) -> None:
        number = self._numbers.pop(shape)
        del self._shapes[number]
        for name, need in shape.needs:
            needs = self._needs[name]
            del needs[bisect_left(needs, (need, number))]
            if not needs:
                del self._needs[name]

    def _remove_head(self, place: Place, shape: Shape) -> None:
        at = bisect_left(self.heads, Head(place, 0, shape))
        assert self.heads[at].place == place
        del self.heads[at]


#: Below one in so many it is quicker to sort those than to pass the others over.
_WORTH_SORTING = 16


class QueueLines:
    """Every line in front of a quota, kept up to date change by change."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        #: Where each Job was put, so that it is found again after it changed.
        self._standing: dict[Key, _Standing] = {}
        #: How many Jobs in the line of each Queue need a lock.
        self._by_lock: dict[ClaimKey, dict[str, int]] = {}

    def shapes(self, queue: str) -> Mapping[Shape, Sequence[Place]]:
        """Who waits, by what they ask for, the first first; it must not be changed."""
        line = self._lines.get(queue)
        return line.places if line is not None else {}

    def heads(self, queue: str, free: Mapping[str, int] | None = None) -> list[Head]:
        """The first of each shape, in order: of those only for whom there may be room, where it is
        told what is `free`. Who needs what is not named there is always among them.
        """
        line = self._lines.get(queue)
        if line is None:
            return []
        return line.heads.copy() if free is None else line.within(free)

    def has_room_for_any(self, queue: str, free: Mapping[str, int]) -> bool:
        """Whether what is free may be enough for anybody in a line, at a glance."""
        line = self._lines.get(queue)
        return line is not None and line.has_room_for_any(free)

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
        self._lines.setdefault(queue, _Line()).join(place, shape)
        for lock, _ in shape.locks:
            queues = self._by_lock.setdefault(lock, {})
            queues[queue] = queues.get(queue, 0) + 1

    def _leave(self, standing: _Standing) -> None:
        queue, shape, place = standing
        line = self._lines[queue]
        line.leave(place, shape)
        if not line.places:
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
