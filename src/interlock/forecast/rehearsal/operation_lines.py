"""Lines about operations: every state that they go through, and what became of every attempt."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.execution.wording import how_it_ended
from interlock.forecast.rehearsal.traces import state_of
from interlock.resources.job import Job, is_function, is_operation, steps_of
from interlock.resources.operation import ELABORATION, OperationStatus, is_undo, step_of
from interlock.resources.tasks import EndedTask, TaskResult, TaskStatus

#: An event, its reason, and what else is to be said.
_Told = tuple[str, str, str]

_OUTCOMES = {
    TaskResult.SUCCEEDED: "Done",
    TaskResult.FAILED: "Failed",
    TaskResult.NOT_STARTED: "Failed",
    TaskResult.KILLED: "Stopped",
    TaskResult.INTERRUPTED: "CutOff",
    TaskResult.WRITTEN_OFF: "CutOff",
}


def of_operation(before: Job | None, job: Job) -> Iterator[_Told]:
    """What ended, where the operation is now, and what began."""
    if not is_operation(job.spec):
        return
    yield from _of_ends(before, job)
    was = _operation(before) if before is not None else None
    now = _operation(job)
    if was is None or state_of(was) != state_of(now):
        yield "State", "", state_of(now)
    if now.stuck_at is not None and (was is None or was.stuck_at is None):
        yield "Stuck", "", now.stuck_message
    known = _begun(before)
    for task in job.status.execution.active:
        if task.started_at is not None and (task.index, task.attempt) not in known:
            yield _event(task.index), "Started", _which(job, task)


def _of_ends(before: Job | None, job: Job) -> Iterator[_Told]:
    known, begun = set(before.status.execution.ended) if before else set(), _begun(before)
    # Once an operation is over its status does not tell its steps any more.
    named = job if before is None or steps_of(job) else before
    for ended in job.status.execution.ended:
        if ended in known:
            continue
        which = _which(named, ended)
        if ended.started_at is not None and (ended.index, ended.attempt) not in begun:
            yield _event(ended.index), "Started", which
        yield _event(ended.index), _OUTCOMES[ended.result], f"{which}{_how(job, ended)}"


def _begun(job: Job | None) -> set[tuple[int, int]]:
    """The attempts that are known to have begun, and are not known to be over."""
    if job is None:
        return set()
    active = job.status.execution.active
    return {(task.index, task.attempt) for task in active if task.started_at is not None}


def _operation(job: Job) -> OperationStatus:
    return job.status.execution.operation or OperationStatus()


def _event(task: int) -> str:
    return "Undo" if is_undo(task) else "Step"


def _which(job: Job, task: TaskStatus | EndedTask) -> str:
    steps, at = steps_of(job), step_of(task.index)
    if task.index == ELABORATION:
        name = "elaborate"
    else:
        name = steps[at].name if at < len(steps) else f"number {at}"
    return f"{name} (attempt {task.attempt})" if task.attempt else name


def _how(job: Job, ended: EndedTask) -> str:
    if ended.result is TaskResult.SUCCEEDED:
        return f" returned {ended.returned.json}" if ended.returned and ended.returned.json else ""
    return f" {how_it_ended(ended, of_function=is_function(job, ended.index))}"
