"""The life of a Job: its phase from what the rooms wrote, and the moves a phase may make."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.resources.admission import AdmissionPhase, AdmissionStatus, RefusalReason
from interlock.resources.job import Job, JobPhase, JobStatus, steps_of
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.placement import with_placement
from interlock.resources.readiness import with_readiness
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    TaskState,
    next_round,
    number_in_round,
)

_ENDS = frozenset(
    {
        JobPhase.SUCCEEDED,
        JobPhase.FAILED,
        JobPhase.KILLED,
        JobPhase.REFUSED,
        JobPhase.FINISHED_UNKNOWN,
    }
)
_STARTED_ENDS = _ENDS - {JobPhase.REFUSED}
_LET_IN = frozenset({AdmissionPhase.ADMITTED, AdmissionPhase.EVICTING})
_LIVE = frozenset(
    {
        JobPhase.EVICTING,
        JobPhase.PENDING,
        JobPhase.RUNNING,
        JobPhase.RETRYING,
        JobPhase.RETRY_BACKOFF,
        JobPhase.TERMINATING,
        JobPhase.KILLING,
        JobPhase.REVERTING,
        JobPhase.STUCK,
        JobPhase.UNKNOWN,
    }
)

#: Every move a Job's phase may make. The code, the tests and the picture in the docs read this.
#: What happens between two looks is one move, so a phase that lasted for no time is passed over.
JOB_MOVES: dict[JobPhase, frozenset[JobPhase]] = {
    JobPhase.QUEUED: frozenset(
        {
            JobPhase.STARTING,
            JobPhase.PENDING,
            JobPhase.SUCCEEDED,
            JobPhase.FAILED,
            JobPhase.REFUSED,
            JobPhase.KILLED,
        }
    ),
    JobPhase.STARTING: _LIVE | _STARTED_ENDS,
    JobPhase.PENDING: (_LIVE - {JobPhase.PENDING}) | _STARTED_ENDS,
    JobPhase.RUNNING: (_LIVE - {JobPhase.RUNNING}) | _STARTED_ENDS,
    JobPhase.RETRYING: (_LIVE - {JobPhase.RETRYING}) | _STARTED_ENDS,
    JobPhase.RETRY_BACKOFF: (_LIVE - {JobPhase.RETRY_BACKOFF}) | _STARTED_ENDS,
    JobPhase.TERMINATING: frozenset({JobPhase.KILLING, JobPhase.UNKNOWN}) | _STARTED_ENDS,
    JobPhase.KILLING: frozenset({JobPhase.UNKNOWN}) | _STARTED_ENDS,
    JobPhase.REVERTING: frozenset({JobPhase.STUCK, JobPhase.UNKNOWN}) | _STARTED_ENDS,
    JobPhase.STUCK: frozenset(
        {
            JobPhase.PENDING,
            JobPhase.RUNNING,
            JobPhase.RETRYING,
            JobPhase.RETRY_BACKOFF,
            JobPhase.REVERTING,
            JobPhase.UNKNOWN,
        }
    )
    | _STARTED_ENDS,
    JobPhase.EVICTING: frozenset(
        {JobPhase.QUEUED, JobPhase.TERMINATING, JobPhase.KILLING, JobPhase.UNKNOWN}
    )
    | _STARTED_ENDS,
    JobPhase.UNKNOWN: (_LIVE - {JobPhase.UNKNOWN}) | _STARTED_ENDS,
    JobPhase.SUCCEEDED: frozenset(),
    JobPhase.FAILED: frozenset(),
    JobPhase.KILLED: frozenset(),
    JobPhase.REFUSED: frozenset(),
    JobPhase.FINISHED_UNKNOWN: frozenset(),
}

#: Refusals that were somebody's order rather than a rule of the Job itself.
_KILLED_EARLY = frozenset(
    {
        RefusalReason.KILLED_BEFORE_START,
        RefusalReason.REPLACED,
        RefusalReason.DELETED_BEFORE_START,
    }
)


#: Reasons to stop what is left of a Job whose end is decided by its own tasks.
_DECIDED = frozenset({ExecutionReason.COMPLETED, ExecutionReason.TASK_FAILED})


def phase_of(admission: AdmissionStatus, execution: ExecutionStatus) -> JobPhase:
    """The one word for a Job, from what the rooms wrote. An end beats everything else."""
    if execution.result is not None:
        return JobPhase(execution.result.value)
    if admission.phase is AdmissionPhase.REFUSED:
        return JobPhase.KILLED if admission.refusal in _KILLED_EARLY else JobPhase.REFUSED
    if admission.phase is AdmissionPhase.WAITING:
        return JobPhase.QUEUED
    if admission.phase is AdmissionPhase.ADMITTED and execution.started_at is None:
        return JobPhase.STARTING
    return _live_phase(admission, execution)


def _live_phase(admission: AdmissionStatus, execution: ExecutionStatus) -> JobPhase:
    states = {task.state for task in execution.active}
    if TaskState.UNKNOWN in states:
        return JobPhase.UNKNOWN
    operation = execution.operation
    if operation is not None and operation.stuck_at is not None:
        return JobPhase.STUCK
    if operation is not None and operation.reverting_for:
        return JobPhase.REVERTING
    if execution.stopping_for is not None:
        decided = execution.stopping_for in _DECIDED
        return JobPhase.TERMINATING if decided else JobPhase.KILLING
    if admission.phase is AdmissionPhase.EVICTING:
        return JobPhase.EVICTING
    if execution.retrying and TaskState.RUNNING not in states:
        return JobPhase.RETRY_BACKOFF
    if operation is not None and operation.next_attempt_at is not None:
        return JobPhase.RETRY_BACKOFF
    if TaskState.RUNNING in states or TaskState.KILLING in states:
        return JobPhase.RUNNING
    if any(number_in_round(task.attempt) > 0 for task in execution.active):
        return JobPhase.RETRYING
    return JobPhase.PENDING if execution.active else JobPhase.RUNNING


def has_ended(job: Job) -> bool:
    """Whether the Job is over for good: nothing of it runs or will run."""
    status = job.status
    return status.execution.result is not None or status.admission.phase is AdmissionPhase.REFUSED


def ended_at(job: Job) -> datetime | None:
    """When the Job was over; None while it is not."""
    return job.status.execution.ended_at or job.status.admission.refused_at


def is_admitted(job: Job) -> bool:
    """Whether the Job is let in, over or not: it holds what it was granted, and may have tasks."""
    return job.status.admission.phase in _LET_IN


def is_evicting(job: Job) -> bool:
    """Whether the Job is being put back, and is not over."""
    return job.status.admission.phase is AdmissionPhase.EVICTING and not has_ended(job)


def was_admitted(job: Job) -> bool:
    """Whether the Job was ever let in, also if it was put back: it may have done something."""
    return is_admitted(job) or job.status.admission.evictions > 0


def tasks_left(job: Job, granted: int) -> int:
    """How many of so many tasks at a time the Job can still need, before it is put back.

    Within a round tasks only ever come to their ends, so an old view of a Job tells of too many
    and never of too few. Steps of an operation do not: one that is done may be taken back and run
    again, so only how many there are, which is known once and for all, says that fewer are needed.
    """
    execution = job.status.execution
    if has_ended(job):
        return 0
    if execution.operation is not None:
        steps = steps_of(job)
        return min(granted, len(steps)) if steps else granted
    if not execution.total:
        return granted
    left = execution.total - len(execution.succeeded) - len(execution.failed)
    return max(left, len(execution.active))


def with_admission(job: Job, admission: AdmissionStatus, now: datetime) -> JobStatus:
    """The whole status after the admission room's part changed."""
    return _legal(job, moved(job, admission, job.status.execution, now))


def with_execution(job: Job, execution: ExecutionStatus, now: datetime) -> JobStatus:
    """The whole status after the execution room's part changed."""
    return _legal(job, moved(job, job.status.admission, execution, now))


def _legal(job: Job, status: JobStatus | None) -> JobStatus:
    assert status is not None, f"{job.key}: no such move from {job.status.phase}"
    return status


def moved(
    job: Job, admission: AdmissionStatus, execution: ExecutionStatus, now: datetime
) -> JobStatus | None:
    """The whole status after parts of it changed; None when that is no legal move.

    A Job is put back in one write: it waits again, with everything given back, and its execution
    begins a new round. Nothing of it may be left by then.
    """
    if admission.evictions > job.status.admission.evictions:
        if execution.active or execution.result is not None:
            return None
        execution = next_round(execution)
    phase = phase_of(admission, execution)
    was = job.status.phase
    if phase is not was and phase not in JOB_MOVES[was]:
        return None
    conditions = job.status.conditions
    if phase is not was:
        conditions = _conditions(conditions, admission.phase, phase, now)
    conditions = with_readiness(job, conditions, admission, execution, now)
    conditions = with_placement(job, conditions, admission, execution, now)
    return replace(
        job.status,
        phase=phase,
        admission=admission,
        execution=execution,
        conditions=conditions,
    )


def _conditions(
    held: tuple[Condition, ...], admission: AdmissionPhase, phase: JobPhase, now: datetime
) -> tuple[Condition, ...]:
    """What generic tools wait for: Admitted, then Complete or Failed, in the batch Job's words.

    Admitted is taken back when the Job is put back, and comes again with it.
    """
    due: dict[str, ConditionStatus] = {}
    is_told = False
    for condition in held:
        if condition.type == "Admitted":
            is_told = condition.status is ConditionStatus.TRUE
    if admission in _LET_IN and not is_told:
        due["Admitted"] = ConditionStatus.TRUE
    elif admission is AdmissionPhase.WAITING and is_told:
        due["Admitted"] = ConditionStatus.FALSE
    if phase in _ENDS:
        due["Complete" if phase is JobPhase.SUCCEEDED else "Failed"] = ConditionStatus.TRUE
    if not due:
        return held
    reason = phase.value
    told = [condition for condition in held if condition.type not in due]
    for kind, status in due.items():
        told.append(Condition(type=kind, status=status, reason=reason, last_transition_time=now))
    return tuple(told)
