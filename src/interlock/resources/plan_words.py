"""What a plan waits for, in words: the one place for all who tell of it."""

from __future__ import annotations

from interlock.resources.scheduling import PlanWait, PlanWaitReason, Scheduling
from interlock.resources.words import plural

#: So many slots are named; the others are counted.
_NAMED = 8


def plan_wait_words(wait: PlanWait, plan: Scheduling) -> str:
    """One thing that a plan waits for, and who has it."""
    job, by, slots = wait.job, wait.held_by, slot_words(wait.slots)
    bed = f"test bed {plan.spec.test_bed}"
    words = {
        PlanWaitReason.NO_TEST_BED: f"there is no {bed}",
        PlanWaitReason.NO_SLOT: f"{bed} has no {slots}" + (f", which {job} is to get" * bool(job)),
        PlanWaitReason.NOT_IN_PART: f"{job} is to get {slots}, outside of the plan's part of {bed}",
        PlanWaitReason.NO_JOB: f"there is no job {job}",
        PlanWaitReason.NOT_PLANNED: f"job/{job} does not leave it to a plan which slots it gets:"
        " that says `slots: {}` in its spec",
        PlanWaitReason.JOB_CLAIMED: f"{by} has job {job}",
        PlanWaitReason.SLOTS_CLAIMED: f"{by} has {slots or 'slots'} of {bed}",
        PlanWaitReason.OLDER_FIRST: f"{by} was made earlier and waits for the same",
        PlanWaitReason.TOO_MANY: "the plans of the namespace have as many Jobs as they can have",
        PlanWaitReason.NOT_CONFIRMED: f"job/{job} does not have {slots} yet"
        + (f", which {by} is in" if by else f"; see: interlock why {job}"),
        PlanWaitReason.SLOTS_TAKEN: f"{job} waits for {slots}, which {by} is in or was told",
        PlanWaitReason.TOO_FEW_SLOTS: f"{job} needs more slots than the plan has of {bed}",
    }
    return words[wait.reason]


def slot_words(slots: tuple[str, ...]) -> str:
    """Slots by their names, a few of many."""
    if not slots:
        return ""
    more = len(slots) - _NAMED
    named = ", ".join(slots[:_NAMED])
    rest = f" and {plural(more, 'other')}" if more > 0 else ""
    return f"{'slot' if len(slots) == 1 else 'slots'} {named}{rest}"
