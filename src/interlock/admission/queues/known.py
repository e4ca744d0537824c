"""What is known of Queues, of the records of their quotas, and of the Jobs that hold a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field

from interlock.admission.claims.proof import Jobs, is_done
from interlock.admission.queues.default_share import narrowed
from interlock.admission.queues.ledger import Ledger
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.namespace_selector import is_chosen
from interlock.resources.queue import (
    Demand,
    Queue,
    QueueQuota,
    QuotaHolder,
    charged,
    cohort_name,
    demand_of,
    member_of,
    quota_name,
)
from interlock.resources.ready_gate import WaitForPodsReady

#: By what the records of quotas are found: who holds a part, and where a Queue has its seat.
BY_HOLDER = "holder"
BY_SEAT = "seat"


def _holder_uids(quota: QueueQuota) -> Iterable[str]:
    return (holder.uid for holder in quota.status.holders)


def _seated_in(quota: QueueQuota) -> Iterable[str]:
    seat = quota.status.seat
    return (seat.record,) if seat is not None and quota.spec.queue is not None else ()


QUOTA_INDEXES = {BY_HOLDER: _holder_uids, BY_SEAT: _seated_in}


class Queues(Protocol):
    """What is known of Queues. It may be old."""

    @property
    def version(self) -> int:
        """The version of the store up to which all was heard."""
        ...

    def get(self, key: Key, /) -> Queue | None:
        """The newest known version, or None when there is none."""
        ...


class Quotas(Protocol):
    """What is known of the records of quotas. It may be old."""

    def get(self, key: Key, /) -> QueueQuota | None:
        """The newest known version, or None when there is none."""
        ...

    def by(self, index: str, value: str, /) -> Iterator[QueueQuota]:
        """Those that an index holds under a value."""
        ...

    def __iter__(self) -> Iterator[QueueQuota]:
        """All of them."""
        ...


class Namespaces(Protocol):
    """What is known of namespaces. It may be old."""

    def get(self, key: Key, /) -> Namespace | None:
        """The newest known version, or None when there is none."""
        ...


class Standing(NamedTuple):
    """A grant as it counts now."""

    holder: QuotaHolder
    #: Its Job, if it is known.
    job: Job | None
    #: Whether it is proven to count for nothing.
    is_done: bool
    #: What it counts for, in thousandths.
    amounts: Mapping[str, int]
    #: Where its Job is stored, and which round of it this was granted to.
    key: Key
    round: tuple[str, int]


class KnownQueues(Struct, frozen=True):
    """All that is known of Queues and their quotas."""

    jobs: Jobs
    queues: Queues
    quotas: Quotas
    #: The one namespace whose Jobs are known; empty for all of them.
    namespace: str = ""
    #: The names of the Queues of each cohort.
    cohorts: Mapping[str, Mapping[str, None]] = {}
    #: What holds for all Queues that do not say otherwise.
    system: WaitForPodsReady | None = None
    #: What the default Queue is called, be it there or not; empty where there is none.
    default: str = ""
    #: The namespaces that there are; None where they may not be read.
    namespaces: Namespaces | None = None
    #: What the Queues of a record could use at the most, as long as it, or they, stay as they are.
    _most: dict[str, tuple[Any, dict[str, dict[str, int]]]] = field(default_factory=dict)
    #: How each grant of a record, told by its identity, counted when it was last looked at: few
    #: have changed since.
    _standings: dict[str, dict[int, Standing]] = field(default_factory=dict)
    #: Who holds what by a record, as long as it stays as it is.
    _held: dict[str, tuple[QueueQuota, dict[tuple[str, int], QuotaHolder]]] = field(
        default_factory=dict
    )

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

    def demand(self, job: Job) -> Demand | None:
        """What a Job asks of a Queue; None for one that asks for nothing."""
        default = self.default_now
        demand = demand_of(job, default)
        if demand is None or demand.tasks == 1 or job.spec.queue is not None:
            return demand
        queue = self.queue(default)
        return demand if queue is None else narrowed(demand, queue.spec)

    @property
    def default_now(self) -> str:
        """The default Queue if it is there: while it is not, nobody asks it and nobody waits."""
        queue = self.queue(self.default) if self.default else None
        return self.default if queue is not None and not queue.is_going else ""

    def is_done(self, holder: QuotaHolder) -> bool:
        """Whether a grant is proven to count for nothing.

        About a Job of a namespace of which nothing is heard, nothing is ever proven.
        """
        if self.namespace and holder.namespace != self.namespace:
            return False
        return is_done(holder, job_of(holder), self.jobs)

    def standings(self, record: QueueQuota) -> list[Standing]:
        """How the grants of a record count now."""
        name, get = record.metadata.name, self.jobs.get
        before, now = self._standings.get(name, {}), dict[int, Standing]()
        for holder in record.status.holders:
            # What is kept here keeps its holder, so no other has the same identity.
            was = before.get(id(holder))
            # Of a Job that is not known it is its absence that may come to prove something.
            if was is None or was.job is None or was.job is not get(was.key):
                was = self.standing(holder)
            now[id(holder)] = was
        self._standings[name] = now
        return list(now.values())

    def standing(self, holder: QuotaHolder) -> Standing:
        """How a grant counts now."""
        key = job_of(holder)
        job = self.jobs.get(key)
        if job is not None and job.metadata.uid != holder.uid:
            job = None
        amounts, whose = charged(holder, job), (holder.uid, holder.epoch)
        return Standing(holder, job, self.is_done(holder), amounts, key, whose)

    def _allowed(self, queue: Queue) -> dict[str, int]:
        """What a Queue has by itself."""
        found = self._most.get(quota_name(queue.metadata.name))
        if found is None or found[0] is not queue:
            has = {name: amount.milli for name, amount in queue.spec.resources.items()}
            found = self._most[quota_name(queue.metadata.name)] = queue, {queue.metadata.name: has}
        return found[1][queue.metadata.name]

    def queue(self, name: str) -> Queue | None:
        """A Queue, as far as anything is known of it."""
        return self.queues.get(Key("Queue", "", name))

    def cohort(self, name: str) -> Iterable[str]:
        """The Queues whose definitions say that they are of a cohort."""
        return tuple(self.cohorts.get(name, ()))

    def seated(self, record: str) -> Iterable[str]:
        """The Queues that have their seat in the record of a cohort."""
        return tuple(own.spec.queue or "" for own in self.quotas.by(BY_SEAT, record))

    def part_of(self, record: QueueQuota, uid: str, epoch: int) -> QuotaHolder | None:
        """What a Job holds by a record in one of its epochs."""
        name = record.metadata.name
        found = self._held.get(name)
        if found is None or found[0] is not record:
            by = {(holder.uid, holder.epoch): holder for holder in record.status.holders}
            found = self._held[name] = record, by
        return found[1].get((uid, epoch))

    def most(self, queue: Queue) -> dict[str, int] | None:
        """What the Jobs of a Queue could use if nobody else did; None while that is not known."""
        if queue.spec.cohort is None:
            return self._allowed(queue)
        record = self.quotas.get(record_key(cohort_name(queue.spec.cohort)))
        member = member_of(record, queue.metadata.name) if record is not None else None
        if record is None or member is None or member.left:
            return None
        members = record.status.members
        found = self._most.get(record.metadata.name)
        if found is None or found[0] != members:
            there = [one for one in members if not one.left]
            ledger = Ledger(there)
            found = members, {one.queue: ledger.most(one.queue) for one in there}
            self._most[record.metadata.name] = found
        return found[1][queue.metadata.name]


def record_key(name: str) -> Key:
    """Where a record is kept."""
    return Key("QueueQuota", "", name)


def quota_key(queue: str) -> Key:
    """Where the own record of a Queue is kept."""
    return record_key(quota_name(queue))


def job_of(holder: QuotaHolder) -> Key:
    """The Job that was granted a part."""
    return Key("Job", holder.namespace, holder.job)
