"""What reports make of attempts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from execution_builders import a_report, a_task, at, exited

from interlock.execution.folding import fold, observe, result_of
from interlock.resources.tasks import (
    MAX_PROGRESS_TEXT,
    MAX_RETURNED_BYTES,
    EndedTask,
    PendingReason,
    Progress,
    ReportState,
    Returned,
    StopCause,
    TaskReport,
    TaskResult,
    TaskState,
    TaskStatus,
    is_ready,
    returned_of,
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


NO_NODE, NO_IMAGE = PendingReason.UNSCHEDULABLE, PendingReason.IMAGE


@pytest.mark.parametrize(
    ("held", "told", "expected"),
    [
        pytest.param((None, ""), (None, ""), "", id="nothing to tell"),
        pytest.param((None, ""), (NO_NODE, "0/2"), "0/2", id="a reason"),
        pytest.param((NO_NODE, "0/2"), (NO_NODE, "0/3"), "0/2", id="words"),
        pytest.param((NO_NODE, "x: 0/2"), (NO_IMAGE, "x: 0/3"), "x: 0/3", id="another"),
        pytest.param((NO_NODE, "0/2"), (None, ""), "", id="no reason any more"),
        pytest.param((None, "slow"), (None, "slower"), "slower", id="words are all there is"),
        pytest.param((None, "No: 0/2"), (NO_NODE, "No: 0/3"), "No: 0/3", id="of a version before"),
    ],
)
def test_why_an_attempt_waits_is_kept_while_that_is_the_reason(
    held: tuple[PendingReason | None, str], told: tuple[PendingReason | None, str], expected: str
) -> None:
    task = a_task(reason=held[0], message=held[1])
    report = a_report(ReportState.ACCEPTED, reason=told[0], message=told[1])
    seen = observe(task, report, True, T0)

    assert isinstance(seen, TaskStatus)
    assert seen.message == expected
    assert (seen is task) == (held[1] == expected)
    again = observe(seen, report, True, T0)
    assert again is seen


class TestReady:
    """A task runs and, apart from that, is ready."""

    @pytest.mark.parametrize(
        ("held", "told", "ready"),
        [
            pytest.param(None, None, None, id="nobody tells them apart"),
            pytest.param(None, False, False, id="runs, and is not ready"),
            pytest.param(False, True, True, id="becomes ready"),
            pytest.param(True, False, False, id="is ready no more"),
            pytest.param(True, None, True, id="nothing is said of it"),
        ],
    )
    def test_it_is_what_was_last_told(
        self, held: bool | None, told: bool | None, ready: bool | None
    ) -> None:
        task = a_task(state=RUNNING, ready=held)
        seen = observe(task, a_report(ready=told), True, T0)

        assert isinstance(seen, TaskStatus)
        assert (seen.ready, seen.state) == (ready, RUNNING)
        assert (seen is task) == (held == ready)
        assert is_ready(seen) == (ready is not False)

    @pytest.mark.parametrize(
        ("task", "report"),
        [
            pytest.param(STOPPED, {"ready": False}, id="by us"),
            pytest.param({}, {"ready": False, "stopped": True}, id="by others"),
        ],
    )
    def test_what_is_being_stopped_is_not_written_for_it(
        self, task: dict[str, Any], report: dict[str, Any]
    ) -> None:
        state = KILLING if task else RUNNING
        going = a_task(state=state, ready=True, started_at=T0, **task)

        assert observe(going, a_report(**report), True, T0) is going

    @pytest.mark.parametrize(
        ("held", "told", "is_news"),
        [
            pytest.param("", "exit code 1", True, id="the first words"),
            pytest.param("exit code 1", "exit code 2", False, id="other words"),
            pytest.param("exit code 1", "", True, id="no words any more"),
        ],
    )
    def test_why_it_is_not_ready_is_told_once(self, held: str, told: str, is_news: bool) -> None:
        task = a_task(state=RUNNING, ready=False, message=held)
        seen = observe(task, a_report(ready=False, message=told), True, T0)

        assert isinstance(seen, TaskStatus)
        assert (seen is not task, seen.message) == (is_news, told if is_news else held)

    def test_a_turn_of_readiness_can_wait_as_a_start_can(self) -> None:
        held = (a_task(0, state=RUNNING, ready=False), a_task(1))
        reports = {
            (0, 0): a_report(index=0, ready=True, ready_at=at(2)),
            (1, 0): a_report(index=1, started_at=at(3)),
        }

        assert fold(held, reports, True, at(4)).turning_since == at(2)

    def test_what_is_unknown_is_not_ready(self) -> None:
        ready = a_task(state=RUNNING, ready=True)
        lost = observe(ready, a_report(ReportState.UNKNOWN), True, T0)

        assert isinstance(lost, TaskStatus)
        assert (lost.ready, is_ready(lost)) == (None, False)


class TestProgress:
    """The newest is kept, and costs eleven writes at most."""

    def test_alone_it_is_written_at_every_tenth(self) -> None:
        task, writes = a_task(state=RUNNING), []
        for percent in range(101):
            report = a_report(progress=Progress(percent=percent, text=f"{percent} of 100"))
            seen = observe(task, report, True, T0)
            assert isinstance(seen, TaskStatus)
            if seen is not task:
                assert seen.progress == report.progress
                writes.append(percent)
            task = seen

        assert writes == list(range(0, 101, 10))

    def test_back_and_forth_costs_nothing(self) -> None:
        task = a_task(state=RUNNING, progress=Progress(percent=50))

        for percent in (0, 49, 59, 10, 51):
            report = a_report(progress=Progress(percent=percent))
            assert observe(task, report, True, T0) is task

    def test_with_other_news_the_newest_is_written(self) -> None:
        task = a_task(state=RUNNING, progress=Progress(percent=50))
        newest = Progress(percent=53, text="half of it")
        seen = observe(task, a_report(progress=newest, ready=True), True, T0)

        assert isinstance(seen, TaskStatus)
        assert seen.progress == newest

    @pytest.mark.parametrize(("told", "kept"), [(-5, 0), (250, 100)])
    def test_no_runtime_is_believed_to_keep_the_bounds(self, told: int, kept: int) -> None:
        report = a_report(progress=Progress(percent=told, text="x " * 500))
        seen = observe(a_task(state=RUNNING), report, True, T0)

        assert isinstance(seen, TaskStatus)
        assert seen.progress is not None
        assert seen.progress.percent == kept
        assert len(seen.progress.text) == MAX_PROGRESS_TEXT
        assert seen.progress.text.endswith("…")
        assert observe(seen, report, True, T0) is seen


class TestReturned:
    """What an attempt returned is kept with its end, or else how long it was."""

    @pytest.mark.parametrize(
        ("data", "kept"),
        [
            pytest.param(b'{"rows": 7}', Returned(json='{"rows": 7}'), id="a small one"),
            pytest.param(
                b'"%s"' % (b"x" * (MAX_RETURNED_BYTES - 2)),
                Returned(json=f'"{"x" * (MAX_RETURNED_BYTES - 2)}"'),
                id="as long as may be",
            ),
            pytest.param(
                b'"%s"' % (b"x" * (MAX_RETURNED_BYTES - 1)),
                Returned(dropped_bytes=MAX_RETURNED_BYTES + 1),
                id="a byte too long",
            ),
        ],
    )
    def test_it_is_bounded(self, data: bytes, kept: Returned) -> None:
        assert returned_of(data) == kept
        over = observe(a_task(), exited(returned=kept), True, T0)

        assert isinstance(over, EndedTask)
        assert over.returned == kept

    def test_no_runtime_is_believed_to_keep_the_bound(self) -> None:
        too_long = Returned(json='"{}"'.format("é" * (MAX_RETURNED_BYTES // 2)))
        over = observe(a_task(), exited(returned=too_long), True, T0)

        assert isinstance(over, EndedTask)
        assert over.returned == Returned(dropped_bytes=MAX_RETURNED_BYTES + 2)

    def test_what_is_no_json_is_refused(self) -> None:
        with pytest.raises(msgspec.DecodeError):
            returned_of(b"{rows: 7}")


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


@pytest.mark.parametrize("reason", [PendingReason.NO_WORKER, PendingReason.WORKERS_BUSY])
@pytest.mark.parametrize(
    ("task", "is_over"),
    [
        pytest.param({}, True, id="it still waits"),
        pytest.param({"reason": None}, False, id="a worker may have been told since"),
        pytest.param({"state": RUNNING, "reason": None, "started_at": T0}, False, id="it began"),
    ],
)
def test_what_waited_at_another_server_is_over_only_if_its_status_has_it_wait(
    reason: PendingReason, task: dict[str, Any], is_over: bool
) -> None:
    held = a_task(**({"reason": reason} | task))
    seen = observe(held, a_report(ReportState.ACCEPTED, interrupted=True), True, T0)

    if is_over:
        assert isinstance(seen, EndedTask)
        assert (seen.result, seen.started_at) == (TaskResult.INTERRUPTED, None)
    else:
        assert seen is held


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
        (None, {"interrupted": True}, TaskResult.INTERRUPTED),
        (StopCause.KILLED, {"interrupted": True}, TaskResult.INTERRUPTED),
        (StopCause.TASK_TIMEOUT, {"interrupted": True, "stopped": True}, TaskResult.KILLED),
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

    assert calm.turning_since == at(1)
    assert mixed.turning_since is None


def test_the_start_of_what_waited_for_a_worker_is_written_at_once() -> None:
    """Before it is, no worker is told to do it."""
    waits, report = a_task(reason=PendingReason.WORKERS_BUSY), a_report(started_at=at(2))
    folded = fold((waits,), {(0, 0): report}, True, at(3))

    assert folded.news
    assert folded.turning_since is None


@pytest.mark.parametrize(
    ("started_at", "since"),
    [
        pytest.param(at(3), at(3), id="it can wait"),
        pytest.param(None, None, id="it would be new at every look"),
    ],
)
def test_a_start_waits_for_company_only_if_its_moment_is_told(
    started_at: datetime | None, since: datetime | None
) -> None:
    report = a_report(started_at=started_at)
    folded = fold((a_task(),), {(report.index, report.attempt): report}, True, at(4))

    assert folded.news
    assert folded.turning_since == since


# A place to run


@pytest.mark.parametrize(
    ("task", "placed_at", "wants", "expected"),
    [
        pytest.param(a_task(), at(3), True, at(3), id="a node took it"),
        pytest.param(a_task(), at(3), False, None, id="nobody waits for that"),
        pytest.param(a_task(), None, True, None, id="no node did"),
        pytest.param(a_task(placed_at=at(1)), at(3), True, at(1), id="once is enough"),
        pytest.param(a_task(placed_at=at(1)), None, True, at(1), id="and stays"),
    ],
)
def test_that_it_was_given_a_place_is_news_where_somebody_waits_for_it(
    task: TaskStatus, placed_at: datetime | None, wants: bool, expected: datetime | None
) -> None:
    told = a_report(ReportState.ACCEPTED, started_at=None, placed_at=placed_at)
    reports = {(task.index, task.attempt): told}

    found = fold((task,), reports, True, at(9), wants_places=wants)

    assert [one.placed_at for one in found.active] == [expected]
    is_new = expected != task.placed_at
    assert found.news is is_new
    assert found.turning_since == (placed_at if is_new else None), "it may be written with more"
