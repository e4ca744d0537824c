"""The status record in every situation: of operations as they are played, and of plain Jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.execution.children import Children
from interlock.reporting.job_record import JobRecord, paths_of, record_of
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobPhase, JobStatus
from interlock.resources.operation import CompletionState, OperationState, OperationStatus
from interlock.resources.steps import StepRetries, Target, UndoRetries
from interlock.resources.tasks import (
    ExecutionStatus,
    JobResult,
    RetryWait,
    TaskState,
    TaskStatus,
)
from interlock.resources.values.durations import Duration
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job
from support.operation_play import Play, Script, a_step, an_operation

EVER = ("fail",) * 9
TEN = Duration(seconds=10)
ONE = an_operation(
    a_step("a", retries=StepRetries(limit=3, delay=TEN), undo_retries=UndoRetries(limit=3))
)
TWO = an_operation(a_step("a"), a_step("b"))


def short(record: JobRecord) -> str:
    """The record as the sheet writes it."""
    if record.completion_state is not None:
        return f"c({record.completion_state})"
    return f"{record.state[0]}{record.retry_count}{record.rollback_retry_count}"


def traced(play: Play) -> list[str]:
    """What the record said after each write of a play, what it repeats left out."""
    told = ["q00"]

    def note(_: OperationStatus | None, __: OperationStatus) -> None:
        now = short(record_of(play.job, children=play.children))
        if now != told[-1]:
            told.append(now)

    play.checks.append(note)
    play.run()
    return told


@pytest.mark.parametrize(
    ("script", "trace"),
    [
        pytest.param({}, "q00 e00 c(success)", id="T1"),
        pytest.param({"a": EVER[:3]}, "q00 e00 e10 q10 e20 q20 e30 c(success)", id="T2"),
        pytest.param(
            {"a": EVER, "-a": EVER[:2]},
            "q00 e00 e10 q10 e20 q20 e30 r30 q30 r31 q31 r32 c(failed)",
            id="T3",
        ),
        pytest.param(
            {"a": EVER, "-a": EVER},
            "q00 e00 e10 q10 e20 q20 e30 r30 q30 r31 q31 r32 q32 r33",
            id="T4",
        ),
        pytest.param({"a": EVER[:1]}, "q00 e00 e10 c(success)", id="T5"),
        pytest.param({"a": ("cut",)}, "q00 e00 q00 e00 c(success)", id="T10"),
    ],
)
def test_the_record_agrees_with_the_operation_at_every_write(script: Script, trace: str) -> None:
    assert " ".join(traced(Play(ONE, script))) == trace


@pytest.mark.parametrize(
    ("children", "completion", "percentage"),
    [
        pytest.param(Children(0, 2, 0), CompletionState.SUCCESS, 100.0, id="all well"),
        pytest.param(Children(0, 1, 1), CompletionState.PARTIAL_SUCCESS, 100.0, id="T13 mixed"),
        pytest.param(Children(0, 0, 2), CompletionState.FAILED, 100.0, id="none well"),
        pytest.param(Children(3, 1, 0), None, 25.0, id="some go on"),
    ],
)
def test_a_parent_is_as_its_children_are(
    children: Children, completion: CompletionState | None, percentage: float
) -> None:
    play = Play(an_operation(a_step("a")), {}, children).run()
    record = record_of(play.job, ["c1"], "p", children)

    assert record.completion_state == completion
    assert record.percentage_complete == percentage
    assert (record.child_jobs, record.parent_job) == (("c1",), "p")


def test_what_failed_is_told_as_it_occurs_and_at_the_end() -> None:
    play = Play(ONE, {"a": ("fail",)}).run()
    well = record_of(play.job)
    assert well.result is not None
    assert (well.result.output, well.result.error) == ({"a": 1}, None)
    assert len(well.result.failures) == 1
    assert (well.retry_count, well.percentage_complete) == (0, 100.0)

    play = Play(TWO, {"b": EVER, "-b": EVER[:0]}).run()
    ill = record_of(play.job)
    assert ill.result is not None
    assert ill.result.error is not None
    assert ill.result.error.startswith("b: ")
    assert ill.result.output is None


def test_a_percentage_falls_while_steps_are_undone() -> None:
    play = Play(TWO, {"b": EVER, "-a": ("fail",)})
    play.run(lambda: "a" in play.names and "b" in play.names)
    assert record_of(play.job).percentage_complete == 50.0
    play.run()
    assert play.is_settled
    assert record_of(play.job).stuck_at is not None
    assert record_of(play.job).stuck_message


def active(attempt: int = 0, state: TaskState = TaskState.RUNNING) -> ExecutionStatus:
    task = TaskStatus(index=0, attempt=attempt, state=state, name="t", created_at=T0)
    return ExecutionStatus(total=1, started_at=T0, active=(task,))


def over(result: JobResult, message: str = "") -> ExecutionStatus:
    done = IndexSet.parse("0") if result is JobResult.SUCCEEDED else IndexSet()
    return ExecutionStatus(
        total=1, started_at=T0, ended_at=T0, result=result, message=message, succeeded=done
    )


BACKOFF = ExecutionStatus(
    total=4,
    started_at=T0,
    succeeded=IndexSet.parse("0"),
    retrying=(RetryWait(index=1, attempt=2, not_before=T0 + timedelta(seconds=9)),),
)


@pytest.mark.parametrize(
    ("phase", "execution", "trace", "percentage", "error"),
    [
        pytest.param(JobPhase.QUEUED, ExecutionStatus(), "q00", None, None, id="waits"),
        pytest.param(JobPhase.STARTING, ExecutionStatus(), "q00", None, None, id="starts"),
        pytest.param(JobPhase.RUNNING, active(), "e00", 0.0, None, id="runs"),
        pytest.param(JobPhase.RETRYING, active(2), "e20", 0.0, None, id="is tried again"),
        pytest.param(JobPhase.RETRY_BACKOFF, BACKOFF, "q10", 25.0, None, id="waits for a retry"),
        pytest.param(JobPhase.EVICTING, active(), "e00", 0.0, None, id="is put back"),
        pytest.param(
            JobPhase.SUCCEEDED, over(JobResult.SUCCEEDED), "c(success)", 100.0, None, id="well"
        ),
        pytest.param(
            JobPhase.FAILED, over(JobResult.FAILED, "exit 3"), "c(failed)", 0.0, "exit 3", id="ill"
        ),
        pytest.param(
            JobPhase.KILLED, over(JobResult.KILLED), "c(failed)", 0.0, "Killed", id="killed"
        ),
    ],
)
def test_a_job_without_steps_has_a_record_too(
    phase: JobPhase,
    execution: ExecutionStatus,
    trace: str,
    percentage: float | None,
    error: str | None,
) -> None:
    record = record_of(a_job("j", status=JobStatus(phase=phase, execution=execution)))

    assert short(record) == trace
    assert record.percentage_complete == percentage
    assert (record.result.error if record.result is not None else None) == error
    assert record.state is OperationState.COMPLETE or record.completion_state is None
    assert (record.next_attempt_at is not None) is (phase is JobPhase.RETRY_BACKOFF)


def test_what_was_never_let_in_is_over_and_failed() -> None:
    admission = AdmissionStatus(phase=AdmissionPhase.REFUSED, refused_at=T0, message="too late")
    record = record_of(a_job("j", status=JobStatus(phase=JobPhase.REFUSED, admission=admission)))

    assert short(record) == "c(failed)"
    assert record.result is not None
    assert record.result.error == "too late"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(None, (None, None, None, None, None), id="none"),
        pytest.param(
            Target(path="domains/acme/applications/shop", type="application", id="7", url="/a/7"),
            ("application", "7", "shop", "acme", "/a/7"),
            id="an application, named by its path",
        ),
        pytest.param(
            Target(path="x/1", type="application", name="shop"),
            ("application", None, "shop", None, None),
            id="one that says its name",
        ),
        pytest.param(
            Target(path="domains/acme", type="domain", id="9"),
            ("domain", None, None, "acme", None),
            id="a domain",
        ),
        pytest.param(Target(path="odd"), (None, None, None, None, None), id="no type"),
    ],
)
def test_what_is_said_of_the_target(target: Target | None, expected: tuple[object, ...]) -> None:
    record = record_of(a_job("j", target=target))
    said = (
        record.object_type,
        record.application_id,
        record.application_name,
        record.domain_name,
        record.object_url,
    )
    assert said == expected


def test_an_owner_is_the_creator_unless_it_is_said() -> None:
    def made(owner: str) -> Job:
        return a_job("j", owner=owner, metadata={"annotations": {CREATOR_ANNOTATION: "ana"}})

    records = [record_of(made(owner)) for owner in ("", "bob")]
    assert [(one.owner_login, one.creator_login) for one in records] == [
        ("ana", "ana"),
        ("bob", "ana"),
    ]
    assert record_of(a_job("j")).creator_login is None


def test_paths_are_those_of_whole_words() -> None:
    target = Target(path="domains/acme/applications/shop", type="application", id="7")
    assert paths_of(target) == (
        "domains",
        "domains/acme",
        "domains/acme/applications",
        "domains/acme/applications/shop",
        "applications/7",
    )
