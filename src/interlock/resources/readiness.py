"""Readiness of a Job: the condition PodsReady, which says whether as many of its tasks as may run
at a time can do their work.

It is named as in KEP-349, although tasks of a machine are no pods. It is worked out with every
write of a Job's status, and costs none of its own: what it depends on is in that status.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.pods import PodTemplate
from interlock.resources.tasks import MOST_AT_ONCE, ExecutionStatus, TaskState, TaskStatus
from interlock.resources.variables import task_count

PODS_READY = "PodsReady"


class ReadyReason(StrEnum):
    """Why a Job is ready, or is not."""

    #: It was not ready yet since it was let in, or is not let in.
    WAIT_FOR_START = "WaitForStart"
    #: It became ready for the first time since it was let in.
    STARTED = "Started"
    #: It was ready, and is not any more.
    WAIT_FOR_RECOVERY = "WaitForRecovery"
    #: It was ready, was not, and is again.
    RECOVERED = "Recovered"


#: What becomes of the tasks of such a Job tells nothing any more.
_STILL = frozenset({AdmissionPhase.EVICTING, AdmissionPhase.REFUSED})
_READY = frozenset({ReadyReason.STARTED, ReadyReason.RECOVERED})
_RECOVERING = frozenset({ReadyReason.WAIT_FOR_RECOVERY.value, ReadyReason.RECOVERED.value})
_WORDS = {
    ReadyReason.WAIT_FOR_START: "not all tasks are ready or succeeded",
    ReadyReason.STARTED: "all tasks were ready or succeeded",
    ReadyReason.WAIT_FOR_RECOVERY: "a task failed or is not ready any more, and may recover",
    ReadyReason.RECOVERED: "all tasks were ready or succeeded",
}


def wants_readiness(job: Job) -> bool:
    """Whether anybody wants to know whether a Job is ready: who gave it a probe, or its Queue."""
    quota = job.status.admission.quota
    awaited = quota is not None and quota.awaits_ready
    return awaited or has_probe(job.spec) or pods_ready(job) is not None


def has_probe(spec: JobSpec) -> bool:
    """Whether tasks of a Job are ready later than they run, as far as its definition says."""
    if spec.adopted is not None:
        # Whether enough of its pods are ready is known of every batch Job and pod.
        return True
    if spec.process is not None:
        return spec.process.readiness_probe is not None
    return spec.pod is not None and _is_probed(spec.pod)


def _is_probed(pod: PodTemplate) -> bool:
    containers = pod.spec.get("containers")
    return isinstance(containers, list | tuple) and any(
        isinstance(one, dict) and one.get("readinessProbe") for one in containers
    )


def granted_to(admission: AdmissionStatus) -> int:
    """How many tasks at a time a Job was granted: as many as it wants, where nobody counts them."""
    return MOST_AT_ONCE if admission.quota is None else admission.quota.tasks


def threshold(spec: JobSpec, total: int, granted: int = MOST_AT_ONCE) -> int:
    """How many tasks have to be ready or done: as many as may run at a time, or all there are."""
    parallelism = spec.parallelism
    at_once = MOST_AT_ONCE if parallelism is None else parallelism.at_once or MOST_AT_ONCE
    return min(at_once, MOST_AT_ONCE, granted, total)


def ready_tasks(spec: JobSpec, execution: ExecutionStatus) -> int:
    """How many tasks are ready now; that one can do its work has to be said where it is probed."""
    is_probed = has_probe(spec)
    return sum(_is_ready(task, is_probed) for task in execution.active)


def _is_ready(task: TaskStatus, is_probed: bool) -> bool:
    if task.state is not TaskState.RUNNING:
        return False
    return task.ready is True or (task.ready is None and not is_probed)


def is_job_ready(spec: JobSpec, execution: ExecutionStatus, granted: int = MOST_AT_ONCE) -> bool:
    """Whether as many tasks are ready or have succeeded as have to. Failed ones never count.

    Of a Job that was put back only what is left counts: what succeeded before is not run again, and
    stands for nothing that has to be ready now. What ends is counted as succeeded in the write that
    takes it out of those that run, so nothing is between the two for a moment.
    """
    is_so, needed = counted(spec, execution, granted)
    return is_so >= needed


def counted(
    spec: JobSpec, execution: ExecutionStatus, granted: int = MOST_AT_ONCE
) -> tuple[int, int]:
    """How many tasks are ready or have succeeded, and how many have to."""
    before = execution.succeeded_before
    total = (execution.total or task_count(spec)) - before
    done = len(execution.succeeded) - before
    return ready_tasks(spec, execution) + done, threshold(spec, total, granted)


def ready_words(job: Job) -> str:
    """How many tasks count as ready, of how many that have to: "2/3"."""
    is_so, needed = counted(job.spec, job.status.execution, granted_to(job.status.admission))
    return f"{min(is_so, needed)}/{needed}"


def pods_ready(job: Job) -> Condition | None:
    """The condition as it is recorded; None before it was."""
    return next((one for one in job.status.conditions if one.type == PODS_READY), None)


def is_ready_now(job: Job) -> bool:
    """Whether a Job is ready, by what is recorded."""
    condition = pods_ready(job)
    return condition is not None and condition.status is ConditionStatus.TRUE


def turns_ready(job: Job, execution: ExecutionStatus) -> bool:
    """Whether a Job would be ready with this execution that is not, or the other way round."""
    if not wants_readiness(job):
        return False
    granted = granted_to(job.status.admission)
    return is_job_ready(job.spec, execution, granted) is not is_ready_now(job)


def with_readiness(
    job: Job,
    held: tuple[Condition, ...],
    admission: AdmissionStatus,
    execution: ExecutionStatus,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions after a change of a status; the very same object when PodsReady is as it was.

    A Job that is being put back stays as it was when that began: what its dying tasks do must not
    relabel that. One that is over was ready if all it needed succeeded, and else stays as it was.
    """
    awaited = admission.quota is not None and admission.quota.awaits_ready
    if not awaited and not wants_readiness(job):
        return held
    before = next((one for one in held if one.type == PODS_READY), None)
    is_over = execution.result is not None
    if not is_over and admission.phase in _STILL:
        return held
    is_ready = is_job_ready(job.spec, execution, granted_to(admission))
    if is_over and not is_ready:
        return held
    is_let_in = admission.phase is not AdmissionPhase.WAITING
    reason = next_reason(before, is_let_in=is_let_in, is_ready=is_ready)
    status = ConditionStatus.TRUE if reason in _READY else ConditionStatus.FALSE
    if before is not None and (before.status, before.reason) == (status, reason):
        return held
    is_flip = before is None or before.status is not status
    condition = Condition(
        type=PODS_READY,
        status=status,
        reason=reason.value,
        message=_WORDS[reason],
        last_transition_time=now if before is None or is_flip else before.last_transition_time,
    )
    return (*(one for one in held if one.type != PODS_READY), condition)


def next_reason(before: Condition | None, *, is_let_in: bool, is_ready: bool) -> ReadyReason:
    """Why a Job is ready or not, after what it was before. Words of older versions mean a start.

    A second failure during recovery changes nothing, and so moves no clock.
    """
    if not is_let_in:
        return ReadyReason.WAIT_FOR_START
    if is_ready:
        was_lost = before is not None and before.reason in _RECOVERING
        return ReadyReason.RECOVERED if was_lost else ReadyReason.STARTED
    if before is None:
        return ReadyReason.WAIT_FOR_START
    was_ready = before.status is ConditionStatus.TRUE
    recovers = was_ready or before.reason == ReadyReason.WAIT_FOR_RECOVERY.value
    return ReadyReason.WAIT_FOR_RECOVERY if recovers else ReadyReason.WAIT_FOR_START
