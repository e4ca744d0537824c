"""Placement of a Job: which tasks have a place to run, and how PodsScheduled moves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.admission import AdmissionPhase, AdmissionStatus, QuotaGrant
from interlock.resources.job import Job, JobStatus, Parallelism
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.placement import (
    PODS_SCHEDULED,
    placed,
    pods_scheduled,
    turns_placed,
    with_placement,
)
from interlock.resources.pods import PodTemplate
from interlock.resources.tasks import (
    ExecutionStatus,
    JobResult,
    PendingReason,
    RetryWait,
    TaskState,
    TaskStatus,
)
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job

LATER = T0 + timedelta(minutes=5)
POD: dict[str, Any] = {"process": None, "pod": PodTemplate(spec={"containers": [{"name": "a"}]})}


def let_in(tasks: int = 3, *, awaits: bool = True) -> AdmissionStatus:
    grant = QuotaGrant(queue="blue", token=1, tasks=tasks, awaits_ready=True, awaits_places=awaits)
    return AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1, quota=grant, admitted_at=T0)


def a_task(
    index: int,
    state: TaskState = TaskState.STARTING,
    *,
    reason: PendingReason | None = None,
    is_placed: bool = False,
) -> TaskStatus:
    return TaskStatus(
        name=f"job-{index}-0",
        index=index,
        attempt=0,
        state=state,
        created_at=T0,
        reason=reason,
        placed_at=T0 if is_placed else None,
    )


@pytest.mark.parametrize(
    ("kind", "task", "expected"),
    [
        pytest.param(POD, a_task(0), 0, id="a pod that no node took"),
        pytest.param(POD, a_task(0, is_placed=True), 1, id="one that a node took"),
        pytest.param(POD, a_task(0, reason=PendingReason.UNSCHEDULABLE), 0, id="unschedulable"),
        pytest.param(POD, a_task(0, reason=PendingReason.GATED), 0, id="held by others' gates"),
        pytest.param(POD, a_task(0, reason=PendingReason.IMAGE), 1, id="its image is pulled"),
        pytest.param(POD, a_task(0, reason=PendingReason.CONTAINER), 1, id="its container is made"),
        pytest.param(POD, a_task(0, TaskState.RUNNING), 1, id="it runs"),
        pytest.param(POD, a_task(0, TaskState.UNKNOWN), 1, id="it may run"),
        pytest.param({}, a_task(0), 1, id="a process begins only where there is room"),
    ],
)
def test_which_task_has_a_place(kind: dict[str, Any], task: TaskStatus, expected: int) -> None:
    job = a_job("job", **kind)
    execution = ExecutionStatus(total=1, active=(task,))

    assert placed(job.spec, execution, let_in(1)) == (expected, 1)


@pytest.mark.parametrize(
    ("execution", "granted", "expected"),
    [
        pytest.param(ExecutionStatus(), 3, (0, 3), id="not begun"),
        pytest.param(
            ExecutionStatus(total=3, active=(a_task(0, TaskState.RUNNING),)),
            3,
            (1, 3),
            id="no room for the other two",
        ),
        pytest.param(
            ExecutionStatus(
                total=3,
                active=(a_task(0, TaskState.RUNNING),),
                succeeded=IndexSet((1,)),
                failed=IndexSet((2,)),
            ),
            3,
            (3, 3),
            id="what is over had its place",
        ),
        pytest.param(
            ExecutionStatus(total=3, retrying=(RetryWait(index=0, attempt=1, not_before=LATER),)),
            3,
            (1, 3),
            id="so had what is tried again",
        ),
        pytest.param(
            ExecutionStatus(total=3, active=(a_task(0, TaskState.RUNNING),)),
            1,
            (1, 1),
            id="no more than it was let in with",
        ),
        pytest.param(
            ExecutionStatus(total=3, succeeded=IndexSet((0, 1)), succeeded_before=2, round=1),
            3,
            (0, 1),
            id="put back: what succeeded before counts for nothing",
        ),
    ],
)
def test_how_many_tasks_have_a_place(
    execution: ExecutionStatus, granted: int, expected: tuple[int, int]
) -> None:
    job = a_job("job", parallelism=Parallelism(count=3))

    assert placed(job.spec, execution, let_in(granted)) == expected


def condition(*, is_true: bool) -> Condition:
    status = ConditionStatus.TRUE if is_true else ConditionStatus.FALSE
    reason = "Placed" if is_true else "Unscheduled"
    return Condition(type=PODS_SCHEDULED, status=status, reason=reason, last_transition_time=T0)


TRUE, FALSE = condition(is_true=True), condition(is_true=False)
NOBODY, TWO = (
    ExecutionStatus(total=2),
    ExecutionStatus(total=2, active=tuple(a_task(at, TaskState.RUNNING) for at in range(2))),
)
OVER = ExecutionStatus(total=2, result=JobResult.FAILED, ended_at=T0)
EVICTING = replace(let_in(2), phase=AdmissionPhase.EVICTING)


@pytest.mark.parametrize(
    ("before", "admission", "execution", "expected", "moved"),
    [
        pytest.param(None, let_in(2), NOBODY, "Unscheduled", True, id="let in"),
        pytest.param(FALSE, let_in(2), NOBODY, "Unscheduled", False, id="as it was"),
        pytest.param(FALSE, let_in(2), TWO, "Placed", True, id="placed"),
        pytest.param(TRUE, let_in(2), TWO, "Placed", False, id="placed still"),
        pytest.param(TRUE, let_in(2), NOBODY, "Unscheduled", True, id="a place is lost"),
        pytest.param(FALSE, EVICTING, TWO, "Unscheduled", False, id="being put back"),
        pytest.param(FALSE, let_in(2), OVER, "Unscheduled", False, id="over"),
        pytest.param(FALSE, AdmissionStatus(), NOBODY, None, False, id="waits again"),
        pytest.param(FALSE, let_in(2, awaits=False), NOBODY, None, False, id="no limit any more"),
        pytest.param(None, let_in(2, awaits=False), NOBODY, None, False, id="nobody asks"),
    ],
)
def test_how_the_condition_moves(
    before: Condition | None,
    admission: AdmissionStatus,
    execution: ExecutionStatus,
    expected: str | None,
    moved: bool,
) -> None:
    job = a_job("job", parallelism=Parallelism(count=2))
    held = () if before is None else (before,)

    after = with_placement(job, held, admission, execution, LATER)

    if expected is None:
        assert after == ()
        return
    (one,) = after
    assert one.reason == expected
    assert one.last_transition_time == (LATER if moved else T0)
    assert (after is held) is not moved


def a_stored_job(execution: ExecutionStatus, *conditions: Condition) -> Job:
    status = JobStatus(admission=let_in(2), execution=execution, conditions=conditions)
    return a_job("job", parallelism=Parallelism(count=2), status=status)


def test_the_last_place_that_was_waited_for_is_news() -> None:
    one = replace(TWO, active=TWO.active[:1])

    assert turns_placed(a_stored_job(NOBODY, FALSE), TWO)
    assert not turns_placed(a_stored_job(NOBODY, FALSE), one)
    assert turns_placed(a_stored_job(TWO, TRUE), one)
    assert not turns_placed(a_stored_job(NOBODY), TWO), "nobody asks"
    assert pods_scheduled(a_stored_job(NOBODY)) is None
