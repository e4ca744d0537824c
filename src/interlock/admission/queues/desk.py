"""The desk of the Queues: what is known of them and of who waits, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from interlock.admission.claims.candidates import BY_HOLDER
from interlock.admission.claims.claim import Ask, ClaimKey
from interlock.admission.claims.proof import grant_of
from interlock.admission.queues.cycle import WayIsClear, decide_quota, view_of
from interlock.admission.queues.demands import KnownQueues, QuotaView, quota_key, quota_view
from interlock.admission.queues.lines import QueueLines
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.queue import PreemptionPolicy, Queue, QueueQuota, QuotaHolder, demand_of
from interlock.resources.readiness import is_ready_now
from interlock.resources.transitions import has_ended, is_admitted, tasks_left


def _holder_uids(quota: QueueQuota) -> Iterable[str]:
    return (holder.uid for holder in quota.status.holders)


#: By what the records of quotas are found.
QUOTA_INDEXES = {BY_HOLDER: _holder_uids}


class QueueDesk:
    """Keeps the lines of all Queues, and looks at quotas."""

    def __init__(
        self,
        jobs: Cache[Job],
        queues: Cache[Queue],
        quotas: Cache[QueueQuota],
        namespace: str = "",
        namespaces: Cache[Namespace] | None = None,
    ) -> None:
        self._queues = queues
        self._quotas = quotas
        self._known = KnownQueues(jobs, queues, quotas, namespace, namespaces)
        self._lines = QueueLines()
        #: The Jobs that are not over, by the Queue they name, and the Queue of each.
        self._members: dict[str, dict[Key, None]] = {}
        self._queue_of: dict[Key, str] = {}

    # What a change wakes

    def job_changed(
        self, before: Job | None, after: Job | None, expected: Job | None, asks: tuple[Ask, ...]
    ) -> Iterator[Key]:
        """Take in a Job; it stands in line only as far as it is `expected`."""
        job = after or before
        assert job is not None
        was, now = _queue(before), _queue(after)
        if not was and not now:
            return
        self._enrol(job.key, now if after is not None and not has_ended(after) else "")
        demand = demand_of(expected.spec) if expected is not None else None
        moved = self._lines.update(job.key, expected, demand, asks)
        is_news = moved and (self._preempts(now) or not _was_let_in(before, after))
        if is_news or _leaves_room(before, after):
            yield from {quota_key(queue): None for queue in (was, now) if queue}

    def queue_changed(self, queue: Queue) -> Iterator[Key]:
        """A Queue matters to its record and to all its Jobs."""
        name = queue.metadata.name
        yield quota_key(name)
        yield from tuple(self._members.get(name, ()))

    def namespace_changed(self, change: Change) -> Iterator[Key]:
        """The labels of a namespace matter to Queues that choose by them, and to its Jobs there."""
        if _labels(change.before) == _labels(change.after):
            return
        name = (change.after or change.before).metadata.name  # type: ignore[union-attr]
        for queue in self._queues:
            selector = queue.spec.namespace_selector
            if selector is not None and selector.asks_labels:
                yield quota_key(queue.metadata.name)
                members = self._members.get(queue.metadata.name, ())
                yield from [key for key in members if key.namespace == name]

    def quota_changed(self, change: Change) -> Iterator[Key]:
        """Those who were granted room, and a record that came or went."""
        before, after = change.before, change.after
        if before is None or after is None:
            yield (after or before).key  # type: ignore[union-attr]
        had = set(_grants(before))
        for grant, holder in _grants(after).items():
            if grant not in had:
                yield Key("Job", holder.namespace, holder.job)

    def needing(self, claim: ClaimKey) -> Iterator[Key]:
        """The quotas in whose lines somebody needs a claim."""
        return map(quota_key, self._lines.needing(claim))

    def _preempts(self, queue: str) -> bool:
        """Whether whoever is let in may have to make room for others."""
        found = self._known.queue(queue)
        if found is None:
            return False
        return found.spec.preemption.within_queue is not PreemptionPolicy.NEVER

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
        """The Queue that a Job names, if there is one."""
        return self._known.queue(job.spec.queue) if job.spec.queue is not None else None

    def has_part(self, job: Job) -> bool:
        """Whether a Job needs no room in a Queue, or was granted it."""
        view = quota_view(self._known, job)
        return view is None or view.grant is not None

    def has_stray(self, job: Job) -> bool:
        """Whether a Job holds room that is not what it asks for."""
        view = quota_view(self._known, job)
        if view is not None and not view.is_good:
            return True
        queue = job.spec.queue
        return any(
            record.spec.queue != queue and grant_of(job, record.status.holders) is not None
            for record in self._quotas.by(BY_HOLDER, job.metadata.uid)
        )

    def decide(self, key: Key, way_is_clear: WayIsClear, now: datetime) -> Decision:
        """Decide about a quota."""
        name = key.name.removeprefix("queue.")
        return decide_quota(view_of(self._known, self._lines, name, way_is_clear), now)


def _labels(namespace: Resource | None) -> dict[str, str]:
    return namespace.metadata.labels if namespace is not None else {}


def _queue(job: Job | None) -> str:
    return (job.spec.queue or "") if job is not None else ""


def _grants(quota: object) -> dict[tuple[str, int], QuotaHolder]:
    holders = quota.status.holders if isinstance(quota, QueueQuota) else ()
    return {(holder.uid, holder.epoch): holder for holder in holders}


def _was_let_in(before: Job | None, after: Job | None) -> bool:
    """Whether a Job left the line since it has what it waited for: that is no news to its line."""
    if before is None or after is None:
        return False
    return is_admitted(after) and not is_admitted(before)


def _leaves_room(before: Job | None, after: Job | None) -> bool:
    """Whether a change can make a grant count for less, or open the gate that it has closed."""
    if before is None or after is None:
        return True
    if before.metadata.uid != after.metadata.uid:
        return True
    if before.status.admission.epoch != after.status.admission.epoch:
        return True
    if is_ready_now(before) is not is_ready_now(after):
        return True
    grant = after.status.admission.quota
    if grant is None:
        return has_ended(after) != has_ended(before)
    return tasks_left(after, grant.tasks) < tasks_left(before, grant.tasks)
