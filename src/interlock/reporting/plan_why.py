"""Why a Job that leaves its slots to a plan has none: which plan, and what that waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.control.cache import Cache
from interlock.resources.job import Job
from interlock.resources.scheduling import (
    OVER,
    PlannedState,
    PlanState,
    Scheduling,
)
from interlock.slots.plans.reconciler import PLANS_BY_JOB

#: So many waits of a plan are told.
_TOLD = 3


def plans_of(job: Job, plans: Cache[Scheduling]) -> tuple[Scheduling, ...]:
    """The plans that list a Job."""
    return tuple(plans.by(PLANS_BY_JOB, f"{job.metadata.namespace}/{job.metadata.name}"))


def plan_words(job: Job, plans: Iterable[Scheduling]) -> Iterator[tuple[str, str]]:
    """What the plans that list a waiting Job do about it, each by its name.

    One that has it is the only one that counts.
    """
    name = job.metadata.name
    request = job.spec.slots
    owner = request.scheduling if request is not None else None
    for plan in plans:
        title = plan.metadata.name
        mine = next((one for one in plan.status.jobs if one.name == name), None)
        if mine is not None and mine.state in OVER:
            continue
        if owner is not None and owner != title:
            continue
        if owner == title and mine is not None and mine.state is not PlannedState.ACQUIRING:
            yield title, f"it waits for its turn in scheduling/{title}{_waits_of(plan, name)}"
        elif plan.status.state is PlanState.FAILED:
            yield title, f"scheduling/{title} lists it, and has failed: it gives out no more slots"
        else:
            yield (
                title,
                f"scheduling/{title} lists it, and has not claimed it{_waits_of(plan, name)}",
            )


def _waits_of(plan: Scheduling, name: str) -> str:
    """What a plan waits for: what is about the Job itself first."""
    waits = sorted(plan.status.waits, key=lambda wait: wait.job != name)
    told = "; ".join(wait.message for wait in waits[:_TOLD])
    return f": {told}" if told else ""
