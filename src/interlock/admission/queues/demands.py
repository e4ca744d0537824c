"""How a Job sees its Queue: what it was granted there, or why it is not let in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from interlock.admission.queues.known import KnownQueues, job_of
from interlock.admission.queues.seats import holder_of, records_of
from interlock.admission.ready_timers import gate_of, policy_of
from interlock.resources.admission import Wait, WaitReason
from interlock.resources.job import Job, keeps_its_turn
from interlock.resources.queue import (
    TASKS,
    Demand,
    Queue,
    QuotaHolder,
    StopPolicy,
    in_terms_of,
)
from interlock.resources.readiness import is_ready_now
from interlock.resources.ready_gate import BlockScope


def is_ready(known: KnownQueues, holder: QuotaHolder) -> bool:
    """Whether a Job that was granted a part is ready, or is one that nobody waits for."""
    job = known.jobs.get(job_of(holder))
    if job is None or job.metadata.uid != holder.uid:
        return False
    if keeps_its_turn(job.spec) or is_ready_now(job):
        return True
    grant = job.status.admission.quota
    if grant is not None and grant.token == holder.token:
        return not grant.awaits_ready
    return not policy_of(job, known.queue(holder.queue), known.system).is_on


def blockers(known: KnownQueues, queue: Queue) -> Iterator[QuotaHolder]:
    """Who keeps everybody else out of a Queue: holds a part, and is not ready, as far as is known.

    Of other records than the Queue's own no write of this one says that they are as they were, so
    of a gate that is closed for the whole system two control planes may each let one in.
    """
    policy = gate_of(queue, known.system)
    if not policy.is_on or not policy.blocks:
        return
    name = queue.metadata.name
    records = tuple(records_of(known, name))
    if policy.scope is BlockScope.SYSTEM:
        records = tuple(known.quotas)
    seen = set()
    for record in records:
        for holder in record.status.holders:
            is_other = policy.scope is BlockScope.QUEUE and holder.queue != name
            if is_other or (holder.uid, holder.epoch) in seen or known.is_done(holder):
                continue
            seen.add((holder.uid, holder.epoch))
            if not is_ready(known, holder):
                yield holder


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
    #: Whether its tasks have to be placed in time.
    awaits_places: bool = False
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
    demand = known.demand(job)
    if demand is None:
        return None
    queue = known.queue(demand.queue)
    if queue is not None:
        demand = in_terms_of(queue.spec, demand)
    holder = holder_of(known, job, demand.queue)
    policy = policy_of(job, queue, known.system)
    is_awaited = policy.is_on and not keeps_its_turn(job.spec)
    return QuotaView(
        demand=demand,
        holder=holder,
        refusal=refusal_of(known, job, demand),
        awaits_ready=is_awaited,
        awaits_places=is_awaited and policy.unscheduled_timeout is not None,
        is_gated=(
            queue is not None and holder is None and next(blockers(known, queue), None) is not None
        ),
        is_good=holder is None or _is_what_is_asked(holder, demand),
    )


def _is_what_is_asked(holder: QuotaHolder, demand: Demand) -> bool:
    each = {name: amount.milli for name, amount in holder.each.items()}
    return each == demand.each and demand.least <= holder.tasks <= demand.tasks


def refusal_of(known: KnownQueues, job: Job, demand: Demand) -> Wait | None:
    """Why a Queue does not let a Job in, however much room it has; None when it does."""
    reason = _reason(known, job.metadata.namespace, demand)
    return None if reason is None else Wait(reason=reason, key=demand.queue)


def _reason(known: KnownQueues, namespace: str, demand: Demand) -> WaitReason | None:
    queue = known.queue(demand.queue)
    if queue is None or queue.is_going:
        return WaitReason.NO_QUEUE
    serves = known.serves(queue, namespace)
    if not serves:
        return WaitReason.NAMESPACE_UNKNOWN if serves is None else WaitReason.QUEUE_NOT_ALLOWED
    if queue.spec.stop is not StopPolicy.NONE:
        return WaitReason.QUEUE_STOPPED
    most = known.most(queue)
    if most is not None and not could_ever_fit(demand, most):
        return WaitReason.QUOTA_TOO_SMALL
    return None


def could_ever_fit(demand: Demand, limits: Mapping[str, int]) -> bool:
    """Whether the least that a Job starts with would fit into an empty quota."""
    return most_tasks(demand.each, demand.least, limits) >= demand.least


def most_tasks(each: Mapping[str, int], wanted: int, free: Mapping[str, int]) -> int:
    """How many tasks fit into what is free, up to as many as are wanted.

    Of a resource that is not named there is none, but for `tasks`: any number.
    """
    most = min(wanted, max(0, free[TASKS]) // 1000) if TASKS in free else wanted
    for name, amount in each.items():
        if name != TASKS:
            most = min(most, max(0, free.get(name, 0)) // amount)
    return most
