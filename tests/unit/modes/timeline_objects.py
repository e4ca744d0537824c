"""Schedules and Jobs as a server would have stored them, for timelines."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from interlock.forecast.timeline.chart import chart_of
from interlock.forecast.timeline.model import Chart
from interlock.forecast.upcoming import Definitions
from interlock.resources.door.validation import read_resource
from interlock.resources.job import Job, JobStatus
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.schedule import CONTROLLED_LABEL, SUSPEND_REASON_ANNOTATION, USER_STOP
from interlock.resources.tasks import ExecutionStatus, JobResult

PROCESS = {"spec": {"process": {"command": ["work"]}}}
LONG_AGO = "2026-01-01T00:00:00Z"


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def stored(kind: str, name: str, spec: dict[str, Any], **status: Any) -> Resource:
    """An object with a status."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    metadata |= {"creationTimestamp": LONG_AGO, "resourceVersion": "1"}
    data = {"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "metadata": metadata}
    given = data | {"spec": spec} | ({"status": status} if status else {})
    return read_resource(given)[0]


def controlled(name: str = "engine", zone: str = "UTC", **fields: Any) -> Resource:
    """A ControlledJob, open from nine to half past five on weekdays."""
    status = fields.pop("status", {})
    windows = fields.pop("windows", [{"from": "09:00", "to": "17:30", "days": "MON-FRI"}])
    spec = {"timezone": {"name": zone}, "windows": windows, "jobTemplate": PROCESS, **fields}
    return stored("ControlledJob", name, spec, **status)


def config(
    name: str = "report", zone: str = "UTC", cron: str = "0 2 * * *", **status: Any
) -> Resource:
    """A JobConfig with one line."""
    spec = {"schedules": [{"cron": cron, "timezone": zone}], "template": PROCESS}
    return stored("JobConfig", name, spec, **status)


def ran(
    start: str,
    end: str | None = None,
    result: JobResult = JobResult.SUCCEEDED,
    marks: Metadata | None = None,
) -> Job:
    """A Job that ran; without an end it still does."""
    job, _ = read_resource(
        {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "Job",
            "metadata": {"name": f"job-{at(start):%d-%H%M}"},
            "spec": PROCESS["spec"],
        }
    )
    assert isinstance(job, Job)
    execution = ExecutionStatus(
        total=1,
        started_at=at(start),
        ended_at=at(end) if end else None,
        result=result if end else None,
    )
    return replace(job, status=JobStatus(execution=execution), metadata=marks or job.metadata)


def kept(start: str, end: str, *, by_hand: bool = False) -> Job:
    """A Job of a ControlledJob that was stopped: because its window closed, or by a person."""
    annotations = {SUSPEND_REASON_ANNOTATION: USER_STOP} if by_hand else {}
    labels = {CONTROLLED_LABEL: "engine"}
    marks = Metadata(name="engine-0", labels=labels, annotations=annotations)
    return ran(start, end, JobResult.KILLED, marks)


def charted(
    objects: list[tuple[Resource, list[Job]]],
    now: str,
    first: str,
    last: str | None = None,
    calendars: list[Resource] | None = None,
) -> Chart:
    """The chart of some objects and their Jobs."""
    definitions = Definitions()
    jobs = {}
    for one, its_jobs in objects:
        definitions.add(one)
        jobs[one.kind, one.metadata.namespace, one.metadata.name] = its_jobs
    for calendar in calendars or ():
        definitions.add(calendar)
    days = (date.fromisoformat(first), date.fromisoformat(last or first))
    return chart_of(definitions, jobs, lambda _: days, at(now))


def plus(text: str, **length: int) -> str:
    """A moment some time after another, as text."""
    return (at(text) + timedelta(**length)).strftime("%Y-%m-%dT%H:%M:%S")
