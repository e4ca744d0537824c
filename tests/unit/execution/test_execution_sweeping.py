"""The sweeper: which operations are looked at again, and which are left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from execution_builders import at, seconds
from hypothesis import given
from hypothesis import strategies as st

from interlock.execution.sweeping import Lost, SweepView, sweep
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Metadata
from interlock.resources.operation import OperationState, OperationStatus, StepState, StepStatus
from interlock.resources.steps import StepRetries, Target, UndoRetries
from interlock.resources.tasks import ExecutionStatus
from interlock.resources.transitions import phase_of
from interlock.testing.builders import T0
from support.operation_play import a_step, an_operation

STEP = a_step(
    "a",
    retries=StepRetries(limit=9, delay=seconds(10)),
    undo_retries=UndoRetries(limit=9, delay=seconds(20)),
)


def a_swept_job(
    name: str = "op",
    *,
    operation: OperationStatus | None = None,
    sequence: int = 1,
    is_admitted: bool = True,
    **spec: Any,
) -> Job:
    """An operation whose status was written at T0."""
    admission = AdmissionStatus(sequence=sequence)
    if is_admitted and sequence:
        admission = AdmissionStatus(
            phase=AdmissionPhase.ADMITTED, sequence=sequence, admitted_at=T0
        )
    execution = ExecutionStatus(operation=operation)
    return Job(
        metadata=Metadata(
            name=name,
            namespace="default",
            uid=name,
            resource_version=str(sequence or 99),
            creation_timestamp=T0,
        ),
        spec=an_operation(STEP, **spec),
        status=JobStatus(
            phase=phase_of(admission, execution), admission=admission, execution=execution
        ),
    )


def waiting(retries: int = 0, undo_retries: int = 0, *, reverting: bool = False) -> OperationStatus:
    """An operation that waits to try its step again, since T0."""
    state = StepState.UNDO_FAILED if reverting else StepState.FAILED
    return OperationStatus(
        steps=(StepStatus(name="a", state=state, not_before=T0),),
        retry_count=retries,
        rollback_retry_count=undo_retries,
        reverting=reverting,
        next_attempt_at=T0,
        updated_at=T0,
    )


def executing(**more: Any) -> OperationStatus:
    step = StepStatus(name="a", state=StepState.RUNNING)
    state = OperationState.EXECUTING
    return OperationStatus(steps=(step,), state=state, updated_at=T0, **more)


def woken(*jobs: Job, after: float = 0, older_than: float = 600, **view: Any) -> dict[str, Lost]:
    """What a sweep wakes so many seconds after T0."""
    given = SweepView(jobs=jobs, **view)
    found = sweep(given, at(after), timedelta(seconds=older_than))
    return {one.job.metadata.name: one.reason for one in found.wake_ups}


@pytest.mark.parametrize(
    ("operation", "threshold", "reason"),
    [
        pytest.param(waiting(2), 620, Lost.RETRY_OVERDUE, id="two retries made"),
        pytest.param(waiting(1), 610, Lost.RETRY_OVERDUE, id="one retry made"),
        pytest.param(waiting(0), 600, Lost.RETRY_OVERDUE, id="no retry made"),
        pytest.param(waiting(3, 0, reverting=True), 600, Lost.UNDO_OVERDUE, id="no undo retried"),
        pytest.param(waiting(3, 2, reverting=True), 640, Lost.UNDO_OVERDUE, id="undo tried thrice"),
        pytest.param(executing(), 600, Lost.UNTOUCHED, id="executing, and nobody does"),
        pytest.param(None, 600, Lost.UNTOUCHED, id="let in, and not begun"),
    ],
)
def test_strictly_older_than_the_threshold_acts(
    operation: OperationStatus | None, threshold: float, reason: Lost
) -> None:
    job = a_swept_job(operation=operation)
    assert woken(job, after=threshold) == {}
    assert woken(job, after=threshold + 0.001) == {"op": reason}


def test_the_age_is_what_one_says() -> None:
    job = a_swept_job(operation=waiting(2))
    assert woken(job, after=25, older_than=5) == {}
    assert woken(job, after=26, older_than=5) == {"op": Lost.RETRY_OVERDUE}
    assert woken(job, after=0, older_than=0) == {"op": Lost.RETRY_OVERDUE}


def test_what_nobody_has_seen_is_woken_at_once_and_then_like_all() -> None:
    job = a_swept_job(sequence=0)
    assert woken(job) == {"op": Lost.NEVER_SEEN}
    assert woken(job, after=600, woken={"op": T0}) == {}
    assert woken(job, after=601, woken={"op": T0}) == {"op": Lost.NEVER_SEEN}


def test_an_attempt_under_a_live_lease_is_left_alone_however_old() -> None:
    job = a_swept_job(operation=executing())
    ages = [after for after in (601, 10**9) if woken(job, after=after, under_way=frozenset({"op"}))]
    assert ages == []
    assert not woken(job, older_than=0, under_way=frozenset({"op"}))


def test_a_second_pass_adds_none() -> None:
    job = a_swept_job(operation=executing())
    assert woken(job, after=601) == {"op": Lost.UNTOUCHED}
    assert woken(job, after=601, woken={"op": at(601)}) == {}
    assert woken(job, after=1201, woken={"op": at(601)}) == {}
    assert woken(job, after=1202, woken={"op": at(601)}) == {"op": Lost.UNTOUCHED}


def test_what_is_stuck_is_told_and_not_touched() -> None:
    late = a_swept_job("late", operation=executing(stuck_at=at(5), stuck_message="no ledger"))
    early = a_swept_job("early", operation=executing(stuck_at=at(1)))
    found = sweep(SweepView(jobs=(late, early)), at(10**6), timedelta())
    assert found.wake_ups == ()
    assert found.stuck == (early, late)


TARGET = Target(path="domains/acme/applications/shop")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param({}, {}, {"first"}, id="the older one goes first"),
        pytest.param({"is_admitted": False}, {}, {"second"}, id="unless another was let in"),
        pytest.param({"is_admitted": False}, {"is_admitted": False}, {"first"}, id="both wait"),
        pytest.param({"operation": executing(stuck_at=T0)}, {}, set(), id="behind a stuck one"),
        pytest.param({"suspend": True}, {}, set(), id="behind one that is held back"),
        pytest.param({}, {"sequence": 0}, {"first", "second"}, id="one that nobody has seen"),
    ],
)
def test_behind_another_one_on_its_target_an_operation_waits(
    first: dict[str, Any], second: dict[str, Any], expected: set[str]
) -> None:
    jobs = (
        a_swept_job("second", **{"sequence": 2, "target": TARGET, **second}),
        a_swept_job("first", **{"sequence": 1, "target": TARGET, **first}),
    )
    assert set(woken(*jobs, after=601)) == expected


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(a_swept_job(suspend=True), set(), id="suspended"),
        pytest.param(a_swept_job(start_after=at(10_000)), set(), id="to start later"),
        pytest.param(a_swept_job(start_after=at(100)), {"op"}, id="to have started"),
        pytest.param(
            a_swept_job(start_after=at(10_000), operation=waiting()), {"op"}, id="begun already"
        ),
    ],
)
def test_what_is_held_back_on_purpose_is_left_alone(job: Job, expected: set[str]) -> None:
    assert set(woken(job, after=601)) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("", {"op", "other"}),
        ("domains/acme", {"op"}),
        ("domains/acme/applications/shop", {"op"}),
        ("domains/ac", set()),
        ("domains/acme/applications/shop/x", set()),
    ],
)
def test_a_sweep_may_be_of_one_target(target: str, expected: set[str]) -> None:
    jobs = (a_swept_job(target=TARGET), a_swept_job("other"))
    assert set(woken(*jobs, after=601, target=target)) == expected


OPERATIONS = st.sampled_from(
    [None, executing(), waiting(2), waiting(3, 2, reverting=True), executing(stuck_at=T0)]
)
JOBS = st.builds(
    a_swept_job,
    operation=OPERATIONS,
    sequence=st.integers(0, 2),
    is_admitted=st.booleans(),
    suspend=st.booleans(),
)


@given(job=JOBS, after=st.integers(0, 2000), older_than=st.sampled_from([0, 5, 600]))
def test_a_stuck_one_is_never_woken_and_a_pass_right_after_another_wakes_none(
    job: Job, after: float, older_than: float
) -> None:
    stuck = job.status.phase is JobPhase.STUCK
    first = woken(job, after=after, older_than=older_than)
    assert not (stuck and first)
    again = woken(job, after=after, older_than=older_than, woken={"op": at(after)})
    assert not (again and older_than)
