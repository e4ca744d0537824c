"""When a Job's outcome is settled, when its tasks are told to stop, and what it then comes to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from interlock.execution.operations import moments as moments_of_steps
from interlock.execution.operations import step_spec
from interlock.execution.wording import failure_of
from interlock.resources.ends import culprit
from interlock.resources.job import Completion, Job, JobSpec, is_operation
from interlock.resources.schedule import why_told_to_stop
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    StopCause,
    TaskState,
    TaskStatus,
)
from interlock.resources.transitions import is_evicting
from interlock.resources.work_types import WORKERS

_CAUSES = {
    ExecutionReason.COMPLETED: StopCause.NOT_NEEDED,
    ExecutionReason.TASK_FAILED: StopCause.NOT_NEEDED,
    ExecutionReason.RELEASED: StopCause.NOT_NEEDED,
    ExecutionReason.TIMEOUT: StopCause.JOB_TIMEOUT,
    ExecutionReason.KILLED: StopCause.KILLED,
    ExecutionReason.DELETED: StopCause.DELETED,
    ExecutionReason.REPLACED: StopCause.REPLACED,
    ExecutionReason.CHILDREN_FAILED: StopCause.NOT_NEEDED,
    ExecutionReason.RESOLVED: StopCause.NOT_NEEDED,
}
_RESULTS = {
    ExecutionReason.COMPLETED: JobResult.SUCCEEDED,
    ExecutionReason.TASK_FAILED: JobResult.FAILED,
    ExecutionReason.RELEASED: JobResult.FINISHED_UNKNOWN,
    ExecutionReason.TIMEOUT: JobResult.FAILED,
    ExecutionReason.KILLED: JobResult.KILLED,
    ExecutionReason.DELETED: JobResult.KILLED,
    ExecutionReason.REPLACED: JobResult.KILLED,
    ExecutionReason.CHILDREN_FAILED: JobResult.FAILED,
    ExecutionReason.RESOLVED: JobResult.FAILED,
}


class Settled(NamedTuple):
    """An outcome that nothing changes any more, though tasks may still have to be stopped."""

    reason: ExecutionReason
    message: str = ""


def settled_by(job: Job, execution: ExecutionStatus, now: datetime) -> Settled | None:
    """What settles the Job, if anything does now.

    The completion rule comes first: a Job that has done its work is not killed, and not late.
    """
    if is_complete(job.spec, execution):
        return Settled(ExecutionReason.COMPLETED)
    if has_failed(job.spec, execution):
        told = failure_of(culprit(job.spec, execution), len(execution.active))
        return Settled(ExecutionReason.TASK_FAILED, told)
    return told_to_stop(job, execution, now)


def is_complete(spec: JobSpec, execution: ExecutionStatus) -> bool:
    """Whether enough tasks succeeded."""
    if spec.completion is Completion.ANY_SUCCESSFUL:
        return bool(execution.succeeded)
    return 0 < execution.total == len(execution.succeeded)


def has_failed(spec: JobSpec, execution: ExecutionStatus) -> bool:
    """Whether so many tasks are out of attempts that the Job cannot succeed any more."""
    if spec.completion is Completion.ANY_SUCCESSFUL:
        return 0 < execution.total == len(execution.failed)
    return bool(execution.failed)


def told_to_stop(job: Job, execution: ExecutionStatus, now: datetime) -> Settled | None:
    """Whether somebody wants the Job to stop, or it is out of time.

    A moment in the future stops nothing: until it comes, the Job goes on as if it were not set.
    """
    spec = job.spec
    if job.is_going:
        return Settled(ExecutionReason.DELETED, "the Job was deleted")
    newer = job.status.admission.replaced_by
    if newer:
        return Settled(ExecutionReason.REPLACED, f"{newer} takes its place")
    if spec.kill_at is not None and spec.kill_at <= now:
        return Settled(ExecutionReason.KILLED, why_told_to_stop(job))
    ends_by = times_out_at(spec, execution)
    if ends_by is not None and ends_by <= now and not is_evicting(job):
        return Settled(ExecutionReason.TIMEOUT, f"it ran longer than its timeout of {spec.timeout}")
    return None


def times_out_at(spec: JobSpec, execution: ExecutionStatus) -> datetime | None:
    """When the whole Job is out of time."""
    if spec.timeout is None or execution.started_at is None:
        return None
    return execution.started_at + spec.timeout


def ended(execution: ExecutionStatus, settled: Settled, now: datetime) -> ExecutionStatus:
    """The status of a Job that is over."""
    return replace(
        execution,
        active=(),
        retrying=(),
        ended_at=now,
        result=_RESULTS[settled.reason],
        reason=settled.reason,
        message=settled.message,
    )


def stopping(execution: ExecutionStatus, settled: Settled, now: datetime) -> ExecutionStatus:
    """The status of a Job that is settled, and only waits for its tasks to be gone."""
    return replace(
        execution,
        retrying=(),
        stopping_at=now,
        stopping_for=settled.reason,
        message=settled.message,
    )


def outcome_of(job: Job, execution: ExecutionStatus) -> Settled:
    """What a stopping Job comes to once none of its tasks is left.

    Tasks that were done before the order to stop reached them make it a success after all.
    """
    reason = execution.stopping_for
    assert reason is not None, f"{job.key}: not stopping"
    if reason is not ExecutionReason.RELEASED and is_complete(job.spec, execution):
        return Settled(ExecutionReason.COMPLETED)
    return Settled(reason, execution.message)


def stop_cause_of(
    task: TaskStatus, job: Job, stopping_for: ExecutionReason | None, now: datetime
) -> StopCause | None:
    """Why an attempt that was not told to stop yet must be told now, if it must."""
    if stopping_for is not None:
        return _CAUSES[stopping_for]
    if is_evicting(job):
        return StopCause.EVICTED
    expires = expires_at(task, job)
    if expires is None or expires > now:
        return None
    return StopCause.PENDING_TIMEOUT if _is_pending(task) else StopCause.TASK_TIMEOUT


def expires_at(task: TaskStatus, job: Job) -> datetime | None:
    """When an attempt is out of time, if nothing else happens to it.

    What workers do may wait for one as long as it takes: that nobody is there is no failure of it.
    """
    spec = job.spec
    if task.stop_cause is not None:
        return None
    if _is_pending(task):
        waits = spec.pending_timeout and task.runtime != WORKERS
        return task.created_at + spec.pending_timeout if waits else None
    timeout = spec.task_timeout
    if is_operation(spec):
        step = step_spec(job, task.index)
        timeout = None if step is None else step.timeout
    if task.started_at is None or timeout is None:
        return None
    return task.started_at + timeout


def _is_pending(task: TaskStatus) -> bool:
    return task.state is TaskState.STARTING


def told(task: TaskStatus, spec: JobSpec, cause: StopCause, now: datetime) -> TaskStatus:
    """The attempt once it is told to stop. What is Unknown stays so until it is proven."""
    return replace(
        task,
        state=task.state if task.state is TaskState.UNKNOWN else TaskState.KILLING,
        stop_at=now,
        stop_cause=cause,
        stop_grace=spec.grace_period,
    )


class Stops(NamedTuple):
    """What becomes of attempts that must stop."""

    active: tuple[TaskStatus, ...]
    #: Told to stop by this decision.
    new: tuple[TaskStatus, ...] = ()
    #: Told before, and now given less time.
    shorter: tuple[TaskStatus, ...] = ()


def halt(job: Job, execution: ExecutionStatus, now: datetime) -> Stops:
    """Find the attempts to stop, and those whose time to stop was cut since."""
    spec, grace = job.spec, job.spec.grace_period
    active: list[TaskStatus] = []
    new: list[TaskStatus] = []
    shorter: list[TaskStatus] = []
    for task in execution.active:
        if task.stop_cause is None:
            cause = stop_cause_of(task, job, execution.stopping_for, now)
            if cause is not None:
                task = told(task, spec, cause, now)
                new.append(task)
        elif task.stop_grace is not None and grace < task.stop_grace:
            task = replace(task, stop_grace=grace)
            shorter.append(task)
        active.append(task)
    return Stops(tuple(active), tuple(new), tuple(shorter))


def moments(job: Job, execution: ExecutionStatus) -> Iterator[datetime]:
    """When time alone can make a difference to a Job that is not over."""
    spec = job.spec
    if execution.stopping_for is None:
        if spec.kill_at is not None:
            yield spec.kill_at
        if is_evicting(job):
            return
        ends_by = times_out_at(spec, execution)
        if ends_by is not None:
            yield ends_by
        if not spec.suspend:
            for wait in execution.retrying:
                yield wait.not_before
            if execution.operation is not None:
                yield from moments_of_steps(execution.operation)
    for task in execution.active:
        expires = expires_at(task, job)
        if expires is not None:
            yield expires
