"""What becomes of the attempts of a Job that is put back, and how its next round begins."""

from __future__ import annotations

from typing import Any

import pytest
from execution_builders import (
    ADMITTED,
    a_report,
    a_task,
    an_admitted_job,
    an_end,
    at,
    exited,
    kinds,
    look,
    phase_after,
    recorded,
    seconds,
    started,
)
from msgspec.structs import replace

from interlock.execution.launching import choose
from interlock.execution.orders import order_of
from interlock.execution.retrying import delay_before, may_retry
from interlock.resources.actions import (
    Decision,
    ForgetTask,
    LaunchTask,
    RecordExecution,
    StopTask,
)
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Eviction,
    EvictionReason,
)
from interlock.resources.job import Backoff, Completion, JobPhase, Parallelism, Retries
from interlock.resources.tasks import (
    ExecutionStatus,
    JobResult,
    ReportState,
    RetryWait,
    StopCause,
    TaskResult,
    TaskState,
    next_round,
)
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0

EVICTING = replace(
    ADMITTED,
    phase=AdmissionPhase.EVICTING,
    eviction=Eviction(reason=EvictionReason.REQUEUED, began_at=T0),
)
RUNNING = a_task(state=TaskState.RUNNING)
EVICTED = a_task(
    state=TaskState.KILLING, stop_at=T0, stop_cause=StopCause.EVICTED, stop_grace=seconds(30)
)


def test_all_attempts_are_told_to_stop_and_none_begins() -> None:
    waits = (RetryWait(index=1, attempt=1, not_before=T0),)
    execution = started(RUNNING, a_task(2), total=5, retrying=waits)
    job = an_admitted_job(execution=execution, admission=EVICTING, parallelism=Parallelism(count=5))

    decision = look(job, a_report(), now=at(1))

    assert {task.stop_cause for task in recorded(decision).active} == {StopCause.EVICTED}
    assert kinds(decision) == ["RecordExecution", "StopTask", "StopTask"]
    assert phase_after(job, decision) is JobPhase.EVICTING


@pytest.mark.parametrize(
    ("report", "more", "result"),
    [
        pytest.param(exited(0), {}, JobResult.SUCCEEDED, id="it was done before the stop"),
        pytest.param(exited(3), {}, JobResult.FAILED, id="it failed before the stop"),
        pytest.param(exited(143, stopped=True), {}, None, id="the stop ended it"),
        pytest.param(exited(0, stopped=True), {}, None, id="the stop ended it, well"),
        pytest.param(exited(3), {"retries": Retries(limit=1)}, None, id="it would be tried again"),
        pytest.param(
            exited(143, stopped=True),
            {"timeout": seconds(1)},
            None,
            id="what is put back is not late",
        ),
        pytest.param(
            exited(143, stopped=True), {"kill_at": at(1)}, JobResult.KILLED, id="told to stop too"
        ),
    ],
)
def test_a_job_that_ends_while_it_is_put_back_has_ended(
    report: Any, more: dict[str, Any], result: JobResult | None
) -> None:
    job = an_admitted_job(execution=started(EVICTED), admission=EVICTING, **more)

    execution = recorded(look(job, report, now=at(9)))

    assert execution.result is result
    assert execution.active == ()
    assert execution.stopping_for is None or result is not None


def test_what_cannot_be_proven_gone_is_kept() -> None:
    unknown = replace(EVICTED, state=TaskState.UNKNOWN, message="lost")
    job = an_admitted_job(execution=started(unknown), admission=EVICTING)
    lost = a_report(ReportState.UNKNOWN, message="lost")

    decision = look(job, lost, now=at(60))

    assert not any(type(each).__name__ == "RecordExecution" for each in decision.actions)
    assert job.status.phase is JobPhase.UNKNOWN


def test_the_next_round_tries_what_did_not_succeed_with_numbers_of_its_own() -> None:
    earlier = started(
        total=4, succeeded=IndexSet((1,)), failed=IndexSet((2,)), attempts=9, ended=(an_end(2),)
    )
    execution = replace(next_round(earlier), started_at=None)
    job = an_admitted_job(
        execution=execution,
        parallelism=Parallelism(count=4),
        completion=Completion.ANY_SUCCESSFUL,
    )

    assert choose(job, execution, 10, T0).attempts == ((0, 10_000), (2, 10_000), (3, 10_000))


def test_tasks_are_told_their_round() -> None:
    env = order_of(an_admitted_job(), 0, 20_003).env

    assert (env["INTERLOCK_ROUND"], env["INTERLOCK_ATTEMPT"]) == ("2", "3")
    assert env["INTERLOCK_TASK"] == "job-0-r2-3"


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        pytest.param(1, True, id="one left in the first round"),
        pytest.param(2, False, id="none left"),
        pytest.param(30_001, True, id="one left in the fourth"),
        pytest.param(30_002, False, id="none left there"),
    ],
)
def test_every_round_has_all_its_retries(attempt: int, expected: bool) -> None:
    assert may_retry(Retries(limit=2), an_end(attempt=attempt)) is expected


def test_delays_begin_anew_in_every_round() -> None:
    retries = Retries(limit=5, delay=seconds(10), backoff=Backoff.EXPONENTIAL)

    assert delay_before(retries, "uid", 0, 10_002) == delay_before(retries, "uid", 0, 2)


def test_while_it_waits_what_is_left_of_earlier_rounds_is_cleared_away() -> None:
    waiting = AdmissionStatus(epoch=1, evictions=1)
    job = an_admitted_job(admission=waiting, execution=ExecutionStatus(round=1, total=1))

    assert look(job) == Decision()
    over = look(job, exited(143))
    assert [type(each) for each in over.actions] == [ForgetTask]
    ghost = look(job, a_report())
    assert [type(each) for each in ghost.actions] == [StopTask]


def test_reports_of_an_earlier_round_are_no_news_of_this_one() -> None:
    execution = started(a_task(attempt=10_000, state=TaskState.RUNNING), round=1)
    job = an_admitted_job(execution=execution)

    decision = look(job, exited(0), a_report(attempt=10_000), now=at(1))

    assert [type(each) for each in decision.actions] == [ForgetTask]


def test_what_is_left_of_an_earlier_round_goes_before_the_next_attempt_is_launched() -> None:
    """An object of others that both run in is held for the first until that is forgotten."""
    execution = started(a_task(attempt=10_000), round=1)
    begins = an_admitted_job(execution=ExecutionStatus(round=1, total=1))
    again = an_admitted_job(execution=execution)

    assert [type(each) for each in look(begins, exited(143)).actions] == [
        RecordExecution,
        ForgetTask,
        LaunchTask,
    ]
    assert [type(each) for each in look(again, exited(143), now=at(1)).actions] == [
        ForgetTask,
        LaunchTask,
    ]


def test_an_attempt_that_was_stopped_for_it_is_no_failure() -> None:
    job = an_admitted_job(execution=started(EVICTED), admission=EVICTING)

    execution = recorded(look(job, exited(143, stopped=True), now=at(9)))

    (end,) = execution.ended
    assert (end.result, end.stop_cause) == (TaskResult.KILLED, StopCause.EVICTED)
    assert not execution.failed
    assert not execution.retrying
