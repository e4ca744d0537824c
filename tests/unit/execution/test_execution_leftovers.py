"""Unknown tasks, released Jobs, what the runtime still holds, and Jobs that have had their time."""

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
    by_attempt,
    carried_out,
    exited,
    kinds,
    look,
    recorded,
    seconds,
    started,
)
from msgspec.structs import replace

from interlock.execution.children import Children
from interlock.execution.decide import decide
from interlock.execution.leftovers import past_reports
from interlock.execution.view import ExecutionView
from interlock.resources.actions import Decision, DeleteResource, ForgetTask, StopTask
from interlock.resources.admission import AdmissionPhase, RefusalReason
from interlock.resources.job import (
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    Completion,
    JobPhase,
    Parallelism,
    Retries,
)
from interlock.resources.operation import (
    ELABORATION,
    OperationStatus,
    StepState,
    StepStatus,
    run_task,
    undo_task,
)
from interlock.resources.tasks import (
    ExecutionReason,
    JobResult,
    ReportState,
    RetryWait,
    TaskId,
    TaskResult,
    TaskState,
)
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0
from support.operation_play import Play, a_step, an_operation

RUNNING = a_task(state=TaskState.RUNNING)
LOST = a_report(ReportState.UNKNOWN, message="the keeper was killed")
OVER = started(
    result=JobResult.SUCCEEDED, ended_at=T0, reason=ExecutionReason.COMPLETED, ended=(an_end(),)
)
TASK = TaskId("uid-default-job", 0, 0)
RELEASED = {"annotations": {RELEASE_ANNOTATION: "I looked", RELEASED_ATTEMPTS_ANNOTATION: "0-0"}}


def test_what_cannot_be_proven_is_unknown_and_nothing_is_done_about_it() -> None:
    job = an_admitted_job(execution=started(RUNNING), retries=Retries(limit=3))
    job = carried_out(job, look(job, LOST))

    assert job.status.phase is JobPhase.UNKNOWN
    assert job.status.execution.active[0].message == "the keeper was killed"
    assert look(job, LOST) == Decision()
    assert recorded(look(job, exited(0))).result is JobResult.SUCCEEDED


def test_an_unknown_task_is_told_to_stop_with_its_job_but_stays_unknown() -> None:
    job = an_admitted_job(execution=started(RUNNING))
    job = carried_out(job, look(job, LOST))
    job = replace(job, spec=replace(job.spec, kill_at=T0))
    decision = look(job, LOST)

    assert kinds(decision) == ["RecordExecution", "StopTask"]
    job = carried_out(job, decision)
    assert job.status.phase is JobPhase.UNKNOWN
    assert look(job, LOST, told={TASK: T0}, now=at(999)) == Decision()
    assert recorded(look(job, exited(None, stopped=True))).result is JobResult.KILLED


def test_a_released_job_ends_and_is_not_retried() -> None:
    job = an_admitted_job(execution=started(RUNNING), retries=Retries(limit=3), metadata=RELEASED)
    decision = look(job, LOST)
    execution = recorded(decision)

    assert (execution.result, execution.reason) == (
        JobResult.FINISHED_UNKNOWN,
        ExecutionReason.RELEASED,
    )
    assert execution.message == "I looked"
    assert execution.ended[0].result is TaskResult.WRITTEN_OFF
    assert execution.ended[0].message == "released: I looked"


@pytest.mark.parametrize(
    "word",
    [
        pytest.param({}, id="before anything was unknown, or by a version before"),
        pytest.param({RELEASED_ATTEMPTS_ANNOTATION: ""}, id="about nothing"),
        pytest.param({RELEASED_ATTEMPTS_ANNOTATION: "0-1,1-0, 00-0"}, id="about other attempts"),
    ],
)
def test_a_release_that_was_not_given_for_an_attempt_does_not_free_it(word: dict[str, str]) -> None:
    notes = {RELEASE_ANNOTATION: "I was in a hurry", **word}
    job = an_admitted_job(execution=started(RUNNING), metadata={"annotations": notes})
    execution = recorded(look(job, LOST))

    assert (execution.result, execution.ended) == (None, ())
    assert execution.active[0].state is TaskState.UNKNOWN


def test_a_release_ends_the_attempts_that_it_names_and_no_others() -> None:
    execution = started(RUNNING, a_task(1, state=TaskState.RUNNING), total=2)
    job = an_admitted_job(execution=execution, parallelism=Parallelism(count=2), metadata=RELEASED)
    execution = recorded(look(job, LOST, a_report(ReportState.UNKNOWN, index=1)))

    assert [(end.index, end.result) for end in execution.ended] == [(0, TaskResult.WRITTEN_OFF)]
    assert [(task.index, task.state) for task in execution.active] == [(1, TaskState.UNKNOWN)]


def test_a_release_is_told_with_the_name_of_whoever_gave_it() -> None:
    notes = RELEASED["annotations"] | {RELEASED_BY_ANNOTATION: "alice"}
    job = an_admitted_job(execution=started(RUNNING), metadata={"annotations": notes})

    assert recorded(look(job, LOST)).ended[0].message == "released by alice: I looked"


def test_a_release_stops_the_tasks_that_are_known_to_run() -> None:
    execution = started(RUNNING, a_task(1, state=TaskState.RUNNING), total=2)
    job = an_admitted_job(execution=execution, parallelism=Parallelism(count=2), metadata=RELEASED)
    decision = look(job, LOST, a_report(index=1))

    assert kinds(decision) == ["RecordExecution", "StopTask"]
    job = carried_out(job, decision)
    last = look(job, LOST, exited(0, index=1, stopped=True))
    assert recorded(last).result is JobResult.FINISHED_UNKNOWN


def test_a_release_is_told_even_when_another_task_had_succeeded() -> None:
    execution = started(
        RUNNING,
        total=2,
        succeeded=IndexSet([1]),
        stopping_at=T0,
        stopping_for=ExecutionReason.COMPLETED,
    )
    job = an_admitted_job(
        execution=execution,
        parallelism=Parallelism(count=2),
        completion=Completion.ANY_SUCCESSFUL,
        metadata=RELEASED,
    )

    assert recorded(look(job, LOST)).result is JobResult.FINISHED_UNKNOWN


def test_the_decision_that_ends_a_job_says_when_its_time_is_over() -> None:
    job = an_admitted_job(execution=started(RUNNING), ttl_after_finished=seconds(60))

    assert look(job, exited(0), now=at(5)).wake_at == at(65)


def test_a_release_without_unknown_tasks_does_nothing() -> None:
    job = an_admitted_job(execution=started(RUNNING), metadata=RELEASED)

    assert look(job, a_report()) == Decision()


def test_a_written_off_task_that_shows_up_again_is_stopped_and_forgotten() -> None:
    over = started(result=JobResult.FINISHED_UNKNOWN, ended_at=T0)
    job = an_admitted_job(execution=over, grace_period=seconds(5))

    assert look(job, a_report()).actions == (StopTask(job, TASK, 5.0),)
    assert look(job, a_report(stopped=True)) == Decision()
    assert look(job, exited(0)).actions == (ForgetTask(job, TASK),)


def test_an_object_does_not_go_while_something_of_it_runs() -> None:
    over = started(result=JobResult.FINISHED_UNKNOWN, ended_at=T0)
    job = an_admitted_job(
        execution=over, metadata={"deletion_timestamp": T0}, ttl_after_finished=seconds(0)
    )

    assert kinds(look(job, a_report())) == ["StopTask"]
    assert kinds(look(job, a_report(stopped=True))) == []
    assert kinds(look(job, exited(0))) == ["ForgetTask", "RemoveFinalizer"]


def test_recorded_ends_are_forgotten_without_a_write() -> None:
    decision = look(an_admitted_job(execution=OVER), exited(0))

    assert kinds(decision) == ["ForgetTask"]


def test_an_end_is_recorded_before_it_is_forgotten() -> None:
    job = an_admitted_job(execution=started(RUNNING))

    assert kinds(look(job, exited(0))) == ["RecordExecution", "ForgetTask"]


def test_what_is_not_proven_over_is_not_forgotten_at_the_end() -> None:
    job = an_admitted_job(execution=started(a_task(state=TaskState.UNKNOWN)), metadata=RELEASED)

    assert kinds(look(job, LOST)) == ["RecordExecution"]


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(exited(1, index=1, attempt=0), ["ForgetTask"], id="an earlier attempt"),
        pytest.param(a_report(index=1, attempt=0), ["StopTask"], id="an earlier one that runs"),
        pytest.param(exited(0, index=0), ["ForgetTask"], id="a task that is done"),
        pytest.param(a_report(index=0), ["StopTask"], id="a task that is done, and runs"),
        pytest.param(exited(1, index=2), ["ForgetTask"], id="before a retry"),
        pytest.param(exited(1, index=2, attempt=1), [], id="a retry not recorded yet"),
        pytest.param(a_report(index=3), [], id="a task not recorded yet"),
    ],
)
@pytest.mark.parametrize("completion", list(Completion))
def test_what_the_status_has_left_behind(
    completion: Completion, report: Any, expected: list[str]
) -> None:
    is_all = completion is Completion.ALL_SUCCESSFUL
    execution = started(
        a_task(1, 1, TaskState.RUNNING),
        total=4,
        retrying=(RetryWait(index=2, attempt=1, not_before=at(60)),),
        **{"succeeded" if is_all else "failed": IndexSet([0])},
    )
    job = an_admitted_job(
        execution=execution,
        parallelism=Parallelism(count=4, at_once=1),
        retries=Retries(limit=1),
        completion=completion,
    )

    assert kinds(look(job, a_report(index=1, attempt=1), report)) == expected


def test_reports_of_a_job_that_is_gone_are_cleared_away() -> None:
    runs, ended = a_report(uid="old"), exited(0, index=1, uid="old")
    decision = decide(ExecutionView(job=None, strays=(runs, ended)), T0)

    assert decision.actions == (
        StopTask(None, TaskId("old", 0, 0), 30.0),
        ForgetTask(None, TaskId("old", 1, 0)),
    )
    assert decide(ExecutionView(job=None), T0) == Decision()


def test_reports_of_an_older_job_of_the_same_name_do_not_touch_the_new_one() -> None:
    job = an_admitted_job(execution=started(RUNNING))
    view = ExecutionView(job=job, reports=by_attempt(a_report()), strays=(exited(1, uid="old"),))

    assert decide(view, T0).actions == (ForgetTask(None, TaskId("old", 0, 0)),)


@pytest.mark.parametrize(
    ("ttl", "now", "expected"),
    [
        pytest.param(None, at(9e9), Decision(), id="kept for good"),
        pytest.param(60, at(59), Decision(wake_at=at(60)), id="not yet"),
        pytest.param(60, at(60), "delete", id="now"),
        pytest.param(0, at(0), "delete", id="at once"),
        pytest.param(60, at(-9), Decision(wake_at=at(60)), id="the clock was set back"),
    ],
)
@pytest.mark.parametrize("is_refused", [False, True])
def test_an_ended_job_has_its_time(
    ttl: int | None, now: datetime, expected: Any, is_refused: bool
) -> None:
    refusal = replace(
        ADMITTED,
        phase=AdmissionPhase.REFUSED,
        refused_at=T0,
        refusal=RefusalReason.LOCK_FORBIDDEN,
    )
    job = an_admitted_job(
        execution=None if is_refused else OVER,
        admission=refusal if is_refused else ADMITTED,
        ttl_after_finished=None if ttl is None else seconds(ttl),
    )
    decision = look(job, now=now)

    if expected == "delete":
        assert decision.actions == (DeleteResource(job),)
    else:
        assert decision == expected


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"has_open_parent": True}, id="what it is a part of is not over"),
        pytest.param({"children": Children(unfinished=1, failed=2)}, id="a part of it is not over"),
    ],
)
def test_an_ended_job_stays_while_one_that_belongs_to_it_is_not_over(more: dict[str, Any]) -> None:
    job = an_admitted_job(execution=OVER, ttl_after_finished=seconds(60))

    assert decide(ExecutionView(job=job, **more), at(9e9)) == Decision()
    over = ExecutionView(job=job, children=Children(succeeded=1, failed=2))
    assert decide(over, at(9e9)).actions == (DeleteResource(job),)


# Operations: steps have numbers of their own, and tasks have others


STEPS = (
    StepStatus(name="a", state=StepState.DONE, runs=2),
    StepStatus(name="b", state=StepState.UNDOING, runs=1, undos=2),
    StepStatus(name="c", runs=1),
)


@pytest.mark.parametrize(
    ("task", "attempt", "is_past"),
    [
        pytest.param(run_task(0), 0, True, id="a run before the last one"),
        pytest.param(run_task(0), 1, True, id="the last run of what is done"),
        pytest.param(run_task(0), 2, False, id="a run that was never recorded"),
        pytest.param(run_task(1), 0, True, id="the run of what is being undone"),
        pytest.param(undo_task(1), 0, True, id="an undo before the one under way"),
        pytest.param(undo_task(1), 1, False, id="the undo that is under way"),
        pytest.param(undo_task(0), 0, False, id="an undo that was never recorded"),
        pytest.param(run_task(2), 0, True, id="the run of what is to be run again"),
        pytest.param(run_task(3), 0, False, id="a step that is not known"),
    ],
)
def test_which_attempts_an_operation_has_left_behind(
    task: int, attempt: int, is_past: bool
) -> None:
    """Step numbers are not task numbers: what is done of step 0 says nothing about task 0 alone."""
    execution = started(
        a_task(index=undo_task(1), attempt=1, state=TaskState.RUNNING),
        succeeded=IndexSet([0, 2, 4, 6]),
        operation=OperationStatus(steps=STEPS),
    )
    report = a_report(ReportState.ENDED, index=task, attempt=attempt, exit_code=0)
    view = ExecutionView(job=None, reports=by_attempt(report))

    assert past_reports(view, execution) == ([report] if is_past else [])


@pytest.mark.parametrize(
    ("operation", "attempt", "is_past"),
    [
        (OperationStatus(steps=(StepStatus(name="elaborate", runs=2),)), 0, True),
        (OperationStatus(steps=(StepStatus(name="elaborate", runs=2),)), 2, False),
        (OperationStatus(steps=STEPS, elaborated=()), 0, True),
    ],
)
def test_which_elaborations_are_left_behind(
    operation: OperationStatus, attempt: int, is_past: bool
) -> None:
    execution = started(operation=operation)
    report = a_report(ReportState.ENDED, index=ELABORATION, attempt=attempt, exit_code=0)
    view = ExecutionView(job=None, reports=by_attempt(report))

    assert past_reports(view, execution) == ([report] if is_past else [])


def test_what_a_step_left_is_forgotten_with_the_next_look() -> None:
    """Whoever did it keeps its result until then."""
    play = Play(an_operation(a_step("a"), a_step("b"), a_step("c")), {})
    play.run(until=lambda: play.names == ["a", "b", "c"])
    play.look()

    assert play.forgotten == [(run_task(0), 0), (run_task(1), 0)]


def test_what_ended_is_forgotten_at_once_when_nothing_follows() -> None:
    """Nothing that is launched would tell that it is recorded: it may be long before that."""
    play = Play(an_operation(a_step("a", irreversible=True)), {"a": ("fail",)})
    play.run(until=lambda: play.job.status.phase is JobPhase.STUCK)

    assert play.forgotten == [(run_task(0), 0)]
