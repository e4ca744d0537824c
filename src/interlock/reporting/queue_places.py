"""Queue places: who waits in front of each Queue, in order, kept change by change.

Where a Job stands, and since when the oldest waits, is found by a search, however many wait. When
the last ones were let in is kept beside, for those who ask when the next will be.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from interlock.admission.lines import Place, may_be_granted, place_of, stands_in_line
from interlock.reporting.estimate import ONE_TURN
from interlock.reporting.queue_why import queued_at
from interlock.resources.default_queue import queue_asked
from interlock.resources.job import Job
from interlock.resources.metadata import Key

#: So many of those who were let in are remembered of each Queue.
REMEMBERED = 64


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
        #: When those were let in last who had to wait, by Queue and in order, with their uids.
        self._let_in: dict[str, list[tuple[datetime, str]]] = {}

    def put(self, job: Job) -> None:
        """Put a Job where it belongs now."""
        if job.status.admission.quota is not None:
            self._note(job, job.status.admission.quota.queue)
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

    def let_in(self, queue: str) -> tuple[datetime, ...]:
        """When those were let in last who had to wait, in order."""
        return tuple(at for at, _ in self._let_in.get(queue, ()))

    def _note(self, job: Job, queue: str) -> None:
        """Remember when a Job was let in that had to wait: one that did not tells nothing."""
        at, since = job.status.admission.admitted_at, queued_at(job)
        if at is None or since is None or at - since <= ONE_TURN:
            return
        known, entry = self._let_in.setdefault(queue, []), (at, job.metadata.uid)
        place = bisect_left(known, entry)
        is_known = place < len(known) and known[place] == entry
        if not is_known and (place > 0 or len(known) < REMEMBERED):
            known.insert(place, entry)
            del known[:-REMEMBERED]

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
