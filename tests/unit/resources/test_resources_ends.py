"""Of many ends, the one that is to blame is named, and is never pushed out by what followed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from interlock.resources.ends import culprit, newest, telling_end
from interlock.resources.job import Completion, Job, JobPhase, JobStatus, Retries
from interlock.resources.kinds import columns_of
from interlock.resources.tasks import (
    EndedTask,
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    StopCause,
    TaskResult,
)
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job


def an_end(index: int, attempt: int = 0, code: int | None = 1, **more: Any) -> EndedTask:
    given: dict[str, Any] = {"result": TaskResult.SUCCEEDED if code == 0 else TaskResult.FAILED}
    return EndedTask(
        name=f"job-{index}-{attempt}",
        index=index,
        attempt=attempt,
        ended_at=T0,
        exit_code=code,
        **(given | more),
    )


def stopped(index: int, cause: StopCause = StopCause.NOT_NEEDED) -> EndedTask:
    return an_end(index, code=None, result=TaskResult.KILLED, stop_cause=cause, signal=15)


def a_failed_job(*ended: EndedTask, failed: str, **spec: Any) -> Job:
    execution = ExecutionStatus(
        total=200,
        started_at=T0,
        ended_at=T0 + timedelta(seconds=3),
        result=JobResult.FAILED,
        reason=ExecutionReason.TASK_FAILED,
        failed=IndexSet.parse(failed),
        ended=ended,
    )
    return a_job(status=JobStatus(phase=JobPhase.FAILED, execution=execution), **spec)


@pytest.mark.parametrize(
    ("job", "blamed"),
    [
        pytest.param(
            a_failed_job(an_end(77), stopped(78), stopped(79), failed="77"),
            "job-77-0",
            id="not those that were stopped for it",
        ),
        pytest.param(
            a_failed_job(an_end(77), an_end(3), failed="3,77"), "job-77-0", id="the first of two"
        ),
        pytest.param(
            a_failed_job(an_end(1), an_end(2), an_end(2, 1), failed="2", retries=Retries(limit=1)),
            "job-2-1",
            id="not one that has attempts left",
        ),
        pytest.param(
            a_failed_job(an_end(1), an_end(2), failed="1-2", completion=Completion.ANY_SUCCESSFUL),
            "job-2-0",
            id="the last where one success is enough",
        ),
    ],
)
def test_a_job_failed_for_one_attempt(job: Job, blamed: str) -> None:
    found = culprit(job.spec, job.status.execution)

    assert found is not None
    assert found.name == blamed
    assert telling_end(job) is found


@pytest.mark.parametrize(
    "after",
    [
        pytest.param([stopped(index) for index in range(100, 150)], id="stopped for it"),
        pytest.param([an_end(index) for index in range(100, 150)], id="failed like it"),
        pytest.param([an_end(index, code=0) for index in range(100, 150)], id="succeeded"),
    ],
)
def test_the_one_to_blame_is_kept_whatever_follows(after: list[EndedTask]) -> None:
    failed = "77,100-149"
    job = a_failed_job(an_end(5, code=0), an_end(77), *after, failed=failed)
    kept = newest(job.spec, job.status.execution, 20)

    assert len(kept) == 20
    assert kept[-1] == after[-1]
    assert an_end(77) in kept


def shown(job: Job) -> object:
    column = next(one for one in columns_of("Job") if one.name == "Exit")
    return column.value(job, T0)


def test_a_list_shows_the_exit_code_of_the_one_to_blame() -> None:
    assert shown(a_failed_job(an_end(77, code=3), stopped(78), failed="77")) == "3"


def test_a_list_shows_the_success_and_not_what_was_stopped_for_it() -> None:
    execution = ExecutionStatus(
        total=2,
        result=JobResult.SUCCEEDED,
        reason=ExecutionReason.COMPLETED,
        succeeded=IndexSet([0]),
        ended=(an_end(0, code=0), stopped(1)),
    )

    assert shown(a_job(status=JobStatus(execution=execution))) == "0"


def test_a_list_shows_the_signal_of_a_job_that_a_person_stopped() -> None:
    execution = ExecutionStatus(
        total=2,
        result=JobResult.KILLED,
        reason=ExecutionReason.KILLED,
        ended=(an_end(0, code=0), stopped(1, StopCause.KILLED)),
    )

    assert shown(a_job(status=JobStatus(execution=execution))) == "signal 15"
