"""Folding: what the runtime's reports make of the attempts in a Job's status.

Stamps are sticky: what was once seen to run did run, whatever is said later. A report that is
missing proves nothing while the runtime has not told all it knows.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from interlock.execution.retrying import delay_before, may_retry
from interlock.execution.view import JobReports
from interlock.resources.ends import counts_as_failed, newest
from interlock.resources.job import Job
from interlock.resources.tasks import (
    KEPT_ENDED,
    MAX_PROGRESS_TEXT,
    MAX_RETURNED_BYTES,
    EndedTask,
    ExecutionStatus,
    Progress,
    ReportState,
    RetryWait,
    Returned,
    StopCause,
    TaskReport,
    TaskResult,
    TaskState,
    TaskStatus,
    progress_of,
    waits_for_worker,
)

_NOT_KNOWN = "the runtime knows nothing of this task, which was seen to run"
_NEVER_RAN = "the runtime knows of no start of this task, which was seen to run"
_NOT_SEEN = "nobody saw this task end"
_NO_CODE = "ended without an exit code, as when the machine restarts"


class Folded(NamedTuple):
    """What the reports made of the active attempts."""

    active: tuple[TaskStatus, ...]
    over: tuple[EndedTask, ...] = ()
    #: Whether an attempt that is still active is not as it was recorded.
    news: bool = False
    #: The earliest moment among starts and turns of readiness, when they are all the news there is.
    turning_since: datetime | None = None


def fold(
    active: tuple[TaskStatus, ...],
    reports: JobReports,
    complete: bool,
    now: datetime,
    *,
    wants_places: bool = False,
) -> Folded:
    """Hold each active attempt against what the runtime says of it.

    That an attempt was given a place is news only where somebody waits for that: `wants_places`.
    """
    still: list[TaskStatus] = []
    over: list[EndedTask] = []
    turns: list[datetime] = []
    news = 0
    for task in active:
        report = reports.get((task.index, task.attempt))
        seen = observe(task, report, complete, now)
        if wants_places and report is not None and isinstance(seen, TaskStatus):
            seen = _placed(seen, report)
        if isinstance(seen, EndedTask):
            over.append(seen)
            continue
        still.append(seen)
        if seen is not task:
            news += 1
            turned_at = None if report is None else _turned_at(task, seen, report)
            if turned_at is not None:
                turns.append(turned_at)
    if not news and not over:
        return Folded(active)
    calm = not over and len(turns) == news
    return Folded(tuple(still), tuple(over), news > 0, min(turns) if calm else None)


def _turned_at(task: TaskStatus, seen: TaskStatus, report: TaskReport) -> datetime | None:
    """When an attempt was placed or began, or became ready or not, if that is what is new.

    Something without a moment would be new at every look, and never written.
    """
    if seen.state is TaskState.STARTING and seen.placed_at is not task.placed_at:
        return seen.placed_at
    if seen.state is not TaskState.RUNNING:
        return None
    if task.state is TaskState.STARTING:
        # A worker is told to do it only once that is written down.
        if waits_for_worker(task) or report.started_at is None:
            return None
        return seen.started_at or report.started_at
    is_turn = task.state is TaskState.RUNNING and task.ready is not seen.ready
    return report.ready_at if is_turn else None


def observe(
    task: TaskStatus, report: TaskReport | None, complete: bool, now: datetime
) -> TaskStatus | EndedTask:
    """An attempt after what was said of it; the very same object when nothing is new."""
    if report is None:
        seen_to_run = complete and task.started_at is not None
        return _unknown(task, task.started_at, task.message or _NOT_KNOWN) if seen_to_run else task
    state = report.state
    if state is ReportState.RUNNING:
        return _running(task, report, now)
    if state is ReportState.ACCEPTED and report.interrupted:
        return _over(task, report, now) if waits_for_worker(task) else task
    if state is ReportState.ENDED:
        return _over(task, report, now)
    if state is ReportState.UNKNOWN:
        return _unknown(task, task.started_at or report.started_at, report.message or _NOT_SEEN)
    if task.started_at is not None:
        # Taking this for the end would free the locks of a process that may still run.
        return _unknown(task, task.started_at, _NEVER_RAN)
    if state is ReportState.NOT_STARTED:
        return _over(task, report, now)
    return _waiting(task, report)


def _running(task: TaskStatus, report: TaskReport, now: datetime) -> TaskStatus:
    state = TaskState.RUNNING if task.stop_cause is None else TaskState.KILLING
    pid = task.pid if report.pid is None else report.pid
    # What is being stopped need not be ready, and what says nothing of it is as it was.
    stops = task.stop_cause is not None or report.stopped
    ready = task.ready if stops or report.ready is None else report.ready
    is_known = task.state is state and task.started_at is not None
    is_same = is_known and (task.pid, task.ready) == (pid, ready) and _says_the_same(task, report)
    if is_same and not _is_further(task.progress, report.progress):
        return task
    return replace(
        task,
        state=state,
        started_at=task.started_at or report.started_at or now,
        pid=pid,
        message=report.message,
        reason=None,
        ready=ready,
        progress=task.progress if report.progress is None else _bounded(report.progress),
    )


def _says_the_same(task: TaskStatus, report: TaskReport) -> bool:
    """Whether the words are no news: why an attempt is not ready is told once, and not each time
    that its probe finds other words for it.
    """
    if task.message == report.message:
        return True
    return bool(task.message and report.message) and task.ready is report.ready is False


def _is_further(known: Progress | None, told: Progress | None) -> bool:
    """Whether progress alone is worth a write: the first word of it, and every further tenth.

    So that an attempt costs eleven writes at most for it, however often it says how far it is.
    With any other news of the attempt its newest progress is written too.
    """
    if told is None:
        return False
    return known is None or min(told.percent, 100) // 10 > known.percent // 10


def _bounded(told: Progress) -> Progress:
    """What a runtime said; none is believed to have kept the bounds."""
    good = 0 <= told.percent <= 100 and len(told.text) <= MAX_PROGRESS_TEXT
    return told if good else progress_of(told.percent, told.text)


def _unknown(task: TaskStatus, started_at: datetime | None, message: str) -> TaskStatus:
    if task.state is TaskState.UNKNOWN and task.started_at == started_at:
        return task
    return replace(
        task,
        state=TaskState.UNKNOWN,
        started_at=started_at,
        message=message,
        reason=None,
        ready=None,
    )


def _placed(task: TaskStatus, report: TaskReport) -> TaskStatus:
    """With the moment at which it was given a place; one that runs has one anyway."""
    if task.state is not TaskState.STARTING or task.placed_at is not None:
        return task
    return task if report.placed_at is None else replace(task, placed_at=report.placed_at)


def _waiting(task: TaskStatus, report: TaskReport) -> TaskStatus:
    """One that does not run yet. Another reason for that is news, other words for it are not.

    Where a runtime gives no reason, its words are all there is.
    """
    message, reason = report.message, report.reason
    if task.state is TaskState.UNKNOWN:
        state = TaskState.STARTING if task.stop_cause is None else TaskState.KILLING
        return replace(task, state=state, message=message, reason=reason)
    if task.reason is reason and (reason is not None or task.message == message):
        return task
    return replace(task, message=message, reason=reason)


def _over(task: TaskStatus, report: TaskReport, now: datetime) -> EndedTask:
    return EndedTask(
        name=task.name,
        index=task.index,
        attempt=task.attempt,
        result=result_of(task, report),
        ended_at=report.ended_at or now,
        started_at=task.started_at or report.started_at,
        exit_code=report.exit_code,
        signal=report.signal,
        stop_cause=task.stop_cause,
        message=report.message or _default_message(report),
        returned=_kept(report.returned),
        beside_others=report.beside_others,
    )


def _kept(returned: Returned | None) -> Returned | None:
    if returned is None or len(returned.json) <= MAX_RETURNED_BYTES // 4:
        return returned
    length = len(returned.json.encode())
    return returned if length <= MAX_RETURNED_BYTES else Returned(dropped_bytes=length)


def _default_message(report: TaskReport) -> str:
    told = report.exit_code is not None or report.signal is not None
    return "" if told or report.state is not ReportState.ENDED else _NO_CODE


def result_of(task: TaskStatus, report: TaskReport) -> TaskResult:
    """What an attempt that is over came to.

    Whether a stop reached it is the runtime's word: one that ended by itself before that keeps
    its own result. Exit code 0 after a stop counts only where nobody minds that it was stopped.
    """
    if report.interrupted and not report.stopped:
        return TaskResult.INTERRUPTED
    if report.state is ReportState.NOT_STARTED:
        return TaskResult.NOT_STARTED if task.stop_cause is None else TaskResult.KILLED
    if report.stopped:
        minds = task.stop_cause not in (None, StopCause.NOT_NEEDED)
        return TaskResult.KILLED if minds or report.exit_code != 0 else TaskResult.SUCCEEDED
    return TaskResult.SUCCEEDED if report.exit_code == 0 else TaskResult.FAILED


def written_off(task: TaskStatus, reason: str, who: str, now: datetime) -> EndedTask:
    """An attempt that a person says is over."""
    told = f"released by {who}" if who else "released"
    return EndedTask(
        name=task.name,
        index=task.index,
        attempt=task.attempt,
        result=TaskResult.WRITTEN_OFF,
        ended_at=now,
        started_at=task.started_at,
        stop_cause=task.stop_cause,
        message=f"{told}: {reason}" if reason else told,
    )


def with_ends(
    job: Job,
    execution: ExecutionStatus,
    active: tuple[TaskStatus, ...],
    over: tuple[EndedTask, ...],
    now: datetime,
) -> ExecutionStatus:
    """The status after attempts ended: done, out of attempts, or waiting for the next one."""
    if not over:
        return replace(execution, active=active)
    # Those that ended between two looks come in the order of their numbers, not of their ends.
    over = tuple(sorted(over, key=lambda end: end.ended_at))
    succeeded = [end.index for end in over if end.result is TaskResult.SUCCEEDED]
    failed: list[int] = []
    waits: list[RetryWait] = []
    for end in over:
        if not counts_as_failed(end):
            continue
        if not may_retry(job.spec.retries, end):
            failed.append(end.index)
        elif execution.stopping_for is None:
            waits.append(_wait_after(job, end, now))
    made = replace(
        execution,
        active=active,
        succeeded=execution.succeeded.union(succeeded) if succeeded else execution.succeeded,
        failed=execution.failed.union(failed) if failed else execution.failed,
        retrying=execution.retrying + tuple(waits),
        ended=execution.ended + over,
    )
    if len(made.ended) <= KEPT_ENDED:
        return made
    return replace(made, ended=newest(job.spec, made, KEPT_ENDED))


def _wait_after(job: Job, end: EndedTask, now: datetime) -> RetryWait:
    attempt = end.attempt + 1
    delay = delay_before(job.spec.retries, job.metadata.uid, end.index, attempt)
    # An end in the future is a clock that was set back; nobody waits for it to come round again.
    return RetryWait(index=end.index, attempt=attempt, not_before=min(end.ended_at, now) + delay)
