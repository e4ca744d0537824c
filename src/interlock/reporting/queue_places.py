"""Queue places: who waits in front of each Queue, in order, kept change by change.

Where a Job stands, and since when the oldest waits, is found by a search, however many wait.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from interlock.admission.lines import Place, may_be_granted, place_of, stands_in_line
from interlock.resources.default_queue import queue_asked
from interlock.resources.job import Job
from interlock.resources.metadata import Key


class _Standing(NamedTuple):
    queue: str
    place: Place


class _Line:
    """Those who wait for one Queue: in the order of the line, and in that of their joining it."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.ages: list[tuple[int, Key]] = []

    def join(self, place: Place) -> None:
        insort(self.places, place)
        insort(self.ages, (place.sequence, place.job))

    def leave(self, place: Place) -> None:
        del self.places[bisect_left(self.places, place)]
        del self.ages[bisect_left(self.ages, (place.sequence, place.job))]


class QueuePlaces:
    """The lines of all Queues, that of the default one as if it were there."""

    def __init__(self, default: str = "") -> None:
        """Keep them; `default` is the Queue of those who name none, where there is one."""
        self._default = default
        self._lines: dict[str, _Line] = {}
        #: Where each Job was put, by its uid, so that it is found again after it changed.
        self._standing: dict[str, _Standing] = {}

    def put(self, job: Job) -> None:
        """Put a Job where it belongs now."""
        was = self._standing.get(job.metadata.uid)
        queue = queue_asked(job.spec, self._default)
        # Most Jobs are of no Queue, or in one already.
        now = _standing(queue, job) if queue is not None else None
        if now == was:
            return
        self.remove(job.metadata.uid)
        if now is not None:
            self._lines.setdefault(now.queue, _Line()).join(now.place)
            self._standing[job.metadata.uid] = now

    def remove(self, uid: str) -> None:
        """Forget a Job."""
        was = self._standing.pop(uid, None)
        if was is None:
            return
        line = self._lines[was.queue]
        line.leave(was.place)
        if not line.places:
            del self._lines[was.queue]

    def queues(self) -> Iterable[str]:
        """The Queues that somebody waits for."""
        return tuple(self._lines)

    def of(self, queue: str) -> Sequence[Place]:
        """Who waits for a Queue, the first first; it must not be changed."""
        line = self._lines.get(queue)
        return line.places if line is not None else ()

    def oldest(self, queue: str) -> Key | None:
        """Who has been waiting the longest."""
        line = self._lines.get(queue)
        return line.ages[0][1] if line is not None else None

    def place(self, job: Job) -> int:
        """Where a Job stands in its line, counted from 1; 0 when it stands in none."""
        standing = self._standing.get(job.metadata.uid)
        if standing is None:
            return 0
        return bisect_left(self.of(standing.queue), standing.place) + 1


def _standing(queue: str, job: Job) -> _Standing | None:
    if not stands_in_line(job) or not may_be_granted(job):
        return None
    return _Standing(queue, place_of(job))
