"""Strays: what a runtime still holds of attempts that no status counts on any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from interlock.execution.view import ExecutionView
from interlock.resources.actions import ForgetTask, StopTask
from interlock.resources.job import Job
from interlock.resources.operation import ELABORATION, OperationStatus, is_undo, step_of
from interlock.resources.tasks import (
    ExecutionStatus,
    ReportState,
    TaskId,
    TaskReport,
    round_of,
)

#: What an attempt whose Job is gone gets between SIGTERM and SIGKILL.
STRAY_GRACE_S = 30.0
#: An order to stop that the runtime has not confirmed is given again after this time.
REPEAT_STOP_AFTER = timedelta(seconds=5)

_OVER = frozenset({ReportState.ENDED, ReportState.NOT_STARTED})


def is_over(report: TaskReport) -> bool:
    """Whether a report proves that nothing of the attempt runs."""
    return report.state in _OVER


def may_run(report: TaskReport) -> bool:
    """Whether the runtime knows of something that runs, or is about to."""
    return report.state in (ReportState.RUNNING, ReportState.ACCEPTED)


def past_reports(
    view: ExecutionView, execution: ExecutionStatus, *, is_over: bool = False
) -> list[TaskReport]:
    """The reports of attempts that the recorded status has left behind; all, when the Job is over.

    An attempt that was never recorded is not among them. It shows that the status is older than
    what runs, and is taken over when the Job comes to it.
    """
    active = {(task.index, task.attempt) for task in execution.active}
    others = [report for key, report in view.reports.items() if key not in active]
    if is_over or not others or execution.stopping_for is not None:
        return others
    operation = execution.operation
    if operation is not None:
        job = view.job
        if job is not None and job.spec.python is not None and operation.elaborated is None:
            # Until it is known which steps there are, none of theirs is known to be past.
            others = [report for report in others if report.index == ELABORATION]
        return [report for report in others if is_past_step(report, operation)]
    reached = {task.index: task.attempt for task in execution.active}
    reached.update((wait.index, wait.attempt) for wait in execution.retrying)
    return [report for report in others if _is_past(report, execution, reached)]


def _is_past(report: TaskReport, execution: ExecutionStatus, reached: dict[int, int]) -> bool:
    index = report.index
    round = round_of(report.attempt)
    if round != execution.round:
        # What failed in one round is tried again in the next, of which this view may not know yet.
        return round < execution.round
    if index in reached:
        return report.attempt < reached[index]
    return index in execution.succeeded or index in execution.failed


def is_past_step(report: TaskReport, operation: OperationStatus) -> bool:
    """Whether an attempt that is not active was one of those that its step has had."""
    if report.index == ELABORATION and operation.elaborated is not None:
        return True
    # What is turned into steps has one for that alone until it is.
    at = 0 if report.index == ELABORATION else step_of(report.index)
    if at >= len(operation.steps):
        return False
    step = operation.steps[at]
    return report.attempt < (step.undos if is_undo(report.index) else step.runs)


def clear_away(
    view: ExecutionView, job: Job | None, reports: Iterable[TaskReport], now: datetime
) -> Iterator[StopTask | ForgetTask]:
    """Stop what runs although it must not; let the runtime forget what is over."""
    grace_s = STRAY_GRACE_S if job is None else job.spec.grace_period.total_seconds()
    for report in reports:
        if is_over(report):
            yield ForgetTask(job, report.id)
        elif must_tell(view, report.id, report, now):
            yield StopTask(job, report.id, grace_s, report.runtime)


def must_tell(view: ExecutionView, task: TaskId, report: TaskReport | None, now: datetime) -> bool:
    """Whether an order to stop may not have arrived, and should be given (again)."""
    if report is not None and (report.stopped or is_over(report)):
        return False
    told_at = view.told.get(task)
    if told_at is None:
        return True
    # A clock that was set back must not put off the order until it has caught up.
    return _is_repeated(report) and not told_at <= now < told_at + REPEAT_STOP_AFTER


def repeat_at(
    view: ExecutionView, task: TaskId, report: TaskReport | None, now: datetime
) -> datetime | None:
    """When an order to stop that was given is given again; None when it never is."""
    if not _is_repeated(report) or (report is not None and (report.stopped or is_over(report))):
        return None
    told_at = view.told.get(task, now)
    return (told_at if told_at <= now < told_at + REPEAT_STOP_AFTER else now) + REPEAT_STOP_AFTER


def _is_repeated(report: TaskReport | None) -> bool:
    """What cannot be found is told once: asking again would never come to an end."""
    return report is None or report.state is not ReportState.UNKNOWN
