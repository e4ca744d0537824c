"""The record of an operation: the steps that it has, and where each of them is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from interlock.resources.job import Job, steps_of
from interlock.resources.operation import (
    ELABORATE,
    ELABORATION,
    OperationStatus,
    StepState,
    StepStatus,
    step_of,
)
from interlock.resources.steps import Step, StepRetries, StepWork
from interlock.resources.values.durations import Duration

#: States of a step that an attempt runs or undoes.
UNDER_WAY = frozenset({StepState.RUNNING, StepState.UNDOING})
#: So many failures of attempts are kept in the status.
KEPT_FAILURES = 20
#: How a request is turned into steps: as a step that leaves nothing behind.
_ELABORATION_RETRIES = StepRetries(limit=3, delay=Duration(seconds=10))
_BEGUN = frozenset(StepState) - {StepState.WAITS, StepState.UNDONE}


def begun(job: Job) -> OperationStatus:
    """The status of an operation: as recorded, or as it is when nothing was done yet."""
    operation = job.status.execution.operation
    if operation is not None:
        return operation
    if job.spec.steps is None:
        return OperationStatus(steps=(StepStatus(name=ELABORATE),))
    steps = tuple(StepStatus(name=step.name) for step in job.spec.steps)
    return OperationStatus(steps=steps, percentage=0.0)


def specs_of(job: Job, operation: OperationStatus) -> tuple[Step, ...]:
    """The steps as they were defined; as long as there are none, the one that makes them."""
    if job.spec.steps is not None:
        return job.spec.steps
    if operation.elaborated is not None:
        return operation.elaborated
    work = StepWork(python=job.spec.python)
    return (Step(name=ELABORATE, run=work, retries=_ELABORATION_RETRIES),)


def is_begun(step: StepStatus) -> bool:
    """Whether a step was run, in part or in whole, since it was undone the last time.

    One that waits to be run again may have left something behind.
    """
    return step.state in _BEGUN or (step.state is StepState.WAITS and step.started_at is not None)


def is_exhausted(operation: OperationStatus) -> bool:
    """Whether a step is out of retries."""
    return any(s.state is StepState.FAILED and s.not_before is None for s in operation.steps)


def is_done(operation: OperationStatus) -> bool:
    """Whether every step was done."""
    return all(step.state is StepState.DONE for step in operation.steps)


def is_over(operation: OperationStatus) -> bool:
    """Whether it is rolled back, and nothing of it is left."""
    if not operation.reverting:
        return False
    return all(step.state in (StepState.UNDONE, StepState.WAITS) for step in operation.steps)


def under_way(operation: OperationStatus) -> int:
    """How many steps are run or undone."""
    return sum(step.state in UNDER_WAY for step in operation.steps)


def moments(operation: OperationStatus) -> Iterator[datetime]:
    """When time alone makes a difference to the steps."""
    for step in operation.steps:
        if step.not_before is not None:
            yield step.not_before


def with_step(operation: OperationStatus, at: int, step: StepStatus) -> OperationStatus:
    """The operation with what became of one of its steps."""
    steps = operation.steps
    return replace(operation, steps=(*steps[:at], step, *steps[at + 1 :]))


def with_failure(operation: OperationStatus, what: str, how: str) -> OperationStatus:
    """The operation with another failure told of."""
    failures = (*operation.failures, f"{what}: {how}")[-KEPT_FAILURES:]
    return replace(operation, failures=failures)


def step_spec(job: Job, task: int) -> Step | None:
    """The step that a task is of; None for the task that makes the steps."""
    steps = steps_of(job)
    at = step_of(task)
    return steps[at] if task < ELABORATION and at < len(steps) else None
