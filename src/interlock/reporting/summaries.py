"""A Job in short, for lists and streams: what people filter by and look at first."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from interlock.resources.codec import encode
from interlock.resources.ends import telling_end
from interlock.resources.job import CREATOR_ANNOTATION, Job, lock_requests
from interlock.resources.transitions import ended_at


class TaskCounts(Struct, frozen=True, kw_only=True):
    """How far a Job's tasks have come."""

    total: int
    succeeded: int
    failed: int
    active: int
    retrying: int


class JobSummary(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A Job in short."""

    id: str
    name: str
    namespace: str
    state: str
    version: str
    created_at: datetime | None
    tasks: TaskCounts
    title: str = ""
    creator: str = ""
    labels: dict[str, str] = {}
    args: dict[str, str] = {}
    priority: int = 0
    locks: tuple[str, ...] = ()
    #: What it waits for, in one word each.
    waits: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    message: str = ""


def summary_of(job: Job) -> JobSummary:
    """The Job in short."""
    meta, spec, execution = job.metadata, job.spec, job.status.execution
    admission = job.status.admission
    end = telling_end(job)
    return JobSummary(
        id=meta.uid,
        name=meta.name,
        namespace=meta.namespace,
        state=job.status.phase.value,
        version=meta.resource_version,
        created_at=meta.creation_timestamp,
        tasks=TaskCounts(
            total=execution.total,
            succeeded=len(execution.succeeded),
            failed=len(execution.failed),
            active=len(execution.active),
            retrying=len(execution.retrying),
        ),
        title=spec.title,
        creator=meta.annotations.get(CREATOR_ANNOTATION, ""),
        labels=meta.labels,
        args=spec.args,
        priority=spec.priority,
        locks=tuple(request.key for request in lock_requests(spec)),
        waits=tuple(f"{w.reason.value} {w.key}".rstrip() for w in admission.waits),
        started_at=execution.started_at,
        ended_at=ended_at(job),
        exit_code=end.exit_code if end is not None else None,
        message=execution.message or admission.message,
    )


class Encoded:
    """Summaries as bytes, each encoded once however many readers it has."""

    def __init__(self, kept: int = 4096) -> None:
        self._kept = kept
        self._bytes: dict[tuple[str, str], bytes] = {}

    def __call__(self, job: Job) -> bytes:
        """The summary of this very version of the Job."""
        key = (job.metadata.uid, job.metadata.resource_version)
        found = self._bytes.get(key)
        if found is None:
            found = self._bytes[key] = encode(summary_of(job))
            if len(self._bytes) > self._kept:
                del self._bytes[next(iter(self._bytes))]
        return found
