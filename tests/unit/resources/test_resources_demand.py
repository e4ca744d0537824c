"""What a Job asks of its Queue, and what its grant counts for: of what is left of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.job import Job, JobStatus, Parallelism
from interlock.resources.operation import OperationStatus, StepState, StepStatus
from interlock.resources.process import ProcessSpec
from interlock.resources.queue import demand_of
from interlock.resources.readiness import (
    counted,
    is_job_ready,
    pods_ready,
    wants_readiness,
    with_readiness,
)
from interlock.resources.steps import PythonSpec, Step, StepWork
from interlock.resources.tasks import ExecutionStatus, TaskState, TaskStatus, next_round
from interlock.resources.transitions import tasks_left
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job


def after_rounds(done: int, total: int, **spec: Any) -> Job:
    """A Job that was put back after so many of its tasks had succeeded."""
    run = ExecutionStatus(total=total, succeeded=IndexSet(range(done)))
    job = a_job("job", queue="blue", **{"parallelism": Parallelism(count=total)} | spec)
    return replace(job, status=JobStatus(execution=next_round(run)))


@pytest.mark.parametrize(
    ("job", "tasks", "least"),
    [
        pytest.param(after_rounds(0, 5), 5, 5, id="nothing is done"),
        pytest.param(after_rounds(3, 5), 2, 2, id="three of five are"),
        pytest.param(
            after_rounds(3, 5, parallelism=Parallelism(count=5, at_once=4)), 2, 2, id="4 at a time"
        ),
        pytest.param(
            after_rounds(3, 9, parallelism=Parallelism(count=9, at_once=4)), 4, 4, id="of nine"
        ),
        pytest.param(after_rounds(3, 5, min_parallelism=1), 2, 1, id="or one"),
        pytest.param(after_rounds(3, 5, min_parallelism=4), 2, 2, id="no more than are left"),
        pytest.param(
            after_rounds(2, 3, parallelism=Parallelism(keys=("a", "b", "c"))), 1, 1, id="by keys"
        ),
    ],
)
def test_a_job_that_was_put_back_asks_for_what_is_left(job: Job, tasks: int, least: int) -> None:
    demand = demand_of(job)
    assert demand is not None
    assert (demand.tasks, demand.least) == (tasks, least)


def test_what_succeeds_in_a_round_changes_nothing_of_what_was_asked_in_it() -> None:
    """Else a grant would not be what was asked for any more, and would be taken back."""
    job = after_rounds(3, 5)
    execution = replace(job.status.execution, succeeded=IndexSet(range(4)))
    later = replace(job, status=replace(job.status, execution=execution))

    assert demand_of(later) == demand_of(job)
    assert tasks_left(later, 2) == 1, "but the grant counts for less"


def test_what_succeeded_before_is_not_ready_now() -> None:
    job = after_rounds(3, 5)
    assert counted(job.spec, job.status.execution, 2) == (0, 2)
    tasks = tuple(
        TaskStatus(name=f"t{n}", index=n, attempt=0, state=TaskState.RUNNING, created_at=T0)
        for n in (3, 4)
    )
    one = replace(job.status.execution, active=tasks[:1])
    assert not is_job_ready(job.spec, one, 2)
    assert is_job_ready(job.spec, replace(one, active=tasks), 2)
    done = replace(one, succeeded=IndexSet(range(4)), active=())
    assert counted(job.spec, done, 2) == (1, 2)


# Operations


def a_step(name: str) -> Step:
    return Step(name=name, run=StepWork(process=ProcessSpec(command=("x",))))


def an_operation(steps: int, at_once: int, done: int = 0, *, is_known: bool = True) -> Job:
    """An operation of which so many steps are done; `is_known` if its definition names them."""
    specs = tuple(a_step(f"s{n}") for n in range(steps))
    states = tuple(
        StepStatus(name=one.name, state=StepState.DONE if at < done else StepState.WAITS)
        for at, one in enumerate(specs)
    )
    operation = OperationStatus(steps=states, elaborated=None if is_known else specs or None)
    work: dict[str, Any] = (
        {"steps": specs} if is_known else {"python": PythonSpec(function="create_app")}
    )
    status = JobStatus(execution=ExecutionStatus(total=1, operation=operation))
    return a_job("op", queue="blue", steps_at_once=at_once, status=status, **work)


@pytest.mark.parametrize(
    ("job", "granted", "left"),
    [
        pytest.param(an_operation(5, 3), 3, 3, id="as many as may be under way at a time"),
        pytest.param(an_operation(5, 3, done=4), 3, 3, id="what is done may be taken back"),
        pytest.param(an_operation(2, 3, is_known=False), 3, 2, id="there are only two"),
        pytest.param(an_operation(0, 3, is_known=False), 3, 3, id="not known yet"),
    ],
)
def test_what_a_grant_to_an_operation_counts_for(job: Job, granted: int, left: int) -> None:
    assert tasks_left(job, granted) == left


def test_an_operation_asks_for_no_more_than_it_has_steps() -> None:
    demand = demand_of(an_operation(2, 5))
    assert demand is not None
    assert (demand.tasks, demand.least) == (2, 2)


def test_an_operation_has_no_condition_pods_ready() -> None:
    """It is never put back for not being ready, and its steps come one after another."""
    job = an_operation(3, 1)
    assert not wants_readiness(job)
    admission, execution = job.status.admission, job.status.execution
    assert with_readiness(job, (), admission, execution, T0) == ()
    assert pods_ready(job) is None
