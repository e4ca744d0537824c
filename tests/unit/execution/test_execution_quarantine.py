"""Which of the steps that were at work in a lost worker is to blame for its loss."""

from __future__ import annotations

from datetime import datetime

import pytest
from execution_builders import an_admitted_job
from msgspec.structs import replace

from interlock.execution.operations import take_in
from interlock.execution.orders import order_of
from interlock.resources.job import Job
from interlock.resources.operation import (
    ELABORATION,
    OperationStatus,
    StepState,
    StepStatus,
    run_task,
    undo_task,
)
from interlock.resources.steps import PythonSpec, Step, StepRetries, StepWork
from interlock.resources.tasks import EndedTask, TaskResult
from interlock.resources.work import PythonWork
from interlock.testing.builders import T0

MOST = 2


def an_operation(*steps: StepStatus, **operation: object) -> Job:
    """An operation of functions whose steps are so."""
    work = StepWork(python=PythonSpec(function="do"))
    specs = tuple(
        Step(name=step.name, run=work, undo=work, retries=StepRetries(limit=5)) for step in steps
    )
    job = an_admitted_job(steps=specs, process=None, max_interruptions=MOST)
    status = OperationStatus(steps=steps, **operation)  # type: ignore[arg-type]
    return with_operation(job, status)


def with_operation(job: Job, operation: OperationStatus) -> Job:
    execution = replace(job.status.execution, operation=operation)
    return replace(job, status=replace(job.status, execution=execution))


def an_end(
    result: TaskResult, *, beside: bool = False, started_at: datetime | None = T0, index: int = 0
) -> EndedTask:
    return EndedTask(
        name="op",
        index=index,
        attempt=0,
        result=result,
        ended_at=T0,
        started_at=started_at,
        exit_code=None if result is TaskResult.INTERRUPTED else 1,
        beside_others=beside,
    )


def after(step: StepStatus, end: EndedTask) -> StepStatus:
    """A step once one of its attempts has ended so."""
    job = an_operation(step)
    operation = job.status.execution.operation
    assert operation is not None
    return take_in(job, operation, (end,), {}, T0, {})[0].steps[0]


CUT, FAILED, DONE = TaskResult.INTERRUPTED, TaskResult.FAILED, TaskResult.SUCCEEDED


@pytest.mark.parametrize(
    ("suspected", "end", "counted", "then"),
    [
        pytest.param(False, an_end(CUT, beside=True), 0, True, id="the first time beside others"),
        pytest.param(False, an_end(CUT), 1, True, id="alone"),
        pytest.param(True, an_end(CUT, beside=True), 1, True, id="again, beside others"),
        pytest.param(True, an_end(CUT), 1, True, id="again, alone"),
        pytest.param(False, an_end(CUT, started_at=None), 0, False, id="nobody saw it begin"),
        pytest.param(True, an_end(CUT, started_at=None), 0, True, id="a suspect that waited"),
        pytest.param(True, an_end(FAILED), 0, False, id="it failed by itself"),
        pytest.param(True, an_end(DONE), 0, False, id="it is done"),
    ],
)
def test_who_is_to_blame(suspected: bool, end: EndedTask, counted: int, then: bool) -> None:
    step = after(StepStatus(name="a", suspected=suspected), end)

    assert (step.interruptions, step.suspected) == (counted, then)
    assert step.retries == 0


@pytest.mark.parametrize("beside", [True, False])
def test_what_kills_every_worker_comes_to_an_end(beside: bool) -> None:
    """It is cut off without being counted once at most, whoever is beside it."""
    step, cuts = StepStatus(name="a"), 0
    while cuts == 0 or step.not_before is not None:
        step = after(replace(step, interrupted=False), an_end(CUT, beside=beside))
        cuts += 1

    assert cuts == MOST + 1 + beside
    assert step.message.endswith(f"cut off {MOST + 1} times")


def test_an_undo_is_suspected_anew() -> None:
    """What the step did to its worker says nothing of what undoes it."""
    undoing = StepStatus(name="a", state=StepState.UNDOING)
    job = an_operation(undoing, reverting=True, reverting_for="TaskFailed")
    operation = job.status.execution.operation
    assert operation is not None
    end = an_end(CUT, beside=True, index=undo_task(0))
    step = take_in(job, operation, (end,), {}, T0, {})[0].steps[0]

    assert (step.interruptions, step.suspected) == (0, True)


@pytest.mark.parametrize(
    ("steps", "index", "expected"),
    [
        pytest.param({}, run_task(0), False, id="nobody is suspected"),
        pytest.param({"a": {"suspected": True}}, run_task(0), True, id="a suspect"),
        pytest.param({"a": {"suspected": True}}, undo_task(0), True, id="its undo"),
        pytest.param({"a": {"suspected": True}}, ELABORATION, True, id="what makes the steps"),
        pytest.param({"b": {"suspected": True}}, run_task(0), False, id="another step"),
        pytest.param(
            {"a": {"undo_for": "b"}, "b": {"suspected": True}},
            undo_task(0),
            True,
            id="an undo on account of a suspect",
        ),
    ],
)
def test_a_suspect_is_ordered_alone(
    steps: dict[str, dict[str, object]], index: int, expected: bool
) -> None:
    made = tuple(StepStatus(name=name, **steps.get(name, {})) for name in ("a", "b"))  # type: ignore[arg-type]
    job = an_operation(*made)
    if index == ELABORATION:
        spec = replace(job.spec, steps=None, python=PythonSpec(function="make"))
        job = replace(job, spec=spec)
    work = order_of(job, index, 0).work

    assert isinstance(work, PythonWork)
    assert work.alone is expected
