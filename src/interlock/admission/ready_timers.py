"""The clocks of Jobs that have to be ready in time: when one has run out, and what then.

    let in --timeout--> put back, to wait for its next try
    ready no more --recoveryTimeout--> the same
    tasks without a place --unscheduledTimeout--> the same, whichever of the clocks ends first

All count from an instant that is stored, so a restart changes nothing. A try that failed makes the
next one wait twice as long, and never shorter than it was told before. After as many as its limit
says the Job is taken out of its Queue by `spec.active`, and a person who sets it again has it begin
anew.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from interlock.resources.admission import (
    AdmissionPhase,
    Eviction,
    EvictionCause,
    EvictionReason,
    Requeue,
)
from interlock.resources.job import Job, keeps_its_turn
from interlock.resources.placement import UNSCHEDULED, awaits_places, pods_scheduled
from interlock.resources.queue import Queue
from interlock.resources.readiness import ReadyReason, pods_ready
from interlock.resources.ready_gate import OFF, ReadyPolicy, WaitForPodsReady, ready_policy
from interlock.resources.transitions import has_ended


class Clock(Struct, frozen=True):
    """A clock that runs for a Job."""

    ends_at: datetime
    #: What it waits for.
    cause: EvictionCause


def gate_of(queue: Queue, system: WaitForPodsReady | None = None) -> ReadyPolicy:
    """What holds for the Jobs of a Queue that do not say otherwise."""
    return ready_policy(system, queue.spec.wait_for_pods_ready)


def policy_of(job: Job, queue: Queue | None, system: WaitForPodsReady | None = None) -> ReadyPolicy:
    """What holds for a Job of a Queue, in a system with a policy for all Queues."""
    if queue is None:
        return OFF
    return ready_policy(system, queue.spec.wait_for_pods_ready, job.spec.wait_for_pods_ready)


def clock_of(job: Job, policy: ReadyPolicy) -> Clock | None:
    """The clock that runs for a Job; None for one that may take its time, or is ready."""
    admission = job.status.admission
    if not policy.is_on or admission.phase is not AdmissionPhase.ADMITTED or has_ended(job):
        return None
    if keeps_its_turn(job.spec) or admission.admitted_at is None:
        return None
    condition = pods_ready(job)
    reason = condition.reason if condition is not None else ""
    if reason in (ReadyReason.STARTED.value, ReadyReason.RECOVERED.value):
        return None
    clocks = [_unscheduled_clock(job, policy)]
    if reason != ReadyReason.WAIT_FOR_RECOVERY.value or condition is None:
        clocks.append(Clock(admission.admitted_at + policy.timeout, EvictionCause.WAIT_FOR_START))
    elif policy.recovery_timeout:
        ends_at = condition.last_transition_time + policy.recovery_timeout
        clocks.append(Clock(ends_at, EvictionCause.WAIT_FOR_RECOVERY))
    return min((one for one in clocks if one is not None), key=_end, default=None)


def _end(clock: Clock) -> datetime:
    return clock.ends_at


def _unscheduled_clock(job: Job, policy: ReadyPolicy) -> Clock | None:
    """The clock of a Job some of whose tasks have no place, in its start and in its recovery."""
    condition = pods_scheduled(job)
    if policy.unscheduled_timeout is None or condition is None:
        return None
    if condition.reason != UNSCHEDULED or not awaits_places(job.status.admission):
        return None
    ends_at = condition.last_transition_time + policy.unscheduled_timeout
    return Clock(ends_at, EvictionCause.UNSCHEDULED)


def tries_of(job: Job) -> int:
    """How often the Job was put back since it was not ready in time."""
    requeue = job.status.admission.requeue
    return 0 if requeue is None else requeue.count


def is_given_up(job: Job, policy: ReadyPolicy) -> bool:
    """Whether a Job whose clock has run out has had all the tries it gets."""
    return policy.limit is not None and tries_of(job) + 1 > policy.limit


def next_try(job: Job, policy: ReadyPolicy, now: datetime) -> Requeue:
    """When a Job whose clock has run out is tried again: never before what was said already."""
    count = tries_of(job) + 1
    requeue = job.status.admission.requeue
    at = _to_seconds(now + policy.delay(count))
    if requeue is not None and requeue.at is not None:
        at = max(at, requeue.at)
    return Requeue(count=count, at=at)


def _to_seconds(moment: datetime) -> datetime:
    if not moment.microsecond:
        return moment
    return moment.replace(microsecond=0) + timedelta(seconds=1)


def timed_out(clock: Clock, now: datetime) -> Eviction:
    """That a Job is put back since its clock has run out."""
    what = {
        EvictionCause.WAIT_FOR_START: "it was not ready in time",
        EvictionCause.WAIT_FOR_RECOVERY: "it was not ready again in time",
        EvictionCause.UNSCHEDULED: "some of its tasks had no place to run for too long",
    }[clock.cause]
    return Eviction(
        reason=EvictionReason.PODS_READY_TIMEOUT,
        cause=clock.cause.value,
        message=what,
        began_at=now,
    )
