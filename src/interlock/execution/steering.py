"""Steering of operations: what a person, the clock or its children make of one beside its steps."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from interlock.execution.children import Children, missing
from interlock.execution.operations import (
    Next,
    begun,
    completed,
    forward,
    is_done,
    is_over,
    move,
    reverting,
    specs_of,
    take_in,
    told,
)
from interlock.execution.stopping import (
    Settled,
    Stops,
    ended,
    expires_at,
    told_to_stop,
)
from interlock.execution.stopping import told as stopped
from interlock.execution.view import ExecutionView
from interlock.resources.job import (
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    OPERATE_REASON_ANNOTATION,
    OPERATED_BY_ANNOTATION,
    Job,
    OperateVerb,
)
from interlock.resources.operation import (
    ELABORATION,
    CompletionState,
    OperationState,
    OperationStatus,
    StepState,
    is_undo,
    step_of,
)
from interlock.resources.steps import ChildRequest
from interlock.resources.tasks import (
    EndedTask,
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    StopCause,
    TaskState,
    TaskStatus,
)
from interlock.resources.values.indexes import IndexSet
from interlock.resources.work_types import WORKERS

_STOPPED_FOR = {
    ExecutionReason.KILLED: StopCause.KILLED,
    ExecutionReason.DELETED: StopCause.DELETED,
    ExecutionReason.TIMEOUT: StopCause.JOB_TIMEOUT,
    ExecutionReason.REPLACED: StopCause.REPLACED,
}


class Steered(NamedTuple):
    """An operation after a look."""

    execution: ExecutionStatus
    stops: Stops
    next: Next
    #: Parts of it that are to be made.
    children: tuple[Job, ...] = ()


def steer(
    view: ExecutionView,
    job: Job,
    execution: ExecutionStatus,
    over: tuple[EndedTask, ...],
    room: int,
    now: datetime,
) -> Steered:
    """Take in what ended, then what a person ordered, then start what is due.

    `execution` has what is left of the attempts; `room` is how many may be added, none when nothing
    may be started.
    """
    before = begun(job)
    operation, fresh = take_in(job, before, over, view.reports, now, view.targets_above)
    operation = _ordered(job, operation, now)
    operation = _cancelled(job, operation, execution, now)
    execution, stops = _stop(job, execution, operation, now)
    found = move(job, operation, fresh, room, now)
    children = missing(job, wanted_children(found.operation), view.children)
    operation = _with_children_made(found.operation, children)
    begun_before = any(end.started_at is not None for end in over)
    begins = begun_before or _begin_at_once(job, operation, found.attempts)
    is_taken_up = begins or has_begun(execution)
    operation = told(before, operation, view.children, now, is_taken_up=is_taken_up)
    done = IndexSet(n for n, s in enumerate(operation.steps) if s.state is StepState.DONE)
    total = _total(job, operation)
    execution = replace(
        execution, operation=operation, total=total, succeeded=done if total else IndexSet()
    )
    settled = _settled(job, operation, execution, view.children)
    if settled is not None:
        execution = _ended(execution, settled, now)
        return Steered(execution, Stops(()), Next(operation))
    return Steered(execution, stops, found._replace(operation=operation), children)


def has_begun(execution: ExecutionStatus) -> bool:
    """Whether anybody has an attempt: what waits for a worker nobody has."""
    return any(task.runtime != WORKERS or task.started_at is not None for task in execution.active)


def _begin_at_once(
    job: Job, operation: OperationStatus, attempts: Iterable[tuple[int, int]]
) -> bool:
    """Whether any of these is not for a worker to take, and so begins when it is launched."""
    specs = specs_of(job, operation)
    return any(
        task != ELABORATION and not specs[step_of(task)].calls_function(undo=is_undo(task))
        for task, _ in attempts
    )


def taken_up(
    view: ExecutionView, job: Job, over: Iterable[EndedTask], now: datetime
) -> ExecutionStatus | None:
    """The execution of a queued operation as it was while what is over now was under way.

    None when nothing of it was taken up that is not recorded as such already.
    """
    recorded = job.status.execution
    operation = recorded.operation
    if operation is None or operation.state is not OperationState.QUEUED:
        return None
    begun_at = {(end.index, end.attempt): end.started_at for end in over if end.started_at}
    active = tuple(
        replace(task, state=TaskState.RUNNING, started_at=begun_at[task.index, task.attempt])
        if task.stop_cause is None and (task.index, task.attempt) in begun_at
        else task
        for task in recorded.active
    )
    execution = replace(recorded, active=active)
    if not has_begun(execution):
        return None
    made = told(operation, operation, view.children, now, is_taken_up=True)
    return None if made.state is operation.state else replace(execution, operation=made)


def wanted_children(operation: OperationStatus) -> tuple[ChildRequest, ...]:
    """The parts that are to be made now: all, once every step is done and nothing is undone."""
    is_ending = operation.reverting or operation.reverting_for or operation.stuck_at is not None
    if not operation.children or is_ending or not is_done(operation):
        return ()
    return operation.children


def _with_children_made(operation: OperationStatus, missing: tuple[Job, ...]) -> OperationStatus:
    """The operation, which need not remember parts any more that are all there."""
    if missing or not wanted_children(operation):
        return operation
    return replace(operation, children=())


def _total(job: Job, operation: OperationStatus) -> int:
    if job.spec.steps is None and operation.elaborated is None:
        return 0
    return len(operation.steps)


# What a person orders


def order_to(job: Job, operation: OperationStatus) -> tuple[OperateVerb, str] | None:
    """What a person orders to be done about the operation as it is, and why."""
    annotations = job.metadata.annotations
    if annotations.get(OPERATE_FOR_ANNOTATION) != str(operation.interventions):
        return None
    try:
        verb = OperateVerb(annotations.get(OPERATE_ANNOTATION, ""))
    except ValueError:
        return None
    reason = annotations.get(OPERATE_REASON_ANNOTATION, "")
    who = annotations.get(OPERATED_BY_ANNOTATION, "")
    return verb, f"by {who}: {reason}" if who else reason


def _ordered(job: Job, operation: OperationStatus, now: datetime) -> OperationStatus:
    found = order_to(job, operation)
    if found is None:
        return operation
    verb, reason = found
    if verb is OperateVerb.RETRY and operation.stuck_at is not None:
        return forward(operation, specs_of(job, operation))
    if verb is OperateVerb.ROLL_BACK:
        if not operation.reverting and operation.stuck_at is None:
            operation = replace(operation, error=f"rolled back {reason}")
        return _rolled_back(job, operation, now)
    return operation


def _rolled_back(job: Job, operation: OperationStatus, now: datetime) -> OperationStatus:
    """The operation that a person wants undone: from where it is stuck, or at all."""
    if any(step.state in (StepState.RUNNING, StepState.UNDOING) for step in operation.steps):
        if operation.reverting:
            return operation
        return replace(operation, reverting_for=ExecutionReason.KILLED.value)
    specs = specs_of(job, operation)
    again = operation if operation.reverting else reverting(operation, specs)
    steps = tuple(
        replace(
            step, undo_retries=0, interruptions=0, suspected=False, interrupted=True, not_before=now
        )
        if step.state is StepState.UNDO_FAILED
        else step
        for step in again.steps
    )
    return replace(
        again,
        state=OperationState.QUEUED,
        steps=steps,
        reverting_for=operation.reverting_for or ExecutionReason.KILLED.value,
        stuck_at=None,
        stuck_message="",
        interventions=operation.interventions + 1,
    )


# What ends it early


def _cancelled(
    job: Job, operation: OperationStatus, execution: ExecutionStatus, now: datetime
) -> OperationStatus:
    """Have the operation rolled back that is to stop, unless it is too late for that.

    From the first attempt of an irreversible step on, it goes on to its end.
    """
    if operation.reverting_for or operation.reverting:
        return operation
    stop = told_to_stop(job, execution, now)
    if stop is None:
        return operation
    specs = specs_of(job, operation)
    if any(spec.irreversible and s.runs for s, spec in zip(operation.steps, specs, strict=True)):
        return operation
    if operation.stuck_at is not None:
        return operation
    return replace(operation, reverting_for=stop.reason.value, error=stop.message)


def _stop(
    job: Job, execution: ExecutionStatus, operation: OperationStatus, now: datetime
) -> tuple[ExecutionStatus, Stops]:
    """Find the attempts to be stopped: those out of time, and those of a Job that is killed.

    A stop lets the steps under way come to their ends, and not those that wait for a worker, for
    there may never be one; a kill, and a timeout, let none. What undoes a step is never stopped but
    for its own timeout.
    """
    cause: StopCause | None = None
    if operation.reverting_for and not operation.reverting:
        reason = ExecutionReason(operation.reverting_for)
        at_once = reason is ExecutionReason.TIMEOUT or not job.spec.grace_period
        cause = _STOPPED_FOR.get(reason) if at_once else None
    active: list[TaskStatus] = []
    new: list[TaskStatus] = []
    for task in execution.active:
        if task.stop_cause is None:
            why = cause if not is_undo(task.index) else None
            if _nobody_has(task) and operation.reverting_for and not operation.reverting:
                why = _STOPPED_FOR.get(ExecutionReason(operation.reverting_for))
            expires = expires_at(task, job)
            if why is None and expires is not None and expires <= now:
                pending = task.state is TaskState.STARTING
                why = StopCause.PENDING_TIMEOUT if pending else StopCause.TASK_TIMEOUT
            if why is not None:
                task = stopped(task, job.spec, why, now)
                new.append(task)
        active.append(task)
    stops = Stops(tuple(active), tuple(new))
    return (replace(execution, active=stops.active) if new else execution), stops


def _nobody_has(task: TaskStatus) -> bool:
    """Whether an attempt waits for a worker that takes it."""
    waits = task.runtime == WORKERS and task.state is TaskState.STARTING
    return waits and not is_undo(task.index)


# How it ends


def _settled(
    job: Job, operation: OperationStatus, execution: ExecutionStatus, children: Children
) -> tuple[CompletionState, Settled, JobResult | None] | None:
    """What the operation came to, if it is over."""
    if execution.active or any(s.state is StepState.RUNNING for s in operation.steps):
        return None
    found = order_to(job, operation)
    if found is not None and found[0] in (OperateVerb.SUCCEEDED, OperateVerb.FAILED):
        verb, reason = found
        succeeded = verb is OperateVerb.SUCCEEDED
        to = CompletionState.SUCCESS if succeeded else CompletionState.FAILED
        result = JobResult.SUCCEEDED if succeeded else JobResult.FAILED
        return to, Settled(ExecutionReason.RESOLVED, f"declared {to} {reason}"), result
    if found is not None and found[0] is OperateVerb.REMOVE and job.is_going:
        return CompletionState.FAILED, Settled(ExecutionReason.DELETED, f"removed {found[1]}"), None
    if is_over(operation):
        reason = ExecutionReason(operation.reverting_for)
        return CompletionState.FAILED, Settled(reason, operation.error), None
    if operation.reverting or operation.reverting_for or not is_done(operation):
        return None
    if job.spec.steps is None and operation.elaborated is None:
        return None
    if children.unfinished or operation.children:
        return None
    return _with_children(children)


def _with_children(
    children: Children,
) -> tuple[CompletionState, Settled, JobResult | None]:
    if not children.failed:
        return CompletionState.SUCCESS, Settled(ExecutionReason.COMPLETED), None
    told = f"{children.failed} of {children.total} children failed"
    to = CompletionState.PARTIAL_SUCCESS if children.succeeded else CompletionState.FAILED
    return to, Settled(ExecutionReason.CHILDREN_FAILED, told), None


def _ended(
    execution: ExecutionStatus,
    settled: tuple[CompletionState, Settled, JobResult | None],
    now: datetime,
) -> ExecutionStatus:
    to, how, result = settled
    assert execution.operation is not None
    over = completed(execution.operation, to, now)
    made = ended(replace(execution, operation=over), how, now)
    return made if result is None else replace(made, result=result)
