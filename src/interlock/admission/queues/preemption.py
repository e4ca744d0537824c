"""Preemption: who is put back, so that a Job of a higher priority finds room.

    victims: already being put back, then those by which other Queues of the cohort use more than
    their own, then the lowest priority, then whoever was let in last; as many as are needed, and
    none of them in vain: who turns out not to be needed is let be.

Jobs of other Queues go only as long as those use more than is theirs. For a Job that finds room in
what is its Queue's own they go by `reclaimWithinCohort`; for one whose Queue has to borrow, by
`borrowWithinCohort`. Where a cohort shares by weight, they go only for a Queue that has a smaller
part of what is lent, also with the Job, than theirs has.

A victim is stopped gracefully and gives everything back, as everybody who is put back; it keeps its
place and waits for no time. Until it is gone, what comes free is kept for whom it had to go: Jobs
behind that one are granted only what is left beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

from interlock.admission.lines import Place, place_of
from interlock.admission.queues.ledger import Ledger
from interlock.resources.job import Job, keeps_its_turn
from interlock.resources.queue import (
    BorrowPolicy,
    Preemption,
    PreemptionPolicy,
    QuotaHolder,
    ReclaimPolicy,
)
from interlock.resources.transitions import is_admitted, is_evicting

#: So many Jobs are put back in one decision; the rest in the next.
MOST_VICTIMS = 50


class Holding(NamedTuple):
    """A Job that was granted a part of the quota, and what that counts for."""

    job: Job
    holder: QuotaHolder
    amounts: Mapping[str, int]


class Comer(NamedTuple):
    """A Job that finds no room."""

    queue: str
    place: Place
    wanted: Mapping[str, int]
    policy: Preemption
    #: The weights of all Queues, where the cohort shares by them.
    weights: Mapping[str, int] | None = None


class _Room(Enum):
    """Whose room is looked for."""

    #: What is the Queue's own, with what others have of it.
    OWN = auto()
    #: What others lend it, as they have it at hand.
    LENT = auto()
    #: What others lend it, also where they use it.
    TAKEN = auto()


def may_preempt(policy: Preemption) -> bool:
    """Whether anybody is put back for the Jobs of a Queue."""
    return (
        policy.within_queue is not PreemptionPolicy.NEVER
        or policy.reclaim_within_cohort is not ReclaimPolicy.NEVER
        or policy.borrow_within_cohort.policy is not BorrowPolicy.NEVER
    )


def victims_for(comer: Comer, ledger: Ledger, holdings: Iterable[Holding]) -> tuple[Holding, ...]:
    """Who has to go for a Job to find what it wants; nobody where that would not be enough.

    `ledger` says what is in use once all are gone who are being put back already; it is left as
    it was.
    """
    known = tuple(holdings)
    for room in _Room:
        victims = _victims_in(room, comer, ledger, known)
        if victims:
            return victims
    return ()


def _victims_in(
    room: _Room, comer: Comer, ledger: Ledger, holdings: Iterable[Holding]
) -> tuple[Holding, ...]:
    chosen: list[Holding] = []
    may_borrow = room is not _Room.OWN
    names = _lacking(comer, ledger, may_borrow=may_borrow)
    possible = sorted(_possible(room, comer, holdings), key=lambda one: _order(one, comer.queue))
    for one in possible:
        if ledger.has_room(comer.queue, comer.wanted, may_borrow=may_borrow):
            break
        if not any(one.amounts.get(name) for name in names):
            continue
        if one.holder.queue != comer.queue and not _may_go(one, comer, ledger, names):
            continue
        chosen.append(one)
        ledger.add(one.holder.queue, one.amounts, -1)
    is_enough = ledger.has_room(comer.queue, comer.wanted, may_borrow=may_borrow)
    needed = list(chosen)
    for one in reversed(chosen) if is_enough else ():
        ledger.add(one.holder.queue, one.amounts)
        if ledger.has_room(comer.queue, comer.wanted, may_borrow=may_borrow):
            needed.remove(one)
        else:
            ledger.add(one.holder.queue, one.amounts, -1)
    for one in needed:
        ledger.add(one.holder.queue, one.amounts)
    return tuple(needed) if is_enough else ()


def _lacking(comer: Comer, ledger: Ledger, *, may_borrow: bool) -> tuple[str, ...]:
    """Of which resources there is not as much."""
    return tuple(
        name
        for name, amount in comer.wanted.items()
        if not ledger.has_room(comer.queue, {name: amount}, may_borrow=may_borrow)
    )


def _possible(room: _Room, comer: Comer, holdings: Iterable[Holding]) -> Iterator[Holding]:
    """Who may have to go."""
    policy = comer.policy
    for one in holdings:
        job = one.job
        if not is_admitted(job) or is_evicting(job) or keeps_its_turn(job.spec):
            continue
        other = place_of(job)
        is_lower = other.rank > comer.place.rank
        if one.holder.queue == comer.queue:
            newer = policy.within_queue is PreemptionPolicy.LOWER_OR_NEWER_EQUAL_PRIORITY
            newer &= other.rank == comer.place.rank and other > comer.place
            if policy.within_queue is not PreemptionPolicy.NEVER and (is_lower or newer):
                yield one
        elif room is _Room.OWN or (room is _Room.TAKEN and comer.weights is not None):
            reclaims = policy.reclaim_within_cohort
            if reclaims is ReclaimPolicy.ANY or (
                reclaims is ReclaimPolicy.LOWER_PRIORITY and is_lower
            ):
                yield one
        elif room is _Room.TAKEN:
            borrowing = policy.borrow_within_cohort
            most = borrowing.max_priority_threshold
            is_let_be = most is not None and job.spec.priority > most
            if borrowing.policy is not BorrowPolicy.NEVER and is_lower and not is_let_be:
                yield one


def _may_go(one: Holding, comer: Comer, ledger: Ledger, names: Iterable[str]) -> bool:
    """Whether a Job of another Queue runs on what that has borrowed, and more than is fair."""
    queue = one.holder.queue
    if not ledger.knows(queue):
        # Its Queue has left the cohort, and so has what was its own.
        return True
    if not ledger.borrows_any(queue, tuple(names)):
        return False
    if comer.weights is None:
        return True
    ours = ledger.share(comer.queue, comer.weights[comer.queue], comer.wanted)
    theirs = comer.weights[queue]
    before = ledger.share(queue, theirs)
    ledger.add(queue, one.amounts, -1)
    after = ledger.share(queue, theirs)
    ledger.add(queue, one.amounts)
    return ours <= after or ours < before


def _order(one: Holding, queue: str) -> tuple[bool, int, int]:
    return one.holder.queue == queue, one.job.spec.priority, -one.holder.token
