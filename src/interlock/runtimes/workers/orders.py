"""Orders: what a worker is told of one, and what is reported before anybody has it."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.tasks import (
    ReportState,
    TaskId,
    TaskOrder,
    TaskReport,
    TaskStatus,
    waits_for_worker,
)
from interlock.resources.work import PythonWork
from interlock.runtimes.workers.protocol import Call, Ref

_WAITED = "it waited for a worker when its server was restarted"


def call_of(order: TaskOrder, work: PythonWork) -> Call:
    """All that a worker is told of an order."""
    return Call(
        ref=Ref(*order.id),
        namespace=order.namespace,
        job=order.job,
        function=work.function,
        call=work.call,
        args=work.args,
        step=work.step,
        results=work.results,
        fences=work.fences,
        target=work.target,
        creator=work.creator,
    )


def accepted(task: TaskId, namespace: str, job: str) -> TaskReport:
    """The report of an attempt that was ordered."""
    return TaskReport(
        job_uid=task.job_uid,
        index=task.task,
        attempt=task.attempt,
        namespace=namespace,
        job=job,
        state=ReportState.ACCEPTED,
    )


def accepted_as(order: TaskOrder) -> TaskReport:
    """The report of an order that was taken in."""
    return replace(accepted(order.id, order.namespace, order.job), job_version=order.job_version)


def inherited(job: Job, task: TaskStatus) -> TaskReport:
    """The report of an attempt as the status of its Job has it.

    What waits there for a worker was given to none, and is over unless it says otherwise by now.
    """
    seen = task.started_at is not None
    id = TaskId(job.metadata.uid, task.index, task.attempt)
    return replace(
        accepted(id, job.metadata.namespace, job.metadata.name),
        state=ReportState.RUNNING if seen else ReportState.ACCEPTED,
        started_at=task.started_at,
        message=_WAITED if waits_for_worker(task) else task.message,
        reason=None if seen else task.reason,
        progress=task.progress,
        interrupted=waits_for_worker(task),
        job_version=job.status.admission.sequence,
    )
