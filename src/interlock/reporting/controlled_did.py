"""What was done to a ControlledJob: by its schedule, and by people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from interlock.reporting.schedule_why import Times
from interlock.resources.controlled_job import ActionRecord, ControlledAction
from interlock.resources.job import CREATOR_ANNOTATION, Job
from interlock.resources.schedule import (
    STOPPED_BECAUSE_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
    is_manual,
    why_told_to_stop,
)

#: When something was done, and what.
Done = tuple[datetime, str]


def did(history: Iterable[ActionRecord], jobs: Iterable[Job], times: Times) -> Iterator[str]:
    """A line for each thing that was done, the newest first."""
    records = tuple(history)
    done = [(record.timestamp, _told(record)) for record in records]
    # What a person did is not in the schedule's own record, and stands on the Jobs.
    told = {(record.type, record.job_name) for record in records}
    for job in jobs:
        done += _by_hand(job, told, times.now)
    for at, text in sorted(done, key=lambda each: each[0], reverse=True):
        yield f"{times(at)} {times.in_text(text)}"


def _told(record: ActionRecord) -> str:
    job = f" job/{record.job_name}" if record.job_name else ""
    said = f": {record.message}" if record.message else ""
    return f"{record.type.value}{job}{said}"


def _by_hand(job: Job, told: set[tuple[ControlledAction, str]], now: datetime) -> Iterator[Done]:
    name, annotations = job.metadata.name, job.metadata.annotations
    started = {(ControlledAction.JOB_STARTED, name), (ControlledAction.JOB_RESTARTED, name)}
    created, kill_at = job.metadata.creation_timestamp, job.spec.kill_at
    if is_manual(job) and created is not None and not told & started:
        who = annotations.get(CREATOR_ANNOTATION) or "a person"
        yield created, f"{ControlledAction.JOB_STARTED.value} job/{name}: started by {who}"
    is_told = kill_at is not None and kill_at <= now
    says_why = STOPPED_BECAUSE_ANNOTATION in annotations
    says_why = says_why or annotations.get(SUSPEND_REASON_ANNOTATION) == USER_STOP
    if is_told and says_why and (ControlledAction.JOB_STOPPED, name) not in told:
        assert kill_at is not None
        yield kill_at, f"{ControlledAction.JOB_STOPPED.value} job/{name}: {why_told_to_stop(job)}"
