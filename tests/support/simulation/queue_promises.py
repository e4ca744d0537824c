"""What is promised of Queues: no quota is overdrawn, nobody is overtaken who fits, all is given."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.admission import AdmissionPhase, EvictionCause, EvictionReason
from interlock.resources.default_queue import DEFAULT_QUEUE, queue_asked
from interlock.resources.job import Job, keeps_its_turn, order_of_acceptance
from interlock.resources.queue import (
    TASKS,
    BorrowPolicy,
    Demand,
    Member,
    PreemptionPolicy,
    Queue,
    QueueOrder,
    QueueQuota,
    QuotaHolder,
    ReclaimPolicy,
    StopPolicy,
    demand_of,
    quota_name,
    record_wanted,
    taken,
    wanted_at_once,
)
from interlock.resources.readiness import is_ready_now
from interlock.resources.ready_gate import BlockScope, WaitForPodsReady, ready_policy
from interlock.resources.transitions import has_ended, is_admitted, is_evicting
from interlock.resources.values.amounts import Amount
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.judge import Promise
from support.simulation.promises import PROMISES, jobs_of
from support.simulation.truth import Truth


def _quotas_of(change: Change) -> tuple[QueueQuota | None, QueueQuota | None]:
    before, after = change.before, change.event.resource
    is_gone = change.event.type is EventType.DELETED
    return (
        before if isinstance(before, QueueQuota) else None,
        after if isinstance(after, QueueQuota) and not is_gone else None,
    )


def _joined(change: Change) -> tuple[QueueQuota | None, tuple[QuotaHolder, ...]]:
    before, after = _quotas_of(change)
    if after is None:
        return None, ()
    known = before.status.holders if before is not None else ()
    return after, tuple(holder for holder in after.status.holders if holder not in known)


class QuotaKept(Promise):
    """At no instant is more granted of a quota than it has, nor does more run than was granted."""

    def granted(self, change: Change) -> None:
        """What is granted fits; who is taken off is done; what is allowed is what was written."""
        self._check_member(change)
        self._check_room(change)
        self._check_left(change)

    def _check_member(self, change: Change) -> None:
        before, after = _quotas_of(change)
        if after is None:
            return
        for member in after.status.members:
            queue = self.truth.queue_versions.get((member.queue, member.version))
            if queue is None or not _says(queue, member):
                raise self.broken(f"queue {member.queue} never allowed {member.limits}")
            for old in before.status.members if before is not None else ():
                if old.queue == member.queue and old.version > member.version:
                    raise self.broken(f"queue {member.queue} allows what it allowed before again")

    def _check_room(self, change: Change) -> None:
        record, joined = _joined(change)
        if record is None or not joined:
            return
        for holder in joined:
            # What counts for nothing any more may be carried along with what does.
            if self._was_carried(record, holder) or self._is_done(holder):
                continue
            member = member_of(record, holder.queue)
            if member is None or member.left:
                raise self.broken(f"{holder.job} is granted a part of nothing", holder.job)
            if member.stop is not StopPolicy.NONE:
                raise self.broken(f"{holder.job} is let in by a stopped queue", holder.job)
            self._check_home(record, holder)
            self._check_amounts(member, holder)
            for name in _taken_of(holder, holder.tasks):
                if name in member.limits or name != TASKS:
                    self._check_resource(record, member, holder, name)

    def _was_carried(self, record: QueueQuota, holder: QuotaHolder) -> bool:
        """Whether a Job came along with its Queue, and was granted its part elsewhere."""
        return any(
            holder in other.status.holders
            for other in self.truth.quotas.values()
            if other.key != record.key
        )

    def _check_home(self, record: QueueQuota, holder: QuotaHolder) -> None:
        """No two records grant to the Jobs of one Queue."""
        for other in self.truth.quotas.values():
            member = member_of(other, holder.queue)
            if other.key != record.key and member is not None and not member.left:
                names = f"{record.metadata.name} and {other.metadata.name}"
                raise self.broken(f"queue {holder.queue} is granted from {names}", holder.job)

    def _check_resource(
        self, record: QueueQuota, member: Member, holder: QuotaHolder, name: str
    ) -> None:
        """A Queue uses no more than it may, and all together no more than there is."""
        own = _milli(member.limits, name)
        most = None if record.spec.cohort is not None else own
        if member.borrowing is not None and name in member.borrowing:
            most = own + _milli(member.borrowing, name)
        used = self._used(self._everywhere(holder.queue), name)
        told = f"{used} m of {name} are used by queue {holder.queue}"
        if most is not None and used > most:
            told += f", which may use {most} m, the last by {holder.job}"
            raise self.broken(told, holder.job)
        if used <= _kept(member, name):
            return
        # What is used of what all lend; whoever is of no Queue any more uses that alone.
        here = record.status.holders
        lent, lendable = 0, 0
        for other in record.status.members:
            if not other.left and name in other.limits:
                lendable += _milli(other.limits, name) - _kept(other, name)
                theirs = [one for one in here if one.queue == other.queue]
                lent += max(0, self._used(theirs, name) - _kept(other, name))
        queues = {other.queue for other in record.status.members if not other.left}
        lent += self._used((one for one in here if one.queue not in queues), name)
        if lent > lendable:
            told = f"{lent} m of {name} are lent of {lendable} m, the last to {holder.job}"
            raise self.broken(told, holder.job)

    def _used(self, holders: Iterable[QuotaHolder], name: str) -> int:
        return sum(self._counts_for(holder).get(name, 0) for holder in holders)

    def _everywhere(self, queue: str) -> Iterable[QuotaHolder]:
        """All who hold a part as Jobs of a Queue, each once."""
        found = {}
        for record in self.truth.quotas.values():
            for holder in record.status.holders:
                if holder.queue == queue:
                    found[holder.uid, holder.epoch] = holder
        return found.values()

    def _check_amounts(self, member: Member, holder: QuotaHolder) -> None:
        """What is granted is what was asked for, at the version at which it was asked."""
        demand = self.truth.demands.get((holder.uid, holder.job_version))
        if demand is None:
            return
        each = {name: amount.milli for name, amount in holder.each.items()}
        # Of a Queue that it did not choose a Job takes what there is, as it was at that moment.
        least = 1 if self.truth.by_uid[holder.uid].spec.queue is None else demand.least
        is_right = each == asked_of(member, demand) and least <= holder.tasks <= demand.tasks
        if not is_right or demand.queue != holder.queue:
            raise self.broken(f"{holder.job} is granted what it did not ask for", holder.job)

    def _counts_for(self, holder: QuotaHolder) -> Mapping[str, int]:
        """What a grant really counts for: the tasks that may still run."""
        if self._is_done(holder):
            return {}
        job = self.truth.by_uid[holder.uid]
        return _taken_of(holder, min(holder.tasks, may_run(job)))

    def _is_done(self, holder: QuotaHolder) -> bool:
        if self.truth.is_over(holder.uid):
            return True
        return self.truth.by_uid[holder.uid].status.admission.epoch > holder.epoch

    def _check_left(self, change: Change) -> None:
        before, after = _quotas_of(change)
        kept = after.status.holders if after is not None else ()
        for holder in before.status.holders if before is not None else ():
            if holder in kept or self._is_done(holder) or self._is_elsewhere(change, holder):
                continue
            if self._is_disowned(holder):
                continue
            told = f"{holder.job} loses its part and may still be doing something"
            raise self.broken(told, holder.job)

    def _is_disowned(self, holder: QuotaHolder) -> bool:
        """Whether a Job that names no Queue was let in past the default one before this was
        granted to it, by somebody who had not heard of that: it runs on nothing of this.
        """
        job = self.truth.by_uid[holder.uid]
        admission = job.status.admission
        is_let_in = admission.phase is AdmissionPhase.ADMITTED and admission.epoch == holder.epoch
        return is_let_in and job.spec.queue is None and admission.quota is None

    def wrote(self, change: Change) -> None:
        """A Job with a Queue is admitted with its part of the quota on record."""
        before, after = jobs_of(change)
        if after is None or not _is_let_in(before, after) or self.truth.writer == "user":
            return
        name, grant = after.metadata.name, after.status.admission.quota
        queue = _queue_of(after)
        if queue is None:
            self._check_default(after)
            return
        epoch = after.status.admission.epoch
        held = [
            holder
            for holder in self._holders(queue)
            if holder.uid == after.metadata.uid and holder.epoch == epoch
        ]
        if grant is None or not held:
            raise self.broken(f"{name} is admitted without a part of queue {queue}", name)
        if (grant.queue, grant.token, grant.tasks) != (queue, held[0].token, held[0].tasks):
            raise self.broken(f"{name} is admitted with a part that is not its own", name)

    def _check_default(self, job: Job) -> None:
        """Nobody is let in past the default Queue, but for who was before that was heard of."""
        queue = self.truth.queue_asked(job)
        if queue is not None and self.truth.is_settled(queue):
            name = job.metadata.name
            raise self.broken(f"{name} is admitted without asking queue {queue}", name)

    def starts(self, life: Life) -> None:
        """No more tasks of a Job run than it was granted."""
        uid = life.order.job_uid
        job = self.truth.by_uid.get(uid)
        queue = _queue_of(job) if job is not None else None
        if job is None or queue is None or life.order.id in self.truth.strangers:
            return
        grant = job.status.admission.quota
        alive = len({life.order.index for life in self.truth.alive(uid)})
        if grant is None or alive > grant.tasks:
            allowed = 0 if grant is None else grant.tasks
            name = job.metadata.name
            raise self.broken(f"{alive} tasks of {name} run, granted are {allowed}", name)
        if not any(holder.uid == uid for holder in self._holders(queue)):
            told = f"{life.order.name} starts, and no quota knows of it"
            raise self.broken(told, job.metadata.name)

    def _is_elsewhere(self, change: Change, holder: QuotaHolder) -> bool:
        """Whether a Job holds its part by another record, to which its Queue has moved."""
        return any(
            holder in other.status.holders
            for other in self.truth.quotas.values()
            if other.key != change.key
        )

    def _holders(self, queue: str) -> tuple[QuotaHolder, ...]:
        return tuple(self._everywhere(queue))

    def settled(self) -> None:
        """Whoever is over is taken off, and every Queue is where its definition says."""
        for name, queue in self.truth.queues.items():
            self._check_seat(name, queue)
        for record in self.truth.quotas.values():
            for holder in record.status.holders:
                if holder.job not in self.truth.bad:
                    told = f"{holder.job} is over and holds a part of {holder.queue}"
                    raise self.broken(told, holder.job)

    def _check_seat(self, name: str, queue: Queue) -> None:
        own = self.truth.quotas.get(quota_name(name))
        seat = own.status.seat if own is not None else None
        home = quota_name(name) if seat is None else seat.record
        record = self.truth.quotas.get(home)
        if queue.spec.cohort is None and (own is None or not own.status.members):
            # Nobody has wanted anything of it yet.
            return
        member = member_of(record, name) if record is not None else None
        if home != record_wanted(queue) or member is None or member.left:
            raise self.broken(f"queue {name} is to be in {record_wanted(queue)}, and in {home}")


class QueueInOrder(Promise):
    """Room goes to those who came first, of all who fit."""

    def granted(self, change: Change) -> None:
        """Nobody who is granted room had somebody before him who has stood there long and fits."""
        before, _ = _quotas_of(change)
        record, joined = _joined(change)
        if record is None or before is None:
            return
        if record.spec.cohort is not None:
            # Room that was kept for somebody of another Queue may look as if it were free.
            return
        for holder in joined:
            member = member_of(record, holder.queue)
            job = self.truth.by_uid.get(holder.uid)
            if member is None or job is None:
                continue
            free = {name: amount.milli for name, amount in member.limits.items()}
            for other in before.status.holders:
                for name, amount in _taken_of(other, other.tasks).items():
                    if name in free:
                        free[name] -= amount
            self._check(member, record, job, free)

    def _check(self, member: Member, record: QueueQuota, job: Job, free: Mapping[str, int]) -> None:
        truth = self.truth
        granted = {(holder.uid, holder.epoch) for holder in record.status.holders}
        for other in truth.jobs.values():
            demand = demand_of(other, self.truth.queue_asked(other) or "")
            if (
                demand is None
                or demand.queue != member.queue
                or other.spec.locks
                or other.metadata.name in truth.bad
                or not _waits_for_room(other)
                or (other.metadata.uid, other.status.admission.epoch) in granted
                or _place(other) >= _place(job)
                or truth.now - truth.stands_since[other.metadata.uid] <= truth.patience
                or truth.now - truth.queue_changed.get(member.queue, 0.0) <= truth.patience
            ):
                continue
            demand = replace(demand, each=asked_of(member, demand))
            limits = {name: amount.milli for name, amount in member.limits.items()}
            is_strict = member.order is QueueOrder.STRICT_FIFO
            if _fits(demand, limits if is_strict else free):
                names = (job.metadata.name, other.metadata.name)
                told = f"{names[0]} is granted room in {member.queue} before {names[1]}"
                raise self.broken(told, *names)


class AllOrNothing(Promise):
    """Where a Queue says so nobody is let in beside a Job that was not ready yet."""

    def granted(self, change: Change) -> None:
        """One at a time, and everybody else that holds a part was ready since it was let in."""
        record, joined = _joined(change)
        for holder in joined if record is not None else ():
            member = member_of(record, holder.queue) if record is not None else None
            if record is None or member is None or not member.blocks:
                continue
            self._check_alone(record, holder, member)

    def _check_alone(self, record: QueueQuota, holder: QuotaHolder, member: Member) -> None:
        for other in record.status.holders:
            is_far = member.scope is BlockScope.QUEUE and other.queue != holder.queue
            job = self.truth.by_uid.get(other.uid)
            if other.token >= holder.token or is_far or job is None:
                continue
            if self.truth.is_over(other.uid) or job.status.admission.epoch > other.epoch:
                continue
            grant = job.status.admission.quota
            is_awaited = grant is None or grant.token != other.token or grant.awaits_ready
            if not is_awaited or keeps_its_turn(job.spec):
                continue
            if (other.uid, other.epoch) not in self.truth.was_ready:
                told = f"{holder.job} is let in, and {other.job} was never ready"
                raise self.broken(told, holder.job, other.job)

    def wrote(self, change: Change) -> None:
        """Tries are counted one by one, and none comes earlier than was said."""
        before, after = jobs_of(change)
        if before is None or after is None or before.metadata.uid != after.metadata.uid:
            return
        was, now = before.status.admission.requeue, after.status.admission.requeue
        name, eviction = after.metadata.name, after.status.admission.eviction
        if was == now:
            return
        # It may also end in the very write in which it begins to be put back.
        evicting = AdmissionPhase.EVICTING
        begins = after.status.admission.phase is evicting is not before.status.admission.phase
        if now is None:
            if eviction is None or eviction.reason is not EvictionReason.DEACTIVATED:
                raise self.broken(f"the tries of {name} are forgotten", name)
        elif not begins or now.count != (0 if was is None else was.count) + 1:
            raise self.broken(f"{name} has {now.count} tries all at once", name)
        elif was is not None and was.at is not None and (now.at is None or now.at < was.at):
            raise self.broken(f"{name} is to be tried again earlier than was said", name)


class PutBackForCause(Promise):
    """A Job is put back by the system where its Queue or its own definition says so, alone."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: When each Queue last held more than its own, as far as was granted.
        self._borrowed_at: dict[str, float] = {}

    def granted(self, change: Change) -> None:
        """Remember which Queues use more than is theirs; one that has left has nothing."""
        for record in _quotas_of(change):
            for holder in record.status.holders if record is not None else ():
                if record is not None and _has_borrowed(record, holder.queue):
                    self._borrowed_at[holder.queue] = self.truth.now

    def wrote(self, change: Change) -> None:
        """The reason for an eviction is a fact."""
        before, after = jobs_of(change)
        if before is None or after is None or is_evicting(before) or not is_evicting(after):
            return
        eviction, name = after.status.admission.eviction, after.metadata.name
        assert eviction is not None
        if eviction.reason is EvictionReason.PODS_READY_TIMEOUT and is_ready_now(before):
            raise self.broken(f"{name} is put back as not ready, and is", name)
        by_person = name in self.truth.deactivated or self._had_its_tries(before)
        if eviction.reason is EvictionReason.DEACTIVATED and not by_person:
            raise self.broken(f"{name} is put back as not active, and is", name)
        if eviction.reason is EvictionReason.QUEUE_STOPPED and not self._was_drained(after):
            raise self.broken(f"{name} is put back, and its queue is not drained", name)

        if eviction.reason is EvictionReason.PREEMPTED and not self._is_overtaken(after):
            raise self.broken(f"{name} has to make room for nobody who comes before it", name)
        is_reclaimed = eviction.cause == EvictionCause.IN_COHORT.value
        if is_reclaimed and not self._had_borrowed(_queue_of(before) or ""):
            raise self.broken(f"{name} has to make room, and its queue has borrowed nothing", name)

    def _had_borrowed(self, queue: str) -> bool:
        """Whether a Queue used more than its own, as somebody may have seen it by now."""
        if any(_has_borrowed(record, queue) for record in self.truth.quotas.values()):
            return True
        return self.truth.now - self._borrowed_at.get(queue, -math.inf) <= self.truth.patience

    def _had_its_tries(self, job: Job) -> bool:
        requeue = job.status.admission.requeue
        tries = 0 if requeue is None else requeue.count
        return any(
            name == _queue_of(job) and has_had(queue, tries, self.truth.wait_for_pods_ready)
            for (name, _), queue in self.truth.queue_versions.items()
        )

    def _is_overtaken(self, job: Job) -> bool:
        """Whether somebody in the same Queue may take the place of a Job."""
        policies = {
            queue.spec.preemption.within_queue
            for (name, _), queue in self.truth.queue_versions.items()
            if name == _queue_of(job)
        }
        return self._is_reclaimed(job) or (
            any(
                queue_asked(other.spec, DEFAULT_QUEUE) == _queue_of(job)
                and (
                    other.spec.priority > job.spec.priority
                    or (
                        PreemptionPolicy.LOWER_OR_NEWER_EQUAL_PRIORITY in policies
                        and _place(other) < _place(job)
                    )
                )
                for other in self.truth.by_uid.values()
            )
            and policies != {PreemptionPolicy.NEVER}
        )

    def _is_reclaimed(self, job: Job) -> bool:
        """Whether somebody in another Queue of its cohort may have its place."""
        versions = self.truth.queue_versions.items()
        cohorts = {queue.spec.cohort for (name, _), queue in versions if name == _queue_of(job)}
        lower = {ReclaimPolicy.LOWER_PRIORITY, BorrowPolicy.LOWER_PRIORITY}
        for (name, _), queue in versions:
            if name == _queue_of(job) or queue.spec.cohort not in cohorts - {None}:
                continue
            policy = queue.spec.preemption
            policies = {policy.reclaim_within_cohort, policy.borrow_within_cohort.policy}
            if ReclaimPolicy.ANY in policies:
                return True
            theirs = (one for one in self.truth.by_uid.values() if one.spec.queue == name)
            if policies & lower and any(o.spec.priority > job.spec.priority for o in theirs):
                return True
        return False

    def _was_drained(self, job: Job) -> bool:
        return any(
            name == _queue_of(job) and queue.spec.stop is StopPolicy.HOLD_AND_DRAIN
            for (name, _), queue in self.truth.queue_versions.items()
        )


def _queue_of(job: Job) -> str | None:
    """The Queue that a Job names, or by which it was let in."""
    grant = job.status.admission.quota
    return job.spec.queue or (grant.queue if grant is not None else None)


def has_had(queue: Queue, tries: int, system: WaitForPodsReady | None = None) -> bool:
    """Whether a Queue gives no more tries than so many."""
    policy = ready_policy(system, queue.spec.wait_for_pods_ready)
    return policy.is_on and policy.limit is not None and tries >= policy.limit


def may_run(job: Job) -> int:
    """How many tasks of a Job may still run at a time, without asking anybody."""
    execution = job.status.execution
    if has_ended(job):
        return 0
    wanted = wanted_at_once(job.spec)
    if not execution.total or job.spec.adopted is not None:
        # Of what was adopted one task is all its pods.
        return wanted
    left = execution.total - len(execution.succeeded) - len(execution.failed)
    return max(min(left, wanted), len(execution.active))


def total(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """All of them together."""
    added: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            added[name] = added.get(name, 0) + amount
    return added


def _taken_of(holder: QuotaHolder, tasks: int) -> dict[str, int]:
    return taken(tasks, {name: amount.milli for name, amount in holder.each.items()})


def member_of(record: QueueQuota, queue: str) -> Member | None:
    return next((one for one in record.status.members if one.queue == queue), None)


def _has_borrowed(record: QueueQuota, queue: str) -> bool:
    """Whether the Jobs of a Queue were granted more of a record than is the Queue's own."""
    member = member_of(record, queue)
    theirs = [holder for holder in record.status.holders if holder.queue == queue]
    own = member.limits if member is not None and not member.left else {}
    used = total(_taken_of(holder, holder.tasks) for holder in theirs)
    return any(
        amount > _milli(own, name)
        for name, amount in used.items()
        if name in own or (not own and amount)
    )


def _says(queue: Queue, member: Member) -> bool:
    """Whether a version of a Queue allows what a record says that it does."""
    spec = queue.spec
    said = spec.resources, spec.borrowing_limit, spec.lending_limit
    return said == (member.limits, member.borrowing, member.lending)


def asked_of(member: Member, demand: Demand) -> dict[str, int]:
    """What each task takes of what a Queue has; of what pods request only that is counted, and
    `nvidia.com/gpu` as `gpu` where the Queue names only that.
    """
    if not demand.is_of_pods:
        return demand.each
    asked: dict[str, int] = {}
    for name, amount in demand.each.items():
        known = name if name in member.limits else name.split("/")[-1]
        if known in member.limits:
            asked[known] = asked.get(known, 0) + amount
    return asked


def _milli(amounts: Mapping[str, Amount], name: str) -> int:
    return amounts[name].milli if name in amounts else 0


def _kept(member: Member, name: str) -> int:
    """How much of a resource a Queue lends to nobody."""
    if member.lending is None or name not in member.lending:
        return 0
    return max(0, _milli(member.limits, name) - _milli(member.lending, name))


def _is_let_in(before: Job | None, after: Job) -> bool:
    admitted = AdmissionPhase.ADMITTED
    if after.status.admission.phase is not admitted:
        return False
    return before is None or before.status.admission.phase is not admitted


def _waits_for_room(job: Job) -> bool:
    """Whether a Job has been seen, and waits for room and nothing else."""
    admission = job.status.admission
    if admission.phase is not AdmissionPhase.WAITING or has_ended(job) or is_admitted(job):
        return False
    if job.is_going or job.spec.suspend or not job.spec.active:
        return False
    return admission.sequence > 0 and all(
        wait.reason.value == "QuotaTaken" for wait in admission.waits
    )


def _fits(demand: Demand, free: Mapping[str, int]) -> bool:
    """Whether the least that a Job starts with fits."""
    for name, amount in taken(demand.least, demand.each).items():
        if amount > free.get(name, amount if name == TASKS else 0):
            return False
    return True


def _place(job: Job) -> tuple[int, int]:
    rank = 0 if job.spec.target is not None else -job.spec.priority
    return rank, order_of_acceptance(job)


#: What worlds with Queues are judged by.
QUEUE_PROMISES: tuple[type[Promise], ...] = (
    *PROMISES,
    QuotaKept,
    QueueInOrder,
    PutBackForCause,
    AllOrNothing,
)
