"""What a plan does next: it writes itself into its Jobs, tells them their slots, and how it goes.

    Acquiring --it was granted all it needs--> Submitting --a Job was told its slots--> Confirming
        ^            Confirming --all who were told have their slots--> Submitting
        |            Submitting --nobody waits for slots any more--> AwaitingCompletion
        |            AwaitingCompletion --all are over--> Completed
        \\--it was extended by Jobs that it does not have--/        Failed: by its policy, for good

None of these is kept: each look works out of the record of claims, the Jobs and the record of the
bed where the plan is. Only how a Job ended is written down for good, and that a plan has failed.

A slot that a Job of the plan was told is taken from then on, whoever is in it. So a plan gives a
slot twice only after the first Job is over; and a queue, or a strict plan, tells nobody further as
long as one that was told has not all of its slots: so they are had in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.actions import (
    AddFinalizer,
    Decision,
    RecordStatus,
    RemoveFinalizer,
    ReviseJob,
)
from interlock.resources.job import Job, JobPhase, SlotsRequest
from interlock.resources.metadata import Condition, ConditionStatus, Key
from interlock.resources.plan_words import plan_wait_words
from interlock.resources.scheduling import (
    OVER,
    PLAN_FINALIZER,
    ClaimedJob,
    JobInPlan,
    PlanHolder,
    PlanMode,
    PlannedState,
    PlanState,
    PlanWait,
    PlanWaitReason,
    Scheduling,
    SchedulingStatus,
    WhenFailed,
    is_put_back,
    jobs_of,
)
from interlock.resources.test_bed import seats_of
from interlock.resources.transitions import has_ended, is_admitted
from interlock.slots.plans.claims import holder_of, is_spent, wants
from interlock.slots.plans.placing import Placed, place_named, place_queue
from interlock.slots.plans.view import PlanView

#: How many Jobs one decision writes to at most; the rest is left to the next look.
_AT_ONCE = 50
#: How many waits a plan tells of at most.
_TOLD = 20

_ENDS = {PlanState.COMPLETED: "Complete", PlanState.FAILED: "Failed"}
#: Phases in which a Job has its slots and does not run yet.
_ABOUT_TO = frozenset({JobPhase.STARTING, JobPhase.PENDING})


class _Seating(Struct, frozen=True, kw_only=True):
    """The plan's Jobs that are not over, and its part of the bed."""

    #: In their order.
    alive: tuple[tuple[ClaimedJob, Job], ...] = ()
    #: Every slot of the part, by position.
    seats: tuple[str, ...] = ()
    #: Who is in a slot, or was told it, as `job/NAME`.
    taken: dict[str, str] = {}
    #: The slots that each of the plan's Jobs is in.
    held: dict[str, frozenset[str]] = {}

    @property
    def free(self) -> tuple[str, ...]:
        """The slots that nobody is in or was told, by position."""
        return tuple(slot for slot in self.seats if slot not in self.taken)


def decide_plan(view: PlanView, now: datetime) -> Decision:
    """Carry a plan one step on: claim its Jobs, tell them their slots, or tell how it goes."""
    plan = view.plan
    holder = holder_of(plan, view.claims.record)
    held_back = PLAN_FINALIZER in plan.metadata.finalizers
    if plan.is_going:
        if held_back and holder is None:
            told = "has put back all that was not over"
            return Decision((RemoveFinalizer(plan, PLAN_FINALIZER),), reason=told)
        return Decision()
    if not held_back:
        return Decision((AddFinalizer(plan, PLAN_FINALIZER),), reason="is a new plan")
    jobs = tuple(_jobs_in_plan(view, holder))
    has_failed = plan.status.state is PlanState.FAILED or (
        plan.spec.when_failed is WhenFailed.STOP
        and any(job.state is PlannedState.FAILED for job in jobs)
    )
    seating = _seating(view, holder)
    if holder is not None and not has_failed:
        writes = _claims(plan, seating) or _orders(view, holder, seating)
        if writes:
            # How it goes is told at the next look, which these writes bring about.
            return _written(writes, now)
    status = _status(view, holder, jobs, seating, now, has_failed=has_failed)
    if status == plan.status:
        return Decision()
    return Decision((RecordStatus(plan, status),), reason=_news(plan.status, status))


def _written(writes: list[ReviseJob], now: datetime) -> Decision:
    names = ", ".join(write.job.metadata.name for write in writes[:5])
    is_order = writes[0].spec.slots is not None and writes[0].spec.slots.test_bed is not None
    told = f"tells {names} their slots" if is_order else f"claims {names}"
    more = len(writes) > _AT_ONCE
    return Decision(tuple(writes[:_AT_ONCE]), now if more else None, told)


def _job(view: PlanView, name: str) -> Job | None:
    return view.claims.jobs.get(Key("Job", view.plan.metadata.namespace, name))


def _alive(view: PlanView, holder: PlanHolder) -> Iterator[tuple[ClaimedJob, Job]]:
    """The Jobs that the plan has and that are not over, in their order."""
    for claimed in holder.jobs:
        job = _job(view, claimed.name)
        if job is not None and not is_spent(claimed, holder, view.claims):
            yield claimed, job


def _is_claimed(plan: Scheduling, job: Job) -> bool:
    return job.spec.slots is not None and job.spec.slots.scheduling == plan.metadata.name


def _told_slots(plan: Scheduling, job: Job) -> tuple[str, ...] | None:
    """The slots that the plan told a Job; None if it did not yet."""
    request = job.spec.slots
    if request is None or request.test_bed is None or not _is_claimed(plan, job):
        return None
    return request.ids or ()


# What it writes to its Jobs


def _claims(plan: Scheduling, seating: _Seating) -> list[ReviseJob]:
    """Write the plan into those of its Jobs that do not say so yet.

    What another plan told such a Job, or a person, counts for nothing: the record has the last
    word. Nor does what it was told of slots that are not there any more, if it waits for them yet.
    One that runs is let be.
    """
    name = plan.metadata.name
    there = frozenset(seating.seats)

    def is_good(job: Job) -> bool:
        # Of a bed that was not heard of nothing is known to be gone.
        told = _told_slots(plan, job) if there else None
        return _is_claimed(plan, job) and there.issuperset(told or ())

    return [
        _told_to(job, scheduling=name)
        for _, job in seating.alive
        if not is_admitted(job) and not is_good(job)
    ]


def _orders(view: PlanView, holder: PlanHolder, seating: _Seating) -> list[ReviseJob]:
    """Tell those Jobs their slots whose turn it is."""
    plan, bed = view.plan, view.bed
    if bed is None or (not _is_relaxed(plan) and _unconfirmed(plan, seating)):
        return []
    placed = _placed(plan, seating)
    orders = []
    for claimed, job in seating.alive:
        slots = placed.get(claimed.name)
        if slots is not None and not is_admitted(job):
            name = plan.metadata.name
            orders.append(_told_to(job, scheduling=name, test_bed=holder.test_bed, ids=slots))
    return orders


def _told_to(
    job: Job, *, scheduling: str, test_bed: str | None = None, ids: tuple[str, ...] | None = None
) -> ReviseJob:
    """Write into a Job whose it is, and which slots it gets."""
    asked = job.spec.slots or SlotsRequest()
    slots = replace(asked, scheduling=scheduling, test_bed=test_bed, ids=ids)
    return ReviseJob(job, replace(job.spec, slots=slots))


def _is_relaxed(plan: Scheduling) -> bool:
    return plan.spec.slot_based is not None and plan.spec.slot_based.mode is PlanMode.RELAXED


def _waiting(plan: Scheduling, seating: _Seating) -> list[ClaimedJob]:
    """The plan's Jobs that were not told their slots, in their order."""
    return [
        claimed
        for claimed, job in seating.alive
        if _told_slots(plan, job) is None and not is_admitted(job)
    ]


def _unconfirmed(plan: Scheduling, seating: _Seating) -> list[Job]:
    """The plan's Jobs that do not have all the slots they were told."""
    return [
        job
        for _, job in seating.alive
        if not seating.held.get(job.metadata.name, frozenset()) >= set(_told_slots(plan, job) or ())
    ]


def _queue(plan: Scheduling, seating: _Seating) -> list[str]:
    """What is left of a queue."""
    names = {claimed.name for claimed in _waiting(plan, seating)}
    return [name for name in plan.spec.queue_based or () if name in names]


def _placed(plan: Scheduling, seating: _Seating) -> Placed:
    if plan.spec.slot_based is None:
        return place_queue(_queue(plan, seating), seating.free, len(seating.seats))
    jobs = [(claimed.name, claimed.slots) for claimed in _waiting(plan, seating)]
    return place_named(jobs, frozenset(seating.free), plan.spec.slot_based.mode)


def _seating(view: PlanView, holder: PlanHolder | None) -> _Seating:
    """The plan's part of its bed, and who is where."""
    bed = view.bed
    alive = tuple(_alive(view, holder)) if holder is not None else ()
    if bed is None or holder is None:
        return _Seating(alive=alive)
    part = None if holder.slots is None else set(holder.slots)
    seats = (seat.id for seat in seats_of(bed.status.places))
    taken: dict[str, str] = {}
    held: dict[str, frozenset[str]] = {}
    mine = {job.metadata.uid: job for _, job in alive}
    for job in mine.values():
        taken.update(dict.fromkeys(_told_slots(view.plan, job) or (), f"job/{job.metadata.name}"))
    for one in bed.status.holders:
        taken.update(dict.fromkeys(one.slots, f"job/{one.job}"))
        job_in = mine.get(one.uid)
        if job_in is not None and one.epoch == job_in.status.admission.epoch:
            held[one.job] = frozenset(one.slots)
    return _Seating(
        alive=alive,
        seats=tuple(slot for slot in seats if part is None or slot in part),
        taken=taken,
        held=held,
    )


# What it tells of itself


def _jobs_in_plan(view: PlanView, holder: PlanHolder | None) -> Iterator[JobInPlan]:
    """How the Jobs of the plan go. How one ended is told once."""
    before = {job.name: job for job in view.plan.status.jobs}
    claimed = {job.name: job for job in holder.jobs} if holder is not None else {}
    for name in dict.fromkeys((*jobs_of(view.plan.spec), *claimed)):
        known = before.get(name)
        if known is not None and known.state in OVER:
            yield known
        else:
            yield _job_in_plan(view, holder, claimed.get(name), known or JobInPlan(name=name))


def _job_in_plan(
    view: PlanView, holder: PlanHolder | None, claimed: ClaimedJob | None, before: JobInPlan
) -> JobInPlan:
    """How a Job of the plan goes that was not over before."""
    name = before.name
    job = _job(view, name)
    if claimed is None or holder is None:
        if job is None or not has_ended(job):
            return JobInPlan(name=name)
        return _ended(job, (), "it was over before the plan had it")
    if job is None or job.metadata.uid != claimed.uid:
        if is_spent(claimed, holder, view.claims):
            told = "it was deleted"
            return JobInPlan(name=name, state=PlannedState.FAILED, message=told)
        return before
    slots = _told_slots(view.plan, job) or ()
    if has_ended(job):
        return _ended(job, slots)
    return JobInPlan(name=name, state=_live_state(view, holder, job), slots=slots)


def _ended(job: Job, slots: tuple[str, ...], because: str = "") -> JobInPlan:
    name, phase = job.metadata.name, job.status.phase
    if phase is JobPhase.SUCCEEDED:
        return JobInPlan(name=name, state=PlannedState.COMPLETED, slots=slots, message=because)
    told = job.status.execution.message or job.status.admission.message
    message = f"{phase.value}: {told}" if told else phase.value
    return JobInPlan(name=name, state=PlannedState.FAILED, slots=slots, message=message[:200])


def _live_state(view: PlanView, holder: PlanHolder, job: Job) -> PlannedState:
    if is_admitted(job):
        is_starting = job.status.phase in _ABOUT_TO
        return PlannedState.SCHEDULED if is_starting else PlannedState.RUNNING
    if is_put_back(job.metadata.annotations, holder.uid) or not _is_claimed(view.plan, job):
        return PlannedState.ACQUIRING
    told = _told_slots(view.plan, job)
    return PlannedState.IN_QUEUE if told is None else PlannedState.SUBMITTED


def _status(
    view: PlanView,
    holder: PlanHolder | None,
    jobs: tuple[JobInPlan, ...],
    seating: _Seating,
    now: datetime,
    *,
    has_failed: bool,
) -> SchedulingStatus:
    plan = view.plan
    states = [job.state for job in jobs]
    waits: tuple[PlanWait, ...] = ()
    if has_failed:
        state = PlanState.FAILED
    elif all(each in OVER for each in states):
        state = PlanState.COMPLETED
    else:
        found = islice(_waits(view, holder, seating, now), _TOLD)
        waits = tuple(replace(wait, message=plan_wait_words(wait, plan)) for wait in found)
        state = _live_plan_state(states, plan, holder, seating)
    return replace(
        plan.status,
        observed_generation=plan.metadata.generation,
        state=state,
        jobs=jobs,
        total=len(jobs),
        completed=states.count(PlannedState.COMPLETED),
        failed=states.count(PlannedState.FAILED),
        slots=(holder.slots or ()) if holder is not None else plan.status.slots,
        waits=waits,
        conditions=_conditions(plan, state, now),
    )


def _live_plan_state(
    states: list[PlannedState], plan: Scheduling, holder: PlanHolder | None, seating: _Seating
) -> PlanState:
    if holder is None or PlannedState.ACQUIRING in states:
        return PlanState.ACQUIRING
    if _unconfirmed(plan, seating):
        return PlanState.CONFIRMING
    if PlannedState.IN_QUEUE in states:
        return PlanState.SUBMITTING
    return PlanState.AWAITING_COMPLETION


def _conditions(plan: Scheduling, state: PlanState, now: datetime) -> tuple[Condition, ...]:
    """What generic tools wait for: Complete or Failed, as Jobs say it."""
    held = {condition.type: condition for condition in plan.status.conditions}
    for end, type in _ENDS.items():
        status = ConditionStatus.TRUE if state is end else ConditionStatus.FALSE
        before = held.get(type)
        if status is (before.status if before is not None else ConditionStatus.FALSE):
            continue
        held[type] = Condition(
            type=type, status=status, reason=state.value, last_transition_time=now
        )
    return tuple(held.values())


def _waits(
    view: PlanView, holder: PlanHolder | None, seating: _Seating, now: datetime
) -> Iterator[PlanWait]:
    """What the plan waits for, and who has it."""
    for plan, want in wants(view.claims, now):
        if plan.metadata.uid == view.plan.metadata.uid:
            yield from (*want.flaws, *want.waits)
    if holder is None:
        return
    unconfirmed = _unconfirmed(view.plan, seating)
    for job in unconfirmed:
        name = job.metadata.name
        has = seating.held.get(name, frozenset())
        lacks = tuple(slot for slot in _told_slots(view.plan, job) or () if slot not in has)
        others = (by for slot in lacks if (by := seating.taken.get(slot, "")) != f"job/{name}")
        yield PlanWait(
            reason=PlanWaitReason.NOT_CONFIRMED, job=name, slots=lacks, held_by=next(others, "")
        )
    if not unconfirmed or _is_relaxed(view.plan):
        yield from _turn_waits(view.plan, seating)


def _turn_waits(plan: Scheduling, seating: _Seating) -> Iterator[PlanWait]:
    """What the next Job in turn waits for; of a relaxed plan every Job."""
    if plan.spec.slot_based is None:
        queue = _queue(plan, seating)
        if queue and queue.count(queue[0]) > len(seating.seats):
            yield PlanWait(reason=PlanWaitReason.TOO_FEW_SLOTS, job=queue[0])
        elif queue:
            yield from _taken_waits(queue[0], seating.seats, seating)
        return
    waiting = _waiting(plan, seating)
    for claimed in waiting if _is_relaxed(plan) else waiting[:1]:
        gone = tuple(slot for slot in claimed.slots if slot not in seating.seats)
        if gone:
            yield PlanWait(reason=PlanWaitReason.NO_SLOT, job=claimed.name, slots=gone)
        yield from _taken_waits(claimed.name, claimed.slots, seating)


def _taken_waits(name: str, slots: tuple[str, ...], seating: _Seating) -> Iterator[PlanWait]:
    """Who has some of these slots, each once."""
    by: dict[str, list[str]] = {}
    for slot in slots:
        if slot in seating.taken:
            by.setdefault(seating.taken[slot], []).append(slot)
    for held_by, taken in by.items():
        yield PlanWait(
            reason=PlanWaitReason.SLOTS_TAKEN, job=name, slots=tuple(taken), held_by=held_by
        )


def _news(before: SchedulingStatus, after: SchedulingStatus) -> str:
    """What a change of the status tells, for the log."""
    if after.state is not before.state or not before.observed_generation:
        over = f"{after.completed + after.failed} of {after.total} Jobs are over"
        return f"{after.state.value}: {over}"
    was = {job.name: job.state for job in before.jobs}
    changed = [job for job in after.jobs if was.get(job.name) is not job.state]
    if changed:
        return ", ".join(f"{job.name} is {job.state.value}" for job in changed[:5])
    return after.waits[0].message if after.waits else "waits for nothing more"
