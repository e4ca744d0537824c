"""A Job is put back on demand, after all of it is gone, and gives back all it held in one write."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from interlock.admission.decide import decide_job
from interlock.admission.eviction import (
    concerns_eviction,
    decide_eviction,
    is_left_alone,
    is_ordered_back,
)
from interlock.admission.view import JobView
from interlock.resources.actions import Decision, RecordAdmission
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Eviction,
    EvictionReason,
    Grant,
)
from interlock.resources.job import (
    REQUEUE_ANNOTATION,
    REQUEUE_ROUND_ANNOTATION,
    REQUEUED_BY_ANNOTATION,
    Job,
    JobPhase,
    JobStatus,
)
from interlock.resources.metadata import ConditionStatus
from interlock.resources.queue import Queue, StopPolicy
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    RetryWait,
    TaskState,
    TaskStatus,
    task_name,
)
from interlock.resources.transitions import is_admitted, moved, was_admitted, with_admission
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job
from support.queue_desk import a_queue

ORDER = {
    REQUEUE_ANNOTATION: "node 12 is slow",
    REQUEUE_ROUND_ANNOTATION: "0",
    REQUEUED_BY_ANNOTATION: "ana",
}
ADMITTED = AdmissionStatus(
    phase=AdmissionPhase.ADMITTED,
    sequence=7,
    epoch=2,
    grants=(Grant(key="db", token=40),),
    admitted_at=T0,
)
BEGUN = Eviction(reason=EvictionReason.REQUEUED, began_at=T0, by="ana", message="node 12 is slow")
EVICTING = replace(ADMITTED, phase=AdmissionPhase.EVICTING, eviction=BEGUN)
TASK = TaskStatus(
    name="job-0-0", index=0, attempt=0, state=TaskState.RUNNING, created_at=T0, started_at=T0
)
RUNS = ExecutionStatus(total=3, started_at=T0, active=(TASK,), attempts=1)
LATER = T0 + timedelta(minutes=1)


def a_let_in_job(
    admission: AdmissionStatus = ADMITTED,
    execution: ExecutionStatus = RUNS,
    annotations: dict[str, str] | None = None,
) -> Job:
    job = a_job(metadata={"annotations": ORDER if annotations is None else annotations})
    held = replace(job, status=JobStatus(phase=JobPhase.STARTING))
    status = moved(held, admission, execution, T0)
    return replace(job, status=status or JobStatus(admission=admission, execution=execution))


PLAIN = a_let_in_job(annotations={})
OPEN = a_queue()
HELD, DRAINED = a_queue(stop=StopPolicy.HOLD), a_queue(stop=StopPolicy.HOLD_AND_DRAIN)
TIMED = WaitForPodsReady(enable=True)


def written(decision: Decision) -> AdmissionStatus:
    (action,) = decision.actions
    assert isinstance(action, RecordAdmission)
    return action.admission


@pytest.mark.parametrize(
    ("annotations", "execution", "expected"),
    [
        pytest.param(ORDER, RUNS, True, id="ordered for this round"),
        pytest.param({}, RUNS, False, id="nobody ordered it"),
        pytest.param(ORDER, replace(RUNS, round=1), False, id="ordered for the round before"),
        pytest.param({REQUEUE_ANNOTATION: "why"}, RUNS, False, id="for no round at all"),
        pytest.param(
            ORDER | {REQUEUE_ROUND_ANNOTATION: "1"}, RUNS, False, id="for one that never was"
        ),
    ],
)
def test_an_order_is_for_one_round(
    annotations: dict[str, str], execution: ExecutionStatus, expected: bool
) -> None:
    job = a_let_in_job(execution=execution, annotations=annotations)

    assert is_ordered_back(job) is expected
    assert bool(decide_eviction(job, LATER).actions) is expected


def test_a_job_that_is_put_back_holds_everything_until_its_attempts_are_gone() -> None:
    admission = written(decide_eviction(a_let_in_job(), LATER))

    assert admission == replace(
        ADMITTED, phase=AdmissionPhase.EVICTING, eviction=replace(BEGUN, began_at=LATER)
    )
    assert decide_eviction(a_let_in_job(EVICTING), LATER) == Decision()


RETRIES = (RetryWait(index=1, attempt=1, not_before=T0),)


@pytest.mark.parametrize(
    ("execution", "is_put_back"),
    [
        pytest.param(RUNS, False, id="an attempt runs"),
        pytest.param(
            replace(RUNS, active=(replace(TASK, state=TaskState.UNKNOWN),)), False, id="or may"
        ),
        pytest.param(
            replace(RUNS, active=(), stopping_for=ExecutionReason.KILLED), False, id="it ends"
        ),
        pytest.param(
            replace(RUNS, active=(), result=JobResult.SUCCEEDED), False, id="it has ended"
        ),
        pytest.param(replace(RUNS, active=()), True, id="nothing is left"),
        pytest.param(replace(RUNS, active=(), retrying=RETRIES), True, id="but a retry"),
        pytest.param(ExecutionStatus(), True, id="nothing was begun"),
    ],
)
def test_it_waits_again_once_nothing_is_left(execution: ExecutionStatus, is_put_back: bool) -> None:
    job = a_let_in_job(EVICTING, execution)

    decision = decide_eviction(job, LATER)

    assert bool(decision.actions) is is_put_back
    if is_put_back:
        assert written(decision) == AdmissionStatus(
            epoch=3, evictions=1, eviction=replace(BEGUN, ended_at=LATER)
        )
        assert decision.wake_at == LATER


def test_one_write_gives_everything_back_and_begins_a_new_round() -> None:
    done = IndexSet((1,))
    left = replace(
        RUNS, active=(), retrying=RETRIES, succeeded=done, failed=IndexSet((2,)), attempts=4
    )
    job = a_let_in_job(EVICTING, left)

    after = replace(job, status=with_admission(job, written(decide_eviction(job, LATER)), LATER))

    assert after.status.phase is JobPhase.QUEUED
    assert after.status.execution == ExecutionStatus(
        round=1, total=3, succeeded=done, succeeded_before=1, attempts=4
    ), "what succeeded is not done again, all else has all its attempts"
    (admitted,) = after.status.conditions
    assert (admitted.type, admitted.status) == ("Admitted", ConditionStatus.FALSE)
    assert not is_admitted(after)
    assert was_admitted(after)
    assert decide_eviction(after, LATER) == Decision(), "the order was for the round before"


def test_no_write_puts_back_what_may_still_be_doing_something() -> None:
    job = a_let_in_job(EVICTING)

    assert moved(job, AdmissionStatus(epoch=3, evictions=1), job.status.execution, LATER) is None


def test_a_job_that_was_put_back_is_let_in_again_and_takes_the_last_place() -> None:
    waiting = AdmissionStatus(epoch=3, evictions=1, eviction=BEGUN)
    job = a_job(version=90, start_by=T0, status=JobStatus(admission=waiting))

    admission = written(decide_job(JobView(job=job), LATER))

    assert admission.phase is AdmissionPhase.ADMITTED, "a startBy that has passed was kept once"
    assert (admission.sequence, admission.epoch, admission.evictions) == (90, 3, 1)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, a_let_in_job(), True, id="seen for the first time"),
        pytest.param(a_let_in_job(annotations={}), a_let_in_job(), True, id="ordered back"),
        pytest.param(a_let_in_job(), a_let_in_job(), False, id="nothing new"),
        pytest.param(a_let_in_job(EVICTING), a_let_in_job(EVICTING), False, id="still there"),
        pytest.param(
            a_let_in_job(EVICTING),
            a_let_in_job(EVICTING, replace(RUNS, active=())),
            True,
            id="all gone",
        ),
        pytest.param(a_let_in_job(), None, False, id="deleted"),
    ],
)
def test_what_an_eviction_is_looked_at_for(
    before: Job | None, after: Job | None, expected: bool
) -> None:
    assert concerns_eviction(before, after) is expected


@pytest.mark.parametrize(
    ("job", "queue", "system", "expected"),
    [
        pytest.param(PLAIN, None, None, True, id="in no queue"),
        pytest.param(PLAIN, OPEN, None, True, id="in a queue"),
        pytest.param(PLAIN, HELD, None, True, id="in one that lets nobody else in"),
        pytest.param(PLAIN, None, TIMED, True, id="a policy for queues, and in none"),
        pytest.param(PLAIN, OPEN, TIMED, False, id="has to be ready in time"),
        pytest.param(PLAIN, DRAINED, None, False, id="in one that is drained"),
        pytest.param(a_let_in_job(), OPEN, None, False, id="ordered back"),
        pytest.param(
            replace(PLAIN, spec=replace(PLAIN.spec, active=False)), OPEN, None, False, id="inactive"
        ),
        pytest.param(a_let_in_job(EVICTING, annotations={}), OPEN, None, False, id="evicting"),
    ],
)
def test_who_is_left_alone_is_put_back_at_no_time(
    job: Job, queue: Queue | None, system: WaitForPodsReady | None, expected: bool
) -> None:
    assert is_left_alone(job, queue, system) is expected
    for moment in (T0, LATER, T0 + timedelta(days=400)) if expected else ():
        assert decide_eviction(job, moment, queue, system) == Decision()


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        pytest.param(0, "job-3-0", id="first"),
        pytest.param(12, "job-3-12", id="retry"),
        pytest.param(10_000, "job-3-r1-0", id="second round"),
        pytest.param(20_004, "job-3-r2-4", id="retry in the third"),
    ],
)
def test_the_name_of_an_attempt_says_its_round(attempt: int, expected: str) -> None:
    assert task_name("job", 3, attempt) == expected


def test_the_name_of_an_attempt_fits_into_a_label_in_every_round() -> None:
    longest = {task_name("j" * 51 + end, 9_999, 990_001_000) for end in "ab"}

    assert {len(name) for name in longest} == {63}
    assert len(longest) == 2
