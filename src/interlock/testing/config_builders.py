"""Builders of JobConfigs, their Jobs and their views; they fill in what a test does not tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from interlock.resources.admission import AdmissionPhase, AdmissionStatus, RefusalReason
from interlock.resources.calendar import Calendar, CalendarDay, CalendarSpec
from interlock.resources.job import Job, JobPhase, JobSpec, JobStatus
from interlock.resources.job_config import JobConfig, JobConfigSpec, JobConfigStatus
from interlock.resources.metadata import Metadata
from interlock.resources.process import ProcessSpec
from interlock.resources.schedule import ExpectedJob, JobTemplate, ScheduleSpec
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.values.cron_lines import CronLines
from interlock.schedules.calendars import FoundCalendar, read_calendar
from interlock.schedules.configs.making import job_on_demand, scheduled_job
from interlock.schedules.configs.reading import read_timing
from interlock.schedules.configs.view import ConfigView
from interlock.testing.builders import T0


def moment(text: str) -> datetime:
    """A moment in UTC, written 2026-03-08 07:00 or with seconds."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def a_schedule(*lines: str, **more: Any) -> ScheduleSpec:
    """A schedule of one or more cron lines; every minute, unless told otherwise."""
    return ScheduleSpec(cron=CronLines(*(lines or ("* * * * *",))), **more)


def a_job_config(
    name: str = "report",
    *schedules: ScheduleSpec,
    created: datetime = T0,
    generation: int = 1,
    version: int = 1,
    status: JobConfigStatus | None = None,
    template: JobTemplate | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> JobConfig:
    """A stored JobConfig that runs `true` every minute, unless the spec says otherwise."""
    given: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-config-{name}",
        "resource_version": str(version),
        "generation": generation,
        "creation_timestamp": created,
    }
    return JobConfig(
        metadata=Metadata(**(given | dict(metadata or {}))),
        spec=JobConfigSpec(
            template=template or a_template(),
            **({"schedules": schedules or (a_schedule(),)} | spec),
        ),
        status=status or JobConfigStatus(),
    )


def a_template(*command: str, **spec: Any) -> JobTemplate:
    """A template that runs a command."""
    return JobTemplate(spec=JobSpec(process=ProcessSpec(command=command or ("true",)), **spec))


def a_calendar(name: str, *days: str, version: int = 1) -> Calendar:
    """A stored Calendar of some days."""
    metadata = Metadata(
        name=name, namespace="default", uid=f"uid-calendar-{name}", resource_version=str(version)
    )
    return Calendar(
        metadata=metadata, spec=CalendarSpec(days=tuple(CalendarDay(day=day) for day in days))
    )


def a_view(
    config: JobConfig,
    *jobs: Job,
    calendars: Iterable[Calendar] = (),
    gone: Iterable[str] = (),
    foreign: Iterable[str] = (),
) -> ConfigView:
    """What a look at a config sees."""
    named = {calendar.metadata.name: read_calendar(calendar) for calendar in calendars}

    def find(name: str) -> FoundCalendar:
        return named.get(name) or FoundCalendar(None, "", f"calendar {name} does not exist")

    return ConfigView(
        config=config,
        timing=read_timing(config, find),
        jobs=jobs,
        gone=frozenset(gone),
        foreign=frozenset(foreign),
    )


def made_for(config: JobConfig, at: datetime, version: int = 10, uid: str = "") -> Job:
    """The stored Job that a config's schedule made for a due time; it waits."""
    return as_stored(scheduled_job(config, at).job, version, uid)


def on_demand(config: JobConfig, name: str, version: int = 10, **more: Any) -> Job:
    """A stored Job of a config that somebody asked for; it waits."""
    return as_stored(job_on_demand(config, {}, T0, name=name, **more).job, version)


def as_stored(job: Job, version: int, uid: str = "") -> Job:
    """A Job as the store returns it."""
    metadata = replace(
        job.metadata,
        uid=uid or f"uid-{job.metadata.name}",
        resource_version=str(version),
        generation=1,
        creation_timestamp=T0,
    )
    return replace(job, metadata=metadata)


def admitted(job: Job, at: datetime = T0) -> Job:
    """The Job after it was let in."""
    admission = AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=job.version, admitted_at=at)
    return replace(job, status=JobStatus(phase=JobPhase.STARTING, admission=admission))


def ended(job: Job, at: datetime = T0, result: JobResult = JobResult.SUCCEEDED) -> Job:
    """The Job after it ran."""
    admission = AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=job.version, admitted_at=at)
    execution = ExecutionStatus(result=result, started_at=at, ended_at=at)
    status = JobStatus(phase=JobPhase(result.value), admission=admission, execution=execution)
    return replace(job, status=status)


def refused(job: Job, at: datetime = T0) -> Job:
    """The Job after it was refused."""
    admission = AdmissionStatus(
        phase=AdmissionPhase.REFUSED,
        sequence=job.version,
        refused_at=at,
        refusal=RefusalReason.LOCK_FORBIDDEN,
    )
    return replace(job, status=JobStatus(phase=JobPhase.REFUSED, admission=admission))


def in_books(job: Job, at: datetime) -> ExpectedJob:
    """The entry of a Job in the books."""
    return ExpectedJob(
        name=job.metadata.name, uid=job.metadata.uid, scheduled_at=at, job_version=job.version
    )
