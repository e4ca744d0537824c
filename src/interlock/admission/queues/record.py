"""The record of a quota: which Queues it is of, who was granted a part, and who is next.

Why two control planes that both believe they lead cannot overdraw a quota:

- A grant is a compare-and-set on the quota's record, which holds what its Queues allow (as it was
  when that was written down) and everyone who was granted a part. It is made only where all that
  the holders were granted, as far as it is not proven given back, leaves so much room: to the Queue
  by its own quota and what it may borrow, and to all of the record together by what they have.
  Whoever decided on an older record fails.
- A Queue is granted from one record at a time (`seats.py`).
- A grant, or a part of it, counts no more on facts alone that cannot become untrue: those of
  `claims/proof.py`, and that tasks of a Job came to their ends, which is final until it is put
  back. So an old view of a Job counts too much, and never too little.
- What a Queue allows is written into the record with the version of the Queue, and one that is
  older is never written over it. Where Queues allow less than their Jobs hold, nothing is granted
  until enough of them are gone.

Why Jobs never wait in a ring: the record is granted first, and only to a Job whose locks are all
free for it at that moment; a Job with a Queue stands in the line of a lock only while it holds its
part of the quota (`reconciler.py`), and gives that back as soon as a lock is taken. So whoever
waits for another to end holds nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.admission.claims.proof import is_unheard
from interlock.admission.queues.cycle import (
    MOST_GRANTS,
    Outcome,
    Part,
    Victim,
    WayIsClear,
    run_cycle,
)
from interlock.admission.queues.known import KnownQueues, Standing, record_key
from interlock.admission.queues.lines import QueueLines
from interlock.admission.queues.preemption import MOST_VICTIMS
from interlock.admission.queues.seats import (
    Seating,
    is_needed_by_others,
    is_wanted,
    live,
    seating_of,
)
from interlock.resources.actions import (
    CreateResource,
    Decision,
    DeleteResource,
    RecordAdmission,
    RecordStatus,
)
from interlock.resources.admission import AdmissionPhase, Eviction, EvictionCause, EvictionReason
from interlock.resources.metadata import Metadata
from interlock.resources.queue import (
    Member,
    QueueQuota,
    QuotaHolder,
    QuotaSpec,
    QuotaStatus,
    cohort_name,
    quota_name,
)
from interlock.resources.transitions import ended_at
from interlock.resources.values.amounts import Amount

#: Those who are over are taken off the record with the next grant, or after this time.
KEPT_ON_RECORD = timedelta(seconds=1)
#: What was not heard yet of a Job that holds a part is heard by then, or listened for again.
LISTENS_FOR = timedelta(seconds=5)


class QuotaRecordView(Struct, frozen=True, kw_only=True):
    """One record: which Queues it is of, who of its holders counts, and who is next."""

    name: str
    record: QueueQuota | None
    #: Which Queues it is to be of.
    seating: Seating = Seating()
    #: Holders that may still be doing something, those who come along included.
    kept: tuple[QuotaHolder, ...] = ()
    #: When the first of those who are proven to hold nothing was over, if that is known.
    over_since: datetime | None = None
    outcome: Outcome = Outcome()
    #: Whether anybody needs the record.
    is_wanted: bool = False
    #: Whether the Job of a holder is not found, and not all about Jobs was heard up to its grant.
    is_unheard: bool = False


def view_of(
    known: KnownQueues, lines: QueueLines, name: str, way_is_clear: WayIsClear
) -> QuotaRecordView:
    """All that a decision about a record depends on."""
    record = known.quotas.get(record_key(name))
    if record is None:
        queue = name.removeprefix(quota_name(""))
        wanted = is_wanted(known, name, has_line=bool(lines.shapes(queue)))
        return QuotaRecordView(name=name, record=None, is_wanted=wanted)
    seating = seating_of(known, record)
    counts: list[Standing] = []
    over: list[datetime | None] = []
    for one in known.standings(record):
        if one.is_done:
            over.append(ended_at(one.job) if one.job is not None else None)
        elif one.holder.queue not in seating.moved_away:
            counts.append(one)
    counts += map(known.standing, seating.arrivals)
    known_here = {m.queue for m in live(record.status.members)}
    # Whoever comes is let in from with the next write: this one may find that it was here before.
    members = [m for m in live(seating.members) if m.queue in known_here or not m.seat]
    unknown = [one for one in counts if one.job is None]
    return QuotaRecordView(
        name=name,
        record=record,
        seating=seating,
        kept=tuple([one.holder for one in counts]),
        over_since=min((at for at in over if at is not None), default=None),
        outcome=run_cycle(known, lines, members, counts, way_is_clear),
        is_wanted=_is_used(known, lines, record, seating),
        is_unheard=any(is_unheard(one.holder, one.key, known.jobs) for one in unknown),
    )


def _is_used(known: KnownQueues, lines: QueueLines, record: QueueQuota, seating: Seating) -> bool:
    """Whether a record is needed, although nobody may hold anything by it."""
    if record.spec.cohort is not None:
        wanted = is_wanted(known, record.metadata.name, has_line=False)
        return wanted or bool(live(seating.members)) or bool(known.seated(record.metadata.name))
    name = record.spec.queue or ""
    is_asked = known.queue(name) is not None or bool(lines.shapes(name))
    return is_asked or is_needed_by_others(known, record)


def decide_quota(view: QuotaRecordView, now: datetime) -> Decision:
    """Take those off the record who are proven done, and grant parts to those who are next."""
    record = view.record
    if record is None:
        return _made(view.name) if view.is_wanted else Decision()
    if record.is_going:
        return Decision()
    seating, (parts, victims) = view.seating, view.outcome
    status = record.status
    is_news = bool(parts or victims or seating.arrivals)
    is_news |= _is_other(seating.members, status.members) or seating.seat != status.seat
    gone = len(status.holders) + len(seating.arrivals) - len(view.kept)
    drop_at = view.over_since + KEPT_ON_RECORD if view.over_since is not None else now
    if gone and not is_news and drop_at > now:
        return Decision(wake_at=drop_at)
    if gone or is_news:
        return _written(view, record, now)
    if view.is_unheard:
        # That its Job is gone is not news again when the rest is heard: nobody else would look.
        return Decision(wake_at=now + LISTENS_FOR)
    if not view.kept and not view.is_wanted:
        return Decision((DeleteResource(record),), reason=f"nobody needs {view.name} any more")
    return Decision()


def _is_other(members: tuple[Member, ...], known: tuple[Member, ...]) -> bool:
    """Whether a record is to be written for its Queues.

    What follows from the settings of a control plane alone is written with the next grant: two that
    serve different namespaces with different settings would write it over each other for ever.
    """
    if len(members) != len(known):
        return True
    for one, was in zip(members, known, strict=True):
        here = replace(one, blocks=was.blocks, scope=was.scope, ready=was.ready)
        if one is not was and (here != was or one.version != was.version):
            return True
    return False


def _made(name: str) -> Decision:
    cohort = name.removeprefix(cohort_name(""))
    if cohort != name:
        spec, told = QuotaSpec(cohort=cohort), f"cohort {cohort}"
    else:
        queue = name.removeprefix(quota_name(""))
        spec, told = QuotaSpec(queue=queue), f"queue {queue}"
    made = QueueQuota(metadata=Metadata(name=name), spec=spec)
    return Decision((CreateResource(made),), reason=f"first use of {told}")


def _written(view: QuotaRecordView, record: QueueQuota, now: datetime) -> Decision:
    seating, (parts, victims) = view.seating, view.outcome
    first = max(record.version, record.status.last_token + 1)
    new = tuple(_holder(part, first + at, now) for at, part in enumerate(parts))
    status = QuotaStatus(
        members=seating.members,
        holders=(*view.kept, *new),
        last_token=new[-1].token if new else record.status.last_token,
        seat=seating.seat,
        trouble=record.status.trouble,
    )
    told = [f"lets {_named([one.job for one in new])} in"] if new else []
    kept = {id(holder) for holder in view.kept}
    left = [one.job for one in record.status.holders if id(one) not in kept]
    told += [f"takes the room back of {_named(left)}"] if left else []
    is_other = seating.members != record.status.members or seating.seat != record.status.seat
    told += ["takes in what its queues allow"] if is_other else []
    if victims:
        going = _named([one.job.metadata.name for one in victims])
        told.append(f"puts {going} back for others")
    # Whoever did not get a part in this write may in the next.
    is_more = len(new) == MOST_GRANTS or len(victims) >= MOST_VICTIMS
    changed = (RecordStatus(record, status),) if status != record.status else ()
    put_back = (_put_back(victim, now) for victim in victims)
    return Decision((*changed, *put_back), now if is_more else None, "; ".join(told))


def _put_back(victim: Victim, now: datetime) -> RecordAdmission:
    """Have a Job make room; it holds what it holds until its attempts are proven gone."""
    first = victim.makes_room_for.metadata
    # Whoever reads of a Job need not see those of other namespaces.
    is_near = first.namespace == victim.job.metadata.namespace
    who = f"job/{first.name}" if is_near else "a Job of another namespace"
    told = f"{who} comes before it in its queue, and needs the room"
    cause = ""
    if victim.is_reclaimed:
        told = f"{who} needs the room, which its own queue has lent or has a larger part in"
        cause = EvictionCause.IN_COHORT.value
    eviction = Eviction(reason=EvictionReason.PREEMPTED, cause=cause, message=told, began_at=now)
    admission = replace(
        victim.job.status.admission, phase=AdmissionPhase.EVICTING, eviction=eviction
    )
    return RecordAdmission(victim.job, admission)


def _named(jobs: list[str]) -> str:
    more = len(jobs) - 5
    return ", ".join(jobs[:5]) + (f" and {more} more" if more > 0 else "")


def _holder(part: Part, token: int, now: datetime) -> QuotaHolder:
    job = part.job
    return QuotaHolder(
        queue=part.demand.queue,
        job=job.metadata.name,
        namespace=job.metadata.namespace,
        uid=job.metadata.uid,
        epoch=job.status.admission.epoch,
        token=token,
        tasks=part.tasks,
        each={name: Amount(milli) for name, milli in part.demand.each.items()},
        granted_at=now,
        job_version=job.version,
    )
