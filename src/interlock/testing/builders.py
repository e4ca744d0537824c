"""Builders that fill in what a test does not care about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from interlock.resources.job import JOB_FINALIZER, Job, JobSpec, JobStatus, LockRequest
from interlock.resources.lock import Holder, Lock, LockSpec, LockStatus, lock_name
from interlock.resources.metadata import Metadata
from interlock.resources.process import ProcessSpec
from interlock.resources.tasks import TaskOrder, process_of

#: A Monday at noon, in winter.
T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def a_job(
    name: str = "job",
    *,
    namespace: str = "default",
    version: int = 1,
    status: JobStatus | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Job:
    """A stored Job that runs `true`, unless the spec says otherwise."""
    if not spec.keys() & {"noop", "pod", "batch_job", "python", "steps"}:
        spec.setdefault("process", ProcessSpec(command=("true",)))
    given: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "resource_version": str(version),
        "generation": 1,
        "creation_timestamp": T0,
        "finalizers": (JOB_FINALIZER,),
    }
    return Job(
        metadata=Metadata(**(given | (metadata or {}))),
        spec=JobSpec(**spec),
        status=status or JobStatus(),
    )


def with_process(order: TaskOrder, **changes: Any) -> TaskOrder:
    """The order for a process that differs."""
    return replace(order, work=replace(process_of(order), **changes))


def a_request(key: str = "db", limit: int = 1, **more: Any) -> LockRequest:
    """A request for a lock."""
    return LockRequest(key=key, limit=limit, **more)


def a_lock(
    key: str = "db",
    *,
    namespace: str = "default",
    version: int = 1,
    holders: tuple[Holder, ...] = (),
    last_token: int = 0,
) -> Lock:
    """A stored lock record."""
    return Lock(
        metadata=Metadata(
            name=lock_name(key),
            namespace=namespace,
            uid=f"uid-{namespace}-{lock_name(key)}",
            resource_version=str(version),
            generation=1,
            creation_timestamp=T0,
        ),
        spec=LockSpec(key=key),
        status=LockStatus(holders=holders, last_token=last_token),
    )


def a_holder(job: Job, *, epoch: int = 0, token: int = 1) -> Holder:
    """A grant to a Job."""
    return Holder(
        job=job.metadata.name, uid=job.metadata.uid, epoch=epoch, token=token, granted_at=T0
    )
