"""How a Job is stopped: killed, timed out, deleted, replaced, or no longer needed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from execution_builders import (
    ADMITTED,
    a_report,
    a_task,
    an_admitted_job,
    an_end,
    at,
    carried_out,
    exited,
    kinds,
    look,
    only,
    phase_after,
    recorded,
    seconds,
    started,
)
from msgspec.structs import replace

from interlock.resources.actions import Decision, RemoveFinalizer, StopTask
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, RefusalReason
from interlock.resources.job import (
    JOB_FINALIZER,
    Completion,
    JobPhase,
    Parallelism,
    Retries,
)
from interlock.resources.process import NoopSpec
from interlock.resources.schedule import (
    STOPPED_BECAUSE_ANNOTATION,
    STOPS_AT_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
)
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    ReportState,
    RetryWait,
    StopCause,
    TaskId,
    TaskResult,
    TaskState,
)
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0

RUNNING = a_task(state=TaskState.RUNNING)
REPLACED = replace(ADMITTED, replaced_by="job-2")
GOING = {"deletion_timestamp": T0}


def stopped(cause: StopCause, grace: float = 30, **more: Any) -> ExecutionStatus:
    """The status of a Job whose one task was told to stop."""
    reasons = {
        StopCause.KILLED: ExecutionReason.KILLED,
        StopCause.JOB_TIMEOUT: ExecutionReason.TIMEOUT,
        StopCause.DELETED: ExecutionReason.DELETED,
        StopCause.NOT_NEEDED: ExecutionReason.COMPLETED,
    }
    task = a_task(state=TaskState.KILLING, stop_at=T0, stop_cause=cause, stop_grace=seconds(grace))
    return started(task, stopping_at=T0, stopping_for=reasons.get(cause), **more)


@pytest.mark.parametrize(
    ("more", "reason", "cause"),
    [
        ({"kill_at": at(10)}, ExecutionReason.KILLED, StopCause.KILLED),
        ({"kill_at": at(-99)}, ExecutionReason.KILLED, StopCause.KILLED),
        ({"metadata": GOING}, ExecutionReason.DELETED, StopCause.DELETED),
        ({"admission": REPLACED}, ExecutionReason.REPLACED, StopCause.REPLACED),
        ({"timeout": seconds(10)}, ExecutionReason.TIMEOUT, StopCause.JOB_TIMEOUT),
        ({"timeout": seconds(1), "metadata": GOING}, ExecutionReason.DELETED, StopCause.DELETED),
    ],
)
@pytest.mark.parametrize("state", [TaskState.STARTING, TaskState.RUNNING])
def test_what_stops_a_job(
    state: TaskState, more: dict[str, Any], reason: ExecutionReason, cause: StopCause
) -> None:
    report = a_report(ReportState.RUNNING if state is TaskState.RUNNING else ReportState.ACCEPTED)
    job = an_admitted_job(execution=started(a_task(state=state)), grace_period=seconds(5), **more)
    decision = look(job, report, now=at(10))

    assert kinds(decision) == ["RecordExecution", "StopTask"]
    execution = recorded(decision)
    assert (execution.stopping_for, execution.stopping_at) == (reason, at(10))
    (task,) = execution.active
    assert (task.state, task.stop_cause, task.stop_grace) == (TaskState.KILLING, cause, seconds(5))
    assert decision.actions[1] == StopTask(job, TaskId("uid-default-job", 0, 0), 5.0)
    assert phase_after(job, decision) is JobPhase.KILLING


@pytest.mark.parametrize(
    ("more", "wake_at"),
    [
        ({"kill_at": at(11)}, at(11)),
        ({"timeout": seconds(11)}, at(11)),
        ({"kill_at": at(20), "timeout": seconds(11), "task_timeout": seconds(12)}, at(11)),
        ({"task_timeout": seconds(12)}, at(12)),
    ],
)
def test_a_moment_in_the_future_only_sets_a_timer(more: dict[str, Any], wake_at: datetime) -> None:
    job = an_admitted_job(execution=started(RUNNING), **more)

    assert look(job, a_report(), now=at(10)) == Decision(wake_at=wake_at)


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        pytest.param({}, "the time set for its end (killAt) has come", id="somebody wrote killAt"),
        pytest.param({STOPS_AT_ANNOTATION: T0.isoformat()}, "its window closed", id="as planned"),
        pytest.param(
            {STOPS_AT_ANNOTATION: at(60).isoformat()},
            "the time set for its end (killAt) has come",
            id="before that",
        ),
        pytest.param({SUSPEND_REASON_ANNOTATION: USER_STOP}, "a person stopped it", id="a person"),
        pytest.param(
            {STOPPED_BECAUSE_ANNOTATION: "on hold", STOPS_AT_ANNOTATION: T0.isoformat()},
            "on hold",
            id="a schedule, which says why",
        ),
    ],
)
def test_a_stop_tells_who_wanted_it(annotations: dict[str, str], told: str) -> None:
    job = an_admitted_job(execution=started(RUNNING), kill_at=T0)
    job = replace(job, metadata=replace(job.metadata, annotations=annotations))

    assert recorded(look(job)).message == told


def test_a_kill_in_the_future_blocks_neither_tasks_nor_retries() -> None:
    waiting = started(retrying=(RetryWait(index=0, attempt=1, not_before=T0),), total=2)
    job = an_admitted_job(
        execution=waiting,
        parallelism=Parallelism(count=2),
        kill_at=at(60),
        retries=Retries(limit=1),
    )

    assert kinds(look(job)) == ["RecordExecution", "LaunchTask", "LaunchTask"]


@pytest.mark.parametrize(
    "execution",
    [
        pytest.param(ExecutionStatus(), id="starting"),
        pytest.param(
            started(retrying=(RetryWait(index=0, attempt=1, not_before=at(5)),)), id="retry-waiting"
        ),
    ],
)
@pytest.mark.parametrize("spec", [{}, {"suspend": True}, {"noop": NoopSpec()}])
def test_a_job_without_running_tasks_is_killed_at_once(
    execution: ExecutionStatus, spec: dict[str, Any]
) -> None:
    job = an_admitted_job(execution=execution, kill_at=T0, retries=Retries(limit=3), **spec)
    decision = look(job, now=at(1))

    assert kinds(decision) == ["RecordExecution"]
    assert recorded(decision).result is JobResult.KILLED
    assert phase_after(job, decision) is JobPhase.KILLED


@pytest.mark.parametrize(
    ("report", "task_result", "job_result"),
    [
        pytest.param(
            exited(None, signal=15, stopped=True), TaskResult.KILLED, JobResult.KILLED, id="stopped"
        ),
        pytest.param(
            exited(0, stopped=True), TaskResult.KILLED, JobResult.KILLED, id="exits 0 when told"
        ),
        pytest.param(exited(0), TaskResult.SUCCEEDED, JobResult.SUCCEEDED, id="was done before"),
        pytest.param(exited(3), TaskResult.FAILED, JobResult.KILLED, id="had failed before"),
        pytest.param(
            a_report(ReportState.NOT_STARTED), TaskResult.KILLED, JobResult.KILLED, id="not started"
        ),
    ],
)
def test_what_a_killed_job_comes_to(
    report: Any, task_result: TaskResult, job_result: JobResult
) -> None:
    execution = stopped(StopCause.KILLED)
    if report.state is ReportState.NOT_STARTED:
        execution = replace(execution, active=(replace(execution.active[0], started_at=None),))
    job = an_admitted_job(execution=execution, kill_at=T0, retries=Retries(limit=3))
    decision = look(job, report)

    assert recorded(decision).result is job_result
    assert recorded(decision).ended[0].result is task_result
    assert recorded(decision).retrying == ()
    assert phase_after(job, decision).value == job_result.value


def test_work_that_is_done_when_the_kill_comes_is_a_success() -> None:
    job = an_admitted_job(execution=started(RUNNING), kill_at=at(1))

    assert recorded(look(job, exited(0, ended_at=at(2)), now=at(3))).result is JobResult.SUCCEEDED


@pytest.mark.parametrize("result", list(JobResult))
def test_an_ended_job_is_never_turned_into_killed(result: JobResult) -> None:
    over = started(result=result, ended_at=T0, reason=ExecutionReason.COMPLETED)
    job = an_admitted_job(execution=over, kill_at=T0, admission=REPLACED)

    assert look(job, now=at(9)) == Decision()


def test_a_kill_that_is_taken_back_changes_nothing_once_it_began() -> None:
    job = an_admitted_job(execution=stopped(StopCause.KILLED), kill_at=at(900))

    assert look(job, a_report(stopped=True), now=at(1)) == Decision()
    assert recorded(look(job, exited(1, stopped=True), now=at(1))).result is JobResult.KILLED


def test_less_grace_is_told_first_and_then_recorded() -> None:
    job = an_admitted_job(execution=stopped(StopCause.KILLED), kill_at=T0, grace_period=seconds(0))
    decision = look(job, a_report(stopped=True), now=at(1))

    assert kinds(decision) == ["StopTask", "RecordExecution"]
    assert decision.actions[0] == StopTask(job, TaskId("uid-default-job", 0, 0), 0.0)
    assert look(carried_out(job, decision), a_report(stopped=True), now=at(1)) == Decision()


def test_more_grace_is_not_told() -> None:
    job = an_admitted_job(execution=stopped(StopCause.KILLED), kill_at=T0, grace_period=seconds(99))

    assert look(job, a_report(stopped=True), now=at(1)) == Decision()


def test_a_stop_that_was_not_confirmed_is_repeated() -> None:
    job = an_admitted_job(execution=stopped(StopCause.KILLED), kill_at=T0)
    task = TaskId("uid-default-job", 0, 0)

    first = look(job, a_report(), now=at(1))
    assert first.actions == (StopTask(job, task, 30.0),)
    assert look(job, a_report(), now=at(2), told={task: at(1)}) == Decision(wake_at=at(6))
    assert kinds(look(job, a_report(), now=at(6), told={task: at(1)})) == ["StopTask"]
    # A clock that was set back does not silence it.
    assert kinds(look(job, a_report(), now=at(-900), told={task: at(1)})) == ["StopTask"]


def test_a_stop_reaches_what_the_runtime_has_not_heard_of() -> None:
    task = a_task(state=TaskState.KILLING, started_at=None, stop_at=T0, stop_cause=StopCause.KILLED)
    execution = started(task, stopping_for=ExecutionReason.KILLED, stopping_at=T0)

    assert kinds(look(an_admitted_job(execution=execution, kill_at=T0))) == ["StopTask"]


# Timeouts of tasks


@pytest.mark.parametrize(
    ("task", "spec", "cause"),
    [
        pytest.param(RUNNING, {"task_timeout": seconds(10)}, StopCause.TASK_TIMEOUT, id="too long"),
        pytest.param(RUNNING, {"task_timeout": seconds(11)}, None, id="not too long yet"),
        pytest.param(
            a_task(), {"pending_timeout": seconds(10)}, StopCause.PENDING_TIMEOUT, id="not started"
        ),
        pytest.param(a_task(), {"pending_timeout": seconds(11)}, None, id="may still start"),
        pytest.param(a_task(), {"pending_timeout": seconds(0)}, None, id="0 turns it off"),
        pytest.param(RUNNING, {"pending_timeout": seconds(1)}, None, id="it did start"),
    ],
)
def test_when_a_task_is_out_of_time(task: Any, spec: dict[str, Any], cause: Any) -> None:
    job = an_admitted_job(execution=started(task), **spec)
    state = ReportState.RUNNING if task is RUNNING else ReportState.ACCEPTED
    decision = look(job, a_report(state), now=at(10))

    assert kinds(decision) == (["RecordExecution", "StopTask"] if cause else [])
    if cause:
        assert recorded(decision).active[0].stop_cause is cause
        assert recorded(decision).stopping_for is None


@pytest.mark.parametrize("cause", [StopCause.TASK_TIMEOUT, StopCause.PENDING_TIMEOUT])
def test_out_of_time_is_a_failed_attempt(cause: StopCause) -> None:
    execution = stopped(cause)
    retried = look(
        an_admitted_job(execution=execution, retries=Retries(limit=1)), exited(0, stopped=True)
    )
    failed = look(an_admitted_job(execution=execution), exited(None, signal=9, stopped=True))

    assert recorded(retried).active[0].attempt == 1
    assert recorded(retried).ended[0].result is TaskResult.KILLED
    assert recorded(failed).result is JobResult.FAILED
    assert recorded(failed).reason is ExecutionReason.TASK_FAILED


def test_a_job_that_is_out_of_time_fails() -> None:
    job = an_admitted_job(execution=stopped(StopCause.JOB_TIMEOUT), timeout=seconds(10))
    decision = look(job, exited(None, signal=15, stopped=True), now=at(11))

    assert recorded(decision).result is JobResult.FAILED
    assert recorded(decision).reason is ExecutionReason.TIMEOUT


# Deletion


def test_a_deleted_job_goes_when_its_tasks_are_proven_gone() -> None:
    job = an_admitted_job(execution=started(RUNNING), metadata=GOING)
    job = carried_out(job, look(job, a_report()))
    assert look(job, a_report(stopped=True), reports_complete=False).actions == ()

    decision = look(job, exited(None, signal=15, stopped=True))
    assert recorded(decision).result is JobResult.KILLED
    assert recorded(decision).reason is ExecutionReason.DELETED
    job = carried_out(job, decision)
    assert kinds(look(job, exited(None))) == ["ForgetTask", "RemoveFinalizer"]


def test_an_admitted_job_that_never_started_is_ended_and_let_go() -> None:
    job = an_admitted_job(metadata=GOING)
    job = carried_out(job, look(job))

    assert job.status.phase is JobPhase.KILLED
    assert only(look(job)) == RemoveFinalizer(job, JOB_FINALIZER)


def test_a_waiting_job_that_is_deleted_is_left_to_admission_first() -> None:
    waiting = an_admitted_job(admission=AdmissionStatus(), metadata=GOING)
    refusal = AdmissionStatus(
        phase=AdmissionPhase.REFUSED,
        refusal=RefusalReason.DELETED_BEFORE_START,
        refused_at=T0,
    )
    refused = an_admitted_job(admission=refusal, metadata=GOING)

    assert look(waiting) == Decision()
    assert only(look(refused)) == RemoveFinalizer(refused, JOB_FINALIZER)


def test_a_finalizer_that_is_not_there_is_not_removed() -> None:
    over = started(result=JobResult.SUCCEEDED, ended_at=T0)
    job = an_admitted_job(execution=over, metadata=GOING | {"finalizers": ("other/hold",)})

    assert look(job) == Decision()


# Completion


@pytest.mark.parametrize(
    ("completion", "code", "reason", "result"),
    [
        (Completion.ALL_SUCCESSFUL, 1, ExecutionReason.TASK_FAILED, JobResult.FAILED),
        (Completion.ANY_SUCCESSFUL, 0, ExecutionReason.COMPLETED, JobResult.SUCCEEDED),
    ],
)
def test_a_settled_outcome_stops_the_others(
    completion: Completion, code: int, reason: ExecutionReason, result: JobResult
) -> None:
    execution = started(*(a_task(i, state=TaskState.RUNNING) for i in range(3)), total=5)
    job = an_admitted_job(
        execution=execution, parallelism=Parallelism(count=5, at_once=3), completion=completion
    )
    others = [a_report(index=1), a_report(index=2)]
    decision = look(job, exited(code, index=0), *others)

    assert kinds(decision) == ["RecordExecution", "StopTask", "StopTask"]
    assert recorded(decision).stopping_for is reason
    assert {task.stop_cause for task in recorded(decision).active} == {StopCause.NOT_NEEDED}
    job = carried_out(job, decision)
    assert job.status.phase is JobPhase.TERMINATING

    ends = [exited(None, index=1, signal=15, stopped=True), exited(9, index=2)]
    decision = look(replace(job, spec=replace(job.spec, kill_at=T0)), *ends, now=at(1))
    assert recorded(decision).result is result
    assert recorded(decision).reason is reason


@pytest.mark.parametrize(
    ("completion", "code"), [(Completion.ALL_SUCCESSFUL, 0), (Completion.ANY_SUCCESSFUL, 1)]
)
def test_an_unsettled_outcome_keeps_the_others(completion: Completion, code: int) -> None:
    execution = started(a_task(0), a_task(1, state=TaskState.RUNNING), total=2)
    job = an_admitted_job(
        execution=execution, parallelism=Parallelism(count=2), completion=completion
    )
    decision = look(job, exited(code, index=0), a_report(index=1))

    assert kinds(decision) == ["RecordExecution"]
    assert recorded(decision).stopping_for is None
    last = look(carried_out(job, decision), exited(code, index=1))
    assert recorded(last).result is (JobResult.FAILED if code else JobResult.SUCCEEDED)


def test_what_fails_while_the_job_stops_is_not_retried() -> None:
    tasks = (a_task(0, state=TaskState.RUNNING), a_task(1, state=TaskState.RUNNING))
    execution = started(*tasks, total=2, failed=IndexSet(), ended=(an_end(),))
    job = an_admitted_job(
        execution=execution, parallelism=Parallelism(count=2), retries=Retries(limit=5), kill_at=T0
    )
    job = carried_out(job, look(job, a_report(index=0), a_report(index=1)))
    decision = look(job, exited(1, index=0), a_report(index=1, stopped=True))

    assert recorded(decision).retrying == ()
    assert [task.index for task in recorded(decision).active] == [1]


def test_of_many_ends_between_two_looks_the_first_failure_is_blamed() -> None:
    tasks = [a_task(index, state=TaskState.RUNNING) for index in range(40)]
    job = an_admitted_job(execution=started(*tasks, total=40), parallelism=Parallelism(count=40))
    failures = [exited(1, index, ended_at=at(2)) for index in range(30) if index != 7]
    decision = look(job, exited(9, 7, ended_at=at(1)), *failures, now=at(3))

    execution = recorded(decision)
    assert execution.message == "task 7 failed with exit code 9; 10 others were told to stop"
    after = carried_out(job, decision)
    ends = [exited(None, index, signal=15, stopped=True) for index in range(30, 40)]
    over = recorded(look(after, *ends, now=at(4)))
    assert over.message == execution.message
    assert 7 in [end.index for end in over.ended]


def test_a_failure_that_is_tried_again_is_not_blamed() -> None:
    tasks = (a_task(0, 1, TaskState.RUNNING), a_task(1, 0, TaskState.RUNNING))
    job = an_admitted_job(
        execution=started(*tasks, total=2),
        parallelism=Parallelism(count=2),
        retries=Retries(limit=1),
    )
    ends = (exited(3, 0, 1, ended_at=at(1)), exited(4, 1, 0, ended_at=at(2)))

    execution = recorded(look(job, *ends, now=at(3)))
    assert execution.message == "task 0 (attempt 2) failed with exit code 3"
