"""What the history of a rehearsal tells of slots: who is given which, is in it, and has left it."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.resources.job import Job
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


def _seated(job: Job) -> dict[str, str]:
    active = job.status.execution.active
    return {one.slot: one.name for one in active if one.slot and one.state is TaskState.RUNNING}
