"""How a Job starts its tasks, and its next attempts."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from execution_builders import (
    ADMITTED,
    a_report,
    a_task,
    an_admitted_job,
    at,
    by_attempt,
    carried_out,
    exited,
    kinds,
    look,
    phase_after,
    recorded,
    seconds,
    started,
)
from msgspec.structs import replace

from interlock.execution.decide import plan
from interlock.execution.view import ExecutionView
from interlock.resources.actions import AddFinalizer, Decision, LaunchTask
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import JOB_FINALIZER, Job, JobPhase, Parallelism, Retries
from interlock.resources.process import FileProbe, NoopSpec, ProcessSpec, ReadinessProbe
from interlock.resources.readiness import with_readiness
from interlock.resources.tasks import (
    MOST_AT_ONCE,
    ExecutionReason,
    JobResult,
    ReportState,
    RetryWait,
    TaskReport,
    TaskResult,
    TaskState,
)
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job


@pytest.mark.parametrize(
    "admission",
    [AdmissionStatus(), AdmissionStatus(sequence=4), AdmissionStatus(phase=AdmissionPhase.WAITING)],
)
def test_nothing_happens_before_admission(admission: AdmissionStatus) -> None:
    assert look(an_admitted_job(admission=admission, kill_at=T0)) == Decision()


def test_an_attempt_is_recorded_and_then_launched() -> None:
    job = an_admitted_job()
    decision = look(job)

    assert kinds(decision) == ["RecordExecution", "LaunchTask"]
    execution = recorded(decision)
    assert (execution.total, execution.started_at, execution.attempts) == (1, T0, 1)
    assert execution.active == (a_task(),)
    assert phase_after(job, decision) is JobPhase.PENDING
    assert decision.reason == "start task 0"
    assert decision.wake_at == T0 + job.spec.pending_timeout


def test_one_write_records_all_that_there_is_room_for() -> None:
    decision = look(an_admitted_job(parallelism=Parallelism(count=5)), capacity=3)

    assert kinds(decision) == ["RecordExecution", *["LaunchTask"] * 3]
    assert [task.index for task in recorded(decision).active] == [0, 1, 2]


def test_a_missing_finalizer_is_put_on_first() -> None:
    job = an_admitted_job(metadata={"finalizers": ()})

    decision = look(job)

    assert kinds(decision) == ["AddFinalizer", "RecordExecution", "LaunchTask"]
    assert decision.actions[0] == AddFinalizer(job, JOB_FINALIZER)


@pytest.mark.parametrize(
    ("finalizers", "going", "expected"),
    [
        pytest.param((), False, ["AddFinalizer"], id="somebody took it off"),
        pytest.param((JOB_FINALIZER,), False, [], id="it is there"),
        pytest.param(("other/x",), True, ["RecordExecution", "StopTask"], id="it goes: too late"),
    ],
)
def test_what_runs_is_held_again_when_somebody_lets_it_go(
    finalizers: tuple[str, ...], going: bool, expected: list[str]
) -> None:
    metadata = {"finalizers": finalizers, "deletion_timestamp": T0 if going else None}
    running = started(a_task(state=TaskState.RUNNING))
    job = an_admitted_job(execution=running, metadata=metadata)

    decision = look(job, a_report())

    assert kinds(decision) == expected


def test_a_noop_job_is_over_in_one_write() -> None:
    job = an_admitted_job(noop=NoopSpec())
    decision = look(job, capacity=0)

    assert kinds(decision) == ["RecordExecution"]
    assert phase_after(job, decision) is JobPhase.SUCCEEDED
    assert recorded(decision).started_at == recorded(decision).ended_at == T0
    assert str(recorded(decision).succeeded) == "0"


def test_a_suspended_noop_job_waits() -> None:
    assert look(an_admitted_job(noop=NoopSpec(), suspend=True)) == Decision()


def test_a_job_without_tasks_fails_and_says_why() -> None:
    decision = look(an_admitted_job(parallelism=Parallelism(matrix={"a": (), "b": ("x",)})))

    assert recorded(decision).result is JobResult.FAILED
    assert recorded(decision).message == "the Job has no task"


def test_a_job_whose_texts_cannot_be_read_fails_and_says_why() -> None:
    decision = look(an_admitted_job(process=ProcessSpec(command=("${task.key}",))))

    assert kinds(decision) == ["RecordExecution"]
    assert recorded(decision).result is JobResult.FAILED
    assert "${task.key}" in recorded(decision).message


def test_texts_that_became_unreadable_stop_what_runs() -> None:
    execution = started(a_task(state=TaskState.RUNNING), total=2)
    job = an_admitted_job(
        execution=execution,
        parallelism=Parallelism(count=2),
        process=ProcessSpec(command=("${args.gone}",)),
    )
    decision = look(job, a_report())

    assert kinds(decision) == ["RecordExecution", "StopTask"]
    assert phase_after(job, decision) is JobPhase.TERMINATING


@pytest.mark.parametrize(
    ("report", "complete", "expected"),
    [
        pytest.param(None, True, ["LaunchTask"], id="never arrived: launched again"),
        pytest.param(None, False, [], id="not all told: nothing is assumed"),
        pytest.param(a_report(ReportState.ACCEPTED), True, [], id="arrived"),
        pytest.param(
            a_report(ReportState.ACCEPTED, prepared=True),
            True,
            ["LaunchTask"],
            id="prepared by somebody who died: launched again",
        ),
        pytest.param(
            a_report(ReportState.ACCEPTED, prepared=True), False, [], id="prepared, not all told"
        ),
    ],
)
def test_a_recorded_attempt(report: object, complete: bool, expected: list[str]) -> None:
    job = an_admitted_job(execution=started(a_task()))
    reports = {} if report is None else {(0, 0): report}
    view = ExecutionView(job=job, reports=reports, reports_complete=complete)  # type: ignore[arg-type]
    decision = plan(view, T0).decision

    assert kinds(decision) == expected
    assert decision.wake_at is not None


def test_launching_again_orders_the_very_same() -> None:
    job = an_admitted_job()
    first = look(job)
    again = look(carried_out(job, first))

    launch = first.actions[1]
    assert isinstance(launch, LaunchTask)
    assert [a.task for a in again.actions if isinstance(a, LaunchTask)] == [launch.task]


def test_a_running_task_is_recorded_once() -> None:
    job = an_admitted_job(execution=started(a_task()))
    decision = look(job, a_report(pid=7))
    job = carried_out(job, decision)

    assert job.status.phase is JobPhase.RUNNING
    assert job.status.execution.active[0].pid == 7
    assert look(job, a_report(pid=7)) == Decision()


@pytest.mark.parametrize(
    ("now", "is_written"),
    [
        pytest.param(at(0), False, id="just started"),
        pytest.param(at(0.9), False, id="young"),
        pytest.param(at(1), True, id="old enough"),
        pytest.param(at(-5), True, id="the clock was set back"),
    ],
)
def test_a_start_is_not_worth_a_write_at_once(now: datetime, is_written: bool) -> None:
    job = an_admitted_job(execution=started(a_task()))
    decision = look(job, a_report(), now=now, patience=timedelta(seconds=1))

    assert kinds(decision) == (["RecordExecution"] if is_written else [])
    if not is_written:
        assert decision.wake_at == at(1)


def a_probed_pair(*ready: bool) -> Job:
    """A Job of two tasks with a probe, of which so many are recorded as ready."""
    probe = ReadinessProbe(file=FileProbe(path="up"))
    tasks = [a_task(at, state=TaskState.RUNNING, ready=each) for at, each in enumerate(ready)]
    job = an_admitted_job(
        execution=started(*tasks, total=2),
        process=ProcessSpec(command=("serve",), readiness_probe=probe),
        parallelism=Parallelism(count=2),
    )
    conditions = with_readiness(job, (), ADMITTED, job.status.execution, T0)
    return replace(job, status=replace(job.status, conditions=conditions))


def is_ready_now(index: int, ready: bool) -> TaskReport:
    return a_report(index=index, ready=ready, ready_at=at(5))


@pytest.mark.parametrize(
    ("recorded", "told", "now", "is_written"),
    [
        pytest.param((False, False), (True, False), at(5.5), False, id="one of two is ready"),
        pytest.param((False, False), (True, False), at(6), True, id="a second later still one"),
        pytest.param((True, False), (True, True), at(5.5), True, id="with the other the Job is"),
        pytest.param((False, False), (True, True), at(5.5), True, id="both at once"),
        pytest.param((True, True), (True, False), at(5.5), True, id="the Job is not any more"),
        pytest.param((True, False), (False, False), at(5.5), False, id="one more is not"),
    ],
)
def test_a_turn_of_readiness_waits_for_company_unless_the_job_turns_with_it(
    recorded: tuple[bool, bool], told: tuple[bool, bool], now: datetime, is_written: bool
) -> None:
    reports = [is_ready_now(at, ready) for at, ready in enumerate(told)]

    decision = look(a_probed_pair(*recorded), *reports, now=now, patience=timedelta(seconds=1))

    assert kinds(decision) == (["RecordExecution"] if is_written else [])
    if not is_written:
        assert decision.wake_at == at(6)


def test_a_task_that_ends_between_looks_needs_one_write() -> None:
    job = an_admitted_job(execution=started(a_task()))
    decision = look(job, exited(0, ended_at=at(3)), now=at(4))

    assert kinds(decision) == ["RecordExecution", "ForgetTask"]
    assert phase_after(job, decision) is JobPhase.SUCCEEDED
    (end,) = recorded(decision).ended
    assert (end.result, end.started_at, end.ended_at) == (TaskResult.SUCCEEDED, T0, at(3))
    assert recorded(decision).reason is ExecutionReason.COMPLETED


# Retries


RETRIES = Retries(limit=2, delay=seconds(60))


def test_a_failed_attempt_waits_for_its_delay() -> None:
    job = an_admitted_job(execution=started(a_task()), retries=RETRIES)
    decision = look(job, exited(1, ended_at=at(5)), now=at(6))

    assert recorded(decision).retrying == (RetryWait(index=0, attempt=1, not_before=at(65)),)
    assert phase_after(job, decision) is JobPhase.RETRY_BACKOFF
    assert decision.wake_at == at(65)


@pytest.mark.parametrize(
    ("now", "expected"),
    [(at(64.9), []), (at(65), ["RecordExecution", "LaunchTask"])],
)
def test_the_next_attempt_starts_when_it_is_due(now: datetime, expected: list[str]) -> None:
    waiting = started(retrying=(RetryWait(index=0, attempt=1, not_before=at(65)),), attempts=1)
    job = an_admitted_job(execution=waiting, retries=RETRIES)
    decision = look(job, now=now)

    assert kinds(decision) == expected
    if expected:
        assert phase_after(job, decision) is JobPhase.RETRYING
        assert recorded(decision).active[0].name == "job-0-1"
        assert recorded(decision).retrying == ()
        assert recorded(decision).attempts == 2


def test_without_a_delay_the_next_attempt_is_in_the_same_write() -> None:
    job = an_admitted_job(execution=started(a_task()), retries=Retries(limit=1))
    decision = look(job, exited(1))

    assert kinds(decision) == ["RecordExecution", "LaunchTask"]
    assert [(t.index, t.attempt) for t in recorded(decision).active] == [(0, 1)]
    assert decision.reason == "task 0 failed with exit code 1; start task 0, attempt 2"


def test_out_of_attempts_the_job_fails_and_says_how() -> None:
    execution = started(a_task(attempt=2, state=TaskState.RUNNING), attempts=3)
    decision = look(
        an_admitted_job(execution=execution, retries=RETRIES), exited(7, attempt=2, message="oh")
    )

    assert recorded(decision).result is JobResult.FAILED
    assert recorded(decision).failed == IndexSet([0])
    assert recorded(decision).message == "task 0 (attempt 3) failed with exit code 7: oh"


@pytest.mark.parametrize(
    "report",
    [
        a_report(ReportState.NOT_STARTED, message="no such command"),
        exited(None),
        exited(None, signal=11),
    ],
)
def test_any_failure_is_retried(report: object) -> None:
    job = an_admitted_job(execution=started(a_task()), retries=Retries(limit=1))

    assert kinds(look(job, report)) == ["RecordExecution", "LaunchTask"]  # type: ignore[arg-type]


def test_an_end_in_the_future_does_not_put_off_the_retry() -> None:
    job = an_admitted_job(execution=started(a_task()), retries=RETRIES)
    decision = look(job, exited(1, ended_at=at(86_400)), now=at(10))

    assert recorded(decision).retrying[0].not_before == at(70)


# Many tasks


def test_room_and_at_once_bound_what_runs() -> None:
    job = an_admitted_job(parallelism=Parallelism(count=10, at_once=4))

    assert len(recorded(look(job)).active) == 4
    assert len(recorded(look(job, capacity=2)).active) == 2
    assert look(job, capacity=0) == Decision()
    assert look(job, capacity=-3) == Decision()


def test_who_finds_no_room_is_starved_and_who_is_limited_by_itself_is_not() -> None:
    job = an_admitted_job(parallelism=Parallelism(count=10, at_once=4))

    def starved(capacity: int) -> bool:
        return plan(ExecutionView(job=job, capacity=capacity), T0).starved

    assert [starved(capacity) for capacity in (-1, 0, 3, 4, 5)] == [True, True, True, False, False]


def test_an_end_makes_room_in_the_same_write() -> None:
    execution = started(a_task(0), a_task(1), total=9)
    job = an_admitted_job(execution=execution, parallelism=Parallelism(count=9))
    decision = look(job, exited(0, index=0), a_report(index=1), capacity=0)

    assert kinds(decision) == ["RecordExecution", "LaunchTask"]
    assert [task.index for task in recorded(decision).active] == [1, 2]


def test_room_below_zero_leaves_to_others_what_came_free() -> None:
    execution = started(a_task(0), a_task(1), total=9)
    job = an_admitted_job(execution=execution, parallelism=Parallelism(count=9))
    decision = look(job, exited(0, index=0), exited(0, index=1), capacity=-1)

    assert [task.index for task in recorded(decision).active] == [2]


def test_a_status_is_bounded_whatever_the_number_of_tasks() -> None:
    job = an_admitted_job(
        parallelism=Parallelism(count=10_000), retries=Retries(limit=1, delay=seconds(60))
    )
    job = carried_out(job, look(job, capacity=5_000))
    assert len(job.status.execution.active) == MOST_AT_ONCE

    failed = [exited(1, index=index) for index in range(MOST_AT_ONCE)]
    job = carried_out(job, look(job, *failed, capacity=5_000))
    execution = job.status.execution
    assert len(execution.active) + len(execution.retrying) == MOST_AT_ONCE
    assert len(execution.ended) == 20

    job = carried_out(job, look(job, now=at(60), capacity=5_000))
    assert {task.attempt for task in job.status.execution.active} == {1}
    done = [exited(0, index=index, attempt=1) for index in range(MOST_AT_ONCE)]
    job = carried_out(job, look(job, *done, now=at(61), capacity=5_000))
    assert str(job.status.execution.succeeded) == "0-999"
    assert job.status.execution.active[0].index == MOST_AT_ONCE


def test_many_tasks_are_launched_in_portions_with_a_look_in_between() -> None:
    """All are recorded at once; a stop is heard of between two portions."""
    job = an_admitted_job(parallelism=Parallelism(count=5))
    known: list[TaskReport] = []
    portions = []
    for _ in range(4):
        decision = look(job, *known, launches_at_once=2)
        ordered = [each.task for each in decision.actions if isinstance(each, LaunchTask)]
        portions.append([order.index for order in ordered])
        assert (decision.wake_at == T0) is (len(ordered) == 2)
        job = carried_out(job, decision)
        assert len(job.status.execution.active) == 5
        known += [a_report(ReportState.ACCEPTED, index=order.index) for order in ordered]

    assert portions == [[0, 1], [2, 3], [4], []]


def test_no_more_is_launched_once_a_job_is_killed_between_two_portions() -> None:
    job = an_admitted_job(parallelism=Parallelism(count=5))
    job = carried_out(job, look(job, launches_at_once=2))
    known = [a_report(ReportState.ACCEPTED, index=index) for index in range(2)]
    killed = replace(job, spec=replace(job.spec, kill_at=T0))

    assert set(kinds(look(killed, *known, launches_at_once=2))) == {"RecordExecution", "StopTask"}


def test_a_suspended_job_starts_nothing_new_and_goes_on_with_what_runs() -> None:
    execution = started(a_task(0), total=2)
    job = an_admitted_job(
        execution=execution,
        parallelism=Parallelism(count=2),
        retries=Retries(limit=1),
        suspend=True,
    )
    decision = look(job, exited(1, index=0))

    assert kinds(decision) == ["RecordExecution"]
    assert recorded(decision).retrying == (RetryWait(index=0, attempt=1, not_before=T0),)
    assert look(carried_out(job, decision), now=at(99)) == Decision()
    assert kinds(look(replace(job, spec=replace(job.spec, suspend=False)), exited(1)))[1:] == [
        "LaunchTask",
        "LaunchTask",
    ]


def test_a_suspended_job_launches_what_it_had_recorded() -> None:
    job = an_admitted_job(execution=started(a_task()), suspend=True)

    assert kinds(look(job)) == ["LaunchTask"]


def test_a_job_that_is_not_looked_after_yet_is_left_alone() -> None:
    view = ExecutionView(job=a_job(), reports=by_attempt())

    assert plan(view, T0).decision == Decision()
