"""The desk of the Queues: what is known of them and of who waits, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from interlock.admission.claims.claim import Ask, ClaimKey
from interlock.admission.lines import stands_in_line
from interlock.admission.queues.cycle import WayIsClear
from interlock.admission.queues.demands import QuotaView, quota_view
from interlock.admission.queues.known import (
    BY_HOLDER,
    QUOTA_INDEXES,
    KnownQueues,
    quota_key,
    record_key,
)
from interlock.admission.queues.lines import QueueLines
from interlock.admission.queues.preemption import may_preempt
from interlock.admission.queues.record import decide_quota, view_of
from interlock.admission.queues.seats import concerned, home_of, live
from interlock.admission.ready_timers import gate_of
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision
from interlock.resources.admission import WaitReason
from interlock.resources.cluster import Namespace
from interlock.resources.default_queue import queue_asked
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.queue import (
    Queue,
    QueueQuota,
    QuotaHolder,
    record_wanted,
    records_for,
)
from interlock.resources.readiness import is_ready_now
from interlock.resources.ready_gate import BlockScope, WaitForPodsReady
from interlock.resources.transitions import has_ended, is_admitted, tasks_left
from interlock.resources.values.amounts import Amount

__all__ = ["QUOTA_INDEXES", "QueueDesk"]


class QueueDesk:
    """Keeps the lines of all Queues, and looks at quotas."""

    def __init__(
        self,
        jobs: Cache[Job],
        queues: Cache[Queue],
        quotas: Cache[QueueQuota],
        namespace: str = "",
        system: WaitForPodsReady | None = None,
        default: str = "",
        namespaces: Cache[Namespace] | None = None,
    ) -> None:
        """Look at caches.

        `namespace` is the one whose Jobs are known, empty for all; `system` what holds for all
        Queues that do not say otherwise; `default` the Queue of Jobs that name none; `namespaces`
        those that there are, None where they may not be read.
        """
        self.system = system
        self._default = default
        self._jobs = jobs
        self._queues = queues
        self._quotas = quotas
        #: The Queues of each cohort, those of them that have others make room, and those whose gate
        #: all Queues can close.
        self._cohorts: dict[str, dict[str, None]] = {}
        self._preempting: dict[str, None] = {}
        self._gated_by_all: dict[str, None] = {}
        self._known = KnownQueues(
            jobs, queues, quotas, namespace, self._cohorts, system, default, namespaces
        )
        self._lines = QueueLines()
        #: The Jobs that are not over, by the Queue they ask, also if that is the default one and
        #: not there; and the Queue of each.
        self._members: dict[str, dict[Key, None]] = {}
        self._queue_of: dict[Key, str] = {}

    # What a change wakes

    def job_changed(
        self, before: Job | None, after: Job | None, expected: Job | None, asks: tuple[Ask, ...]
    ) -> Iterator[Key]:
        """Take in a Job; it stands in line only as far as it is `expected`."""
        job = after or before
        assert job is not None
        was, now = self._asked_by(before), self._asked_by(after)
        if not was and not now:
            return
        self._enrol(job.key, now if after is not None and not has_ended(after) else "")
        # Most changes are of Jobs that were let in: what those ask for is no question any more.
        may_stand = expected is not None and stands_in_line(expected)
        demand = self._known.demand(expected) if may_stand and expected is not None else None
        moved = self._lines.update(job.key, expected, demand, asks)
        is_news = moved and (self._preempts(now) or not _was_let_in(before, after))
        if is_news or _leaves_room(before, after):
            for name in {was: None, now: None}:
                if self._is_used(name):
                    yield from self._homes(name)
            if self._gated_by_all and _turns_ready(before, after):
                yield from map(self._home, tuple(self._gated_by_all))

    def queue_changed(self, change: Change) -> Iterator[Key]:
        """A Queue matters to its record, to that of its cohort, and to all its Jobs."""
        before, after = _as_queue(change.before), _as_queue(change.after)
        queue = after or before
        assert queue is not None
        name = queue.metadata.name
        self._take_in(name, before, after)
        yield quota_key(name)
        yield from self._homes(name)
        yield from (record_key(record_wanted(one)) for one in (before, after) if one is not None)
        yield from tuple(self._members.get(name, ()))

    def _take_in(self, name: str, before: Queue | None, after: Queue | None) -> None:
        if before is not None and before.spec.cohort is not None:
            others = self._cohorts[before.spec.cohort]
            del others[name]
            if not others:
                del self._cohorts[before.spec.cohort]
        if after is not None and after.spec.cohort is not None:
            self._cohorts.setdefault(after.spec.cohort, {})[name] = None
        gate = gate_of(after, self.system) if after is not None else None
        is_gated_by_all = (
            gate is not None and gate.is_on and gate.blocks and gate.scope is BlockScope.SYSTEM
        )
        _put(self._gated_by_all, name, is_gated_by_all)
        _put(self._preempting, name, after is not None and may_preempt(after.spec.preemption))

    def asked_anew(self, change: Change) -> tuple[Key, ...]:
        """Who asks the default Queue since it is there now, asks it no more, or asks for less."""
        before, after = change.before, change.after
        name = (after or before).metadata.name  # type: ignore[union-attr]
        if name != self._default or _allowed(before) == _allowed(after):
            return ()
        return tuple(self._members.get(name, ()))

    def namespace_changed(self, change: Change) -> Iterator[Key]:
        """The labels of a namespace matter to Queues that choose by them, and to its Jobs there."""
        if _labels(change.before) == _labels(change.after):
            return
        name = (change.after or change.before).metadata.name  # type: ignore[union-attr]
        for queue in self._queues:
            selector = queue.spec.namespace_selector
            if selector is not None and selector.asks_labels:
                yield self._home(queue.metadata.name)
                members = self._members.get(queue.metadata.name, ())
                yield from [key for key in members if key.namespace == name]

    def quota_changed(self, change: Change) -> Iterator[Key]:
        """Those who were granted room, and whatever a change of who has a seat there concerns."""
        before, after = _as_quota(change.before), _as_quota(change.after)
        if _seated(before) != _seated(after):
            for record in (before, after):
                if record is not None:
                    yield record.key
                    yield from map(record_key, concerned(self._known, record))
                    yield from self._too_small(record)
        had, has = _grants(before), _grants(after)
        if had and after is not None and not has and not live(after.status.members):
            # It may have been the last thing that it was there for.
            yield after.key
        for grant, holder in has.items():
            if grant not in had:
                yield Key("Job", holder.namespace, holder.job)
        for grant, holder in had.items():
            if grant not in has and self._known.queue(holder.queue) is None:
                # The Queue's own record is kept for those who hold a part elsewhere.
                yield quota_key(holder.queue)

    def needing(self, claim: ClaimKey) -> Iterator[Key]:
        """The quotas in whose lines somebody needs a claim."""
        return map(self._home, self._lines.needing(claim))

    def _homes(self, queue: str) -> Iterator[Key]:
        """All records in which a Job of a Queue may have its part."""
        own = self._quotas.get(quota_key(queue))
        return map(record_key, records_for(own, queue))

    def _home(self, queue: str) -> Key:
        """The record in which the Jobs of a Queue are granted their parts."""
        return record_key(home_of(self._known, queue))

    def _too_small(self, record: QueueQuota) -> Iterator[Key]:
        """The Jobs that wait since the Queues of a cohort have too little together."""
        if record.spec.cohort is None:
            return
        for member in record.status.members:
            for key in tuple(self._members.get(member.queue, ())):
                job = self._jobs.get(key)
                waits = job.status.admission.waits if job is not None else ()
                if any(wait.reason is WaitReason.QUOTA_TOO_SMALL for wait in waits):
                    yield key

    def _preempts(self, queue: str) -> bool:
        """Whether whoever is let in may have to make room for others."""
        if not self._preempting:
            return False
        found = self._known.queue(queue)
        if found is None or found.spec.cohort is None:
            return queue in self._preempting
        return any(one in self._preempting for one in self._cohorts[found.spec.cohort])

    def _enrol(self, key: Key, queue: str) -> None:
        was = self._queue_of.get(key, "")
        if was == queue:
            return
        if was:
            members = self._members[was]
            del members[key], self._queue_of[key]
            if not members:
                del self._members[was]
        if queue:
            self._members.setdefault(queue, {})[key] = None
            self._queue_of[key] = queue

    # How it looks

    def view_of(self, job: Job) -> QuotaView | None:
        """What a Job asks of a Queue and was granted."""
        return quota_view(self._known, job)

    def queue_of(self, job: Job) -> Queue | None:
        """The Queue that a Job names or that let it in, if there is one.

        What was let in before there was a default Queue is none of its Jobs.
        """
        grant = job.status.admission.quota
        name = job.spec.queue or (grant.queue if grant is not None else "")
        return self._known.queue(name) if name else None

    def has_part(self, job: Job) -> bool:
        """Whether a Job needs no room in a Queue, or was granted it."""
        view = quota_view(self._known, job)
        return view is None or view.grant is not None

    def has_stray(self, job: Job, view: QuotaView | None) -> bool:
        """Whether a Job holds room that is not what it asks for; `view` is what it asks for."""
        if view is not None and not view.is_good:
            return True
        queue = view.demand.queue if view is not None else None
        uid, epoch = job.metadata.uid, job.status.admission.epoch
        parts = (
            self._known.part_of(record, uid, epoch) for record in self._quotas.by(BY_HOLDER, uid)
        )
        return any(part is not None and part.queue != queue for part in parts)

    def _asked_by(self, job: Job | None) -> str:
        """The Queue that a Job asks, or would ask if the default one were there."""
        return (queue_asked(job.spec, self._default) or "") if job is not None else ""

    def _is_used(self, name: str) -> bool:
        """Whether there is anything to decide about a quota."""
        return bool(name) and (
            self._known.queue(name) is not None or self._quotas.get(quota_key(name)) is not None
        )

    def decide(self, key: Key, way_is_clear: WayIsClear, now: datetime) -> Decision:
        """Decide about a quota."""
        return decide_quota(view_of(self._known, self._lines, key.name, way_is_clear), now)


def _labels(namespace: Resource | None) -> dict[str, str]:
    return namespace.metadata.labels if namespace is not None else {}


def _allowed(queue: object) -> Mapping[str, Amount] | None:
    """What a Queue allows; None where there is none."""
    return queue.spec.resources if isinstance(queue, Queue) and not queue.is_going else None


def _put(names: dict[str, None], name: str, is_in: bool) -> None:
    if is_in:
        names[name] = None
    else:
        names.pop(name, None)


def _as_queue(resource: object) -> Queue | None:
    return resource if isinstance(resource, Queue) else None


def _as_quota(resource: object) -> QueueQuota | None:
    return resource if isinstance(resource, QueueQuota) else None


def _seated(quota: QueueQuota | None) -> object:
    """Which Queues a record has, where they are from, and which record it is."""
    if quota is None:
        return None
    return quota.metadata.uid, quota.status.members, quota.status.seat


def _grants(quota: QueueQuota | None) -> dict[tuple[str, int], QuotaHolder]:
    holders = quota.status.holders if quota is not None else ()
    return {(holder.uid, holder.epoch): holder for holder in holders}


def _was_let_in(before: Job | None, after: Job | None) -> bool:
    """Whether a Job left the line since it has what it waited for: that is no news to its line."""
    if before is None or after is None:
        return False
    return is_admitted(after) and not is_admitted(before)


def _turns_ready(before: Job | None, after: Job | None) -> bool:
    """Whether a Job is ready that was not, or over, or the other way round."""
    if before is None or after is None:
        return True
    is_same = has_ended(before) is has_ended(after)
    return not is_same or is_ready_now(before) is not is_ready_now(after)


def _leaves_room(before: Job | None, after: Job | None) -> bool:
    """Whether a change can make a grant count for less, or open the gate that it has closed."""
    if before is None or after is None:
        return True
    if before.metadata.uid != after.metadata.uid:
        return True
    if before.status.admission.epoch != after.status.admission.epoch:
        return True
    if _turns_ready(before, after):
        return True
    grant = after.status.admission.quota
    if grant is None:
        return has_ended(after) != has_ended(before)
    return tasks_left(after, grant.tasks) < tasks_left(before, grant.tasks)
