"""Validation of Schedulings beyond their types and rules, and of what may change of one."""

from __future__ import annotations

from interlock.findings import Findings
from interlock.resources.checks.validator import check_rules
from interlock.resources.scheduling import MAX_NAMED_SLOTS, Scheduling, SchedulingSpec, SlotBased

_FIXED = "may not change: delete the Scheduling, and make another"
_GROWS = "may only become longer at its end: delete the Scheduling, and make another"


def check_scheduling(scheduling: Scheduling, to: Findings) -> None:
    """Check that the slots of Jobs are in the plan's part of the bed, as far as that can be told.

    Where one is said by its position and the other is not, it is found out once the plan begins.
    """
    spec = scheduling.spec
    check_rules("spec", spec, to)
    if spec.slot_ids is not None and spec.positions is not None:
        to.add("spec.positions", "expected only one of slotIds and positions")
    if spec.slot_based is not None:
        _check_slots(spec, spec.slot_based, to)


def _check_slots(spec: SchedulingSpec, plan: SlotBased, to: Findings) -> None:
    ids = frozenset(spec.slot_ids) if spec.slot_ids is not None else None
    positions = frozenset(spec.positions) if spec.positions is not None else None
    named = 0
    for at, job in enumerate(plan.jobs):
        path = f"spec.slotBased.jobs[{at}]"
        named += len(job.slot_ids or ()) + len(job.positions or ())
        for place, slot in enumerate(job.slot_ids or ()):
            if ids is not None and slot not in ids:
                to.add(f"{path}.slotIds[{place}]", "is not among spec.slotIds", slot)
        for place, position in enumerate(job.positions or ()):
            if positions is not None and position not in positions:
                to.add(f"{path}.positions[{place}]", "is not among spec.positions", position)
    if named > MAX_NAMED_SLOTS:
        message = f"expected at most {MAX_NAMED_SLOTS} slots in all its Jobs together"
        to.add("spec.slotBased.jobs", message, named)


def check_scheduling_change(old: Scheduling, new: Scheduling, to: Findings) -> None:
    """Refuse all changes but to extend a plan, and to say otherwise what a failed Job is to do.

    What it has claimed, and in which order, others go by already.
    """
    was, now = old.spec, new.spec
    for name, path in (("test_bed", "testBed"), ("slot_ids", "slotIds"), ("positions",) * 2):
        if getattr(was, name) != getattr(now, name):
            to.add(f"spec.{path}", _FIXED)
    if (was.queue_based is None) != (now.queue_based is None):
        to.add("spec", f"queueBased and slotBased {_FIXED}")
    elif was.queue_based is not None and now.queue_based is not None:
        if now.queue_based[: len(was.queue_based)] != was.queue_based:
            to.add("spec.queueBased", _GROWS)
    elif was.slot_based is not None and now.slot_based is not None:
        if now.slot_based.mode is not was.slot_based.mode:
            to.add("spec.slotBased.mode", _FIXED)
        if now.slot_based.jobs[: len(was.slot_based.jobs)] != was.slot_based.jobs:
            to.add("spec.slotBased.jobs", _GROWS)
