"""Readiness of a Job: when it is ready, and how its condition PodsReady moves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from interlock.resources.admission import AdmissionPhase, AdmissionStatus, Eviction, EvictionReason
from interlock.resources.job import Job, JobPhase, JobStatus, Parallelism
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.pods import PodTemplate
from interlock.resources.process import FileProbe, ProcessSpec, ReadinessProbe
from interlock.resources.readiness import (
    PODS_READY,
    is_job_ready,
    pods_ready,
    wants_readiness,
    with_readiness,
)
from interlock.resources.tasks import (
    MOST_AT_ONCE,
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    TaskState,
    TaskStatus,
)
from interlock.resources.transitions import phase_of, with_admission, with_execution
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job

PROBED = ProcessSpec(command=("serve",), readiness_probe=ReadinessProbe(file=FileProbe(path="up")))
PLAIN = ProcessSpec(command=("serve",))
ADMITTED = AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1, admitted_at=T0)
WAITING = AdmissionStatus()
EVICTING = AdmissionStatus(phase=AdmissionPhase.EVICTING, sequence=1, admitted_at=T0)
LATER = T0 + timedelta(minutes=5)
START, RECOVERY = "WaitForStart", "WaitForRecovery"


def a_probed_job(count: int, at_once: int | None = None, **more: Any) -> Job:
    return a_job(
        "job", process=PROBED, parallelism=Parallelism(count=count, at_once=at_once), **more
    )


def doing(total: int, *, ready: int = 0, succeeded: int = 0, unready: int = 0) -> ExecutionStatus:
    """So many tasks that are ready, that succeeded, and that run and are not ready."""
    tasks = [a_task(succeeded + at, ready=at < ready) for at in range(ready + unready)]
    done = IndexSet.parse(f"0-{succeeded - 1}") if succeeded else IndexSet()
    return ExecutionStatus(total=total, started_at=T0, active=tuple(tasks), succeeded=done)


def a_task(
    index: int, *, state: TaskState = TaskState.RUNNING, ready: bool | None = True
) -> TaskStatus:
    return TaskStatus(
        name=f"job-{index}-0", index=index, attempt=0, state=state, created_at=T0, ready=ready
    )


def condition(reason: str, *, is_true: bool = False) -> Condition:
    status = ConditionStatus.TRUE if is_true else ConditionStatus.FALSE
    return Condition(type=PODS_READY, status=status, reason=reason, last_transition_time=T0)


# The formula: the table of the sheet, with what the batch Job calls parallelism and completions


@pytest.mark.parametrize(
    ("at_once", "total", "ready", "succeeded", "expected"),
    [
        pytest.param(3, 3, 0, 0, False, id="nothing yet"),
        pytest.param(3, 3, 1, 1, False, id="one short"),
        pytest.param(3, 3, 3, 0, True, id="all ready"),
        pytest.param(3, 3, 2, 1, True, id="ready and succeeded"),
        pytest.param(3, 3, 0, 3, True, id="all succeeded"),
        pytest.param(2, 3, 2, 0, True, id="as many as run at once are enough"),
        pytest.param(3, 2, 2, 0, True, id="as many as there are, are enough"),
        pytest.param(None, 3, 2, 0, False, id="all of them, one short"),
        pytest.param(None, 3, 3, 0, True, id="all of them"),
        pytest.param(2, 9, 0, 2, True, id="once so many succeeded it stays ready"),
    ],
)
def test_when_a_job_is_ready(
    at_once: int | None, total: int, ready: int, succeeded: int, expected: bool
) -> None:
    job = a_probed_job(total, at_once)
    left = min(at_once or total, total - succeeded) - ready
    now = doing(total, ready=ready, succeeded=succeeded, unready=left)

    assert is_job_ready(job.spec, now) is expected


@pytest.mark.parametrize(
    ("process", "task", "expected"),
    [
        pytest.param(PROBED, a_task(0, ready=True), True, id="said to be ready"),
        pytest.param(PROBED, a_task(0, ready=False), False, id="said not to be"),
        pytest.param(PROBED, a_task(0, ready=None), False, id="probed, and nothing said yet"),
        pytest.param(PLAIN, a_task(0, ready=None), True, id="without a probe it runs: ready"),
        pytest.param(PLAIN, a_task(0, state=TaskState.STARTING, ready=None), False, id="starting"),
        pytest.param(PROBED, a_task(0, state=TaskState.KILLING), False, id="being stopped"),
        pytest.param(PROBED, a_task(0, state=TaskState.UNKNOWN), False, id="unknown"),
    ],
)
def test_which_task_counts(process: ProcessSpec, task: TaskStatus, expected: bool) -> None:
    job = a_job("job", process=process)

    assert is_job_ready(job.spec, ExecutionStatus(total=1, active=(task,))) is expected


def test_no_more_tasks_have_to_be_ready_than_may_run_at_a_time() -> None:
    job = a_probed_job(2 * MOST_AT_ONCE)

    assert not is_job_ready(job.spec, doing(2 * MOST_AT_ONCE, ready=MOST_AT_ONCE - 1))
    assert is_job_ready(job.spec, doing(2 * MOST_AT_ONCE, ready=MOST_AT_ONCE))


def test_failed_tasks_never_count() -> None:
    job = a_probed_job(3)
    failed = IndexSet.parse("2")
    execution = ExecutionStatus(total=3, active=(a_task(0), a_task(1)), failed=failed)

    assert not is_job_ready(job.spec, execution)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{"name": "a", "readinessProbe": {"httpGet": {"port": 80}}}], True),
        ([{"name": "a"}, {"name": "b", "readinessProbe": {"exec": {}}}], True),
        ([{"name": "a", "livenessProbe": {"exec": {}}}], False),
        ([{"name": "a", "readinessProbe": None}], False),
    ],
)
def test_a_pod_is_asked_about_when_a_container_has_a_probe(
    containers: list[dict[str, Any]], expected: bool
) -> None:
    job = a_job("job", process=None, pod=PodTemplate(spec={"containers": containers}))

    assert wants_readiness(job) is expected


# The state machine


@pytest.mark.parametrize(
    ("before", "is_let_in", "ready", "expected", "moved"),
    [
        pytest.param(None, False, 0, (False, START), True, id="none, not let in"),
        pytest.param(None, True, 0, (False, START), True, id="none, let in"),
        pytest.param(condition(START), True, 9, (False, START), False, id="one short: as it was"),
        pytest.param(condition(START), True, 10, (True, "Started"), True, id="all are"),
        pytest.param(None, True, 10, (True, "Started"), True, id="all are at the first look"),
        pytest.param(
            condition("Started", is_true=True), True, 9, (False, RECOVERY), True, id="one is lost"
        ),
        pytest.param(
            condition("Recovered", is_true=True), True, 9, (False, RECOVERY), True, id="lost again"
        ),
        pytest.param(
            condition(RECOVERY), True, 8, (False, RECOVERY), False, id="more are lost: as it was"
        ),
        pytest.param(condition(RECOVERY), True, 10, (True, "Recovered"), True, id="recovered"),
        pytest.param(
            condition("Recovered", is_true=True), True, 10, (True, "Recovered"), False, id="stays"
        ),
        pytest.param(condition("Weird"), True, 9, (False, START), False, id="an unknown reason"),
        pytest.param(
            condition("PodsReady", is_true=True), True, 10, (True, "Started"), False, id="old, true"
        ),
        pytest.param(
            condition("PodsReady"), True, 9, (False, START), False, id="old, false, not ready"
        ),
        pytest.param(
            condition("PodsReady", is_true=True), True, 9, (False, RECOVERY), True, id="old, lost"
        ),
        pytest.param(
            condition("Started", is_true=True), False, 10, (False, START), True, id="put back"
        ),
        pytest.param(
            condition(RECOVERY), False, 0, (False, START), False, id="put back while it recovers"
        ),
    ],
)
def test_how_the_condition_moves(
    before: Condition | None,
    is_let_in: bool,
    ready: int,
    expected: tuple[bool, str],
    moved: bool,
) -> None:
    """The moment of the transition moves with the status alone, never with the reason."""
    job = a_probed_job(10)
    held = () if before is None else (before,)
    admission = ADMITTED if is_let_in else WAITING
    execution = doing(10, ready=ready, unready=10 - ready)

    (after,) = with_readiness(job, held, admission, execution, LATER)

    assert (after.status is ConditionStatus.TRUE, after.reason) == expected
    assert after.last_transition_time == (LATER if moved else T0)
    assert with_readiness(job, (after,), admission, execution, LATER) == (after,)


def test_what_is_as_it_was_is_the_very_same_object() -> None:
    held = (condition(START),)

    assert with_readiness(a_probed_job(2), held, ADMITTED, doing(2, ready=1), LATER) is held


def test_nobody_is_told_of_the_readiness_of_a_job_without_a_probe() -> None:
    job = a_job("job", process=PLAIN)

    assert with_readiness(job, (), ADMITTED, doing(1, ready=1), LATER) == ()


@pytest.mark.parametrize("execution", [doing(2, ready=2), doing(2, unready=2)])
def test_what_its_dying_tasks_do_relabels_no_eviction(execution: ExecutionStatus) -> None:
    held = (condition(RECOVERY),)

    assert with_readiness(a_probed_job(2), held, EVICTING, execution, LATER) is held


def test_a_job_that_failed_stays_as_it_was() -> None:
    held = (condition("Started", is_true=True),)
    failed = ExecutionStatus(
        total=2, result=JobResult.FAILED, reason=ExecutionReason.TASK_FAILED, ended_at=LATER
    )

    assert with_readiness(a_probed_job(2), held, ADMITTED, failed, LATER) is held


def test_a_job_that_succeeded_at_once_was_ready() -> None:
    done = ExecutionStatus(total=1, succeeded=IndexSet.parse("0"), result=JobResult.SUCCEEDED)

    (after,) = with_readiness(a_probed_job(1), (), ADMITTED, done, LATER)

    assert (after.status, after.reason) == (ConditionStatus.TRUE, "Started")


# In the writes of a Job's status


def a_stored_job(execution: ExecutionStatus, *conditions: Condition) -> Job:
    status = JobStatus(
        phase=phase_of(ADMITTED, execution),
        admission=ADMITTED,
        execution=execution,
        conditions=conditions,
    )
    return a_probed_job(2, status=status)


def test_a_flip_of_a_task_is_a_flip_of_its_job_in_the_same_write() -> None:
    job = a_stored_job(doing(2, ready=1, unready=1), condition(START))

    status = with_execution(job, doing(2, ready=2), LATER)

    assert status.phase is JobPhase.RUNNING
    told = [one for one in status.conditions if one.type == PODS_READY]
    assert [(one.reason, one.last_transition_time) for one in told] == [("Started", LATER)]


def test_a_job_that_is_put_back_begins_anew() -> None:
    evicting = AdmissionStatus(
        phase=AdmissionPhase.EVICTING,
        sequence=1,
        admitted_at=T0,
        eviction=Eviction(reason=EvictionReason.REQUEUED, began_at=T0),
    )
    execution = ExecutionStatus(total=2, started_at=T0)
    status = JobStatus(
        phase=JobPhase.EVICTING,
        admission=evicting,
        execution=execution,
        conditions=(condition("Started", is_true=True),),
    )
    job = a_probed_job(2, status=status)

    after = with_admission(job, AdmissionStatus(evictions=1), LATER)

    assert after.phase is JobPhase.QUEUED
    held = pods_ready(a_probed_job(2, status=after))
    assert held is not None
    assert (held.status, held.reason) == (ConditionStatus.FALSE, START)
    assert held.last_transition_time == LATER
