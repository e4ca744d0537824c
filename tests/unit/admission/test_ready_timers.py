"""The clocks of Jobs that have to be ready in time: the tables of KEP-349."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.admission.eviction import decide_eviction
from interlock.admission.queues.desk import QueueDesk
from interlock.admission.ready_timers import clock_of
from interlock.control.cache import Cache
from interlock.resources.actions import RecordAdmission, ReviseJob
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    EvictionReason,
    QuotaGrant,
    Requeue,
    WaitReason,
)
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.queue import Queue
from interlock.resources.readiness import PODS_READY
from interlock.resources.ready_gate import (
    OFF,
    ReadyPolicy,
    RequeuingStrategy,
    RequeuingTimestamp,
    WaitForPodsReady,
    ready_policy,
)
from interlock.resources.transitions import with_admission
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0
from support.queue_desk import Desk, a_queue, a_record, newer, runs, waits

MINUTE = timedelta(minutes=1)


def gate(**given: Any) -> WaitForPodsReady:
    return WaitForPodsReady(enable=True, **given)


def a_gated_queue(policy: WaitForPodsReady, **has: Any) -> Queue:
    queue = a_queue(**has)
    return replace(queue, spec=replace(queue.spec, wait_for_pods_ready=policy))


def let_in(
    ago: timedelta,
    reason: str = "",
    since: timedelta = timedelta(),
    *,
    tries: Requeue | None = None,
    is_ready: bool = False,
    **spec: Any,
) -> Job:
    """A Job that was let in some time ago, with its condition."""
    job = waits("a", 1, **spec)
    admission = AdmissionStatus(
        phase=AdmissionPhase.ADMITTED,
        sequence=1,
        quota=QuotaGrant(queue="blue", token=1, tasks=1, awaits_ready=True),
        admitted_at=T0 - ago,
        requeue=tries,
    )
    status = ConditionStatus.TRUE if is_ready else ConditionStatus.FALSE
    condition = Condition(
        type=PODS_READY, status=status, reason=reason, last_transition_time=T0 - since
    )
    conditions = (condition,) if reason else ()
    return newer(
        job, JobStatus(phase=JobPhase.STARTING, admission=admission, conditions=conditions)
    )


ON = ReadyPolicy(is_on=True)
RECOVERS = ReadyPolicy(is_on=True, recovery_timeout=3 * MINUTE)
CLOCKS: list[tuple[str, Job, ReadyPolicy, tuple[timedelta, str] | None]] = [
    ("no condition yet", let_in(MINUTE), ON, (4 * MINUTE, "WaitForStart")),
    ("waits for its start", let_in(MINUTE, "WaitForStart"), ON, (4 * MINUTE, "WaitForStart")),
    ("an old word", let_in(MINUTE, "PodsReady"), ON, (4 * MINUTE, "WaitForStart")),
    ("long past", let_in(7 * MINUTE), ON, (-2 * MINUTE, "WaitForStart")),
    ("off", let_in(7 * MINUTE), OFF, None),
    ("ready", let_in(MINUTE, "Started", is_ready=True), RECOVERS, None),
    ("ready again", let_in(MINUTE, "Recovered", is_ready=True), RECOVERS, None),
    (
        "recovers",
        let_in(9 * MINUTE, "WaitForRecovery", MINUTE),
        RECOVERS,
        (2 * MINUTE, "WaitForRecovery"),
    ),
    ("may recover for ever", let_in(9 * MINUTE, "WaitForRecovery", MINUTE), ON, None),
    (
        "or no time at all is given",
        let_in(9 * MINUTE, "WaitForRecovery", MINUTE),
        replace(RECOVERS, recovery_timeout=timedelta()),
        None,
    ),
    ("not let in", waits("a", 1), ON, None),
]


@pytest.mark.parametrize(
    ("job", "policy", "clock"), [row[1:] for row in CLOCKS], ids=[row[0] for row in CLOCKS]
)
def test_a_clock_runs_for_whoever_is_not_ready(
    job: Job, policy: ReadyPolicy, clock: tuple[timedelta, str] | None
) -> None:
    found = clock_of(job, policy)
    assert (found and (found.ends_at - T0, found.cause.value)) == clock


@pytest.mark.parametrize(
    ("count", "delay"),
    [(0, 60), (1, 60), (2, 120), (3, 240), (6, 1920), (7, 3600), (8, 3600), (100_000, 3600)],
)
def test_every_try_waits_twice_as_long_up_to_a_limit(count: int, delay: int) -> None:
    assert ON.delay(count) == timedelta(seconds=delay)


def test_no_delay_is_longer_than_the_longest_and_none_may_be_nothing() -> None:
    assert replace(ON, longest=timedelta(seconds=30)).delay(1) == timedelta(seconds=30)
    assert replace(ON, base=timedelta()).delay(9) == timedelta()


def test_what_a_job_says_beats_its_queue_and_that_the_defaults() -> None:
    strategy = RequeuingStrategy(backoff_base_seconds=1, backoff_limit_count=4)
    queue = gate(timeout=Duration(minutes=9), requeuing_strategy=strategy)
    job = WaitForPodsReady(
        timeout=Duration(seconds=7), requeuing_strategy=RequeuingStrategy(backoff_limit_count=0)
    )
    policy = ready_policy(queue, job)
    assert policy.timeout == timedelta(seconds=7)
    assert (policy.base, policy.longest) == (timedelta(seconds=1), timedelta(hours=1))
    assert policy.limit == 0
    assert ready_policy(queue, WaitForPodsReady(enable=False)) == OFF
    assert ready_policy(None, job) == OFF
    assert ready_policy(gate()) == ReadyPolicy(is_on=True)


def evicted(job: Job, queue: Queue, now: datetime = T0) -> AdmissionStatus:
    [action] = decide_eviction(job, now, queue).actions
    assert isinstance(action, RecordAdmission)
    return action.admission


def test_whoever_is_late_is_put_back_and_waits_for_its_next_try() -> None:
    queue = a_gated_queue(gate())
    admission = evicted(let_in(6 * MINUTE), queue)
    assert admission.phase is AdmissionPhase.EVICTING
    assert admission.eviction is not None
    told = (admission.eviction.reason, admission.eviction.cause)
    assert told == (EvictionReason.PODS_READY_TIMEOUT, "WaitForStart")
    assert admission.requeue == Requeue(count=1, at=T0 + MINUTE)

    job = let_in(6 * MINUTE)
    evicting = newer(job, with_admission(job, admission, T0))
    back = evicted(evicting, queue, T0 + timedelta(seconds=9))
    assert back.phase is AdmissionPhase.WAITING
    assert [(wait.reason, wait.until) for wait in back.waits] == [(WaitReason.BACKOFF, T0 + MINUTE)]
    assert back.requeue == admission.requeue
    assert back.sequence == 0


def test_its_place_may_be_that_of_its_creation() -> None:
    strategy = RequeuingStrategy(timestamp=RequeuingTimestamp.CREATION)
    queue = a_gated_queue(gate(requeuing_strategy=strategy))
    job = let_in(6 * MINUTE)
    evicting = newer(job, with_admission(job, evicted(job, queue), T0))
    assert evicted(evicting, queue).sequence == 1


@pytest.mark.parametrize(
    ("before", "strategy", "after"),
    [
        (3, {"backoff_base_seconds": 10, "backoff_limit_count": 100}, 80),
        (10, {"backoff_base_seconds": 10, "backoff_max_seconds": 7200}, 7200),
        (0, {"backoff_base_seconds": 0}, 0),
    ],
)
def test_tries_are_counted(before: int, strategy: dict[str, Any], after: int) -> None:
    queue = a_gated_queue(gate(requeuing_strategy=RequeuingStrategy(**strategy)))
    tries = Requeue(count=before) if before else None
    requeue = evicted(let_in(6 * MINUTE, tries=tries), queue).requeue
    assert requeue == Requeue(count=before + 1, at=T0 + timedelta(seconds=after))


def test_no_try_comes_earlier_than_was_said() -> None:
    later = T0 + timedelta(hours=3)
    job = let_in(6 * MINUTE, tries=Requeue(count=1, at=later))
    assert evicted(job, a_gated_queue(gate())).requeue == Requeue(count=2, at=later)


@pytest.mark.parametrize(("limit", "tries", "is_over"), [(0, 0, True), (1, 0, False), (1, 1, True)])
def test_after_its_last_try_a_job_is_taken_out_of_its_queue(
    limit: int, tries: int, is_over: bool
) -> None:
    queue = a_gated_queue(gate(requeuing_strategy=RequeuingStrategy(backoff_limit_count=limit)))
    job = let_in(6 * MINUTE, tries=Requeue(count=tries) if tries else None)
    [action] = decide_eviction(job, T0, queue).actions
    assert isinstance(action, ReviseJob) is is_over
    if not isinstance(action, ReviseJob):
        return
    assert not action.spec.active
    inactive = replace(job, spec=action.spec)
    admission = evicted(inactive, queue)
    assert admission.eviction is not None
    told = (admission.eviction.reason, admission.eviction.cause)
    assert told == (EvictionReason.DEACTIVATED, "RequeuingLimitExceeded")
    evicting = newer(inactive, with_admission(inactive, admission, T0))
    # Whoever sets it active again has it begin anew.
    assert evicted(evicting, queue).requeue is None


def test_a_person_may_take_a_job_out_of_its_queue() -> None:
    job = let_in(MINUTE, active=False)
    admission = evicted(job, a_queue())
    assert admission.eviction is not None
    told = (admission.eviction.reason, admission.eviction.cause)
    assert told == (EvictionReason.DEACTIVATED, "")


def test_a_clock_that_still_runs_wakes_when_it_ends() -> None:
    decision = decide_eviction(let_in(MINUTE), T0, a_gated_queue(gate()))
    assert not decision.actions
    assert decision.wake_at == T0 + 4 * MINUTE


# The gate


CLOSED = gate(block_admission=True)


def test_one_at_a_time_is_let_in_and_the_next_when_that_is_ready() -> None:
    desk = Desk(a_gated_queue(CLOSED), a_record(), waits("a", 1), waits("b", 2))
    assert desk.grants() == ["ax1"]
    assert desk.grants() == []
    running = runs(waits("a", 1), 1)
    desk.put(running)
    assert desk.grants() == []

    ready = Condition(
        type=PODS_READY, status=ConditionStatus.TRUE, reason="Started", last_transition_time=T0
    )
    woken = desk.put(newer(running, replace(running.status, conditions=(ready,))))
    assert "queue.blue" in [key.name for key in woken]
    assert desk.grants() == ["bx1"]


def test_a_higher_priority_overtakes_who_waits_for_the_gate() -> None:
    desk = Desk(a_gated_queue(CLOSED), a_record(), waits("a", 1), waits("b", 2))
    desk.grants()
    desk.put(waits("c", 3, priority=7))
    ready = Condition(
        type=PODS_READY, status=ConditionStatus.TRUE, reason="Started", last_transition_time=T0
    )
    running = runs(waits("a", 1), 1)
    desk.put(newer(running, replace(running.status, conditions=(ready,))))
    assert desk.grants() == ["cx1"]


def test_who_waits_for_the_gate_is_told_so() -> None:
    desk = Desk(a_gated_queue(CLOSED), a_record(), waits("a", 1), waits("b", 2))
    desk.grants()
    job = desk.caches["Job"].get(waits("b", 2).key)
    assert job is not None
    queues = QueueDesk(desk.caches["Job"], desk.caches["Queue"], desk.caches["QueueQuota"])
    view = queues.view_of(job)
    assert view is not None
    assert view.wait.reason is WaitReason.GATE_CLOSED


def test_a_job_whose_queue_asks_for_it_awaits_to_be_ready() -> None:
    queues: Cache[Queue] = Cache("Queue")
    queues.note(a_gated_queue(gate()))
    view = QueueDesk(Cache("Job"), queues, Cache("QueueQuota")).view_of(waits("a", 1))
    assert view is not None
    assert view.awaits_ready
