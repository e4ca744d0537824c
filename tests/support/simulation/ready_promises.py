"""What is promised of Jobs that are put back: none before its time, none comes back too early, and
the room for which others had to go is for whom they went."""

from __future__ import annotations

from datetime import datetime, timedelta

from interlock.resources.admission import AdmissionPhase, EvictionCause, EvictionReason, WaitReason
from interlock.resources.job import Job, order_of_acceptance
from interlock.resources.metadata import Condition
from interlock.resources.queue import QueueQuota, QuotaHolder, charged, demand_of, taken
from interlock.resources.ready_gate import ReadyPolicy, ready_policy
from interlock.resources.transitions import has_ended, is_evicting
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.judge import Promise
from support.simulation.line_promises import Stock
from support.simulation.promises import jobs_of
from support.simulation.queue_promises import QUEUE_PROMISES, asked_of, member_of
from support.simulation.truth import Truth


def _joined(change: Change) -> tuple[QuotaHolder, ...]:
    before, after = change.before, change.event.resource
    if not isinstance(after, QueueQuota) or change.event.type is EventType.DELETED:
        return ()
    known = before.status.holders if isinstance(before, QueueQuota) else ()
    return tuple(holder for holder in after.status.holders if holder not in known)


def _in_backoff(job: Job) -> bool:
    return any(wait.reason is WaitReason.BACKOFF for wait in job.status.admission.waits)


class BackoffKept(Promise):
    """Nobody who was not ready in time is tried again before the moment that was told."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: Jobs that stood in line without a backoff, by uid and epoch.
        self._stood: set[tuple[str, int]] = set()

    def wrote(self, change: Change) -> None:
        """The backoff is written down at once, and is over by the clock of whoever ends it."""
        before, after = jobs_of(change)
        if after is None or after.status.admission.phase is not AdmissionPhase.WAITING:
            return
        admission, name = after.status.admission, after.metadata.name
        requeue, clock = admission.requeue, self.truth.clocks.get(self.truth.writer)
        if not _in_backoff(after):
            was = before is not None and before.status.admission.epoch == admission.epoch
            ends = before is not None and was and _in_backoff(before)
            begins = before is not None and is_evicting(before)
            is_due = requeue is None or requeue.at is None or clock is None
            if (ends or begins) and not is_due:
                assert requeue is not None
                assert requeue.at is not None
                assert clock is not None
                if clock.now() < requeue.at:
                    raise self.broken(f"{name} is tried again before its backoff is over", name)
            self._stood.add((after.metadata.uid, admission.epoch))

    def granted(self, change: Change) -> None:
        """Nobody is granted room whose backoff was never over."""
        for holder in _joined(change):
            job = self.truth.by_uid.get(holder.uid)
            if job is None or job.status.admission.epoch != holder.epoch:
                continue
            if (holder.uid, holder.epoch) not in self._stood:
                raise self.broken(f"{holder.job} is granted room in its backoff", holder.job)


class TimersKept(Promise):
    """A Job is put back as too late only after all the time it was given, from stored instants."""

    def wrote(self, change: Change) -> None:
        """The time that its cause tells of has passed, by the shortest limit there ever was."""
        before, after = jobs_of(change)
        if before is None or after is None or is_evicting(before) or not is_evicting(after):
            return
        eviction, name = after.status.admission.eviction, after.metadata.name
        assert eviction is not None
        if eviction.reason is not EvictionReason.PODS_READY_TIMEOUT:
            return
        since, limits = self._since_and_limits(before, eviction.cause)
        if since is None or not limits:
            raise self.broken(f"{name} is put back for {eviction.cause}, which nobody asked", name)
        if eviction.began_at < since + min(limits):
            raise self.broken(f"{name} is put back for {eviction.cause} too early", name)

    def _since_and_limits(self, job: Job, cause: str) -> tuple[datetime | None, list[timedelta]]:
        policies = [policy for policy in self._policies(job) if policy.is_on]
        if cause == EvictionCause.WAIT_FOR_START.value:
            return job.status.admission.admitted_at, [one.timeout for one in policies]
        if cause == EvictionCause.WAIT_FOR_RECOVERY.value:
            recovery = [one.recovery_timeout for one in policies if one.recovery_timeout]
            return _turned(job, "PodsReady"), recovery
        unplaced = [one.unscheduled_timeout for one in policies if one.unscheduled_timeout]
        return _turned(job, "PodsScheduled"), unplaced

    def _policies(self, job: Job) -> list[ReadyPolicy]:
        """What held in its Queue at some time."""
        grant = job.status.admission.quota
        its = job.spec.queue or (grant.queue if grant is not None else None)
        return [
            ready_policy(
                self.truth.wait_for_pods_ready,
                queue.spec.wait_for_pods_ready,
                job.spec.wait_for_pods_ready,
            )
            for (name, _), queue in self.truth.queue_versions.items()
            if name == its
        ]


def _turned(job: Job, type: str) -> datetime | None:
    """Since when a condition has not held."""
    found: list[Condition] = [one for one in job.status.conditions if one.type == type]
    return found[0].last_transition_time if found and found[0].status.value == "False" else None


class RoomKept(Promise):
    """The room for which Jobs are put back is for whom they are: nobody behind that one gets it."""

    def granted(self, change: Change) -> None:
        """After a grant there is, or comes free, as much as whoever others make room for needs."""
        before, record = change.before, change.event.resource
        joined = _joined(change)
        if not isinstance(record, QueueQuota) or not isinstance(before, QueueQuota) or not joined:
            return
        for first in self._made_room_for(record):
            # What was granted in the same write to those before it was theirs to take; so it was to
            # those of other Queues, whose turn is another matter.
            behind = [one for one in joined if self._is_behind(one, first)]
            is_alone = all(one.queue == first.spec.queue for one in joined)
            if not behind or not is_alone or self._has_room(record, record, first):
                continue
            if record.spec.cohort is None or self._has_room(record, before, first):
                names = (behind[0].job, first.metadata.name)
                raise self.broken(f"{names[0]} takes the room that was made for {names[1]}", *names)

    def _made_room_for(self, record: QueueQuota) -> list[Job]:
        """Those who wait still, and for whom others are being put back now."""
        truth, found = self.truth, []
        wanted = set()
        for holder in record.status.holders:
            job = truth.by_uid.get(holder.uid)
            eviction = job.status.admission.eviction if job is not None else None
            if job is None or eviction is None or not is_evicting(job):
                continue
            if eviction.reason is EvictionReason.PREEMPTED:
                wanted.add(eviction.message.partition(" ")[0].removeprefix("job/"))
        granted = {(holder.uid, holder.epoch) for holder in record.status.holders}
        for job in truth.jobs.values():
            if job.metadata.name in wanted and job.metadata.name not in truth.bad:
                epoch = (job.metadata.uid, job.status.admission.epoch)
                if epoch not in granted and self._waits_for_room_alone(job):
                    found.append(job)
        return found

    def _waits_for_room_alone(self, job: Job) -> bool:
        truth, spec = self.truth, job.spec
        if job.status.admission.phase is not AdmissionPhase.WAITING or has_ended(job):
            return False
        if job.is_going or spec.suspend or not spec.active or spec.locks or spec.target is not None:
            return False
        if spec.queue is None or spec.kill_at is not None or spec.start_after is not None:
            return False
        since = truth.stands_since.get(job.metadata.uid, truth.now)
        changed = truth.queue_changed.get(spec.queue, 0.0)
        is_known = min(truth.now - since, truth.now - changed) > truth.patience
        return is_known and all(
            wait.reason is WaitReason.QUOTA_TAKEN for wait in job.status.admission.waits
        )

    def _is_behind(self, holder: QuotaHolder, first: Job) -> bool:
        job = self.truth.by_uid.get(holder.uid)
        return job is not None and _place(job) > _place(first) and holder.queue == first.spec.queue

    def _has_room(self, record: QueueQuota, holding: QueueQuota, first: Job) -> bool:
        """Whether a Job finds the least that it needs once all are gone who are being put back."""
        queue, demand = first.spec.queue or "", demand_of(first)
        member = member_of(record, queue)
        if demand is None or member is None or member.left:
            return True
        stock = Stock(record.status.members)
        for holder in holding.status.holders:
            job = self.truth.by_uid.get(holder.uid)
            if job is None or not is_evicting(job):
                stock.add(holder.queue, charged(holder, job))
        return stock.fits(queue, taken(demand.least, asked_of(member, demand)))


def _place(job: Job) -> tuple[int, int]:
    return (0 if job.spec.target is not None else -job.spec.priority), order_of_acceptance(job)


#: What worlds are judged by whose Jobs have to be ready in time.
READY_PROMISES: tuple[type[Promise], ...] = (
    *QUEUE_PROMISES,
    BackoffKept,
    TimersKept,
    RoomKept,
)
