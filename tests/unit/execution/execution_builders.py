"""Builders of admitted Jobs, attempts, reports and views for the execution room's tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from interlock.execution.decide import decide
from interlock.execution.view import ExecutionView
from interlock.resources.actions import Action, Decision, RecordExecution
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.tasks import (
    EndedTask,
    ExecutionStatus,
    ReportState,
    TaskReport,
    TaskResult,
    TaskState,
    TaskStatus,
    task_name,
)
from interlock.resources.transitions import phase_of, with_execution
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0, a_job

ADMITTED = AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1, admitted_at=T0)


def seconds(count: float) -> Duration:
    """A length of time."""
    return Duration(seconds=count)


def at(count: float) -> datetime:
    """A moment, in seconds after T0."""
    return T0 + timedelta(seconds=count)


def an_admitted_job(
    name: str = "job",
    *,
    execution: ExecutionStatus | None = None,
    admission: AdmissionStatus = ADMITTED,
    **more: Any,
) -> Job:
    """A Job that may run, as far as it has come."""
    done = execution or ExecutionStatus()
    status = JobStatus(phase=phase_of(admission, done), admission=admission, execution=done)
    return a_job(name, status=status, **more)


def a_task(
    index: int = 0, attempt: int = 0, state: TaskState = TaskState.STARTING, **more: Any
) -> TaskStatus:
    """An attempt that is not over, recorded at T0."""
    if state in (TaskState.RUNNING, TaskState.KILLING):
        more.setdefault("started_at", T0)
    return TaskStatus(
        name=task_name("job", index, attempt),
        index=index,
        attempt=attempt,
        state=state,
        **({"created_at": T0} | more),
    )


def started(*tasks: TaskStatus, total: int = 1, **more: Any) -> ExecutionStatus:
    """The status of a Job that started at T0 and has these attempts under way."""
    given: dict[str, Any] = {"started_at": T0, "attempts": len(tasks)} | more
    return ExecutionStatus(total=total, active=tasks, **given)


def an_end(
    index: int = 0, attempt: int = 0, result: TaskResult = TaskResult.FAILED, **more: Any
) -> EndedTask:
    """An attempt that is over, at T0."""
    return EndedTask(
        name=task_name("job", index, attempt),
        index=index,
        attempt=attempt,
        result=result,
        **({"ended_at": T0} | more),
    )


def a_report(
    state: ReportState = ReportState.RUNNING,
    index: int = 0,
    attempt: int = 0,
    uid: str = "uid-default-job",
    **more: Any,
) -> TaskReport:
    """What a runtime says of an attempt of the Job `job`."""
    if state in (ReportState.RUNNING, ReportState.ENDED):
        more.setdefault("started_at", T0)
    if state is ReportState.ENDED:
        more.setdefault("ended_at", T0)
    return TaskReport(
        job_uid=uid,
        index=index,
        attempt=attempt,
        namespace="default",
        job="job",
        state=state,
        **more,
    )


def exited(code: int | None = 0, index: int = 0, attempt: int = 0, **more: Any) -> TaskReport:
    """A report of a process that is over."""
    return a_report(ReportState.ENDED, index, attempt, exit_code=code, **more)


def by_attempt(*reports: TaskReport) -> Mapping[tuple[int, int], TaskReport]:
    """Reports as a view holds them."""
    return {(report.index, report.attempt): report for report in reports}


def look(job: Job, *reports: TaskReport, now: datetime = T0, **more: Any) -> Decision:
    """What the room decides about a Job."""
    return decide(ExecutionView(job=job, reports=by_attempt(*reports), **more), now)


def recorded(decision: Decision) -> ExecutionStatus:
    """The one status that the decision writes."""
    writes = [action for action in decision.actions if isinstance(action, RecordExecution)]
    assert len(writes) == 1, decision
    return writes[0].execution


def carried_out(job: Job, decision: Decision, now: datetime = T0) -> Job:
    """The Job after the decision's write. Illegal moves of its phase fail here."""
    for action in decision.actions:
        if isinstance(action, RecordExecution):
            version = str(job.version + 1)
            job = replace(
                job,
                status=with_execution(job, action.execution, now),
                metadata=replace(job.metadata, resource_version=version),
            )
    return job


def kinds(decision: Decision) -> list[str]:
    """The names of the actions, in order."""
    return [type(action).__name__ for action in decision.actions]


def phase_after(job: Job, decision: Decision, now: datetime = T0) -> JobPhase:
    """The word for the Job once the decision is carried out."""
    return carried_out(job, decision, now).status.phase


def only(decision: Decision) -> Action:
    """The one action of a decision."""
    assert len(decision.actions) == 1, decision
    return decision.actions[0]
