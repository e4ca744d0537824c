"""What is promised of lines: who could be let in is, nobody is overtaken, also not by a Job of
another Queue of its cohort, and what a cohort has to lend is shared by weight.

All of it is worked out from the records and the Jobs, by sums of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from interlock.resources.admission import AdmissionPhase, WaitReason
from interlock.resources.job import Job, JobSpec, order_of_acceptance
from interlock.resources.queue import (
    TASKS,
    BorrowPolicy,
    Member,
    PreemptionPolicy,
    Queue,
    QueueOrder,
    QueueQuota,
    QuotaHolder,
    ReclaimPolicy,
    StopPolicy,
    demand_of,
    record_wanted,
)
from interlock.resources.transitions import has_ended, is_evicting
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.judge import Promise
from support.simulation.queue_promises import asked_of, may_run, member_of

Milli = dict[str, int]


class _Shelf(NamedTuple):
    """How much of one resource a Queue has, keeps for itself, and may hold at the most."""

    own: int
    kept: int
    most: float


class Stock:
    """What the Queues of a record have together, and who holds how much of it."""

    def __init__(self, members: Iterable[Member]) -> None:
        self.shelves = {one.queue: _shelves(one) for one in members if not one.left}
        self.used: dict[str, Milli] = {queue: {} for queue in self.shelves}
        #: What is held by Jobs of Queues that have left.
        self._strange: Milli = {}

    def add(self, queue: str, amounts: Mapping[str, int]) -> None:
        """Count what a Job holds."""
        used = self.used.get(queue, self._strange)
        for name, amount in amounts.items():
            used[name] = used.get(name, 0) + amount

    def lendable(self, name: str) -> int:
        """How much all lend together."""
        there = (shelves[name] for shelves in self.shelves.values() if name in shelves)
        return sum(shelf.own - shelf.kept for shelf in there)

    def free(self, queue: str, name: str) -> float:
        """How much more of a resource a Queue may hold."""
        lent = self._strange.get(name, 0)
        for other, shelves in self.shelves.items():
            if name in shelves:
                lent += max(0, self.used[other].get(name, 0) - shelves[name].kept)
        shelf, used = self.shelves[queue][name], self.used[queue].get(name, 0)
        beyond = min(self.lendable(name) - lent, shelf.most - max(used, shelf.kept))
        return max(0, shelf.kept - used) + max(0, beyond)

    def fits(self, queue: str, wanted: Mapping[str, int]) -> bool:
        """Whether a Queue may hold so much more; what it does not name it has none of."""
        shelves = self.shelves[queue]
        for name, amount in wanted.items():
            if name not in shelves:
                if name != TASKS:
                    return False
            elif amount > self.free(queue, name):
                return False
        return True

    def could_fit(self, queue: str, wanted: Mapping[str, int]) -> bool:
        """Whether so much would fit if nobody held anything."""
        return _emptied(self).fits(queue, wanted)

    def borrows(self, queue: str, more: Mapping[str, int]) -> bool:
        """Whether a Queue holds more than its own, with so much more."""
        return any(self._beyond(queue, name, more) > 0 for name in self.shelves[queue])

    def share(self, queue: str, weight: int, more: Mapping[str, int]) -> Fraction | float:
        """How large the part of what all lend is that a Queue holds beyond its own, by weight."""
        largest = Fraction(0)
        for name in self.shelves[queue]:
            beyond = self._beyond(queue, name, more)
            if beyond > 0:
                largest = max(largest, Fraction(beyond, max(1, self.lendable(name))))
        if not largest:
            return Fraction(0)
        return largest / weight if weight else math.inf

    def _beyond(self, queue: str, name: str, more: Mapping[str, int]) -> int:
        held = self.used[queue].get(name, 0) + more.get(name, 0)
        return held - self.shelves[queue][name].own


class _Waiting(NamedTuple):
    """A Job that waits for room in a Queue, and nothing else."""

    job: Job
    member: Member
    #: What the least that it starts with takes, and all that it wants.
    least: Milli
    whole: Milli

    @property
    def place(self) -> tuple[int, int]:
        return place_of(self.job)


class LinePromise(Promise):
    """A promise about who waits in the lines of a record."""

    def waiting(self, record: QueueQuota) -> Iterator[_Waiting]:
        """Those who wait for room there and nothing else."""
        members = {one.queue: one for one in record.status.members if not one.left}
        granted = {(holder.uid, holder.epoch) for holder in record.status.holders}
        for job in self.truth.jobs.values():
            member = members.get(job.spec.queue or "")
            is_granted = (job.metadata.uid, job.status.admission.epoch) in granted
            if member is None or is_granted or job.metadata.name in self.truth.bad:
                continue
            if not _waits_for_room(job) or not self._is_open(record, member):
                continue
            demand = demand_of(job)
            assert demand is not None
            each = asked_of(member, demand)
            yield _Waiting(job, member, _amounts(each, demand.least), _amounts(each, demand.tasks))

    def first_of(self, queue: str) -> Job | None:
        """Whoever is first of all that wait in a Queue, for whatever they wait."""
        there = (
            job
            for job in self.truth.jobs.values()
            if job.spec.queue == queue
            and job.status.admission.phase is AdmissionPhase.WAITING
            and not has_ended(job)
        )
        return min(there, key=place_of, default=None)

    def _is_open(self, record: QueueQuota, member: Member) -> bool:
        """Whether a Queue is there, lets Jobs in, and stands in this record."""
        queue = self.truth.queues.get(member.queue)
        if queue is None or queue.spec.stop is not StopPolicy.NONE or queue.is_going:
            return False
        is_home = record_wanted(queue) == record.metadata.name
        return is_home and queue.spec.namespace_selector is None

    def stock(self, record: QueueQuota, holders: Iterable[QuotaHolder]) -> Stock:
        """What the record has, and what these hold of it."""
        stock = Stock(record.status.members)
        for holder in holders:
            stock.add(holder.queue, self._held(holder))
        return stock

    def _held(self, holder: QuotaHolder) -> Milli:
        """What a grant counts for: the tasks that may still run."""
        job = self.truth.by_uid.get(holder.uid)
        if self.truth.is_over(holder.uid) or job is None:
            return {}
        if job.status.admission.epoch > holder.epoch:
            return {}
        return _held_of(holder, min(holder.tasks, may_run(job)))


class NobodyStarves(LinePromise):
    """Who could be let in is let in, once nothing happens any more, whatever still runs."""

    def rests(self) -> None:
        """Nobody waits for room that is there: in a strict line the first, else anybody."""
        for record in self.truth.quotas.values():
            if self._is_in_motion(record):
                continue
            stock = self.stock(record, record.status.holders)
            for one in self.waiting(record):
                is_strict = one.member.order is QueueOrder.STRICT_FIFO
                if is_strict and self.first_of(one.member.queue) is not one.job:
                    continue
                if stock.fits(one.member.queue, one.least):
                    name = one.job.metadata.name
                    told = f"{name} waits, and there is room for it in {one.member.queue}"
                    raise self.broken(told, name)

    def _is_in_motion(self, record: QueueQuota) -> bool:
        """Whether somebody is being put back, or has to be ready before another is let in."""
        gated = any(one.blocks for one in record.status.members)
        jobs = (self.truth.by_uid.get(holder.uid) for holder in record.status.holders)
        return gated or any(job is None or is_evicting(job) for job in jobs)


class _Turns(LinePromise):
    """Compares whoever is granted room with those who stood there before."""

    def granted(self, change: Change) -> None:
        """Go through the grants of a write, one after another."""
        before, after = change.before, change.event.resource
        is_gone = change.event.type is EventType.DELETED
        if not isinstance(after, QueueQuota) or not isinstance(before, QueueQuota) or is_gone:
            return
        known = {(holder.uid, holder.epoch) for holder in before.status.holders}
        joined = [one for one in after.status.holders if (one.uid, one.epoch) not in known]
        # Who came along with a Queue that has moved was granted its part elsewhere.
        is_move = before.status.members != after.status.members
        # Whoever is taken off in the same write was known to be done.
        kept = [holder for holder in before.status.holders if holder in after.status.holders]
        if not joined or is_move or after.spec.cohort is None or not self._is_certain(after, kept):
            return
        stock = Stock(after.status.members)
        for holder in kept:
            stock.add(holder.queue, _held_of(holder, holder.tasks))
        waiting = list(self.waiting(after))
        for holder in sorted(joined, key=lambda one: one.token):
            self._check(after, stock, holder, [one for one in waiting if self._stood(one)])
            stock.add(holder.queue, _held_of(holder, holder.tasks))

    def _is_certain(self, record: QueueQuota, holders: Iterable[QuotaHolder]) -> bool:
        """Whether everybody must see the record, its Queues and who holds what in the same way."""
        for member in record.status.members:
            queue = self.truth.queues.get(member.queue)
            if queue is None or member.blocks or may_preempt(queue):
                return False
            if not self.truth.is_settled(member.queue):
                return False
        return all(
            self._held(holder) == _held_of(holder, holder.tasks) for holder in record.status.holders
        )

    def _stood(self, one: _Waiting) -> bool:
        since = self.truth.stands_since.get(one.job.metadata.uid, self.truth.now)
        return self.truth.now - since > self.truth.patience

    def _check(
        self, record: QueueQuota, stock: Stock, holder: QuotaHolder, waiting: list[_Waiting]
    ) -> None:
        """Compare one grant with those who wait still."""


class StrictlyInLine(_Turns):
    """In a strict line of a cohort nobody is let in before the first, whatever that waits for."""

    def _check(
        self, record: QueueQuota, stock: Stock, holder: QuotaHolder, waiting: list[_Waiting]
    ) -> None:
        job = self.truth.by_uid.get(holder.uid)
        for one in waiting:
            is_strict = one.member.order is QueueOrder.STRICT_FIFO
            if job is None or one.member.queue != holder.queue or one.place >= place_of(job):
                continue
            fits = stock.could_fit if is_strict else stock.fits
            if fits(holder.queue, one.least):
                names = (holder.job, one.job.metadata.name)
                told = f"{names[0]} is granted room in {holder.queue} before {names[1]}"
                raise self.broken(told, *names)


class CohortInOrder(_Turns):
    """Of Queues of a cohort the one goes first that need not borrow, then the one of the higher
    priority, then the Job of that, then the one that came first; where weights count, first of all
    the one that has the smallest part of what is lent.
    """

    def _check(
        self, record: QueueQuota, stock: Stock, holder: QuotaHolder, waiting: list[_Waiting]
    ) -> None:
        job, queue = self.truth.by_uid.get(holder.uid), self.truth.queues.get(holder.queue)
        if job is None or queue is None or job.status.admission.epoch != holder.epoch:
            return
        demand = demand_of(job)
        member = member_of(record, holder.queue)
        if demand is None or member is None or member.left or job.spec.queue is None:
            return
        least = _amounts(asked_of(member, demand), demand.least)
        weights = self._weights(record)
        rank = _rank(stock, queue, weights, job, least)
        for one in waiting:
            other = self.truth.queues[one.member.queue]
            if other is queue or self.first_of(one.member.queue) is not one.job:
                continue
            if not stock.fits(one.member.queue, one.whole):
                continue
            if _rank(stock, other, weights, one.job, one.least) < rank:
                self._tell(holder, one, is_fair=bool(weights))

    def _tell(self, holder: QuotaHolder, one: _Waiting, *, is_fair: bool) -> None:
        if not is_fair:
            names = (holder.job, one.job.metadata.name)
            told = f"{names[0]} of {holder.queue} goes before {names[1]} of {one.member.queue}"
            raise self.broken(told, *names)

    def _weights(self, record: QueueQuota) -> dict[str, int]:
        """The weights of the Queues of a record; none where nobody asks for that."""
        found: dict[str, int] = {}
        is_fair = False
        for member in record.status.members:
            queue = self.truth.queues.get(member.queue)
            fair = queue.spec.fair_sharing if queue is not None else None
            is_fair |= fair is not None
            found[member.queue] = 1000 if fair is None else fair.weight.milli
        return found if is_fair else {}


class SharedByWeight(CohortInOrder):
    """Where weights count, what is lent goes to the Queue that has the smallest part of it."""

    def _tell(self, holder: QuotaHolder, one: _Waiting, *, is_fair: bool) -> None:
        if is_fair:
            names = (holder.job, one.job.metadata.name)
            told = f"{holder.queue} is lent more, for {names[0]}, before {one.member.queue} is"
            raise self.broken(told, *names)


def _rank(
    stock: Stock, queue: Queue, weights: Mapping[str, int], job: Job, wanted: Milli
) -> tuple[Fraction | float, int, tuple[int, int]]:
    name = queue.metadata.name
    if weights:
        first = stock.share(name, weights[name], wanted)
    else:
        first = Fraction(stock.borrows(name, wanted))
    return first, -queue.spec.priority, place_of(job)


def place_of(job: Job) -> tuple[int, int]:
    """Where a Job stands: a higher priority first, then the order of creation."""
    return -job.spec.priority, order_of_acceptance(job)


def may_preempt(queue: Queue) -> bool:
    """Whether anybody has to make room for the Jobs of a Queue: what is free may be kept then."""
    policy = queue.spec.preemption
    return (
        policy.within_queue is not PreemptionPolicy.NEVER
        or policy.reclaim_within_cohort is not ReclaimPolicy.NEVER
        or policy.borrow_within_cohort.policy is not BorrowPolicy.NEVER
    )


def _waits_for_room(job: Job) -> bool:
    admission = job.status.admission
    if admission.phase is not AdmissionPhase.WAITING or has_ended(job) or job.is_going:
        return False
    if not _asks_for_room_alone(job.spec):
        return False
    reasons = {wait.reason for wait in admission.waits}
    return admission.sequence > 0 and reasons <= {WaitReason.QUOTA_TAKEN}


def _asks_for_room_alone(spec: JobSpec) -> bool:
    """Whether nothing of a definition keeps a Job waiting but its Queue."""
    if spec.suspend or not spec.active or spec.locks or spec.target is not None:
        return False
    return spec.start_after is None and spec.kill_at is None and spec.start_by is None


def _shelves(member: Member) -> dict[str, _Shelf]:
    found = {}
    for name, amount in member.limits.items():
        lends, borrows = member.lending or {}, member.borrowing or {}
        kept = max(0, amount.milli - lends[name].milli) if name in lends else 0
        most = amount.milli + borrows[name].milli if name in borrows else math.inf
        found[name] = _Shelf(amount.milli, kept, most)
    return found


def _emptied(stock: Stock) -> Stock:
    empty = Stock(())
    empty.shelves = stock.shelves
    empty.used = {queue: {} for queue in stock.shelves}
    return empty


def _held_of(holder: QuotaHolder, tasks: int) -> Milli:
    return _amounts({name: amount.milli for name, amount in holder.each.items()}, tasks)


def _amounts(each: Mapping[str, int], tasks: int) -> Milli:
    return {name: amount * tasks for name, amount in each.items()} | {TASKS: tasks * 1000}


#: What lines of Queues are judged by besides.
LINE_PROMISES: tuple[type[Promise], ...] = (
    NobodyStarves,
    StrictlyInLine,
    CohortInOrder,
    SharedByWeight,
)
