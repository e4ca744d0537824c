"""Placement of a Job: the condition PodsScheduled, which says whether as many of its tasks have a
place to run as may run at a time: a node that took the pod, room on the machine for the process.

It is there while a Job is let in whose tasks have to be placed in time (`unscheduledTimeout`), and
is worked out with every write of its status, as readiness is. What was placed stays so: a task that
ended, or waits for its next attempt, had its place.
"""

from __future__ import annotations

from datetime import datetime

from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.readiness import granted_to, threshold
from interlock.resources.tasks import ExecutionStatus, PendingReason, TaskState, TaskStatus
from interlock.resources.variables import task_count

PODS_SCHEDULED = "PodsScheduled"
#: The reasons of the condition: as many have a place as have to, or fewer.
PLACED, UNSCHEDULED = "Placed", "Unscheduled"

_WORDS = {
    PLACED: "as many tasks have a place to run as have to be ready",
    UNSCHEDULED: "fewer tasks have a place to run than have to be ready",
}
#: Of these it is known that a node has taken the pod.
_ON_A_NODE = frozenset({PendingReason.IMAGE, PendingReason.CONTAINER})


def awaits_places(admission: AdmissionStatus) -> bool:
    """Whether the tasks of a Job have to be placed in time."""
    return admission.quota is not None and admission.quota.awaits_places


def placed(
    spec: JobSpec, execution: ExecutionStatus, admission: AdmissionStatus
) -> tuple[int, int]:
    """How many tasks have a place or had one, and how many have to."""
    total = execution.total or task_count(spec)
    done = len(execution.succeeded) - execution.succeeded_before + len(execution.failed)
    has = sum(_is_placed(spec, task) for task in execution.active) + len(execution.retrying) + done
    return has, threshold(spec, total - execution.succeeded_before, granted_to(admission))


def _is_placed(spec: JobSpec, task: TaskStatus) -> bool:
    """Whether an attempt has a place. A process begins only where there is room for it; of the pods
    of a batch Job nothing is told.
    """
    if task.state is not TaskState.STARTING or spec.pod is None:
        return True
    return task.placed_at is not None or task.reason in _ON_A_NODE


def pods_scheduled(job: Job) -> Condition | None:
    """The condition as it is recorded; None where nobody asks for it."""
    return next((one for one in job.status.conditions if one.type == PODS_SCHEDULED), None)


def turns_placed(job: Job, execution: ExecutionStatus) -> bool:
    """Whether as many tasks would have a place with this execution, or not any more."""
    condition = pods_scheduled(job)
    if condition is None:
        return False
    has, needed = placed(job.spec, execution, job.status.admission)
    return (has >= needed) is not (condition.status is ConditionStatus.TRUE)


def with_placement(
    job: Job,
    held: tuple[Condition, ...],
    admission: AdmissionStatus,
    execution: ExecutionStatus,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions after a change of a status; the very same object if this one is as it was.

    A Job that is being put back, or is over, stays as it was when that began.
    """
    before = next((one for one in held if one.type == PODS_SCHEDULED), None)
    if execution.result is not None or admission.phase is AdmissionPhase.EVICTING:
        return held
    if admission.phase is not AdmissionPhase.ADMITTED or not awaits_places(admission):
        return tuple(one for one in held if one is not before) if before is not None else held
    has, needed = placed(job.spec, execution, admission)
    reason = PLACED if has >= needed else UNSCHEDULED
    if before is not None and before.reason == reason:
        return held
    condition = Condition(
        type=PODS_SCHEDULED,
        status=ConditionStatus.TRUE if reason == PLACED else ConditionStatus.FALSE,
        reason=reason,
        message=_WORDS[reason],
        last_transition_time=now,
    )
    return (*(one for one in held if one is not before), condition)
