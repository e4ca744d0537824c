"""Jobs and Locks as a cluster stores them now, in caches such as a server keeps."""

from __future__ import annotations

import sys

from msgspec import ValidationError

from interlock.client.api import PAGE, Api
from interlock.client.errors import CommandError
from interlock.client.kinds import JOBS, Kind, kind_named
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.kube.store.codec import WIRES, Items
from interlock.reporting.job_index import JobIndex
from interlock.reporting.lock_queue import BY_LOCK, LineReader, locks_asked_for
from interlock.resources.job import Job
from interlock.resources.lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOCKS = kind_named("locks")


class Snapshot:
    """What is stored, of a namespace or of all; each kind as it was at one version."""

    def __init__(self, jobs: Cache[Job], locks: Cache[Lock]) -> None:
        self.jobs = jobs
        self.lines = LineReader(jobs, locks)
        self.roster = JobIndex()
        for job in jobs:
            self.roster.observe(Change(None, job))


def read_snapshot(api: Api, namespace: str | None) -> Snapshot:
    """List everything. What cannot be read is said, and left out."""
    jobs = Cache[Job]("Job", {BY_LOCK: locks_asked_for})
    locks = Cache[Lock]("Lock")
    for items in pages(api, JOBS, namespace):
        for job in items.items:
            assert isinstance(job, Job)
            jobs.note(job)
        jobs.settle(int(items.metadata.resource_version or 0))
    for items in pages(api, LOCKS, namespace):
        for lock in items.items:
            assert isinstance(lock, Lock)
            locks.note(lock)
    return Snapshot(jobs, locks)


def read_job(api: Api, namespace: str, name: str) -> Job:
    """One Job."""
    try:
        job = WIRES["Job"].one(api.fetch("GET", JOBS.path(namespace, name)))
    except ValidationError as error:
        raise CommandError(
            f"job/{name} cannot be read: {error}",
            hint="it was written by another version of this program; use that one",
        ) from None
    assert isinstance(job, Job)
    return job


def pages(api: Api, kind: Kind, namespace: str | None, *, labels: str = "") -> Iterator[Items]:
    """A list part by part. What cannot be read is said, and left out."""
    following = ""
    while True:
        query = {"limit": PAGE, "labelSelector": labels, "continue": following}
        items = WIRES[kind.name].list(api.fetch("GET", kind.path(namespace), query))
        for bad in items.undecodable:
            print(f"{bad.key} cannot be read and is left out: {bad.problem}", file=sys.stderr)
        yield items
        following = items.metadata.continue_
        if not following:
            return
