"""Claims of plans: which plan has which Jobs, and which part of a bed.

All that the plans of a namespace have stands in one record. A plan is granted all of its Jobs and
its part of the bed by one compare-and-set on that record, or nothing. Why that is enough:

- At no version does the record give a slot of a bed to the parts of two plans, or a Job to two
  plans, but where it is proven that the claim of the one is spent: a grant is made only beside what
  all others have, and it is a compare-and-set on the very version in which that was looked up. Two
  control planes that both believe they lead make at most one such write for each version.
- A claim of a Job is spent, and a holder dropped, only on facts that cannot become untrue: the Job,
  by its uid, is over or gone, or bears the mark of having been put back by this plan. A holder goes
  once all its claims are spent and the plan has written down how each of its Jobs ended, which it
  does once; or the plan itself is going, gone or has failed, all of which is for good.
- Whoever sets the mark takes the plan's claim and its order off the Job in the same compare-and-set
  on the Job, and a plan writes to a Job only from a version without the mark. So once it is set, no
  control plane, however old its view of the plan and of the record, brings them back.
- A Job has the plan of the record written into its spec, and the slots it was told, by
  compare-and-set on the Job, from a version in which it waits. That nobody else is in these slots
  is not the plans' concern: the record of the bed grants them (`admission/decide.py`).

Why plans never wait in a ring, whatever their lists say and in whichever order:

- Who waits for its first grant has nothing that another could wait for. It waits for plans that
  have something, and for those that were made earlier and wait for the same. Age is one order.
- Who has something waits, for an extension, only for Jobs that other plans have, never for their
  slots and never for one that waits. Meanwhile it goes on with all that it has. So each of its Jobs
  comes to its turn by the plan's own order, runs once, and is over; whoever waited for it finds it
  over and has nothing to wait for any more.
- A plan that waits for what is not there (a Job, a bed, a slot) holds nobody up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.actions import Action, CreateResource, Decision, RecordStatus, ReviseJob
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Metadata
from interlock.resources.scheduling import (
    CLAIMS_NAME,
    MAX_CLAIMED,
    OVER,
    PUT_BACK_ANNOTATION,
    ClaimedJob,
    PlanHolder,
    PlanState,
    PlanWait,
    PlanWaitReason,
    Scheduling,
    SchedulingClaims,
    is_put_back,
    jobs_of,
)
from interlock.resources.test_bed import TestBedSlots, seats_of
from interlock.resources.transitions import has_ended, is_admitted
from interlock.slots.plans.view import ClaimsView

#: How many Jobs one decision puts back at most; the rest is left to the next look.
_AT_ONCE = 50
#: How many marks a Job keeps of plans that have put it back.
_MARKS_KEPT = 8


class Want(Struct, frozen=True, kw_only=True):
    """What a plan lacks, and why it cannot have it now."""

    #: The grant as it would be, with everything that the plan has already.
    holder: PlanHolder | None
    #: What is not there, or not as it has to be: nobody but a person can change that.
    flaws: tuple[PlanWait, ...] = ()
    #: What others have, or come first for.
    waits: tuple[PlanWait, ...] = ()

    @property
    def granted(self) -> PlanHolder | None:
        """The grant, where nothing is in its way."""
        return None if self.flaws or self.waits else self.holder


def decide_claims(view: ClaimsView, now: datetime) -> Decision:
    """Drop who is done, grant what is free, and put back the Jobs of plans that are at their end.

    The record comes first: a Job that cannot be written to holds up nobody but who wants it.
    """
    record = view.record
    if record is None:
        if not any(want.granted for _, want in wants(view, now)):
            return Decision()
        made = Metadata(name=CLAIMS_NAME, namespace=view.namespace)
        return Decision((CreateResource(SchedulingClaims(metadata=made)),), reason="first plan")
    if record.is_going:
        return Decision()
    kept = tuple(holder for holder in record.status.holders if not _is_done(holder, view))
    gone = [each.scheduling for each in record.status.holders if each not in kept]
    granted = {new.uid: new for _, want in wants(view, now) if (new := want.granted) is not None}
    holders = (
        *(granted.pop(holder.uid, holder) for holder in kept),
        *granted.values(),
    )
    told = [f"takes back what {name} had" for name in gone]
    told += [f"grants {each.scheduling} all it needs" for each in holders if each not in kept]
    actions: list[Action] = []
    if holders != record.status.holders:
        actions.append(RecordStatus(record, replace(record.status, holders=holders)))
    backs = tuple(_put_back(view))
    actions += [_back(job, uid) for job, uid in backs[:_AT_ONCE]]
    if backs:
        told.append(f"puts back {', '.join(job.metadata.name for job, _ in backs[:5])}")
    more = now if len(backs) > _AT_ONCE else None
    return Decision(tuple(actions), more, "; ".join(told))


def wants(view: ClaimsView, now: datetime) -> Iterator[tuple[Scheduling, Want]]:
    """What each plan lacks, the oldest first; as if what is free were granted at once.

    Extensions come before all others: who has something waits only for who has something.
    """
    record = view.record
    holders = [
        holder
        for holder in (record.status.holders if record is not None else ())
        if not _is_done(holder, view)
    ]
    extending = [plan for plan in view.plans if _holder_of(plan, holders) is not None]
    first = [plan for plan in view.plans if plan not in extending]
    #: Plans that wait for others, and what they wait for.
    before: list[PlanHolder] = []
    for plan in (*extending, *first):
        mine = _holder_of(plan, holders)
        want = _want(view, plan, mine, holders, before, now)
        if want is None:
            continue
        if want.granted is not None:
            holders = [*(each for each in holders if each is not mine), want.granted]
        elif want.holder is not None and mine is None:
            before.append(want.holder)
        yield plan, want


def _holder_of(plan: Scheduling, holders: list[PlanHolder]) -> PlanHolder | None:
    return next((holder for holder in holders if holder.uid == plan.metadata.uid), None)


def holder_of(plan: Scheduling, record: SchedulingClaims | None) -> PlanHolder | None:
    """What the record says that a plan has."""
    return _holder_of(plan, list(record.status.holders)) if record is not None else None


def _want(
    view: ClaimsView,
    plan: Scheduling,
    mine: PlanHolder | None,
    holders: list[PlanHolder],
    before: list[PlanHolder],
    now: datetime,
) -> Want | None:
    """What a plan lacks; None for one that lacks nothing, or is at its end."""
    if is_ending(plan):
        return None
    over = {job.name for job in plan.status.jobs if job.state in OVER}
    has = {job.name for job in mine.jobs} if mine is not None else set()
    lacks = [name for name in jobs_of(plan.spec) if name not in over and name not in has]
    found = {name: view.jobs.get(Key("Job", view.namespace, name)) for name in lacks}
    lacks = [name for name in lacks if not _is_over(found[name])]
    if not lacks:
        return None
    others = [each for each in holders if each is not mine]
    claimed = _claimed(others, view)
    flaws = [
        flaw
        for name in lacks
        if name not in claimed
        for flaw in _job_flaws(plan, name, found[name])
    ]
    bed = view.beds.get(plan.spec.test_bed)
    if bed is None:
        flaws.append(PlanWait(reason=PlanWaitReason.NO_TEST_BED))
        return Want(holder=None, flaws=tuple(flaws))
    resolved = _resolved(plan, bed, lacks, mine)
    flaws += resolved.flaws
    if flaws:
        return Want(holder=None, flaws=tuple(flaws))
    jobs = tuple(
        ClaimedJob(
            name=name,
            uid=job.metadata.uid,
            slots=resolved.slots.get(name, ()),
            version=job.version,
        )
        for name in lacks
        if (job := found[name]) is not None
    )
    if mine is not None:
        holder = replace(mine, jobs=(*mine.jobs, *jobs), version=plan.version)
    else:
        holder = PlanHolder(
            scheduling=plan.metadata.name,
            uid=plan.metadata.uid,
            test_bed=plan.spec.test_bed,
            slots=resolved.part,
            jobs=jobs,
            granted_at=now,
            version=plan.version,
        )
    waits = [
        PlanWait(reason=PlanWaitReason.JOB_CLAIMED, job=name, held_by=claimed[name])
        for name in lacks
        if name in claimed
    ]
    if mine is None:
        waits += _slots_taken(holder, others)
        waits += _overtaking(lacks, holder, before)
    if not waits and sum(len(each.jobs) for each in (*others, holder)) > MAX_CLAIMED:
        waits.append(PlanWait(reason=PlanWaitReason.TOO_MANY))
    return Want(holder=holder, waits=tuple(waits))


def _job_flaws(plan: Scheduling, name: str, job: Job | None) -> Iterator[PlanWait]:
    """Why a Job that no plan has could not be this plan's."""
    if job is None or job.is_going:
        yield PlanWait(reason=PlanWaitReason.NO_JOB, job=name)
        return
    request = job.spec.slots
    # Whoever says a plan's name without having been claimed has said nothing: the record counts.
    is_planned = request is not None and (
        request.test_bed is None or request.scheduling is not None
    )
    is_mine = request is not None and request.scheduling == plan.metadata.name
    marks = is_put_back(job.metadata.annotations, plan.metadata.uid)
    if not is_planned or marks or (is_admitted(job) and not is_mine):
        yield PlanWait(reason=PlanWaitReason.NOT_PLANNED, job=name)


class _Resolved(Struct, frozen=True, kw_only=True):
    """The slots that a plan names, as what they are."""

    part: tuple[str, ...] | None
    slots: dict[str, tuple[str, ...]]
    flaws: list[PlanWait]


def _resolved(
    plan: Scheduling, bed: TestBedSlots, names: list[str], mine: PlanHolder | None
) -> _Resolved:
    """What the positions mean that a plan names. Once it is granted they are never asked again."""
    seats = [seat.id for seat in seats_of(bed.status.places)]
    there, flaws = set(seats), list[PlanWait]()

    def ids(
        given: tuple[str, ...] | None, positions: tuple[int, ...] | None, job: str
    ) -> tuple[str, ...]:
        missing = [slot for slot in given or () if slot not in there]
        missing += [str(at) for at in positions or () if at >= len(seats)]
        if missing:
            flaws.append(PlanWait(reason=PlanWaitReason.NO_SLOT, job=job, slots=tuple(missing)))
            return ()
        return given or tuple(seats[at] for at in positions or ())

    spec, lacks = plan.spec, frozenset(names)
    if mine is not None:
        part = mine.slots
    else:
        is_whole = spec.slot_ids is None and spec.positions is None
        part = None if is_whole else ids(spec.slot_ids, spec.positions, "")
    slots = {
        job.name: ids(job.slot_ids, job.positions, job.name)
        for job in (spec.slot_based.jobs if spec.slot_based is not None else ())
        if job.name in lacks
    }
    most, entries = len(seats) if part is None else len(part), Counter(spec.queue_based or ())
    for name in names:
        if entries[name] > most:
            # It would keep the part from all others, and never have its turn.
            flaws.append(PlanWait(reason=PlanWaitReason.TOO_FEW_SLOTS, job=name))
    for name, named in slots.items():
        outside = tuple(slot for slot in named if part is not None and slot not in part)
        if outside:
            flaws.append(PlanWait(reason=PlanWaitReason.NOT_IN_PART, job=name, slots=outside))
    return _Resolved(part=part, slots=slots, flaws=flaws)


def _claimed(holders: list[PlanHolder], view: ClaimsView) -> dict[str, str]:
    """The Jobs that plans have, and which plan."""
    return {
        job.name: f"scheduling/{holder.scheduling}"
        for holder in holders
        for job in holder.jobs
        if not is_spent(job, holder, view)
    }


def _slots_taken(wanted: PlanHolder, others: list[PlanHolder]) -> Iterator[PlanWait]:
    """Slots of the part that a plan wants which are in the parts of others."""
    for other in others:
        shared = _shared(wanted, other)
        if shared is not None:
            by = f"scheduling/{other.scheduling}"
            yield PlanWait(reason=PlanWaitReason.SLOTS_CLAIMED, slots=shared, held_by=by)


def _overtaking(
    lacks: list[str], wanted: PlanHolder, before: list[PlanHolder]
) -> Iterator[PlanWait]:
    """Who was made earlier and waits for some of the same."""
    names = frozenset(lacks)
    for older in before:
        by = f"scheduling/{older.scheduling}"
        same = next((job.name for job in older.jobs if job.name in names), None)
        shared = _shared(wanted, older)
        if same is not None or shared is not None:
            yield PlanWait(
                reason=PlanWaitReason.OLDER_FIRST, job=same or "", slots=shared or (), held_by=by
            )


def _shared(one: PlanHolder, other: PlanHolder) -> tuple[str, ...] | None:
    """The slots that two parts share; none named where one of them is the whole bed."""
    if one.test_bed != other.test_bed:
        return None
    if one.slots is None or other.slots is None:
        return one.slots or other.slots or ()
    shared = set(other.slots)
    return tuple(slot for slot in one.slots if slot in shared) or None


# The end of a plan


def is_ending(plan: Scheduling) -> bool:
    """Whether a plan claims nothing any more. It never becomes untrue."""
    return plan.is_going or plan.status.state is PlanState.FAILED


def _plan_of(holder: PlanHolder, view: ClaimsView) -> Scheduling | None:
    """The plan that has this; None once it is proven gone, or as long as nothing is known."""
    plan = view.known_plans.get(Key("Scheduling", view.namespace, holder.scheduling))
    return plan if plan is not None and plan.metadata.uid == holder.uid else None


def _is_gone(holder: PlanHolder, view: ClaimsView) -> bool:
    key = Key("Scheduling", view.namespace, holder.scheduling)
    if _plan_of(holder, view) is not None or key in view.known_plans.unreadable:
        return False
    # The plan was there at that version; who has heard all up to it knows that it is gone.
    return view.known_plans.version >= holder.version


def is_spent(claimed: ClaimedJob, holder: PlanHolder, view: ClaimsView) -> bool:
    """Whether a claim of a Job counts for nothing any more. It never becomes untrue."""
    key = Key("Job", view.namespace, claimed.name)
    job = view.jobs.get(key)
    if job is None or job.metadata.uid != claimed.uid:
        return key not in view.jobs.unreadable and view.jobs.version >= claimed.version
    return has_ended(job) or is_put_back(job.metadata.annotations, holder.uid)


def _is_done(holder: PlanHolder, view: ClaimsView) -> bool:
    """Whether nothing that a plan has is of any use to it; a plan that goes on says so itself.

    What it has written down of its Jobs is known also when they are gone.
    """
    plan = _plan_of(holder, view)
    if plan is not None and not is_ending(plan):
        over = {job.name for job in plan.status.jobs if job.state in OVER}
        return all(claimed.name in over for claimed in holder.jobs)
    if plan is None and not _is_gone(holder, view):
        return False
    return all(is_spent(claimed, holder, view) for claimed in holder.jobs)


def _is_over(job: Job | None) -> bool:
    return job is not None and has_ended(job)


def _put_back(view: ClaimsView) -> Iterator[tuple[Job, str]]:
    """The Jobs that plans leave behind which are at their end, each with the plan's uid.

    A plan that was deleted leaves none; one that has failed lets those finish that it gave slots.
    """
    assert view.record is not None
    for holder in view.record.status.holders:
        plan = _plan_of(holder, view)
        leaves_all = plan.is_going if plan is not None else _is_gone(holder, view)
        if not leaves_all and (plan is None or not is_ending(plan)):
            continue
        for claimed in holder.jobs:
            job = view.jobs.get(Key("Job", view.namespace, claimed.name))
            if job is None or is_spent(claimed, holder, view):
                continue
            if leaves_all or not _has_order(job, holder):
                yield job, holder.uid


def _has_order(job: Job, holder: PlanHolder) -> bool:
    request = job.spec.slots
    return (
        request is not None
        and request.scheduling == holder.scheduling
        and request.test_bed is not None
    )


def _back(job: Job, plan_uid: str) -> ReviseJob:
    """Take a plan's claim and order off a Job, and mark that it did so.

    One that runs is put back for that: it asks for other slots than it has.
    """
    marks = [
        each for each in job.metadata.annotations.get(PUT_BACK_ANNOTATION, "").split(",") if each
    ]
    marks = [*marks[1 - _MARKS_KEPT :], plan_uid]
    asked = job.spec.slots
    slots = replace(asked, test_bed=None, ids=None, scheduling=None) if asked is not None else None
    notes = {PUT_BACK_ANNOTATION: ",".join(marks)}
    return ReviseJob(job, replace(job.spec, slots=slots), notes)
