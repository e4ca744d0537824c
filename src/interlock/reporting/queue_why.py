"""Why a Job waits for its Queue: one reason that decides, who holds the room, and until when.

Whoever may know of a Job may know why it waits, and need not know of Jobs in other namespaces:
those are counted, and not named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from interlock.admission.queues.ledger import Ledger
from interlock.admission.ready_timers import Clock
from interlock.reporting.cohort_why import Cohort, cohort_words, lenders_of
from interlock.resources.admission import Wait, WaitReason
from interlock.resources.job import Job, JobPhase
from interlock.resources.queue import Demand, QueueOrder, QuotaHolder, taken
from interlock.resources.readiness import counted, granted_to
from interlock.resources.values.amounts import format_milli
from interlock.resources.waits import Facts, why_words
from interlock.resources.words import clock_time

#: An amount as it is told: a number, or a text such as "512Gi".
Told = int | str


class Share(Struct, frozen=True):
    """What a Job holds of a quota."""

    holder: QuotaHolder
    #: Its Job, if it is known.
    job: Job | None
    #: What it still counts for, in thousandths.
    held: dict[str, int]

    @property
    def phase(self) -> str:
        """Where its Job is in its life."""
        return self.job.status.phase.value if self.job is not None else "Gone"

    @property
    def ends_by(self) -> datetime | None:
        """When its Job is told to stop at the latest, if that is known."""
        return ends_by(self.job) if self.job is not None else None


class Unready(Struct, frozen=True):
    """A Job that was let in, is not ready, and keeps others out until it is."""

    share: Share
    #: When it is put back at the latest; None when nobody knows.
    until: datetime | None = None

    @property
    def ready(self) -> str:
        """How many of its tasks are ready, of how many: "6 of 8"; empty when that is not known."""
        job = self.share.job
        if job is None:
            return ""
        granted = granted_to(job.status.admission)
        is_so, needed = counted(job.spec, job.status.execution, granted)
        return f"{min(is_so, needed)} of {needed}"


class Waiter(Struct, frozen=True):
    """A Job in a line, and what it asks for."""

    job: Job
    demand: Demand


class QueueView(Struct, frozen=True, kw_only=True):
    """A Queue as it stands for one of its Jobs."""

    name: str
    order: QueueOrder
    demand: Demand
    #: Why it does not let the Job in, however much room there is.
    refusal: Wait | None = None
    #: What is left of each resource, in thousandths; less than nothing where more is held than is
    #: allowed now.
    free: dict[str, int]
    shares: tuple[Share, ...] = ()
    #: What all use that share the Queue's record; None where nothing is known of it.
    ledger: Ledger | None = None
    #: The others of its cohort, and what their Jobs hold.
    cohort: Cohort | None = None
    others: tuple[Share, ...] = ()
    #: Who keeps everybody out until they are ready.
    unready: tuple[Unready, ...] = ()
    #: When the Job is put back that was let in, unless it is ready or placed by then.
    clock: Clock | None = None
    #: Whether the Job was granted its part.
    is_granted: bool = False
    #: The Job's place in the line, counted from 1; 0 when it stands in none.
    place: int = 0
    of: int = 0
    #: Those before it that could be let in at all, the first first, and whether that is all of
    #: them.
    before: tuple[Waiter, ...] = ()
    is_whole: bool = True
    #: When those were let in lately who had to wait, in order.
    let_in: tuple[datetime, ...] = ()


class QueueWait(Struct, frozen=True, kw_only=True):
    """What is told of a Job that waits for its Queue."""

    reason: WaitReason
    message: str
    #: What it lacks: how much of it it needs at the least, and how much there is.
    needs: dict[str, Told] = {}
    free: dict[str, Told] = {}
    #: Those of its namespace who hold what it lacks, who holds most of it first.
    holders: tuple[Share, ...] = ()
    #: When there is room for it at the latest, if those who hold it keep to their own limits.
    until: datetime | None = None


def queue_wait(view: QueueView, job: Job, now: datetime) -> QueueWait | None:
    """The one reason for which a Job is not let into its Queue; None when it has its part."""
    if view.refusal is not None:
        message = why_words(view.refusal, Facts(job, now))
        return QueueWait(reason=view.refusal.reason, message=message)
    if view.is_granted:
        return None
    lacks = lacking(view.demand, view.free)
    if view.unready:
        return _gated(view, lacks, job.metadata.namespace, now)
    if lacks:
        return _no_room(view, lacks, job.metadata.namespace, now)
    if view.before and view.order is QueueOrder.STRICT_FIFO:
        return _behind(view, view.before[0], job.metadata.namespace, now)
    message = f"queue {view.name} has room for it: it is let in as soon as its turn is looked at"
    return QueueWait(reason=WaitReason.QUOTA_TAKEN, message=message)


def _gated(view: QueueView, lacks: Mapping[str, int], space: str, now: datetime) -> QueueWait:
    """That nobody is let in before others are ready; and what is lacking besides."""
    ours = [one for one in view.unready if one.share.holder.namespace == space]
    first, more = (ours or list(view.unready))[0], len(view.unready) - 1
    who = f"job/{first.share.holder.job}" if ours else "a Job of another namespace"
    ready = f" ({first.ready} so far)" if first.ready else ""
    others = f" and {more} more are" if more else " is"
    message = f"queue {view.name} lets nobody in before {who}{others} ready{ready}"
    if first.until is not None and first.until > now:
        message += f"; it is put back at {clock_time(first.until, now)} at the latest"
    if lacks:
        message += f"; then {_needs(lacks, view.free)}"
    return QueueWait(
        reason=WaitReason.GATE_CLOSED,
        message=message,
        needs={name: format_milli(amount) for name, amount in lacks.items()},
        free={name: format_milli(_left(view.free, name)) for name in lacks},
        holders=tuple(one.share for one in ours),
        until=first.until if first.until is not None and first.until > now else None,
    )


def _no_room(view: QueueView, lacks: Mapping[str, int], space: str, now: datetime) -> QueueWait:
    own = tuple(_holding(view.shares, lacks))
    holders = (*own, *_holding(_lent(view, lacks), lacks))
    least = view.demand.least
    some = f" (to start with {least})" if least < view.demand.tasks else ""
    message = f"queue {view.name} has no room: {_needs(lacks, view.free)}{some}"
    told = [message, _held_by(own, lacks, space)]
    if view.cohort is not None and view.ledger is not None:
        told.append(cohort_words(view.cohort, view.ledger, lacks))
    return QueueWait(
        reason=WaitReason.QUOTA_TAKEN,
        message="; ".join(filter(None, told)),
        needs={name: format_milli(amount) for name, amount in lacks.items()},
        free={name: format_milli(_left(view.free, name)) for name in lacks},
        holders=tuple(_in(space, holders)),
        until=room_by(view, now),
    )


def _behind(view: QueueView, first: Waiter, space: str, now: datetime) -> QueueWait:
    there = first.job.metadata
    who = f"job/{there.name}" if there.namespace == space else "a Job of another namespace"
    lacks = lacking(first.demand, view.free)
    why = f", which {_needs(lacks, view.free)}" if lacks else ""
    message = f"queue {view.name} keeps its order: {who} is before it{why}"
    return QueueWait(
        reason=WaitReason.QUOTA_TAKEN,
        message=message,
        holders=tuple(_in(space, _holding(view.shares, lacks))),
        until=room_by(view, now),
    )


def has_room(view: QueueView) -> bool:
    """Whether a Job would be let in now, as far as its Queue goes."""
    is_free = view.refusal is None and not view.unready and not lacking(view.demand, view.free)
    return is_free and not (view.before and view.order is QueueOrder.STRICT_FIFO)


def lacking(demand: Demand, free: Mapping[str, int]) -> dict[str, int]:
    """What a Job needs of each resource of which there is not as much, in thousandths."""
    needed = taken(demand.least, demand.each)
    return {name: n for name, n in needed.items() if name in free and n > free[name]}


def room_by(view: QueueView, now: datetime) -> datetime | None:
    """When there is room for a Job and all before it at the latest; None when nobody knows.

    Those who hold the quota now give it back when their own definitions stop them; of those who
    come later and go first nothing is known.
    """
    if not view.is_whole or view.ledger is None:
        return None
    ledger, wanted = view.ledger.copy(), dict[str, int]()
    for demand in (*(one.demand for one in view.before), view.demand):
        for name, amount in taken(demand.least, demand.each).items():
            wanted[name] = wanted.get(name, 0) + amount
    ends = sorted(
        (
            (share.ends_by, share)
            for share in (*view.shares, *view.others)
            if share.ends_by is not None
        ),
        key=lambda one: one[0],
    )
    for moment, share in ends:
        ledger.add(share.holder.queue, share.held, -1)
        if ledger.has_room(view.name, wanted):
            # One that should have ended already is being stopped; nobody knows how long it takes.
            return moment if moment > now else None
    return None


def ends_by(job: Job) -> datetime | None:
    """When a Job is told to stop at the latest, by its own definition."""
    started, spec = job.status.execution.started_at, job.spec
    moments = [spec.kill_at] if spec.kill_at is not None else []
    if started is not None and spec.timeout is not None:
        moments.append(started + timedelta(seconds=spec.timeout.total_seconds()))
    return min(moments, default=None)


def waiting_since(job: Job) -> datetime | None:
    """Since when a Job has been waiting: from its creation, or since it was put back."""
    eviction = job.status.admission.eviction
    put_back = eviction.ended_at if eviction is not None else None
    return put_back or job.metadata.creation_timestamp


def queued_at(job: Job) -> datetime | None:
    """Since when a Job could be let in: from its creation, or since it was put back and its
    backoff is over.
    """
    admission = job.status.admission
    put_back = admission.eviction.ended_at if admission.eviction is not None else None
    if put_back is None:
        return job.metadata.creation_timestamp
    requeue = admission.requeue
    return put_back if requeue is None or requeue.at is None else max(put_back, requeue.at)


def amounts_in_words(held: Mapping[str, int]) -> str:
    """Amounts in thousandths for people: "gpu 8, memory 64Gi"."""
    return ", ".join(f"{name} {format_milli(amount)}" for name, amount in sorted(held.items()))


def _holding(shares: Sequence[Share], lacks: Mapping[str, int]) -> Iterator[Share]:
    """Those who hold something of what is lacking, who holds most first."""
    holding = [share for share in shares if any(share.held.get(name) for name in lacks)]
    first = next(iter(lacks), "")
    yield from sorted(holding, key=lambda share: -share.held.get(first, 0))


def _needs(lacks: Mapping[str, int], free: Mapping[str, int]) -> str:
    return " and ".join(
        f"needs {name} {format_milli(amount)}, free {format_milli(_left(free, name))}"
        for name, amount in lacks.items()
    )


def _left(free: Mapping[str, int], name: str) -> int:
    return max(0, free.get(name, 0))


def _lent(view: QueueView, lacks: Mapping[str, int]) -> tuple[Share, ...]:
    """What Jobs of the Queues hold that have what is lacking."""
    if view.cohort is None or view.ledger is None:
        return ()
    lenders = {
        name for one in lacks for name, _ in lenders_of(view.cohort, view.ledger, one, lacks)
    }
    return tuple(share for share in view.others if share.holder.queue in lenders)


def _held_by(holders: Sequence[Share], lacks: Mapping[str, int], space: str) -> str:
    if not holders:
        return ""
    count = len(holders)
    held = {name: sum(share.held.get(name, 0) for share in holders) for name in lacks}
    first = next(_in(space, holders), None)
    if first is not None:
        who = f"job/{first.holder.job}" + (f" and {count - 1} more" if count > 1 else "")
    else:
        who = "a Job of another namespace" if count == 1 else f"{count} Jobs of other namespaces"
    going = count == 1 and holders[0].phase == JobPhase.EVICTING.value
    told = f"{who} {'holds' if count == 1 else 'hold'} {amounts_in_words(held)}"
    return f"{told}, and is being put back" if going else told


def _in(space: str, shares: Iterable[Share]) -> Iterator[Share]:
    """Those that are in a namespace."""
    return (share for share in shares if share.holder.namespace == space)
