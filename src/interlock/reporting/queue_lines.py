"""Queues as people ask about them: use against quota, who holds it, who waits, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.admission.lines import Place
from interlock.admission.queues.demands import blockers, could_ever_fit, refusal_of
from interlock.admission.queues.known import KnownQueues, job_of
from interlock.admission.queues.ledger import Ledger
from interlock.admission.queues.seats import holder_of, live, records_of
from interlock.admission.ready_timers import clock_of, policy_of
from interlock.control.cache import Cache
from interlock.reporting.cohort_why import Cohort
from interlock.reporting.estimate import pace_of
from interlock.reporting.queue_places import QueuePlaces
from interlock.reporting.queue_policy import ReadyValue, ready_values
from interlock.reporting.queue_why import (
    QueueView,
    Share,
    Told,
    Unready,
    Waiter,
    queue_wait,
    waiting_since,
)
from interlock.resources.admission import Wait, WaitReason
from interlock.resources.cluster import Namespace
from interlock.resources.default_queue import queue_asked
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.namespace_selector import told
from interlock.resources.queue import (
    TASKS,
    Demand,
    Member,
    Queue,
    QueueOrder,
    QueueQuota,
    StopPolicy,
    charged,
    in_terms_of,
    member_of,
    taken,
)
from interlock.resources.ready_gate import WaitForPodsReady, read_policy
from interlock.resources.values.amounts import format_milli

#: How many of a line are told when nothing is said.
WAITERS = 20
#: So many of those before a Job are looked at, to tell when there is room for it.
LOOKED_AT = 200


class ResourceUse(Struct, frozen=True):
    """How much there is of a resource, and how much of it is held."""

    quota: Told
    used: Told
    free: Told
    #: How much of what is used is not its own, but lent by other Queues of its cohort.
    borrowed: Told = 0


class GateAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A Job for which nobody else is let in: it is not ready."""

    job: str
    namespace: str
    #: How many of its tasks are ready, of how many have to be: "6 of 8".
    ready: str
    #: When it is put back at the latest.
    until: datetime | None = None


class QueueAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A Queue in short."""

    name: str
    resources: dict[str, ResourceUse]
    #: Whom it lends to, and borrows from.
    cohort: str | None = None
    #: None for one that is not there.
    order: QueueOrder | None = None
    stop: StopPolicy | None = None
    #: Whether it is not there, although somebody waits for it, or holds some of its quota still.
    missing: bool = False
    #: Those for whom nobody else is let in: they were, and are not ready.
    gate: tuple[GateAnswer, ...] = ()
    #: The namespaces that may use it, by name, or in words by their labels; None means all.
    namespaces: tuple[str, ...] | None = None
    #: How many Jobs hold a part of it, and how many wait.
    admitted: int
    waiting: int
    #: Since when the one has been waiting that has been the longest.
    oldest: datetime | None = None


class QueueHolderAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A Job that holds a part of a quota."""

    job: str
    namespace: str
    uid: str
    phase: str
    since: datetime
    #: How many tasks at a time it was let in with.
    tasks: int
    #: What it still holds.
    holds: dict[str, Told]
    #: When it is told to stop at the latest, by its own definition.
    ends_by: datetime | None = None


class QueueWaiterAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A Job that waits for its part of a quota."""

    place: int
    job: str
    namespace: str
    uid: str
    priority: int = 0
    since: datetime | None = None
    #: What it needs at the least.
    needs: dict[str, Told]
    #: About when its turn comes, if the line moves on as it did; `why` of it may know more.
    about: datetime | None = None


class QueueDetail(QueueAnswer, frozen=True, kw_only=True, rename="camel"):
    """A Queue, who holds its quota, and its line."""

    holders: tuple[QueueHolderAnswer, ...] = ()
    #: The first of those who wait.
    waiters: tuple[QueueWaiterAnswer, ...] = ()
    #: Why the first of them waits.
    why: str = ""
    #: What holds for Jobs that say nothing themselves; empty where they need not be ready in time.
    wait_for_pods_ready: tuple[ReadyValue, ...] = ()


class Level(Struct, frozen=True):
    """How full a Queue is; amounts are in thousandths."""

    queue: str
    limits: dict[str, int]
    used: dict[str, int]
    admitted: int
    waiting: int


class QueueReader:
    """Answers questions about Queues."""

    def __init__(
        self,
        jobs: Cache[Job],
        queues: Cache[Queue],
        quotas: Cache[QueueQuota],
        places: QueuePlaces,
        namespace: str = "",
        system: WaitForPodsReady | None = None,
        default: str = "",
        namespaces: Cache[Namespace] | None = None,
    ) -> None:
        """Read from caches; `namespace` is the one whose Jobs are known, empty for all.

        `system` is what holds for all Queues that do not say otherwise. Who is not the control
        plane finds it in the records. `default` is the Queue of those who name none, empty where
        there is none. Without `namespaces` it is not known which of them a Queue chooses by their
        labels.
        """
        self._default = default
        self._jobs = jobs
        self._queues = queues
        self._quotas = quotas
        self._places = places
        self._known = KnownQueues(
            jobs, queues, quotas, namespace, system=system, default=default, namespaces=namespaces
        )

    def queues(self) -> Iterator[QueueAnswer]:
        """Every Queue, and what is not there and is waited for or held all the same."""
        shares = self._by_queue()
        ledgers: dict[tuple[str, ...], Ledger] = {}
        for name in self._names():
            yield QueueAnswer(**self._short(name, shares.get(name, ()), ledgers))

    def levels(self) -> Iterator[Level]:
        """How full each of them is."""
        by_queue = self._by_queue()
        for name in self._names():
            shares, limits = by_queue.get(name, ()), self.limits(name)
            used = _used(limits, shares)
            yield Level(name, limits, used, len(shares), self._waiting(name, shares))

    def _names(self) -> list[str]:
        names = {queue.metadata.name for queue in self._queues}
        names |= {name for name in self._places.queues() if self._has_line(name)}
        names |= {holder.queue for quota in self._quotas for holder in quota.status.holders}
        return sorted(names)

    def queue(self, name: str, now: datetime, limit: int = WAITERS) -> QueueDetail | None:
        """One Queue with who holds it and who waits; None when nothing is known of it."""
        shares = self.shares(name)
        line = self._line(name, shares, max(limit, 1))
        if self._known.queue(name) is None and not shares and not line:
            return None
        waiters = tuple(self._waiters(name, line[:limit], now))
        first = self._jobs.get(line[0].job) if line else None
        view = self.view_of(first) if first is not None else None
        wait = queue_wait(view, first, now) if view is not None and first is not None else None
        return QueueDetail(
            **self._short(name, shares),
            holders=tuple(map(_holder, shares)),
            waiters=waiters,
            why=wait.message if wait is not None else "",
            wait_for_pods_ready=ready_values(self._known.queue(name), self._system(name)),
        )

    def _system(self, name: str) -> WaitForPodsReady | None:
        """What holds for all Queues that do not say otherwise."""
        if self._known.system is not None:
            return self._known.system
        record = next(records_of(self._known, name), None)
        member = member_of(record, name) if record is not None else None
        return read_policy(member.ready) if member is not None else None

    def shares(self, name: str) -> tuple[Share, ...]:
        """What the holders of a quota that may still be doing something hold of it."""
        return tuple(self._shares(records_of(self._known, name), name))

    def _by_queue(self) -> dict[str, tuple[Share, ...]]:
        """What the holders of all quotas hold, by their Queues: each record is read once."""
        found: dict[str, dict[str, list[Share]]] = {}
        for record in self._quotas:
            for share in self._shares((record,)):
                in_records = found.setdefault(share.holder.queue, {})
                in_records.setdefault(record.metadata.name, []).append(share)
        return {queue: self._of_records(queue, shares) for queue, shares in found.items()}

    def _of_records(self, queue: str, shares: Mapping[str, list[Share]]) -> tuple[Share, ...]:
        """What is held of a Queue, by the records that say so."""
        home = next((one.metadata.name for one in records_of(self._known, queue)), "")
        # What is in another than its home, or in two, is of a Queue that moves.
        is_moving = len(shares) > 1 or home not in shares
        return self.shares(queue) if is_moving else tuple(shares[home])

    def _shares(self, records: Iterable[QueueQuota], queue: str = "") -> Iterator[Share]:
        seen = set()
        for holder in (one for record in records for one in record.status.holders):
            who = holder.uid, holder.epoch
            if (queue and holder.queue != queue) or who in seen or self._known.is_done(holder):
                continue
            seen.add(who)
            job = self._jobs.get(job_of(holder))
            job = job if job is not None and job.metadata.uid == holder.uid else None
            yield Share(holder, job, charged(holder, job))

    def limits(self, name: str) -> dict[str, int]:
        """What a Queue allows, in thousandths; nothing for one that is not there."""
        queue = self._known.queue(name)
        if queue is None:
            return {}
        return {one: amount.milli for one, amount in queue.spec.resources.items()}

    def free(self, name: str, made: dict[tuple[str, ...], Ledger] | None = None) -> dict[str, int]:
        """What its Jobs may still use, of its own and of what others lend, in thousandths."""
        queue = self._known.queue(name)
        return self._ledger(queue, made).free(name) if queue is not None else {}

    def _ledger(self, queue: Queue, made: dict[tuple[str, ...], Ledger] | None = None) -> Ledger:
        """What is in use of what a Queue and those that lend to it have.

        `made` has those of other Queues: one is for all whose Jobs are in the same records.
        """
        records = [
            record
            for at, record in enumerate(records_of(self._known, queue.metadata.name))
            if record.status.holders or not at
        ]
        members = self._members(queue)
        key = (*(one.queue for one in members), *(record.metadata.name for record in records))
        if made is not None and key in made:
            return made[key]
        ledger = Ledger(members)
        for share in self._shares(records):
            ledger.add(share.holder.queue, share.held)
        if made is not None:
            made[key] = ledger
        return ledger

    def _members(self, queue: Queue) -> tuple[Member, ...]:
        """A Queue and those that lend to it."""
        name = queue.metadata.name
        home = next(records_of(self._known, name), None)
        members = live(home.status.members) if home is not None else ()
        if queue.spec.cohort is None or all(one.queue != name for one in members):
            return (Member(queue=name, version=queue.version, limits=queue.spec.resources),)
        return members

    def _cohort(self, queue: Queue) -> Cohort | None:
        """The cohort of a Queue, once it has its seat there."""
        members = {member.queue: member for member in self._members(queue)}
        own = members.pop(queue.metadata.name)
        if queue.spec.cohort is None:
            return None
        others = tuple(members.values())
        return Cohort(queue.spec.cohort, own, others, queue.spec.preemption)

    def _waiting(self, name: str, shares: Sequence[Share]) -> int:
        """How many wait that were not granted their part yet."""
        if not self._has_line(name):
            return 0
        return len(self._places.of(name)) - len(self._on_their_way(shares))

    def _has_line(self, name: str) -> bool:
        """Whether whoever stands there waits for the Queue: for a default one that is not there
        nobody does.
        """
        return name != self._default or bool(self._known.default_now)

    def _on_their_way(self, shares: Sequence[Share]) -> dict[Key, int]:
        """Who was granted a part, and is in the line until that is written down; their places."""
        found = ((share.job, self._places.place(share.job)) for share in shares if share.job)
        return {job.key: place for job, place in found if place}

    def _line(self, name: str, shares: Sequence[Share], most: int) -> list[Place]:
        """The first of those who wait."""
        if not self._has_line(name):
            return []
        going = self._on_their_way(shares)
        first = islice(self._places.of(name), most + len(going))
        return [place for place in first if place.job not in going][:most]

    def has_part(self, job: Job) -> bool:
        """Whether a Job needs no room in a Queue, or was granted it."""
        queue = queue_asked(job.spec, self._known.default_now)
        if queue is None:
            return True
        return holder_of(self._known, job, queue) is not None

    def view_of(self, job: Job) -> QueueView | None:
        """A Queue as it stands for one of its Jobs; None for a Job that is of none."""
        demand = self._demand(job)
        if demand is None:
            return None
        name = demand.queue
        queue, shares = self._known.queue(name), self.shares(name)
        going = self._on_their_way(shares)
        place = self._places.place(job)
        place -= sum(other < place for other in going.values())
        before = self._line(name, shares, max(0, min(place - 1, LOOKED_AT)))
        return QueueView(
            name=name,
            order=queue.spec.order if queue is not None else QueueOrder.BEST_EFFORT_FIFO,
            demand=demand,
            refusal=self._refusal(job, demand),
            free=self.free(name),
            shares=shares,
            ledger=self._ledger(queue) if queue is not None else None,
            cohort=self._cohort(queue) if queue is not None else None,
            others=tuple(
                share
                for share in self._shares(records_of(self._known, name))
                if share.holder.queue != name
            ),
            unready=self._unready(name, shares),
            clock=clock_of(job, policy_of(job, queue, self._system(name))),
            is_granted=self.has_part(job),
            place=place,
            of=self._waiting(name, shares),
            before=tuple(self._before(before, queue)),
            is_whole=place - 1 <= LOOKED_AT,
            let_in=self._places.let_in(name),
        )

    def _refusal(self, job: Job, demand: Demand) -> Wait | None:
        """Why a Queue does not let a Job in, however much room it has."""
        refusal = refusal_of(self._known, job, demand)
        if refusal is not None and refusal.reason is WaitReason.NAMESPACE_UNKNOWN:
            # Whoever asks may know less than whoever decides, and that is written down.
            return next(
                (wait for wait in job.status.admission.waits if wait.reason is refusal.reason), None
            )
        return refusal

    def _demand(self, job: Job) -> Demand | None:
        """What a Job asks for, under the names that its Queue has for it."""
        demand = self._known.demand(job)
        queue = self._known.queue(demand.queue) if demand is not None else None
        return in_terms_of(queue.spec, demand) if demand is not None and queue else demand

    def _unready(self, name: str, shares: Sequence[Share]) -> tuple[Unready, ...]:
        """Who keeps others out, where a Queue has them wait for that."""
        queue = self._known.queue(name)
        if queue is None:
            return ()
        known = {(share.holder.uid, share.holder.epoch): share for share in shares}
        found = []
        system = self._system(name)
        for holder in blockers(replace(self._known, system=system), queue):
            share = known.get((holder.uid, holder.epoch))
            if share is None:
                job = self._jobs.get(job_of(holder))
                share = Share(holder, job, charged(holder, job))
            theirs = self._known.queue(holder.queue)
            found.append(Unready(share, _put_back_at(share.job, theirs, system)))
        return tuple(found)

    def _before(self, places: Sequence[Place], queue: Queue | None) -> Iterator[Waiter]:
        limits = (self._known.most(queue) if queue is not None else None) or {}
        for place in places:
            job = self._jobs.get(place.job)
            demand = self._demand(job) if job is not None else None
            if job is not None and demand is not None and could_ever_fit(demand, limits):
                yield Waiter(job, demand)

    def _short(
        self,
        name: str,
        shares: Sequence[Share],
        ledgers: dict[tuple[str, ...], Ledger] | None = None,
    ) -> dict[str, Any]:
        """What is told of a Queue in either form."""
        queue, limits = self._known.queue(name), self.limits(name)
        used, free = _used(limits, shares), self.free(name, ledgers)
        oldest = self._places.oldest(name) if self._has_line(name) else None
        job = self._jobs.get(oldest) if oldest is not None else None
        short: dict[str, Any] = {
            "name": name,
            "resources": {one: _use(limits[one], used[one], free[one]) for one in limits},
            "missing": queue is None,
            "admitted": len(shares),
            "waiting": self._waiting(name, shares),
            "oldest": waiting_since(job) if job is not None else None,
            "gate": tuple(map(_gate, self._unready(name, shares))),
        }
        if queue is None:
            return short
        selector = queue.spec.namespace_selector
        return short | {
            "cohort": queue.spec.cohort,
            "order": queue.spec.order,
            "stop": queue.spec.stop,
            "namespaces": told(selector) if selector is not None else None,
        }

    def _waiters(
        self, name: str, places: Sequence[Place], now: datetime
    ) -> Iterator[QueueWaiterAnswer]:
        pace = pace_of(self._places.let_in(name), now)
        for at, place in enumerate(places):
            job = self._jobs.get(place.job)
            demand = self._demand(job) if job is not None else None
            if job is None or demand is None:
                continue
            may_come = self._refusal(job, demand) is None
            yield QueueWaiterAnswer(
                place=at + 1,
                job=job.metadata.name,
                namespace=job.metadata.namespace,
                uid=job.metadata.uid,
                priority=job.spec.priority,
                since=waiting_since(job),
                needs=_amounts(taken(demand.least, demand.each)),
                about=pace.reaches(at + 1, now) if pace is not None and may_come else None,
            )


def _use(limit: int, used: int, free: int) -> ResourceUse:
    return ResourceUse(
        quota=format_milli(limit),
        used=format_milli(used),
        free=format_milli(free),
        borrowed=format_milli(max(0, used - limit)),
    )


def _used(limits: Mapping[str, int], shares: Iterable[Share]) -> dict[str, int]:
    """How much is held of each resource."""
    used = dict.fromkeys(limits, 0)
    for share in shares:
        for name in used:
            used[name] += share.held.get(name, 0)
    return used


def _put_back_at(
    job: Job | None, queue: Queue | None, system: WaitForPodsReady | None
) -> datetime | None:
    clock = clock_of(job, policy_of(job, queue, system)) if job is not None else None
    return clock.ends_at if clock is not None else None


def _gate(one: Unready) -> GateAnswer:
    holder = one.share.holder
    return GateAnswer(job=holder.job, namespace=holder.namespace, ready=one.ready, until=one.until)


def _holder(share: Share) -> QueueHolderAnswer:
    return QueueHolderAnswer(
        job=share.holder.job,
        namespace=share.holder.namespace,
        uid=share.holder.uid,
        phase=share.phase,
        since=share.holder.granted_at,
        tasks=share.holder.tasks,
        holds=_amounts(share.held),
        ends_by=share.ends_by,
    )


def _amounts(held: Mapping[str, int]) -> dict[str, Told]:
    """What is held of each resource, tasks last."""
    ordered = sorted(held, key=lambda name: (name == TASKS, name))
    return {name: format_milli(held[name]) for name in ordered}
