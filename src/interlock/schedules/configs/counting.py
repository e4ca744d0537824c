"""Counts of a config's Jobs, and one word for how it is going."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from interlock.resources.job import Job, JobPhase, order_of_acceptance
from interlock.resources.job_config import JobConfigSpec, JobConfigState, JobConfigStatus
from interlock.resources.schedule import JobReference
from interlock.resources.transitions import ended_at, has_ended, is_admitted

#: So many Jobs that wait, and that run, are told by name.
TOLD = 20

_FAILURES = frozenset({JobPhase.FAILED, JobPhase.FINISHED_UNKNOWN})


def waits(job: Job) -> bool:
    """Whether the Job has not started and may still do so."""
    return not is_admitted(job) and not has_ended(job)


def runs(job: Job) -> bool:
    """Whether the Job has started and is not over."""
    return is_admitted(job) and not has_ended(job)


def counted(
    status: JobConfigStatus,
    spec: JobConfigSpec,
    jobs: Iterable[Job],
    *,
    is_readable: bool = True,
) -> JobConfigStatus:
    """The status with the numbers as they are. Moments of the past never go back.

    Without `is_readable`, nothing is ever due because none of the schedules makes sense.
    """
    jobs = tuple(jobs)
    queued = sorted(filter(waits, jobs), key=_place)
    active = sorted(filter(runs, jobs), key=_place)
    started = (job.status.admission.admitted_at for job in jobs if is_admitted(job))
    good = (ended_at(job) for job in jobs if job.status.phase is JobPhase.SUCCEEDED)
    bad = (ended_at(job) for job in jobs if job.status.phase in _FAILURES)
    return replace(
        status,
        state=_state(spec, len(queued), len(active), is_readable),
        queued=len(queued),
        active=len(active),
        queued_jobs=_references(queued),
        active_jobs=_references(active),
        last_executed=_latest(status.last_executed, started),
        last_success=_latest(status.last_success, good),
        last_failure=_latest(status.last_failure, bad),
    )


def _state(spec: JobConfigSpec, queued: int, active: int, is_readable: bool) -> JobConfigState:
    if active:
        return JobConfigState.EXECUTING
    if queued:
        return JobConfigState.JOB_QUEUED
    if not spec.schedules:
        return JobConfigState.READY
    if spec.suspend or all(schedule.disabled for schedule in spec.schedules):
        return JobConfigState.READY_DISABLED
    return JobConfigState.READY_ENABLED if is_readable else JobConfigState.UNREADABLE


def _references(jobs: list[Job]) -> tuple[JobReference, ...]:
    return tuple(JobReference(name=job.metadata.name, uid=job.metadata.uid) for job in jobs[:TOLD])


def _place(job: Job) -> tuple[int, str]:
    """The order of creation."""
    return order_of_acceptance(job), job.metadata.name


def _latest(known: datetime | None, moments: Iterable[datetime | None]) -> datetime | None:
    return max((m for m in (known, *moments) if m is not None), default=None)
