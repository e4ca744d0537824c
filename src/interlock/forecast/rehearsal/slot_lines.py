"""What the history of a rehearsal tells of slots: who is given which, is in it, and has left it."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.resources.job import Job
from interlock.resources.scheduling import Scheduling, SchedulingClaims
from interlock.resources.tasks import TaskState
from interlock.resources.test_bed import TestBedSlots, held_slots

#: An event, its reason, and what else is to be said.
_Told = tuple[str, str, str]


def of_slots(before: TestBedSlots | None, after: TestBedSlots) -> Iterator[_Told]:
    """What a change of a bed's record tells: a slot is given to a Job, or is free again."""
    was = {(slot, one.uid, one.epoch): one for slot, one in held_slots(before)} if before else {}
    now = {(slot, one.uid, one.epoch): one for slot, one in held_slots(after)}
    for taken, holder in was.items():
        if taken not in now:
            yield "SlotFree", taken[0], f"after job/{holder.job}"
    for taken, holder in now.items():
        if taken not in was:
            yield "SlotReserved", taken[0], f"for job/{holder.job}"


def of_seated(before: Job | None, job: Job) -> Iterator[_Told]:
    """That a task runs in its slot now."""
    was = _seated(before) if before is not None else {}
    for slot, task in _seated(job).items():
        if was.get(slot) != task:
            yield "SlotOccupied", slot, task


def of_claims(before: SchedulingClaims | None, after: SchedulingClaims) -> Iterator[_Told]:
    """What a change of what plans have tells: a plan has a Job, or not any more."""
    was, now = _claimed(before) if before is not None else {}, _claimed(after)
    for claim, (plan, job) in was.items():
        if claim not in now:
            yield "Released", f"scheduling/{plan}", f"job/{job}"
    for claim, (plan, job) in now.items():
        if claim not in was:
            yield "Claimed", f"scheduling/{plan}", f"job/{job}"


def _claimed(record: SchedulingClaims) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (holder.uid, job.uid): (holder.scheduling, job.name)
        for holder in record.status.holders
        for job in holder.jobs
    }


def of_plan(before: Scheduling | None, plan: Scheduling) -> Iterator[_Told]:
    """How far a plan is, if that is news."""
    was = before.status.state if before is not None and before.status.observed_generation else None
    if plan.status.observed_generation and plan.status.state is not was:
        over = f"{plan.status.completed + plan.status.failed} of {plan.status.total} Jobs over"
        yield "State", plan.status.state.value, over


def _seated(job: Job) -> dict[str, str]:
    active = job.status.execution.active
    return {one.slot: one.name for one in active if one.slot and one.state is TaskState.RUNNING}
