"""After a restore: what runs without the store's knowledge is gone before anything else starts.

A store that was put back does not know what was started since, nor which locks that holds. So
nothing is decided until every such task is proven gone. What the store knows to be running is found
again as after any restart; what it calls running and is over by now is asked for, and told as it
went.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from interlock.control.cache import Cache
from interlock.control.clock import Clock, pause
from interlock.control.runtime import Runtime, TaskStop
from interlock.execution.leftovers import STRAY_GRACE_S, may_run
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.tasks import TaskId, TaskReport
from interlock.resources.transitions import has_ended

#: How often it is looked whether they are gone.
_LOOK_S = 0.2


class Restorable(Protocol):
    """A store that may have been put back to an earlier state."""

    is_restored: bool

    async def settled(self) -> None:
        """Write down that nothing is left of what the store knew before it was put back."""
        ...


class Findings(NamedTuple):
    """What a runtime holds that the store does not account for."""

    #: Tasks that must be gone before anything starts.
    strangers: tuple[TaskReport, ...]
    #: Orders to stop those that have none yet, and to tell of attempts that are missing.
    stops: tuple[TaskStop, ...]


async def clear_away(
    runtime: Runtime,
    jobs: Cache[Job],
    clock: Clock,
    tell: Callable[[Sequence[TaskReport]], None],
) -> None:
    """Stop what the store does not account for, and return when all of it is gone.

    `tell` hears of what is left at every look, at the end of nothing.

    Raises:
        InterlockError: The runtime cannot be reached; nothing is known.
    """
    asked: set[TaskId] = set()
    while True:
        reports = await runtime.reports()
        strangers, stops = find_strangers(reports, jobs)
        if stops := tuple(stop for stop in stops if stop.task not in asked):
            await runtime.stop(stops)
            asked.update(stop.task for stop in stops)
        tell(strangers)
        if not strangers and not stops:
            return
        await pause(clock, _LOOK_S)


def find_strangers(reports: Sequence[TaskReport], jobs: Cache[Job]) -> Findings:
    """Tell apart what runs with the store's knowledge and what does not.

    A stop of an attempt that is not reported stops nothing: the runtime then tells what it still
    knows of it, or that it never starts.
    """
    strangers = [r for r in reports if may_run(r) and not _is_accounted_for(r, _job_of(r, jobs))]
    stops = [_stop(report, _job_of(report, jobs)) for report in strangers if not report.stopped]
    known = {report.id for report in reports}
    for job in jobs:
        if has_ended(job):
            continue
        for task in job.status.execution.active:
            missing = TaskId(job.metadata.uid, task.index, task.attempt)
            if task.started_at is not None and missing not in known:
                place = (job.metadata.namespace, job.metadata.name)
                stops.append(TaskStop(missing, 0.0, *place, task.runtime))
    return Findings(tuple(strangers), tuple(stops))


def _job_of(report: TaskReport, jobs: Cache[Job]) -> Job | None:
    job = jobs.get(Key("Job", report.namespace, report.job))
    return job if job is not None and job.metadata.uid == report.job_uid else None


def _is_accounted_for(report: TaskReport, job: Job | None) -> bool:
    if job is None or has_ended(job):
        return False
    active = job.status.execution.active
    return any((task.index, task.attempt) == (report.index, report.attempt) for task in active)


def _stop(report: TaskReport, job: Job | None) -> TaskStop:
    grace_s = STRAY_GRACE_S if job is None else job.spec.grace_period.total_seconds()
    return TaskStop(report.id, grace_s, report.namespace, report.job, report.runtime)
