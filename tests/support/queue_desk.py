"""A Queue, its record and the room that decides about them, as tests look at them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from interlock.admission.claims.locks import LOCKS
from interlock.admission.queues.desk import QUOTA_INDEXES, QueueDesk
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision, RecordStatus
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, QuotaGrant
from interlock.resources.job import Job, JobPhase, JobStatus, Parallelism
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.resources.queue import (
    Queue,
    QueueOrder,
    QueueQuota,
    QueueSpec,
    QuotaSpec,
    QuotaStatus,
    StopPolicy,
)
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.values.amounts import Amount
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job

BLUE = Key("QueueQuota", "", "queue.blue")


class Desk:
    """The room with its caches; what is decided about the quota is carried out here."""

    def __init__(
        self, *resources: Resource, system: WaitForPodsReady | None = None, default: str = ""
    ) -> None:
        self.caches: dict[str, Cache[Any]] = {
            "Job": Cache("Job"),
            "Lock": Cache("Lock", {BY_HOLDER: holder_uids}),
            "Queue": Cache("Queue"),
            "QueueQuota": Cache("QueueQuota", QUOTA_INDEXES),
            "Namespace": Cache("Namespace"),
        }
        caches = self.caches
        self.version = 1000
        self.now = T0
        self.room = AdmissionReconciler(
            caches["Job"],
            {LOCKS: caches["Lock"]},
            queues=QueueDesk(
                caches["Job"],
                caches["Queue"],
                caches["QueueQuota"],
                system=system,
                default=default,
                namespaces=caches["Namespace"],
            ),
        )
        self.woken: tuple[Key, ...] = ()
        for resource in resources:
            self.put(resource)
        for cache in caches.values():
            cache.settle(self.version)

    def put(self, resource: Resource) -> tuple[Key, ...]:
        before = self.caches[resource.kind].note(resource)
        self.woken = tuple(self.room.wakes(Change(before, resource)))
        return self.woken

    def look(self) -> Decision:
        return self.room.look(BLUE, T0)

    def record(self) -> QueueQuota:
        found = self.caches["QueueQuota"].get(BLUE)
        assert isinstance(found, QueueQuota)
        return found

    def grants(self) -> list[str]:
        """Whom one look lets in, each with as many tasks as it may run at a time."""
        for action in self.look().actions:
            assert isinstance(action, RecordStatus)
            assert isinstance(action.status, QuotaStatus)
            before = {holder.token for holder in self.record().status.holders}
            new = [holder for holder in action.status.holders if holder.token not in before]
            self.write(action.status)
            return [f"{holder.job}x{holder.tasks}" for holder in new]
        return []

    def write(self, status: QuotaStatus) -> None:
        self.version += 1
        metadata = replace(self.record().metadata, resource_version=str(self.version))
        self.put(replace(self.record(), metadata=metadata, status=status))


def a_queue(
    order: QueueOrder = QueueOrder.BEST_EFFORT_FIFO,
    *,
    version: int = 1,
    stop: StopPolicy = StopPolicy.NONE,
    **has: Any,
) -> Queue:
    selector = has.pop("selector", None)
    amounts = {name: Amount.read(amount) for name, amount in (has or {"gpu": 4}).items()}
    spec = QueueSpec(resources=amounts, order=order, stop=stop, namespace_selector=selector)
    return Queue(
        metadata=Metadata(name="blue", uid="uid-blue", resource_version=str(version)), spec=spec
    )


def a_record(*, version: int = 1) -> QueueQuota:
    metadata = Metadata(name="queue.blue", uid="uid-quota", resource_version=str(version))
    return QueueQuota(metadata=metadata, spec=QuotaSpec(queue="blue"))


def waits(name: str, sequence: int, gpu: int | str = 1, tasks: int = 1, **spec: Any) -> Job:
    status = JobStatus(admission=AdmissionStatus(sequence=sequence))
    return a_job(
        name,
        version=sequence,
        status=status,
        queue="blue",
        resources={"gpu": Amount.read(gpu)} if gpu else None,
        parallelism=Parallelism(count=tasks),
        **spec,
    )


def newer(job: Job, status: JobStatus) -> Job:
    metadata = replace(job.metadata, resource_version=str(job.version + 500))
    return replace(job, metadata=metadata, status=status)


def runs(job: Job, tasks: int, done: int = 0, token: int = 1) -> Job:
    grant = QuotaGrant(queue="blue", token=token, tasks=tasks, awaits_ready=True)
    admission = replace(job.status.admission, phase=AdmissionPhase.ADMITTED, quota=grant)
    execution = ExecutionStatus(total=tasks, started_at=T0, succeeded=IndexSet(range(done)))
    return newer(job, JobStatus(phase=JobPhase.RUNNING, admission=admission, execution=execution))


def over(job: Job, ended: int = 0) -> Job:
    execution = ExecutionStatus(
        total=1, result=JobResult.SUCCEEDED, ended_at=T0 - timedelta(seconds=ended)
    )
    admission = replace(job.status.admission, phase=AdmissionPhase.ADMITTED)
    return newer(job, JobStatus(phase=JobPhase.SUCCEEDED, admission=admission, execution=execution))
