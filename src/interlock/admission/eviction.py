"""Eviction: how a Job that was let in is put back, to wait again with everything given back.

    Admitted --order--> Evicting --its attempts are proven gone--> Waiting, in a new round
                            \\--it ends meanwhile--> over, as any other

Why this lets nobody in too early, and loses nothing:

- While a Job is evicting its epoch stays as it is, so every record still counts it as a holder. The
  execution room starts nothing of it, stops what runs, and takes an attempt out of `active` only on
  proof that it is gone.
- It is put back by one compare-and-set, from a version that has no attempt under way. An attempt is
  recorded, by a compare-and-set on the Job too, before it is launched; so one that was recorded
  since makes this write fail, and one that comes too late fails itself, and is never launched.
- That write raises the epoch, and with it every grant counts for nothing: a fact that cannot
  become untrue, like the others on which a holder is dropped. The numbers of attempts go on with
  the round, so that nothing told of an earlier attempt is taken for news of a later one.
- An order says for which round it was given. Once that is over it means nothing: a Job that was put
  back is not put back again because the order is still there.

A Job that a person put back waits behind all of its priority who wait by then: its place in the
order is that of the write which put it back. One that had to make way keeps its place. Either was
let in once, so its schedule need not write it down again, and neither a passed `startBy` nor a lock
with whenTaken Forbid refuses it.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.admission.ready_timers import (
    clock_of,
    is_given_up,
    next_try,
    policy_of,
    timed_out,
    tries_of,
)
from interlock.resources.actions import Decision, RecordAdmission, ReviseJob
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Eviction,
    EvictionCause,
    EvictionReason,
    Requeue,
    Wait,
    WaitReason,
)
from interlock.resources.job import (
    REQUEUE_ANNOTATION,
    REQUEUE_ROUND_ANNOTATION,
    REQUEUED_BY_ANNOTATION,
    Job,
    keeps_its_turn,
)
from interlock.resources.placement import pods_scheduled
from interlock.resources.queue import Queue, StopPolicy
from interlock.resources.readiness import is_ready_now, pods_ready
from interlock.resources.ready_gate import ReadyPolicy, RequeuingTimestamp, WaitForPodsReady
from interlock.resources.test_bed import has_its_slots
from interlock.resources.transitions import has_ended, is_admitted, is_evicting

_ORDER = (REQUEUE_ANNOTATION, REQUEUE_ROUND_ANNOTATION)


def decide_eviction(
    job: Job,
    now: datetime,
    queue: Queue | None = None,
    system: WaitForPodsReady | None = None,
) -> Decision:
    """Begin to put a Job back that was let in, or have it wait again once nothing of it is left.

    `system` is what holds for all Queues that do not say otherwise.
    """
    if not is_admitted(job) or has_ended(job):
        return Decision()
    if is_evicting(job):
        return _put_back(job, policy_of(job, queue, system), now)
    eviction = _ordered(job, now) or _drained(job, queue, system, now) or _misplaced(job, now)
    if eviction is not None:
        return _evict(job, eviction)
    policy = policy_of(job, queue, system)
    clock = clock_of(job, policy)
    if clock is None or clock.ends_at > now:
        return Decision(wake_at=None if clock is None else clock.ends_at)
    if is_given_up(job, policy):
        # It is put back once that is written, as anybody who is taken out of a Queue.
        told = f"was not ready in time {tries_of(job) + 1} times: is taken out of its queue"
        return Decision((ReviseJob(job, replace(job.spec, active=False)),), reason=told)
    return _evict(job, timed_out(clock, now), next_try(job, policy, now))


def is_ordered_back(job: Job) -> bool:
    """Whether a person wants the Job to wait again, as it is in this round."""
    annotations = job.metadata.annotations
    if REQUEUE_ANNOTATION not in annotations or job.is_going or keeps_its_turn(job.spec):
        return False
    return annotations.get(REQUEUE_ROUND_ANNOTATION) == str(job.status.execution.round)


def concerns_eviction(before: Job | None, after: Job | None) -> bool:
    """Whether a change of a Job that was let in can matter to its eviction."""
    if after is None or not is_admitted(after) or has_ended(after):
        return False
    if before is None:
        return True
    if is_evicting(after):
        return not after.status.execution.active
    old, new = before.metadata.annotations, after.metadata.annotations
    is_new = not is_admitted(before) or before.metadata.uid != after.metadata.uid
    is_new |= before.spec != after.spec or pods_ready(before) != pods_ready(after)
    is_new |= pods_scheduled(before) != pods_scheduled(after)
    return is_new or any(old.get(name) != new.get(name) for name in _ORDER)


def is_left_alone(
    job: Job, queue: Queue | None = None, system: WaitForPodsReady | None = None
) -> bool:
    """Whether nothing puts a Job back that was let in, nor will with time: as with most of them.

    Whatever changes that wakes the Job.
    """
    if is_evicting(job) or not job.spec.active or REQUEUE_ANNOTATION in job.metadata.annotations:
        return False
    if not has_its_slots(job):
        return False
    if queue is not None and queue.spec.stop is StopPolicy.HOLD_AND_DRAIN:
        return False
    return not policy_of(job, queue, system).is_on


def _ordered(job: Job, now: datetime) -> Eviction | None:
    """A person's order to put the Job back."""
    if not is_ordered_back(job):
        return None
    annotations = job.metadata.annotations
    return Eviction(
        reason=EvictionReason.REQUEUED,
        by=annotations.get(REQUEUED_BY_ANNOTATION, ""),
        message=annotations[REQUEUE_ANNOTATION],
        began_at=now,
    )


def _drained(
    job: Job, queue: Queue | None, system: WaitForPodsReady | None, now: datetime
) -> Eviction | None:
    """That the Job is to be out of its Queue, as its own definition or that of the Queue says."""
    if keeps_its_turn(job.spec) or job.is_going:
        return None
    if not job.spec.active:
        tries = policy_of(job, queue, system).limit
        was_limited = tries is not None and tries_of(job) >= tries and not is_ready_now(job)
        cause = EvictionCause.REQUEUING_LIMIT_EXCEEDED.value if was_limited else ""
        return Eviction(reason=EvictionReason.DEACTIVATED, cause=cause, began_at=now)
    if queue is not None and queue.spec.stop is StopPolicy.HOLD_AND_DRAIN:
        told = f"queue {queue.metadata.name} is drained"
        return Eviction(reason=EvictionReason.QUEUE_STOPPED, message=told, began_at=now)
    return None


def _misplaced(job: Job, now: datetime) -> Eviction | None:
    """That the Job asks for other slots than it has."""
    if keeps_its_turn(job.spec) or job.is_going or has_its_slots(job):
        return None
    return Eviction(
        reason=EvictionReason.SLOTS_CHANGED,
        message="spec.slots asks for other slots than it has",
        began_at=now,
    )


def _evict(job: Job, eviction: Eviction, requeue: Requeue | None = None) -> Decision:
    """Begin; `requeue` is when it is tried again, where it is put back for not being ready."""
    admission = replace(
        job.status.admission,
        phase=AdmissionPhase.EVICTING,
        eviction=eviction,
        requeue=requeue or job.status.admission.requeue,
    )
    return Decision((RecordAdmission(job, admission),), reason=f"is put back: {_told(eviction)}")


def _put_back(job: Job, policy: ReadyPolicy, now: datetime) -> Decision:
    execution, admission = job.status.execution, job.status.admission
    if execution.active or execution.stopping_for is not None:
        # What is left of it is stopped first; or else it ends, and is not put back at all.
        return Decision()
    eviction = admission.eviction
    assert eviction is not None, f"{job.key}: evicting for no reason"
    # Whoever is put back on demand waits behind others; whoever has to make way keeps its place.
    keeps = eviction.reason is not EvictionReason.REQUEUED
    requeue = admission.requeue
    if eviction.reason is EvictionReason.DEACTIVATED:
        requeue = None
    elif eviction.reason is EvictionReason.PODS_READY_TIMEOUT:
        keeps = policy.timestamp is RequeuingTimestamp.CREATION
    until = requeue.at if requeue is not None else None
    waits = (Wait(reason=WaitReason.BACKOFF, until=until),) if until and until > now else ()
    waiting = AdmissionStatus(
        waits=waits,
        requeue=requeue,
        sequence=admission.sequence if keeps else 0,
        epoch=admission.epoch + 1,
        replaced_by=admission.replaced_by,
        evictions=admission.evictions + 1,
        eviction=replace(eviction, ended_at=now),
    )
    reason = f"waits again, everything given back: {_told(eviction)}"
    # Looked at again at once: nothing else may happen to it.
    return Decision((RecordAdmission(job, waiting),), now, reason)


def _told(eviction: Eviction) -> str:
    told = eviction.reason.value.lower() + (f" by {eviction.by}" if eviction.by else "")
    return f"{told}: {eviction.message}" if eviction.message else told
