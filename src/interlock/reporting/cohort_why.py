"""Why a Queue of a cohort has no room: who has borrowed what is its own, or what it would borrow.

Jobs of other Queues are not named, since they may be of namespaces of which nothing is to be known;
Queues are of nobody, and are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from interlock.admission.queues.ledger import Ledger
from interlock.resources.queue import BorrowPolicy, Member, Preemption, ReclaimPolicy
from interlock.resources.values.amounts import format_milli

#: So many Queues are named, and the others counted.
_NAMED = 3


class Cohort(Struct, frozen=True):
    """The Queues that share a record, as they stand for one of them."""

    name: str
    #: The Queue for which it is told, and the others.
    own: Member
    others: tuple[Member, ...]
    #: For whom it may have Jobs of the others make room.
    preemption: Preemption = Preemption()


def cohort_words(cohort: Cohort, ledger: Ledger, lacks: Mapping[str, int]) -> str:
    """Whose Jobs have what is lacking, beside those of the Queue itself; and what would change it.

    Of several resources the first that others have something of is told.
    """
    is_own = _is_own(cohort, ledger, lacks)
    for name in lacks:
        if not is_own and (limit := _limit(cohort, ledger, name, lacks)):
            return limit
        if lenders := lenders_of(cohort, ledger, name, lacks):
            return (_borrowed if is_own else _held)(cohort, name, lenders)
    is_lent = not is_own and cohort.others
    return f"the others of cohort {cohort.name} lend no more" if is_lent else ""


def lenders_of(
    cohort: Cohort, ledger: Ledger, name: str, lacks: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Which Queues have what is lacking of a resource, and how much, who has most first.

    Of what is its own, the Queue waits for those that have borrowed; beyond that, for all.
    """
    is_own = _is_own(cohort, ledger, lacks)
    found = []
    for member in cohort.others:
        has = ledger.used(member.queue).get(name, 0)
        if is_own:
            has -= _allowed(member, name)
        if has > 0:
            found.append((member.queue, has))
    return sorted(found, key=lambda one: (-one[1], one[0]))


def _is_own(cohort: Cohort, ledger: Ledger, lacks: Mapping[str, int]) -> bool:
    """Whether what is lacking is the Queue's own, so that it needs to borrow none of it."""
    used = ledger.used(cohort.own.queue)
    return all(
        used.get(name, 0) + amount <= _allowed(cohort.own, name) for name, amount in lacks.items()
    )


def _limit(cohort: Cohort, ledger: Ledger, name: str, lacks: Mapping[str, int]) -> str:
    """That it is the Queue's own limit that keeps it from borrowing as much."""
    limit = (cohort.own.borrowing or {}).get(name)
    if limit is None:
        return ""
    needed = ledger.used(cohort.own.queue).get(name, 0) + lacks[name]
    if needed <= _allowed(cohort.own, name) + limit.milli:
        return ""
    return f"its borrowingLimit is {name} {limit}"


def _borrowed(cohort: Cohort, name: str, lenders: Sequence[tuple[str, int]]) -> str:
    told = _named(lenders, name, "has borrowed")
    comes = {
        ReclaimPolicy.NEVER: "which comes back as Jobs there end",
        ReclaimPolicy.LOWER_PRIORITY: (
            "which comes back as Jobs there end; those of a lower priority are put back for it"
        ),
        ReclaimPolicy.ANY: "which is reclaimed: Jobs there are put back for it",
    }[cohort.preemption.reclaim_within_cohort]
    return f"{told} of what is its own, {comes}"


def _held(cohort: Cohort, name: str, lenders: Sequence[tuple[str, int]]) -> str:
    told = _named(lenders, name, "holds")
    comes = "it can borrow more as Jobs there end"
    if cohort.preemption.borrow_within_cohort.policy is not BorrowPolicy.NEVER:
        comes += ", or make room for it"
    return f"in cohort {cohort.name} {told}; {comes}"


def _named(lenders: Sequence[tuple[str, int]], resource: str, verb: str) -> str:
    """Some Queues with what they have: "queue red has borrowed gpu 3, queue green gpu 1"."""
    amounts = [f"queue {queue} {{}}{resource} {format_milli(n)}" for queue, n in lenders[:_NAMED]]
    told = ", ".join(one.format(f"{verb} " if not at else "") for at, one in enumerate(amounts))
    more = len(lenders) - _NAMED
    if more <= 0:
        return told
    rest = format_milli(sum(n for _, n in lenders[_NAMED:]))
    return f"{told}, {more} more {resource} {rest}"


def _allowed(member: Member, name: str) -> int:
    amount = member.limits.get(name)
    return amount.milli if amount is not None else 0
