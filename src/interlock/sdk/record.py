"""Records of Jobs: the attributes of the job status API, under its names.

A server with a status API sends them. Of a cluster they are worked out here, from the Job as it is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from interlock.kube.store.codec import WIRES
from interlock.reporting.job_record import record_of as record_of_job
from interlock.reporting.job_record import view_of
from interlock.resources.codec import encode
from interlock.resources.job import Job, JobPhase
from interlock.resources.operation import CompletionState, OperationState


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a Job."""

    #: What it returned.
    output: Any = None
    #: The last error that came from running it, not from undoing it.
    error: str | None = None
    #: How attempts failed, to run a step and to undo one: the newest, bounded.
    failures: tuple[str, ...] = ()


class JobRecord(Struct, frozen=True, kw_only=True):
    """How a Job is going. What a server does not tell is None, empty or 0."""

    job_id: str
    name: str = ""
    namespace: str = "default"
    #: `queued`, `executing`, `reverting` or `complete`.
    state: str = "queued"
    #: `success`, `partial_success` or `failed`; None before it is complete.
    completion_state: str | None = None
    #: Where the Job is in its life, more finely: `Queued`, `Running`, `Stuck`, `Succeeded`, ...
    phase: str = ""
    type: str | None = None
    title: str | None = None
    description: str | None = None
    args: dict[str, Any] = {}
    parent_job: str | None = None
    child_jobs: tuple[str, ...] = ()
    retry_count: int = 0
    rollback_retry_count: int = 0
    percentage_complete: float | None = None
    result: Outcome | None = None
    object_type: str | None = None
    application_id: str | None = None
    application_name: str | None = None
    domain_name: str | None = None
    owner_login: str | None = None
    creator_login: str | None = None
    object_url: str | None = None
    #: The path of its target.
    target_path: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    next_attempt_at: datetime | None = None
    started_at: datetime | None = field(name="startedAt", default=None)
    ended_at: datetime | None = field(name="endedAt", default=None)
    exit_code: int | None = field(name="exitCode", default=None)
    #: Since when nobody acts but a person, and why.
    stuck_at: datetime | None = None
    stuck_message: str | None = None
    message: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing comes any more."""
        return self.state == OperationState.COMPLETE.value

    @property
    def is_stuck(self) -> bool:
        """Whether nobody acts but a person."""
        return not self.is_over and (self.stuck_at is not None or self.phase == JobPhase.STUCK)

    @property
    def error(self) -> str:
        """Why it is not done: the last error, or why it is stuck; empty when there is none."""
        told = self.result.error if self.result is not None else None
        return self.stuck_message or told or self.message

    @property
    def succeeded(self) -> bool:
        """Whether it is over, and all was done."""
        return self.completion_state == CompletionState.SUCCESS.value


_RECORD = msgspec.json.Decoder(JobRecord)


def read_record(data: bytes) -> JobRecord:
    """A record as a server sent it; attributes that are not known here are passed over."""
    return _RECORD.decode(data)


def record_of(resource: Mapping[str, Any]) -> JobRecord:
    """The record of a Job as it is stored: what a server with a status API would say of it."""
    job = WIRES["Job"].one(encode(resource))
    assert isinstance(job, Job), "the API serves Jobs where it is asked for Jobs"
    return read_record(encode(view_of(job, record_of_job(job))))


class RecordPage(Struct, frozen=True, kw_only=True):
    """A page of records."""

    items: tuple[JobRecord, ...] = ()
    #: The cursor of the next page; empty on the last.
    next: str = ""


_PAGE = msgspec.json.Decoder(RecordPage)


def read_page(data: bytes) -> RecordPage:
    """A page of records as a server sent it."""
    return _PAGE.decode(data)
