"""Operations are queued until somebody has taken something of them up, and say so."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from interlock.execution.decide import decide
from interlock.execution.view import ExecutionView
from interlock.resources.actions import Decision, LaunchTask, RecordExecution
from interlock.resources.job import Job
from interlock.resources.steps import Elaboration, StepRetries
from interlock.resources.tasks import ReportState, TaskReport
from interlock.resources.transitions import with_execution
from interlock.resources.values.durations import Duration
from support.operation_play import T0, Play, a_step, an_operation, by_workers, tuple_of


class Desk:
    """One operation whose attempts go as a test says."""

    def __init__(self, *steps: object, **fields: object) -> None:
        spec = by_workers(an_operation(*steps, **fields))  # type: ignore[arg-type]
        self.job: Job = Play(spec, {}).job
        self.reports: dict[tuple[int, int], TaskReport] = {}
        self.now = T0

    @property
    def state(self) -> str:
        operation = self.job.status.execution.operation
        assert operation is not None
        return tuple_of(operation)

    def tell(self, state: ReportState, task: int = 0, attempt: int = 0, **said: object) -> None:
        report = TaskReport(
            job_uid="u", index=task, attempt=attempt, namespace="default", job="op", state=state
        )
        self.reports[task, attempt] = replace(report, **said)

    def look(self, patience: timedelta = timedelta()) -> Decision:
        view = ExecutionView(job=self.job, reports=self.reports, patience=patience)
        decision = decide(view, self.now)
        for action in decision.actions:
            if isinstance(action, RecordExecution):
                status = with_execution(self.job, action.execution, self.now)
                self.job = replace(self.job, status=status)
        return decision


def launched(decision: Decision) -> list[tuple[int, int]]:
    orders = [action.task for action in decision.actions if isinstance(action, LaunchTask)]
    return [(order.index, order.attempt) for order in orders]


def test_it_is_queued_while_no_worker_has_its_first_step() -> None:
    desk = Desk(a_step("a"))

    assert launched(desk.look()) == [(0, 0)]
    assert desk.state == "q00"

    desk.tell(ReportState.ACCEPTED, message="no worker has loaded f")
    desk.look()
    assert desk.state == "q00"

    desk.tell(ReportState.RUNNING, started_at=T0)
    desk.look()
    assert desk.state == "e00"


def test_that_it_was_taken_up_is_written_at_once() -> None:
    """News that something runs may wait for more; that an operation is not queued may not."""
    desk = Desk(a_step("a"))
    desk.look()
    desk.tell(ReportState.RUNNING, started_at=T0)
    desk.look(patience=timedelta(seconds=1))

    assert desk.state == "e00"


def test_between_two_steps_it_is_not_queued_again() -> None:
    desk = Desk(a_step("a"), a_step("b"))
    desk.look()
    desk.tell(ReportState.ENDED, started_at=T0, ended_at=T0, exit_code=0)

    assert launched(desk.look()) == [(2, 0)]
    assert desk.state == "e00"


def test_one_write_is_enough_where_a_step_follows() -> None:
    """What ended before anybody saw it run needs no write of its own to have been taken up."""
    desk = Desk(a_step("a"), a_step("b"))
    desk.look()
    desk.tell(ReportState.ENDED, started_at=T0, ended_at=T0, exit_code=0)
    [first, *_] = desk.look().actions

    assert isinstance(first, RecordExecution)
    assert first.execution.succeeded


def test_a_retry_that_nobody_takes_up_counts_as_queued() -> None:
    """`q10` stays until the retry begins, and is `e20` then: there is no `q20` in between."""
    desk = Desk(a_step("a", retries=StepRetries(limit=3, delay=Duration(seconds=10))))
    desk.look()
    for attempt in range(2):
        desk.tell(ReportState.RUNNING, attempt=attempt, started_at=T0)
        desk.look()
        desk.tell(ReportState.ENDED, attempt=attempt, started_at=T0, ended_at=T0, exit_code=1)
        desk.look()
    assert desk.state == "q10"

    desk.now += timedelta(seconds=10)
    assert launched(desk.look()) == [(0, 2)]
    assert desk.state == "q10"

    desk.tell(ReportState.RUNNING, attempt=2, started_at=desk.now)
    desk.look()
    assert desk.state == "e20"


def test_what_was_never_begun_was_never_taken_up() -> None:
    """It waited for a worker when its server was restarted, and waits again."""
    desk = Desk(a_step("a"))
    desk.look()
    desk.tell(ReportState.ENDED, interrupted=True, ended_at=T0)
    desk.look()
    assert desk.state == "q00"

    assert launched(desk.look()) == [(0, 1)]
    assert desk.state == "q00"


def test_one_of_several_that_was_taken_up_is_enough() -> None:
    desk = Desk(a_step("a"), a_step("b", needs=()), steps_at_once=2)
    desk.look()
    desk.tell(ReportState.RUNNING, task=2, started_at=T0)
    desk.look()

    assert desk.state == "e00"


def test_turning_a_request_into_steps_is_a_beginning() -> None:
    play = Play(replace(by_workers(an_operation(a_step("a")))), {})
    request = by_workers(an_operation(a_step("a"))).steps
    assert request is not None
    play.change(spec=replace(play.job.spec, steps=None, python=request[0].run.python))
    play.elaboration = Elaboration(steps=request)
    play.tells_starts = False
    waits = Play(play.job.spec, {})
    waits.look()

    assert waits.states == ["q00"]
    assert " ".join(play.run().states) == "q00 e00 c(success)"


def test_a_person_who_has_it_go_on_puts_it_into_the_queue() -> None:
    desk = Desk(a_step("a", irreversible=True))
    desk.look()
    desk.tell(ReportState.ENDED, started_at=T0, ended_at=T0, exit_code=1)
    desk.look()
    desk.look()
    assert desk.state == "e00"
    operation = desk.job.status.execution.operation
    assert operation is not None
    assert operation.stuck_at is not None

    play = Play(desk.job.spec, {})
    play.job = desk.job
    play.order("retry")
    desk.job = play.job
    assert launched(desk.look()) == [(0, 1)]
    assert desk.state == "q00"
