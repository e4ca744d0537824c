"""How a Job sees its Queue: what it was granted there, or why it is not let in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from interlock.admission.claims.proof import Jobs, grant_of, is_done
from interlock.admission.ready_timers import policy_of
from interlock.resources.admission import Wait, WaitReason
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job, keeps_its_turn
from interlock.resources.metadata import Key
from interlock.resources.namespace_selector import is_chosen
from interlock.resources.queue import (
    TASKS,
    Demand,
    Queue,
    QueueQuota,
    QuotaHolder,
    StopPolicy,
    demand_of,
    in_terms_of,
    quota_name,
    taken,
)
from interlock.resources.readiness import is_ready_now
from interlock.resources.ready_gate import ready_policy


class Queues(Protocol):
    """What is known of Queues. It may be old."""

    def get(self, key: Key, /) -> Queue | None:
        """The newest known version, or None when there is none."""
        ...


class Quotas(Protocol):
    """What is known of the records of quotas. It may be old."""

    def get(self, key: Key, /) -> QueueQuota | None:
        """The newest known version, or None when there is none."""
        ...


class Namespaces(Protocol):
    """What is known of namespaces. It may be old."""

    def get(self, key: Key, /) -> Namespace | None:
        """The newest known version, or None when there is none."""
        ...


class KnownQueues(Struct, frozen=True):
    """All that is known of Queues and their quotas."""

    jobs: Jobs
    queues: Queues
    quotas: Quotas
    #: The one namespace whose Jobs are known; empty for all of them.
    namespace: str = ""
    #: The namespaces that there are; None where they may not be read.
    namespaces: Namespaces | None = None

    def serves(self, queue: Queue, namespace: str) -> bool | None:
        """Whether a namespace may use a Queue; None where nobody here can tell."""
        selector = queue.spec.namespace_selector
        if selector is None:
            return True
        if not selector.asks_labels:
            return is_chosen(selector, namespace, {})
        if self.namespaces is None:
            return None
        found = self.namespaces.get(Key("Namespace", "", namespace))
        return is_chosen(selector, namespace, found.metadata.labels if found is not None else {})

    def is_done(self, holder: QuotaHolder) -> bool:
        """Whether a grant is proven to count for nothing.

        About a Job of a namespace of which nothing is heard, nothing is ever proven.
        """
        if self.namespace and holder.namespace != self.namespace:
            return False
        return is_done(holder, job_of(holder), self.jobs)

    def queue(self, name: str) -> Queue | None:
        """A Queue, as far as anything is known of it."""
        return self.queues.get(Key("Queue", "", name))

    def quota(self, queue: str) -> QueueQuota | None:
        """The record of a Queue's quota, as far as anything is known of it."""
        return self.quotas.get(quota_key(queue))


def job_of(holder: QuotaHolder) -> Key:
    """The Job that was granted a part."""
    return Key("Job", holder.namespace, holder.job)


def blocks(queue: Queue) -> bool:
    """Whether a Queue lets nobody in while somebody who was let in is not ready."""
    policy = ready_policy(queue.spec.wait_for_pods_ready)
    return policy.is_on and policy.blocks


def blockers(known: KnownQueues, record: QueueQuota | None) -> Iterator[QuotaHolder]:
    """Who holds a part and is not ready, or is not known to be."""
    for holder in record.status.holders if record is not None else ():
        if not known.is_done(holder) and not is_ready(known.jobs.get(job_of(holder)), holder):
            yield holder


def is_ready(job: Job | None, holder: QuotaHolder) -> bool:
    """Whether a Job that was granted a part is ready, or is one that nobody waits for."""
    if job is None or job.metadata.uid != holder.uid:
        return False
    if keeps_its_turn(job.spec):
        return True
    return is_ready_now(job)


def quota_key(queue: str) -> Key:
    """Where the record of a Queue's quota is kept."""
    return Key("QueueQuota", "", quota_name(queue))


class QuotaView(Struct, frozen=True, kw_only=True):
    """The Queue of a Job, as it stands for this Job."""

    demand: Demand
    #: What it was granted in its present epoch, whatever became of the terms since.
    holder: QuotaHolder | None = None
    #: Why it is not let in, if that is known and no question of room.
    refusal: Wait | None = None
    #: Whether what it was granted is what it asks for now.
    is_good: bool = True
    #: Whether it has to be ready in time once it is let in.
    awaits_ready: bool = False
    #: Whether nobody is let in now, since somebody who was is not ready.
    is_gated: bool = False

    @property
    def grant(self) -> QuotaHolder | None:
        """What it holds, and may be let in with."""
        return self.holder if self.is_good and self.refusal is None else None

    @property
    def wait(self) -> Wait:
        """What to tell while the Job waits for room."""
        reason = WaitReason.GATE_CLOSED if self.is_gated else WaitReason.QUOTA_TAKEN
        return self.refusal or Wait(reason=reason, key=self.demand.queue)


def quota_view(known: KnownQueues, job: Job) -> QuotaView | None:
    """What a Job asks of a Queue and was granted; None for one that asks for nothing."""
    demand = demand_of(job.spec)
    if demand is None:
        return None
    queue = known.queue(demand.queue)
    if queue is not None:
        demand = in_terms_of(queue.spec, demand)
    record = known.quota(demand.queue)
    holder = grant_of(job, record.status.holders) if record is not None else None
    policy = policy_of(job, queue)
    return QuotaView(
        demand=demand,
        holder=holder,
        refusal=refusal_of(known, queue, job, demand),
        awaits_ready=policy.is_on and not keeps_its_turn(job.spec),
        is_gated=(
            queue is not None
            and holder is None
            and blocks(queue)
            and next(blockers(known, record), None) is not None
        ),
        is_good=holder is None or _is_what_is_asked(holder, demand),
    )


def _is_what_is_asked(holder: QuotaHolder, demand: Demand) -> bool:
    each = {name: amount.milli for name, amount in holder.each.items()}
    return each == demand.each and demand.least <= holder.tasks <= demand.tasks


def refusal_of(known: KnownQueues, queue: Queue | None, job: Job, demand: Demand) -> Wait | None:
    """Why a Queue does not let a Job in, however much room it has; None when it does."""
    reason = _reason(known, queue, job.metadata.namespace, demand)
    return None if reason is None else Wait(reason=reason, key=demand.queue)


def _reason(
    known: KnownQueues, queue: Queue | None, namespace: str, demand: Demand
) -> WaitReason | None:
    if queue is None or queue.is_going:
        return WaitReason.NO_QUEUE
    serves = known.serves(queue, namespace)
    if not serves:
        return WaitReason.NAMESPACE_UNKNOWN if serves is None else WaitReason.QUEUE_NOT_ALLOWED
    if queue.spec.stop is not StopPolicy.NONE:
        return WaitReason.QUEUE_STOPPED
    if not could_ever_fit(demand, limits_of(queue)):
        return WaitReason.QUOTA_TOO_SMALL
    return None


def limits_of(queue: Queue) -> dict[str, int]:
    """How much its Jobs may hold together, in thousandths."""
    return {name: amount.milli for name, amount in queue.spec.resources.items()}


def could_ever_fit(demand: Demand, limits: Mapping[str, int]) -> bool:
    """Whether the least that a Job starts with would fit into an empty quota."""
    return most_tasks(demand.each, demand.least, limits) >= demand.least


def most_tasks(each: Mapping[str, int], wanted: int, free: Mapping[str, int]) -> int:
    """How many tasks fit into what is free, up to as many as are wanted.

    Of a resource that is not named there is none, but for `tasks`: any number.
    """
    most = wanted
    for name, amount in taken(1, dict(each)).items():
        if name == TASKS and name not in free:
            continue
        most = min(most, max(0, free.get(name, 0)) // amount)
    return most
