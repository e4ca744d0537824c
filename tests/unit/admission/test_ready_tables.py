"""Jobs that have to be ready in time: the tables of KEP-349's own tests, row by row.

Sections 3.3 to 3.6: the timer, eviction and requeuing, the line, and blocking. The condition's are
in tests/unit/resources/test_resources_readiness.py, those of batch Jobs with the pods.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.admission.eviction import decide_eviction
from interlock.admission.queues.demands import blockers
from interlock.admission.queues.known import KnownQueues
from interlock.admission.ready_timers import clock_of
from interlock.resources.actions import Decision, RecordAdmission
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Eviction,
    EvictionReason,
    QuotaGrant,
    Requeue,
    Wait,
    WaitReason,
)
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Condition, ConditionStatus, Key
from interlock.resources.placement import PODS_SCHEDULED
from interlock.resources.queue import Queue, QueueOrder, QuotaHolder
from interlock.resources.readiness import PODS_READY
from interlock.resources.ready_gate import (
    ReadyPolicy,
    RequeuingStrategy,
    RequeuingTimestamp,
    WaitForPodsReady,
)
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.transitions import with_admission
from interlock.resources.values.amounts import Amount
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0
from support.queue_desk import Desk, a_queue, a_record, newer, runs, waits

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
CREATION, EVICTION = RequeuingTimestamp.CREATION, RequeuingTimestamp.EVICTION


def a_condition(type: str, reason: str, since: timedelta, *, is_true: bool = False) -> Condition:
    status = ConditionStatus.TRUE if is_true else ConditionStatus.FALSE
    return Condition(type=type, status=status, reason=reason, last_transition_time=T0 - since)


def gated(policy: WaitForPodsReady, order: QueueOrder = QueueOrder.BEST_EFFORT_FIFO) -> Queue:
    queue = a_queue(order)
    return replace(queue, spec=replace(queue.spec, wait_for_pods_ready=policy))


def policy(strategy: dict[str, Any] | None = None, **given: Any) -> WaitForPodsReady:
    return WaitForPodsReady(
        enable=True, requeuing_strategy=RequeuingStrategy(**(strategy or {})), **given
    )


def let_in(
    ago: timedelta, *conditions: Condition, requeue: Requeue | None = None, **spec: Any
) -> Job:
    job = waits("a", 1, **spec)
    grant = QuotaGrant(queue="blue", token=1, tasks=1, awaits_ready=True, awaits_places=True)
    admission = AdmissionStatus(
        phase=AdmissionPhase.ADMITTED,
        sequence=1,
        quota=grant,
        admitted_at=T0 - ago,
        requeue=requeue,
    )
    status = JobStatus(phase=JobPhase.STARTING, admission=admission, conditions=conditions)
    return newer(job, status)


# 3.3: the timer, with the limit for tasks that have no place


NOWHERE = a_condition(PODS_SCHEDULED, "Unscheduled", MINUTE)
EVERYWHERE = a_condition(PODS_SCHEDULED, "Placed", MINUTE, is_true=True)
RECOVERS = a_condition(PODS_READY, "WaitForRecovery", MINUTE)
READY = a_condition(PODS_READY, "Started", MINUTE, is_true=True)
STARTS = a_condition(PODS_READY, "WaitForStart", timedelta())


@pytest.mark.parametrize(
    ("job", "limits", "left", "cause"),
    [
        pytest.param(let_in(MINUTE), {}, 4 * MINUTE, "WaitForStart", id="let in 1m ago, none yet"),
        pytest.param(
            let_in(MINUTE, STARTS), {}, 4 * MINUTE, "WaitForStart", id="written just now: as before"
        ),
        pytest.param(let_in(7 * MINUTE), {}, -2 * MINUTE, "WaitForStart", id="let in 7m ago"),
        pytest.param(let_in(MINUTE, READY), {}, None, None, id="ready"),
        pytest.param(let_in(MINUTE, NOWHERE), {}, 4 * MINUTE, "WaitForStart", id="no limit of it"),
        pytest.param(
            let_in(MINUTE, NOWHERE), {"un": 2}, MINUTE, "Unscheduled", id="placed nowhere for 1m"
        ),
        pytest.param(
            let_in(3 * MINUTE, EVERYWHERE), {"un": 2}, 2 * MINUTE, "WaitForStart", id="placed"
        ),
        pytest.param(
            let_in(4 * MINUTE, NOWHERE), {"un": 9}, MINUTE, "WaitForStart", id="the first to end"
        ),
        pytest.param(let_in(3 * MINUTE), {"un": 2}, 2 * MINUTE, "WaitForStart", id="not told yet"),
        pytest.param(
            let_in(9 * MINUTE, RECOVERS, NOWHERE),
            {"un": 3},
            2 * MINUTE,
            "Unscheduled",
            id="a replacement has no place, and may recover for ever",
        ),
        pytest.param(
            let_in(9 * MINUTE, RECOVERS, NOWHERE),
            {"un": 3, "recovery": 2},
            MINUTE,
            "WaitForRecovery",
            id="a replacement has no place: the first to end",
        ),
        pytest.param(
            let_in(9 * MINUTE, READY, NOWHERE), {"un": 3}, None, None, id="ready is ready"
        ),
    ],
)
def test_which_clock_runs(
    job: Job, limits: dict[str, int], left: timedelta | None, cause: str | None
) -> None:
    of = {name: minutes * MINUTE for name, minutes in limits.items()}
    holds = ReadyPolicy(
        is_on=True, unscheduled_timeout=of.get("un"), recovery_timeout=of.get("recovery")
    )
    found = clock_of(job, holds)
    assert (found and found.ends_at - T0) == left
    assert (found and found.cause.value) == cause


# 3.4: eviction and requeuing, with the moments that the KEP's own tests leave out


def written(decision: Decision) -> AdmissionStatus:
    [action] = decision.actions
    assert isinstance(action, RecordAdmission)
    return action.admission


@pytest.mark.parametrize(
    ("job", "given", "cause", "count", "delay_s"),
    [
        pytest.param(
            let_in(5 * MINUTE, requeue=Requeue(count=3)),
            policy(
                {
                    "backoff_base_seconds": 10,
                    "backoff_max_seconds": 3600,
                    "backoff_limit_count": 100,
                },
                timeout=Duration(seconds=3),
            ),
            "WaitForStart",
            4,
            80,
            id="3 tries of 100, base 10",
        ),
        pytest.param(
            let_in(5 * MINUTE, requeue=Requeue(count=10)),
            policy({"backoff_base_seconds": 10, "backoff_max_seconds": 7200}),
            "WaitForStart",
            11,
            7200,
            id="10 tries: 10240 s are cut to 7200",
        ),
        pytest.param(
            let_in(9 * MINUTE, replace(RECOVERS, last_transition_time=T0 - 3 * MINUTE)),
            policy(recovery_timeout=Duration(seconds=3)),
            "WaitForRecovery",
            1,
            60,
            id="failing since 3m, may for 3 s",
        ),
        pytest.param(
            let_in(5 * MINUTE, NOWHERE),
            policy(unscheduled_timeout=Duration(seconds=3), timeout=Duration(minutes=30)),
            "Unscheduled",
            1,
            60,
            id="placed nowhere for 1m, may for 3 s",
        ),
        pytest.param(
            let_in(5 * MINUTE),
            policy({"backoff_base_seconds": 100, "backoff_max_seconds": 30}),
            "WaitForStart",
            1,
            30,
            id="the first delay is cut too",
        ),
        pytest.param(
            let_in(5 * MINUTE),
            policy({"backoff_max_seconds": 0}),
            "WaitForStart",
            1,
            0,
            id="longest of nothing: no delay",
        ),
        pytest.param(
            let_in(5 * MINUTE, requeue=Requeue(count=1, at=T0 + 500 * SECOND)),
            policy(),
            "WaitForStart",
            2,
            500,
            id="a moment that is told already and later is kept",
        ),
        pytest.param(
            let_in(5 * MINUTE, requeue=Requeue(count=1, at=T0 + 5 * SECOND)),
            policy(),
            "WaitForStart",
            2,
            120,
            id="one that is earlier is replaced",
        ),
    ],
)
def test_who_is_late_is_put_back_and_tried_again_at_its_moment(
    job: Job, given: WaitForPodsReady, cause: str, count: int, delay_s: int
) -> None:
    admission = written(decide_eviction(job, T0, gated(given)))
    assert admission.phase is AdmissionPhase.EVICTING
    assert admission.quota is not None, "everything is held until its attempts are gone"
    eviction = admission.eviction
    assert eviction is not None
    assert (eviction.reason, eviction.cause) == (EvictionReason.PODS_READY_TIMEOUT, cause)
    assert admission.requeue == Requeue(count=count, at=T0 + delay_s * SECOND)


LATE = Eviction(
    reason=EvictionReason.PODS_READY_TIMEOUT, cause="WaitForStart", began_at=T0 - MINUTE
)


def evicting(eviction: Eviction, requeue: Requeue | None = None, **spec: Any) -> Job:
    job = let_in(9 * MINUTE, requeue=requeue, **spec)
    admission = replace(job.status.admission, phase=AdmissionPhase.EVICTING, eviction=eviction)
    return newer(job, replace(job.status, phase=JobPhase.EVICTING, admission=admission))


@pytest.mark.parametrize(
    ("job", "reason", "requeue", "waits_for", "place"),
    [
        pytest.param(
            evicting(LATE, Requeue(count=2, at=T0 + MINUTE)),
            "PodsReadyTimeout",
            Requeue(count=2, at=T0 + MINUTE),
            [(WaitReason.BACKOFF, T0 + MINUTE)],
            0,
            id="late: waits for its moment, behind those who wait by then",
        ),
        pytest.param(
            evicting(LATE, Requeue(count=2, at=T0)),
            "PodsReadyTimeout",
            Requeue(count=2, at=T0),
            [],
            0,
            id="its moment is now: it does not wait for it",
        ),
        pytest.param(
            evicting(LATE, Requeue(count=2, at=T0 + MINUTE), active=False),
            "PodsReadyTimeout",
            Requeue(count=2, at=T0 + MINUTE),
            [(WaitReason.BACKOFF, T0 + MINUTE)],
            0,
            id="late, and taken out meanwhile: the first reason stays",
        ),
        pytest.param(
            evicting(replace(LATE, reason=EvictionReason.DEACTIVATED), Requeue(count=2)),
            "Deactivated",
            None,
            [],
            1,
            id="taken out of its queue: begins anew when it is back",
        ),
        pytest.param(
            evicting(replace(LATE, reason=EvictionReason.PREEMPTED, cause="")),
            "Preempted",
            None,
            [],
            1,
            id="made room: back at once, where it stood",
        ),
    ],
)
def test_how_a_job_waits_again(
    job: Job,
    reason: str,
    requeue: Requeue | None,
    waits_for: list[tuple[WaitReason, datetime]],
    place: int,
) -> None:
    back = written(decide_eviction(job, T0, gated(policy())))
    assert back.phase is AdmissionPhase.WAITING
    assert back.quota is None
    assert back.eviction is not None
    assert (back.eviction.reason.value, back.eviction.ended_at) == (reason, T0)
    assert back.requeue == requeue
    assert [(wait.reason, wait.until) for wait in back.waits] == waits_for
    assert back.sequence == place


def in_backoff(until: datetime, **spec: Any) -> Job:
    """A Job that waits for its next try, as it is stored."""
    job = waits("a", 1, **spec)
    admission = AdmissionStatus(
        sequence=1,
        epoch=1,
        evictions=1,
        eviction=replace(LATE, ended_at=T0 - MINUTE),
        requeue=Requeue(count=1, at=until),
        waits=(Wait(reason=WaitReason.BACKOFF, until=until),),
    )
    return newer(job, replace(job.status, admission=admission))


def look_at(job: Job, *more: Any) -> Decision:
    desk = Desk(gated(policy()), a_record(), job, *more)
    return desk.room.look(job.key, T0)


def test_in_its_backoff_nothing_changes_and_it_is_looked_at_when_that_is_over() -> None:
    decision = look_at(in_backoff(T0 + MINUTE))
    assert decision == Decision(wake_at=T0 + MINUTE)


@pytest.mark.parametrize("passed", [timedelta(), SECOND, MINUTE])
def test_after_its_backoff_it_stands_in_line_with_its_tries_counted(passed: timedelta) -> None:
    admission = written(look_at(in_backoff(T0 - passed)))
    assert WaitReason.BACKOFF not in [wait.reason for wait in admission.waits]
    assert admission.requeue == Requeue(count=1, at=T0 - passed)


def test_whoever_is_over_is_left_alone() -> None:
    job = in_backoff(T0 - MINUTE)
    over = ExecutionStatus(total=1, result=JobResult.KILLED, ended_at=T0)
    assert look_at(newer(job, replace(job.status, execution=over))) == Decision()


@pytest.mark.parametrize("cause", ["", "RequeuingLimitExceeded"])
def test_whoever_is_set_active_again_stands_in_line_and_begins_anew(cause: str) -> None:
    """Whatever it was taken out of its Queue for."""
    job = waits("a", 1)
    reason = EvictionReason.DEACTIVATED
    admission = AdmissionStatus(
        sequence=1,
        epoch=1,
        evictions=3,
        eviction=Eviction(reason=reason, cause=cause, began_at=T0 - MINUTE, ended_at=T0 - SECOND),
        waits=(Wait(reason=WaitReason.DEACTIVATED),),
    )
    job = newer(job, replace(job.status, admission=admission))
    desk = Desk(gated(policy({"backoff_limit_count": 1})), a_record(), job)
    assert desk.grants() == ["ax1"]
    late = let_in(9 * MINUTE)
    again = written(decide_eviction(late, T0, gated(policy({"backoff_limit_count": 1}))))
    assert again.requeue is not None
    assert again.requeue.count == 1


# 3.5: the line


def test_who_waits_for_its_next_try_stands_in_no_line_whatever_happens_to_it() -> None:
    job = in_backoff(T0 + MINUTE)
    desk = Desk(gated(policy()), a_record(), job)
    assert desk.grants() == []
    metadata = replace(job.metadata, generation=7, resource_version="999")
    edited = replace(job, metadata=metadata, spec=replace(job.spec, priority=9))
    desk.put(edited)
    assert desk.grants() == []
    assert desk.room.look(job.key, T0) == Decision(wake_at=T0 + MINUTE)

    waiting = replace(job.status.admission, waits=())
    desk.put(newer(edited, replace(job.status, admission=waiting)))
    assert desk.grants() == ["ax1"]


def put_back_late(job: Job, timestamp: RequeuingTimestamp, version: int) -> Job:
    """The Job as it waits after it was late, with its backoff over."""
    strategy = {"timestamp": timestamp, "backoff_base_seconds": 0}
    queue = gated(policy(strategy))
    grant = QuotaGrant(queue="blue", token=1, tasks=1, awaits_ready=True)
    admission = replace(
        job.status.admission,
        phase=AdmissionPhase.ADMITTED,
        admitted_at=T0 - 9 * MINUTE,
        quota=grant,
    )
    stands = newer(job, JobStatus(phase=JobPhase.STARTING, admission=admission))
    for _ in range(2):
        admission = written(decide_eviction(stands, T0, queue))
        stands = newer(stands, with_admission(stands, admission, T0))
    return at_version(stands, version)


@pytest.mark.parametrize("order", list(QueueOrder))
@pytest.mark.parametrize(
    ("timestamp", "older", "newcomer", "first"),
    [
        pytest.param(EVICTION, 0, 0, "bx1", id="Eviction: the older one was put back later"),
        pytest.param(CREATION, 0, 0, "ax1", id="Creation: back where it stood"),
        pytest.param(EVICTION, 1, 0, "ax1", id="Eviction: a priority goes first"),
        pytest.param(CREATION, 0, 1, "bx1", id="Creation: a priority goes first"),
    ],
)
def test_who_is_first_after_an_eviction(
    order: QueueOrder,
    timestamp: RequeuingTimestamp,
    older: int,
    newcomer: int,
    first: str,
) -> None:
    queue = gated(policy({"timestamp": timestamp}), order)
    one = replace(queue.spec, resources={"gpu": Amount(1000, 1)})
    late = put_back_late(waits("a", 1, priority=older), timestamp, 900)
    desk = Desk(replace(queue, spec=one), a_record(), late, waits("b", 5, priority=newcomer))
    assert desk.grants() == [first]


@pytest.mark.parametrize("timestamp", list(RequeuingTimestamp))
def test_who_made_room_stands_where_it_stood_in_both_modes(timestamp: RequeuingTimestamp) -> None:
    job = evicting(replace(LATE, reason=EvictionReason.PREEMPTED, cause=""))
    back = written(decide_eviction(job, T0, gated(policy({"timestamp": timestamp}))))
    assert back.sequence == job.status.admission.sequence


# 3.6: blocking: is everybody ready who holds a part?


CLOSED = gated(policy(block_admission=True))


def with_ready(job: Job, condition: Condition | None) -> Job:
    running = runs(job, 1)
    conditions = () if condition is None else (condition,)
    return newer(running, replace(running.status, conditions=conditions))


def at_version(job: Job, version: int) -> Job:
    return replace(job, metadata=replace(job.metadata, resource_version=str(version)))


def unready(desk: Desk) -> list[str]:
    caches = desk.caches
    known = KnownQueues(caches["Job"], caches["Queue"], caches["QueueQuota"])
    return [holder.job for holder in blockers(known, CLOSED)]


def test_who_blocks_and_who_does_not_any_more() -> None:
    job, lost = waits("a", 1), a_condition(PODS_READY, "WaitForRecovery", MINUTE)
    desk = Desk(CLOSED, a_record(), job)
    assert unready(desk) == [], "nobody holds a part"
    assert desk.grants() == ["ax1"]
    assert unready(desk) == ["a"], "granted a moment ago, and not even let in"
    for at, (condition, expected) in enumerate(
        [
            (None, ["a"]),
            (STARTS, ["a"]),
            (READY, []),
            (lost, ["a"]),
            (replace(READY, reason="Recovered"), []),
            (lost, ["a"]),
        ]
    ):
        desk.put(at_version(with_ready(job, condition), 600 + at))
        assert unready(desk) == expected, condition
    over = with_ready(job, lost)
    ended = ExecutionStatus(total=1, result=JobResult.SUCCEEDED, ended_at=T0)
    desk.put(at_version(newer(over, replace(over.status, execution=ended)), 700))
    assert unready(desk) == [], "it is over"


def test_whoever_is_not_known_to_be_ready_blocks() -> None:
    desk = Desk(CLOSED, a_record())
    holder = QuotaHolder(
        queue="blue",
        job="gone",
        namespace="default",
        uid="uid-gone",
        epoch=0,
        token=1,
        tasks=1,
        granted_at=T0,
        job_version=5000,
    )
    desk.write(replace(desk.record().status, holders=(holder,)))
    assert unready(desk) == ["gone"]


def test_the_one_that_is_not_ready_itself_keeps_what_it_holds() -> None:
    """Else it would wait for itself."""
    job = waits("a", 1)
    desk = Desk(CLOSED, a_record(), job)
    desk.grants()
    admission = written(desk.room.look(Key("Job", "default", "a"), T0))
    assert admission.phase is AdmissionPhase.ADMITTED
    assert admission.quota is not None
    assert admission.quota.awaits_ready
