"""The lines in front of claims: who waits, in which order, found without looking at everyone."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from interlock.admission.claims.claim import Ask, ClaimKey
from interlock.resources.admission import AdmissionPhase, WaitReason
from interlock.resources.job import Job, order_of_acceptance
from interlock.resources.metadata import Key


class Place(NamedTuple):
    """Where a Job stands: the order of these is the order of every line."""

    #: The priority, negated: high goes first.
    rank: int
    #: The order of creation.
    sequence: int
    #: Whose place it is: the line of a claim of the whole cluster has Jobs of all namespaces.
    job: Key


#: In which lines a Job stands: the claim, and whether it waits in order.
_Standing = tuple[Place, tuple[tuple[ClaimKey, bool], ...]]


class Line:
    """The Jobs that wait for one claim."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        #: Jobs that start whether the claim is taken or not, so that no order binds them.
        self.allowed: dict[Key, None] = {}

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

    def ahead_of(self, place: Place) -> Iterator[Key]:
        """Who stands before a place, first to last; the line must not change meanwhile."""
        return (each.job for each in islice(self._places, self.before(place)))

    def jobs(self) -> Iterator[Key]:
        """Who waits, first to last; the line must not change meanwhile."""
        return (each.job for each in self._places)

    def is_empty(self) -> bool:
        """Whether nobody waits, in order or not."""
        return not self._places and not self.allowed


class Lines:
    """Every line, kept up to date change by change."""

    def __init__(self) -> None:
        self._lines: dict[ClaimKey, Line] = {}
        #: Where each Job was put, so that it is found again after it changed.
        self._standing: dict[Key, _Standing] = {}

    def of(self, claim: ClaimKey) -> Line | None:
        """The line of a claim, when there is one."""
        return self._lines.get(claim)

    def update(self, key: Key, job: Job | None, asks: Iterable[Ask]) -> bool:
        """Put a Job where it belongs now, with what it asks for; tells whether any line changed."""
        standing = _standing(job, asks) if job is not None and stands_in_line(job) else None
        was = self._standing.get(key)
        if standing == was:
            return False
        if was is not None:
            self._leave(key, was)
        if standing is not None:
            self._join(key, standing)
        return True

    def _join(self, key: Key, standing: _Standing) -> None:
        place, claims = standing
        for claim, is_in_order in claims:
            line = self._lines.setdefault(claim, Line())
            if is_in_order:
                line.join(place)
            else:
                line.allowed[place.job] = None
        self._standing[key] = standing

    def _leave(self, key: Key, standing: _Standing) -> None:
        place, claims = standing
        for claim, is_in_order in claims:
            line = self._lines[claim]
            if is_in_order:
                line.leave(place)
            else:
                line.allowed.pop(place.job, None)
            if line.is_empty():
                del self._lines[claim]
        del self._standing[key]


def stands_in_line(job: Job) -> bool:
    """Whether the Job has a place in its lines, by what is stored and without a clock.

    What is done to one target is done in the order in which it was asked for. So a Job with a
    target keeps its place also while it is held back, and holds up those behind it.
    """
    admission = job.status.admission
    if admission.phase is not AdmissionPhase.WAITING or job.is_going:
        return False
    return job.spec.target is not None or may_be_granted(job)


def may_be_granted(job: Job) -> bool:
    """Whether nothing holds the Job back that is not a claim, by what is stored.

    A Job with a `startAfter` has to be written down as due first, and one that waits for its next
    try as having waited: so every reader of the store sees the same line, whatever its clock says.
    """
    if job.spec.suspend or not job.spec.active:
        return False
    slots = job.spec.slots
    if slots is not None and slots.test_bed is None:
        return False
    admission = job.status.admission
    if any(wait.reason is WaitReason.BACKOFF for wait in admission.waits):
        return False
    if job.spec.start_after is None:
        return True
    is_due = all(wait.reason is not WaitReason.NOT_YET_DUE for wait in admission.waits)
    return admission.sequence > 0 and is_due


def place_of(job: Job) -> Place:
    """Where a Job stands in every line it is in: nobody overtakes what is done to one target."""
    rank = 0 if job.spec.target is not None else -job.spec.priority
    return Place(rank, order_of_acceptance(job), job.key)


def _standing(job: Job, asks: Iterable[Ask]) -> _Standing | None:
    # Once each: a bad object may name the same claim twice.
    claims = {ask.key: ask.is_in_order for ask in asks}
    return (place_of(job), tuple(claims.items())) if claims else None
