"""Queues that share records, and the room that decides about them: what it says is carried out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from interlock.admission.queues.desk import QUOTA_INDEXES, QueueDesk
from interlock.admission.reconciler import AdmissionReconciler
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import (
    CreateResource,
    DeleteResource,
    RecordAdmission,
    RecordStatus,
)
from interlock.resources.job import Job, Parallelism
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.resources.queue import Queue, QueueQuota, QueueSpec, QuotaStatus, member_of
from interlock.resources.transitions import with_admission
from interlock.resources.values.amounts import Amount
from interlock.testing.builders import T0, a_job
from support.queue_desk import runs

#: More looks than any of these tests needs.
_MOST_LOOKS = 200


class CohortDesk:
    """The room with its caches. Every record that is woken is looked at, until none is any more."""

    def __init__(self, *queues: Queue) -> None:
        self.jobs: Cache[Job] = Cache("Job")
        self.queues: Cache[Queue] = Cache("Queue")
        self.quotas: Cache[QueueQuota] = Cache("QueueQuota", QUOTA_INDEXES)
        self.version = 10_000
        self.now = T0
        desk = QueueDesk(self.jobs, self.queues, self.quotas)
        self.room = AdmissionReconciler(self.jobs, {}, queues=desk)
        #: Whom each look let in, and had put back, in order.
        self.granted: list[str] = []
        self.evicted: list[str] = []
        self._due: dict[Key, None] = {}
        for queue in queues:
            self.put(queue)
        self.settle()

    def put(self, *resources: Resource) -> None:
        """Take in what somebody has written."""
        for resource in resources:
            caches: dict[str, Cache[Any]] = {"Job": self.jobs, "Queue": self.queues}
            cache = caches.get(resource.kind, self.quotas)
            before = cache.note(self._stamped(resource))
            self._wake(Change(before, cache.get(resource.key)))

    def remove(self, queue: str) -> None:
        """Have a Queue gone."""
        self.version += 1
        before = self.queues.drop(Key("Queue", "", queue), self.version)
        self._wake(Change(before, None))

    def forget(self, record: str) -> None:
        """Have somebody remove a record, who may but should not."""
        self.version += 1
        before = self.quotas.drop(Key("QueueQuota", "", record), self.version)
        self._wake(Change(before, None))
        self.settle()

    def settle_later(self) -> None:
        """Look at every record once more, after a while, and settle."""
        self.settle()
        self.now += timedelta(minutes=1)
        self._due.update({record.key: None for record in self.quotas})
        self.settle()

    def _stamped(self, resource: Any) -> Any:
        self.version += 1
        metadata = replace(resource.metadata, resource_version=str(self.version))
        if not metadata.uid:
            metadata = replace(metadata, uid=f"uid-{self.version}")
        return replace(resource, metadata=metadata)

    def _wake(self, change: Change) -> None:
        for cache in (self.jobs, self.queues, self.quotas):
            cache.settle(self.version)
        for key in self.room.wakes(change):
            if key.kind == "QueueQuota":
                self._due[key] = None

    def step(self) -> bool:
        """Look at the next record that was woken; tells whether there was one."""
        if not self._due:
            return False
        key = next(iter(self._due))
        del self._due[key]
        for action in self.room.look(key, self.now).actions:
            match action:
                case CreateResource(made):
                    self.put(made)
                case RecordStatus(record, QuotaStatus() as status):
                    assert isinstance(record, QueueQuota)
                    self._record(record, status)
                case DeleteResource(record):
                    self.version += 1
                    self._wake(Change(self.quotas.drop(record.key, self.version), None))
                case RecordAdmission(job, admission):
                    self.evicted.append(job.metadata.name)
                    self.put(replace(job, status=with_admission(job, admission, T0)))
                case _:
                    raise AssertionError(action)
        return True

    def _record(self, record: QueueQuota, status: QuotaStatus) -> None:
        had = {(holder.uid, holder.token) for holder in record.status.holders}
        self.put(replace(record, status=status))
        for holder in status.holders:
            is_new = holder.token > record.status.last_token and holder.token <= status.last_token
            if (holder.uid, holder.token) not in had and is_new:
                self.granted.append(holder.job)

    def settle(self) -> None:
        """Look until nobody is woken any more."""
        for _ in range(_MOST_LOOKS):
            if not self.step():
                return
        raise AssertionError("it does not settle")

    def ask(self, *jobs: Job) -> list[str]:
        """Whom the Jobs that ask lead to be let in, in order."""
        self.granted.clear()
        self.put(*jobs)
        self.settle()
        return list(self.granted)

    def run(self, *jobs: Job) -> None:
        """Have Jobs let in one after the other, and run."""
        for job in jobs:
            assert self.ask(job) == [job.metadata.name]
            stored = self.jobs.get(job.key)
            holder = self.holders()[job.metadata.name]
            assert stored is not None
            running = runs(stored, holder.tasks, token=holder.token)
            admission = running.status.admission
            assert admission.quota is not None
            quota = replace(admission.quota, queue=holder.queue)
            status = replace(running.status, admission=replace(admission, quota=quota))
            self.put(replace(running, status=status))
            self.settle()

    def holders(self) -> dict[str, Any]:
        """Who holds a part, by name."""
        return {holder.job: holder for record in self.quotas for holder in record.status.holders}

    def home(self, queue: str) -> list[str]:
        """The records that grant to the Jobs of a Queue."""
        found = []
        for record in self.quotas:
            member = member_of(record, queue)
            if member is not None and not member.left:
                found.append(record.metadata.name)
        return found


def lends(name: str, gpu: int, cohort: str | None = "lab", **spec: Any) -> Queue:
    """A Queue of a cohort."""
    for limit in ("borrowing_limit", "lending_limit"):
        if limit in spec:
            spec[limit] = {"gpu": Amount.read(spec[limit])}
    found = QueueSpec(resources={"gpu": Amount.read(gpu)}, cohort=cohort, **spec)
    return Queue(metadata=Metadata(name=name, uid=f"uid-{name}"), spec=found)


def asks(name: str, queue: str, gpu: int = 1, tasks: int = 1, **spec: Any) -> Job:
    """A Job that waits in a Queue."""
    return a_job(
        name,
        queue=queue,
        resources={"gpu": Amount.read(gpu)},
        parallelism=Parallelism(count=tasks),
        **spec,
    )
