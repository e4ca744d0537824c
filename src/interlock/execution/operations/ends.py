"""Ends: what attempts that are over make of the steps they were of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from interlock.execution.operations.elaboration import flaws_of, with_elaboration
from interlock.execution.operations.record import specs_of, with_failure, with_step
from interlock.execution.quarantine import is_counted, is_suspected_after
from interlock.execution.view import JobReports
from interlock.execution.wording import how_it_ended
from interlock.resources.job import Job
from interlock.resources.operation import (
    ELABORATION,
    OperationStatus,
    StepState,
    StepStatus,
    is_undo,
    step_of,
)
from interlock.resources.steps import Elaboration, Step
from interlock.resources.tasks import MAX_RETURNED_BYTES, EndedTask, ExecutionReason, TaskResult

#: Attempts that were cut off without their doing.
_INTERRUPTED = frozenset({TaskResult.INTERRUPTED, TaskResult.WRITTEN_OFF})


def take_in(
    job: Job,
    operation: OperationStatus,
    over: Sequence[EndedTask],
    reports: JobReports,
    now: datetime,
    targets_above: Mapping[str, str],
) -> tuple[OperationStatus, frozenset[int]]:
    """The operation after attempts ended, and the numbers of the steps they were of.

    `targets_above` are targets of operations that it is a part of, with the names of these.
    """
    fresh: set[int] = set()
    for end in over:
        if end.index == ELABORATION:
            report = reports.get((end.index, end.attempt))
            made = None if report is None else report.elaboration
            told = flaws_of(made, _taken(job, targets_above))
            operation = _elaborated(job, operation, end, made, told, now)
            if operation.elaborated is None:
                fresh.add(0)
            continue
        at = step_of(end.index)
        if at >= len(operation.steps):
            # Of steps that were pruned: it was told too late to matter.
            continue
        fresh.add(at)
        ended = _undo_ended if is_undo(end.index) else _run_ended
        operation = ended(job, operation, at, end, now)
    return operation, frozenset(fresh)


def _run_ended(
    job: Job, operation: OperationStatus, at: int, end: EndedTask, now: datetime
) -> OperationStatus:
    step, spec = operation.steps[at], specs_of(job, operation)[at]
    end = _with_result(end, step.name)
    if end.result is TaskResult.SUCCEEDED:
        done = replace(
            step,
            state=StepState.DONE,
            retries=0,
            interruptions=0,
            suspected=False,
            not_before=None,
            ended_at=end.ended_at,
            message="",
            result=end.returned.json if end.returned is not None else "",
        )
        return with_step(operation, at, done)
    told = how_it_ended(end, of_function=spec.calls_function())
    operation = with_failure(replace(operation, error=f"{step.name}: {told}"), step.name, told)
    failed = replace(step, state=StepState.FAILED, message=told)
    if is_interrupted(end):
        again = _cut_off(failed, end, job.spec.max_interruptions, now)
    elif step.retries < spec.retries.limit:
        again = replace(failed, suspected=False, not_before=now + spec.retries.delay * step.retries)
    else:
        again = replace(failed, suspected=False, not_before=None)
    return with_step(operation, at, again)


def _with_result(end: EndedTask, step: str) -> EndedTask:
    """An end; that of a step whose result cannot be kept is a failure, not one without a result."""
    if end.returned is None or not end.returned.dropped_bytes:
        return end
    told = (
        f"{step} returned {end.returned.dropped_bytes} bytes of JSON, and at most"
        f" {MAX_RETURNED_BYTES} are kept: return where it is, not what it is"
    )
    return replace(end, result=TaskResult.FAILED, exit_code=1, message=told)


def is_interrupted(end: EndedTask) -> bool:
    """Whether an attempt was cut off without its doing: that uses up no retry."""
    if end.result in _INTERRUPTED:
        return True
    # A process without an exit code was lost to a restart of its machine.
    return end.result is TaskResult.FAILED and end.exit_code is None and end.signal is None


def _cut_off(step: StepStatus, end: EndedTask, most: int, now: datetime) -> StepStatus:
    """A step to be gone on with, unless it was cut off too often: then it is out of retries.

    Whether it is to blame is the rule of `quarantine`.
    """
    times = step.interruptions + is_counted(step, end)
    step = replace(step, suspected=is_suspected_after(step, end))
    if times > most:
        told = f"{step.message}; cut off {times} times"
        return replace(step, interruptions=times, not_before=None, message=told)
    return replace(step, interruptions=times, interrupted=True, not_before=now)


def _undo_ended(
    job: Job, operation: OperationStatus, at: int, end: EndedTask, now: datetime
) -> OperationStatus:
    step, specs = operation.steps[at], specs_of(job, operation)
    if end.result is TaskResult.SUCCEEDED:
        state = StepState.UNDONE if operation.reverting else StepState.WAITS
        undone = replace(
            step,
            state=state,
            undo_retries=0,
            # Another undo for the same retry may have failed just now: then it waits.
            undo_for="",
            message="",
            result="",
            started_at=None,
            ended_at=None,
        )
        return with_step(operation, at, undone)
    told = how_it_ended(end, of_function=specs[at].calls_function(undo=True))
    operation = with_failure(operation, f"undo {step.name}", told)
    # It is not done any more, and nobody knows what is left of it.
    failed = replace(step, state=StepState.UNDO_FAILED, message=told, ended_at=None)
    if operation.reverting:
        return with_step(operation, at, _undo_again(job, specs[at], failed, end, now))
    # What had to be undone before a retry is a part of that retry.
    operation = with_step(operation, at, replace(failed, not_before=None))
    of = next((n for n, one in enumerate(operation.steps) if one.name == step.undo_for), at)
    retried, limits = operation.steps[of], specs[of].retries
    told = f"undo of {step.name} before a retry {told}"
    operation = replace(operation, error=f"{retried.name}: {told}")
    if is_interrupted(end):
        if retried.not_before is not None:
            # Another undo for it has failed already: it waits for that.
            return operation
        failed = replace(retried, message=told)
        again = _cut_off(failed, end, job.spec.max_interruptions, now)
    elif retried.retries < limits.limit:
        due = now + limits.delay * retried.retries
        again = replace(retried, suspected=False, not_before=due, interrupted=False, message=told)
    else:
        again = replace(retried, suspected=False, not_before=None, message=told)
    if again.not_before is None:
        # It need not have failed itself, so its state cannot say that it is out of retries.
        operation = replace(operation, reverting_for=ExecutionReason.TASK_FAILED.value)
    return with_step(operation, of, again)


def _undo_again(
    job: Job, spec: Step, failed: StepStatus, end: EndedTask, now: datetime
) -> StepStatus:
    if is_interrupted(end):
        return _cut_off(failed, end, job.spec.max_interruptions, now)
    failed = replace(failed, suspected=False)
    limit = spec.undo_retries.limit if spec.undo_retries is not None else 0
    if failed.undo_retries >= limit:
        return replace(failed, not_before=None)
    return replace(failed, not_before=now + undo_delay(spec) * failed.undo_retries)


def undo_delay(spec: Step) -> timedelta:
    """How long to wait, for each retry made, before what a step did is undone again."""
    given = spec.undo_retries.delay if spec.undo_retries is not None else None
    return spec.retries.delay if given is None else given


def _taken(job: Job, targets_above: Mapping[str, str]) -> Mapping[str, str]:
    """The targets that no part of an operation can be done to, and who has them."""
    own = job.spec.target
    return targets_above if own is None else {**targets_above, own.path: job.metadata.name}


def _elaborated(
    job: Job,
    operation: OperationStatus,
    end: EndedTask,
    made: Elaboration | None,
    flaws: str,
    now: datetime,
) -> OperationStatus:
    """The operation once a worker has said which steps it has; bad ones are a failed attempt."""
    if operation.elaborated is not None:
        return operation
    if end.result is TaskResult.SUCCEEDED:
        if made is not None and not flaws:
            return with_elaboration(operation, made)
        end = replace(end, result=TaskResult.FAILED, exit_code=1, message=flaws)
    return _run_ended(job, operation, 0, end, now)
