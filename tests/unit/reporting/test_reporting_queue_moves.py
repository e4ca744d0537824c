"""What is counted of Jobs on their way through Queues, as their changes are heard."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from interlock.control.reconciler import Change
from interlock.modes.queue_metrics import QueueMoveMetrics
from interlock.reporting.queue_moves import (
    ENDS,
    MOST_PRIORITIES,
    MOST_QUEUES,
    Evicted,
    LetIn,
    Move,
    QueueMoves,
    Ready,
    Released,
    moves_of,
)
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Eviction,
    EvictionReason,
    QuotaGrant,
    Requeue,
)
from interlock.resources.job import Job, JobStatus
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.readiness import PODS_READY, ReadyReason
from interlock.testing.builders import T0, a_job


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def a_queued(
    name: str = "train",
    *,
    let_in: float | None = None,
    ready: tuple[ReadyReason, float] | None = None,
    put_back: tuple[EvictionReason, str, float, float | None] | None = None,
    requeue: float | None = None,
    epoch: int = 0,
    **spec: Any,
) -> Job:
    """A Job of Queue q, created at T0, as it is at some moment."""
    eviction = None
    if put_back is not None:
        reason, cause, began, ended = put_back
        eviction = Eviction(
            reason=reason,
            cause=cause,
            began_at=at(began),
            ended_at=None if ended is None else at(ended),
        )
    is_in = let_in is not None
    admission = AdmissionStatus(
        phase=AdmissionPhase.ADMITTED if is_in else AdmissionPhase.WAITING,
        epoch=epoch,
        quota=QuotaGrant(queue="q", token=1, tasks=1) if is_in else None,
        admitted_at=None if let_in is None else at(let_in),
        eviction=eviction,
        requeue=None if requeue is None else Requeue(count=1, at=at(requeue)),
    )
    conditions: tuple[Condition, ...] = ()
    if ready is not None:
        why, since = ready
        is_ready = why in (ReadyReason.STARTED, ReadyReason.RECOVERED)
        conditions = (
            Condition(
                type=PODS_READY,
                status=ConditionStatus.TRUE if is_ready else ConditionStatus.FALSE,
                reason=why.value,
                last_transition_time=at(since),
            ),
        )
    status = JobStatus(admission=admission, conditions=conditions)
    job = a_job(name, status=status, **{"queue": "q", **spec})
    return replace(job, metadata=replace(job.metadata, creation_timestamp=T0))


TIMEOUT, PREEMPTED = EvictionReason.PODS_READY_TIMEOUT, EvictionReason.PREEMPTED
STARTED, RECOVERED, LOST = (
    ReadyReason.STARTED,
    ReadyReason.RECOVERED,
    ReadyReason.WAIT_FOR_RECOVERY,
)
START = ReadyReason.WAIT_FOR_START
IN = a_queued(let_in=10, ready=(START, 10))
UP = a_queued(let_in=10, ready=(STARTED, 25))
AGAIN = a_queued(let_in=10, ready=(LOST, 30))
GOING = a_queued(let_in=10, ready=(START, 10), put_back=(TIMEOUT, "WaitForStart", 70, None))
GONE = a_queued(put_back=(TIMEOUT, "WaitForStart", 70, 75), requeue=130, epoch=1)
SECOND = a_queued(
    let_in=140, put_back=(TIMEOUT, "WaitForStart", 70, 75), requeue=130, epoch=1, ready=(START, 70)
)
UP_THEN_OUT = a_queued(let_in=10, ready=(STARTED, 25), put_back=(PREEMPTED, "", 65, None))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(a_queued(), IN, [LetIn(s(10))], id="let in"),
        pytest.param(IN, IN, [], id="nothing new"),
        pytest.param(IN, UP, [Ready(s(25), s(15))], id="ready"),
        pytest.param(UP, AGAIN, [], id="not ready any more"),
        pytest.param(AGAIN, a_queued(let_in=10, ready=(RECOVERED, 35)), [], id="recovered"),
        pytest.param(
            a_queued(), UP, [LetIn(s(10)), Ready(s(25), s(15))], id="what was between not heard"
        ),
        pytest.param(
            IN, GOING, [Evicted("PodsReadyTimeout", "WaitForStart")], id="put back, never ready"
        ),
        pytest.param(UP, UP_THEN_OUT, [Evicted("Preempted", "", s(40))], id="put back when ready"),
        pytest.param(GOING, GONE, [Released("PodsReadyTimeout", s(5))], id="all given back"),
        pytest.param(GONE, GONE, [], id="that is told once"),
        pytest.param(GONE, SECOND, [LetIn(s(10))], id="the second wait begins after the backoff"),
        pytest.param(
            UP,
            GONE,
            [
                Evicted("PodsReadyTimeout", "WaitForStart", s(45)),
                Released("PodsReadyTimeout", s(5)),
            ],
            id="both in one change",
        ),
    ],
)
def test_a_change_tells_what_became_of_a_job(
    before: Job | None, after: Job, expected: list[Move]
) -> None:
    assert list(moves_of(before, after, T0)) == expected


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param(0.0, [LetIn(s(10)), Ready(s(25), s(15))], id="it began after we listened"),
        pytest.param(20.0, [Ready(s(25), s(15))], id="we came between"),
        pytest.param(60.0, [], id="all that was before us"),
    ],
)
def test_of_a_job_that_is_seen_first_only_what_is_new_counts(
    since: float, expected: list[Move]
) -> None:
    assert list(moves_of(None, UP, at(since))) == expected


class Counted:
    """What is counted of changes, and told of it."""

    def __init__(self, *jobs: Job, leads: bool = True) -> None:
        self.leads = leads
        self.moves = QueueMoves(T0, lambda: self.leads)
        self._held: dict[str, Job] = {}
        self.hear(*jobs)

    def hear(self, *jobs: Job) -> Counted:
        for job in jobs:
            self.moves.observe(Change(self._held.get(job.metadata.name), job))
            self._held[job.metadata.name] = job
        return self

    def delete(self, job: Job) -> Counted:
        self.moves.observe(Change(self._held.pop(job.metadata.name), None))
        return self

    def text(self) -> str:
        registry = CollectorRegistry()
        registry.register(QueueMoveMetrics(self.moves))
        return generate_latest(registry).decode()

    def value(self, series: str) -> float | None:
        lines = dict(line.rsplit(" ", 1) for line in self.text().splitlines() if line[0] != "#")
        told = lines.get(f"interlock_queue_{series}")
        return None if told is None else float(told)


def test_buckets_are_one_second_and_then_two_and_a_half_doubling() -> None:
    assert ENDS[:4] == (1.0, 2.5, 5.0, 10.0)
    assert (len(ENDS), ENDS[-1]) == (14, 10240.0)


def test_a_life_in_a_queue_is_told_in_numbers() -> None:
    counted = Counted(a_queued(priority=5), *(replace_priority(one) for one in (IN, UP)))
    counted.hear(replace_priority(UP_THEN_OUT))
    of = 'priority="5",queue="q"'

    assert counted.value('admission_wait_seconds_sum{priority="5",queue="q"}') == 10
    assert counted.value(f'admission_wait_seconds_bucket{{le="5.0",{of}}}') == 0
    assert counted.value(f'admission_wait_seconds_bucket{{le="10.0",{of}}}') == 1
    assert counted.value(f"ready_wait_seconds_sum{{{of}}}") == 25
    assert counted.value(f"admitted_until_ready_seconds_sum{{{of}}}") == 15
    labels = '{cause="",priority="5",queue="q",reason="Preempted"}'
    assert counted.value(f"evicted_jobs_total{labels}") == 1
    assert counted.value(f"evicted_jobs_once_total{labels}") == 1
    why = '{cause="",queue="q",reason="Preempted"}'
    assert counted.value(f"ready_to_evicted_seconds_sum{why}") == 40


def replace_priority(job: Job) -> Job:
    return replace(job, spec=replace(job.spec, priority=5))


def test_a_limit_is_told_as_deactivation_and_a_job_once_for_each_cause() -> None:
    def out(reason: EvictionReason, cause: str, began: float, epoch: int) -> list[Job]:
        put_back = (reason, cause, began)
        return [
            a_queued(let_in=began - 5, epoch=epoch, put_back=(*put_back, None)),
            a_queued(put_back=(*put_back, began + 1), epoch=epoch + 1),
        ]

    timeout = '{cause="WaitForStart",priority="0",queue="q",reason="PodsReadyTimeout"}'
    limit = '{cause="RequeuingLimitExceeded",priority="0",queue="q",reason="Deactivated"}'
    deactivated = (EvictionReason.DEACTIVATED, "RequeuingLimitExceeded")

    counted = Counted(
        *out(TIMEOUT, "WaitForStart", 10, 0),
        *out(TIMEOUT, "WaitForStart", 30, 1),
        *out(*deactivated, 50, 2),
    )

    assert counted.value(f"evicted_jobs_total{timeout}") == 2
    assert counted.value(f"evicted_jobs_once_total{timeout}") == 1
    assert counted.value(f"evicted_jobs_total{limit}") == 1
    assert counted.value(f"evicted_jobs_once_total{limit}") == 1
    assert counted.value('eviction_latency_seconds_count{queue="q",reason="Deactivated"}') == 1
    # None of them was ready.
    assert "ready_to_evicted_seconds_count" not in counted.text()


def test_what_a_status_tells_of_the_time_before_is_not_told_again_as_the_first() -> None:
    first = a_queued(put_back=(TIMEOUT, "WaitForStart", -10, -5), epoch=1)
    counted = Counted(first)

    counted.hear(a_queued(let_in=10, put_back=(TIMEOUT, "WaitForStart", 20, None), epoch=1))

    labels = '{cause="WaitForStart",priority="0",queue="q",reason="PodsReadyTimeout"}'
    assert counted.value(f"evicted_jobs_total{labels}") == 1
    assert counted.value(f"evicted_jobs_once_total{labels}") is None


def test_who_does_not_lead_counts_nothing() -> None:
    counted = Counted(a_queued(), IN, leads=False)
    counted.leads = True

    counted.hear(UP)

    assert "admission_wait_seconds_count" not in counted.text()
    assert counted.value('ready_wait_seconds_count{priority="0",queue="q"}') == 1


def test_jobs_without_a_queue_are_not_counted() -> None:
    outside = replace(
        IN, status=replace(IN.status, admission=replace(IN.status.admission, quota=None))
    )
    outside = replace(outside, spec=replace(outside.spec, queue=None))

    assert "_count{" not in Counted(a_job("train"), outside).text()


def test_who_is_gone_leaves_nothing_behind() -> None:
    counted = Counted(IN, GOING, GONE)
    counted.delete(GONE)

    assert not counted.moves._known


def test_labels_are_bounded_whatever_people_write() -> None:
    counted = Counted()
    for number in range(MOST_PRIORITIES + 5):
        counted.hear(a_queued(f"p{number}", let_in=10, priority=number))
    for number in range(MOST_QUEUES + 5):
        job = a_queued(f"q{number}", let_in=10)
        grant = QuotaGrant(queue=f"queue-{number}", token=1, tasks=1)
        admission = replace(job.status.admission, quota=grant)
        counted.hear(replace(job, status=replace(job.status, admission=admission)))

    told = {labels: sum(one.counts) for labels, one in counted.moves.let_in.items()}
    assert told["q", "other"] == 5
    # One of the Queues that are told apart is the one above.
    assert told["other", "0"] == 6
    assert len(told) == MOST_PRIORITIES + 1 + MOST_QUEUES
