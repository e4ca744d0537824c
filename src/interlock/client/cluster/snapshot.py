"""Jobs, Locks and Queues as a cluster stores them now, in caches such as a server keeps."""

from __future__ import annotations

import sys

from msgspec import ValidationError

from interlock.client.api import PAGE, Api
from interlock.client.errors import AnswerError, CommandError
from interlock.client.kinds import JOBS, Kind, kind_named
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.kube.store.codec import WIRES, Items
from interlock.reporting.job_index import JobIndex
from interlock.reporting.lock_queue import BY_LOCK, LineReader, locks_asked_for
from interlock.reporting.queue_lines import QueueReader
from interlock.reporting.slot_beds import BY_BED, BedReader, beds_asked_for
from interlock.resources.job import Job
from interlock.resources.lock import Lock
from interlock.resources.queue import Queue, QueueQuota
from interlock.resources.test_bed import TestBed, TestBedSlots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LOCKS = kind_named("locks")
BEDS, BED_SLOTS = kind_named("testbeds"), kind_named("testbedslots")
QUEUES, QUOTAS = kind_named("queues"), kind_named("queuequotas")


class Snapshot:
    """What is stored, of a namespace or of all; each kind as it was at one version."""

    def __init__(
        self,
        jobs: Cache[Job],
        locks: Cache[Lock],
        queues: Cache[Queue],
        quotas: Cache[QueueQuota],
        beds: BedReader,
        namespace: str | None,
        *,
        knows_queues: bool,
    ) -> None:
        self.jobs = jobs
        self.roster = JobIndex()
        for job in jobs:
            self.roster.observe(Change(None, job))
        self.queues = QueueReader(jobs, queues, quotas, self.roster.places, namespace or "")
        self.lines = LineReader(jobs, locks, self.queues.has_part)
        self.beds = beds
        #: Whether what Queues allow, and who was granted it, was read.
        self.knows_queues = knows_queues


def read_snapshot(
    api: Api,
    namespace: str | None,
    *,
    locks: bool = True,
    queues: bool = False,
    beds: bool = False,
) -> Snapshot:
    """List everything that is asked for. What cannot be read is said, and left out.

    Queues are read if one of the Jobs is of one, too; and TestBeds if one wants slots.
    """
    jobs = Cache[Job]("Job", {BY_LOCK: locks_asked_for, BY_BED: beds_asked_for})
    of_beds, of_slots = Cache[TestBed]("TestBed"), Cache[TestBedSlots]("TestBedSlots")
    of_locks, of_queues, of_quotas = (
        Cache[Lock]("Lock"),
        Cache[Queue]("Queue"),
        Cache[QueueQuota]("QueueQuota"),
    )
    _fill(api, JOBS, jobs, namespace)
    if locks:
        _fill(api, LOCKS, of_locks, namespace)
    if beds or any(job.spec.slots is not None for job in jobs):
        _fill(api, BEDS, of_beds, namespace)
        _fill(api, BED_SLOTS, of_slots, namespace)
    knows_queues = False
    if queues or any(job.spec.queue is not None for job in jobs):
        try:
            _fill(api, QUOTAS, of_quotas, None)
            _fill(api, QUEUES, of_queues, None)
            knows_queues = True
        except AnswerError as error:
            if queues or error.status != 403:
                raise
    reader = BedReader(jobs, of_beds, of_slots)
    return Snapshot(
        jobs, of_locks, of_queues, of_quotas, reader, namespace, knows_queues=knows_queues
    )


def read_lines(api: Api, namespace: str, *, locks: bool = False) -> Snapshot:
    """Queues and the Jobs of all namespaces; of one alone if that is all that may be read."""
    try:
        return read_snapshot(api, None, locks=locks, queues=True)
    except AnswerError as error:
        if error.status != 403:
            raise
    told = f"only Jobs of namespace {namespace} may be read: of others nothing is told"
    print(told, file=sys.stderr)
    return read_snapshot(api, namespace, locks=locks, queues=True)


def _fill(api: Api, kind: Kind, cache: Cache[Any], namespace: str | None) -> None:
    for items in pages(api, kind, namespace):
        for resource in items.items:
            cache.note(resource)
        cache.settle(int(items.metadata.resource_version or 0))


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
