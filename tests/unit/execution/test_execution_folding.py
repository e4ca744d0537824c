"""What reports make of attempts."""

from __future__ import annotations

from typing import Any

import pytest
from execution_builders import a_report, a_task, at, exited

from interlock.execution.folding import fold, observe, result_of
from interlock.resources.tasks import (
    EndedTask,
    ReportState,
    StopCause,
    TaskReport,
    TaskResult,
    TaskState,
    TaskStatus,
)
from interlock.testing.builders import T0

STOPPED: dict[str, Any] = {"stop_at": T0, "stop_cause": StopCause.KILLED}
RUNNING, KILLING, UNKNOWN = TaskState.RUNNING, TaskState.KILLING, TaskState.UNKNOWN
STARTING = TaskState.STARTING


@pytest.mark.parametrize(
    ("task", "report", "expected"),
    [
        pytest.param(a_task(), a_report(ReportState.ACCEPTED), STARTING, id="accepted"),
        pytest.param(a_task(), a_report(), RUNNING, id="starts to run"),
        pytest.param(a_task(state=RUNNING), a_report(), RUNNING, id="goes on"),
        pytest.param(a_task(**STOPPED), a_report(), KILLING, id="runs though told to stop"),
        pytest.param(a_task(), a_report(ReportState.UNKNOWN), UNKNOWN, id="not seen to end"),
        pytest.param(a_task(state=UNKNOWN), a_report(), RUNNING, id="found again"),
        pytest.param(
            a_task(state=UNKNOWN), a_report(ReportState.ACCEPTED), STARTING, id="found waiting"
        ),
        pytest.param(
            a_task(state=RUNNING), a_report(ReportState.NOT_STARTED), UNKNOWN, id="denied a start"
        ),
    ],
)
def test_a_live_attempt(task: TaskStatus, report: TaskReport, expected: TaskState) -> None:
    seen = observe(task, report, True, at(9))

    assert isinstance(seen, TaskStatus)
    assert seen.state is expected


@pytest.mark.parametrize(
    ("held", "told", "expected"),
    [
        pytest.param("", "", "", id="nothing to tell"),
        pytest.param("", "Unschedulable: 0/2", "Unschedulable: 0/2", id="a reason"),
        pytest.param("Unschedulable: 0/2", "Unschedulable: 0/3", "Unschedulable: 0/2", id="words"),
        pytest.param("Unschedulable: 0/2", "ErrImagePull: x", "ErrImagePull: x", id="another"),
        pytest.param("Unschedulable: 0/2", "", "", id="no reason any more"),
    ],
)
def test_why_an_attempt_waits_is_kept_while_that_is_the_reason(
    held: str, told: str, expected: str
) -> None:
    task = a_task(message=held)
    seen = observe(task, a_report(ReportState.ACCEPTED, message=told), True, T0)

    assert isinstance(seen, TaskStatus)
    assert seen.message == expected
    assert (seen is task) == (held == expected)


@pytest.mark.parametrize(
    ("task", "complete", "expected"),
    [
        pytest.param(a_task(), False, STARTING, id="starting, not all told"),
        pytest.param(a_task(), True, STARTING, id="starting, never arrived"),
        pytest.param(a_task(state=RUNNING), False, RUNNING, id="running, not all told"),
        pytest.param(a_task(state=RUNNING), True, UNKNOWN, id="running, and nobody knows it"),
        pytest.param(a_task(state=UNKNOWN), True, UNKNOWN, id="unknown stays unknown"),
    ],
)
def test_a_missing_report_proves_nothing(
    task: TaskStatus, complete: bool, expected: TaskState
) -> None:
    seen = observe(task, None, complete, at(9))

    assert isinstance(seen, TaskStatus)
    assert seen.state is expected
    assert (seen is task) is (task.state is expected)


def test_unknown_says_why_and_is_cleared_by_proof() -> None:
    lost = observe(a_task(state=RUNNING), a_report(ReportState.UNKNOWN, message="m"), True, T0)
    assert isinstance(lost, TaskStatus)
    assert lost.message == "m"

    found = observe(lost, a_report(), True, T0)
    assert isinstance(found, TaskStatus)
    assert found.message == ""
    over = observe(lost, exited(3), True, T0)
    assert isinstance(over, EndedTask)
    assert over.exit_code == 3


def test_stamps_are_sticky() -> None:
    task = a_task(state=RUNNING, started_at=T0, pid=7)
    again = a_report(ReportState.RUNNING, started_at=at(5), pid=7)
    over = observe(task, exited(started_at=at(5), ended_at=at(6)), True, at(9))

    assert observe(task, again, True, at(9)) is task
    assert isinstance(over, EndedTask)
    assert (over.started_at, over.ended_at) == (T0, at(6))


def test_the_process_that_is_told_of_is_the_one_that_lives() -> None:
    task = a_task(state=RUNNING, pid=7)
    outlived = a_report(ReportState.RUNNING, pid=8, message="its main process ended")
    seen = observe(task, outlived, True, at(9))

    assert isinstance(seen, TaskStatus)
    assert (seen.pid, seen.message, seen.started_at) == (8, "its main process ended", T0)
    assert observe(seen, outlived, True, at(9)) is seen


@pytest.mark.parametrize(
    ("cause", "report", "expected"),
    [
        (None, {"exit_code": 0}, TaskResult.SUCCEEDED),
        (None, {"exit_code": 1}, TaskResult.FAILED),
        (None, {"signal": 9}, TaskResult.FAILED),
        (None, {}, TaskResult.FAILED),
        (None, {"signal": 15, "stopped": True}, TaskResult.KILLED),
        (StopCause.KILLED, {"exit_code": 0}, TaskResult.SUCCEEDED),
        (StopCause.KILLED, {"exit_code": 3}, TaskResult.FAILED),
        (StopCause.KILLED, {"signal": 15, "stopped": True}, TaskResult.KILLED),
        (StopCause.KILLED, {"exit_code": 0, "stopped": True}, TaskResult.KILLED),
        (StopCause.TASK_TIMEOUT, {"exit_code": 0, "stopped": True}, TaskResult.KILLED),
        (StopCause.NOT_NEEDED, {"exit_code": 0, "stopped": True}, TaskResult.SUCCEEDED),
        (StopCause.NOT_NEEDED, {"exit_code": 1, "stopped": True}, TaskResult.KILLED),
        (None, {"state": ReportState.NOT_STARTED}, TaskResult.NOT_STARTED),
        (StopCause.PENDING_TIMEOUT, {"state": ReportState.NOT_STARTED}, TaskResult.KILLED),
    ],
)
def test_the_table_of_results(
    cause: StopCause | None, report: dict[str, Any], expected: TaskResult
) -> None:
    told = {"state": ReportState.ENDED} | report

    assert result_of(a_task(stop_cause=cause), a_report(**told)) is expected


def test_an_end_without_a_code_says_so() -> None:
    over = observe(a_task(), exited(None), True, T0)
    named = observe(a_task(), exited(None, message="rebooted"), True, T0)

    assert isinstance(over, EndedTask)
    assert "restart" in over.message
    assert isinstance(named, EndedTask)
    assert named.message == "rebooted"


def test_folding_nothing_new_returns_the_very_same_attempts() -> None:
    active = (a_task(0, state=RUNNING), a_task(1))
    folded = fold(active, {(0, 0): a_report()}, True, T0)

    assert folded.active is active
    assert not folded.news


def test_only_starts_are_calm_news() -> None:
    active = (a_task(0), a_task(1))
    first, second = a_report(index=0, started_at=at(2)), a_report(index=1, started_at=at(1))

    calm = fold(active, {(0, 0): first, (1, 0): second}, True, at(3))
    mixed = fold(active, {(0, 0): first, (1, 0): exited(index=1)}, True, at(3))

    assert calm.running_since == at(1)
    assert mixed.running_since is None
