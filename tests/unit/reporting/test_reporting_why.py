"""The first line answers the question; the rest names who can change it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.admission.reconciler import BY_HOLDER, holder_uids
from interlock.control.cache import Cache
from interlock.modes.cli.verbs.why import told
from interlock.reporting.lock_queue import BY_LOCK, LineReader, locks_asked_for
from interlock.reporting.why import Why, explain
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Grant,
    RefusalReason,
    Wait,
    WaitReason,
)
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job, JobPhase, JobStatus, Retries
from interlock.resources.lock import Lock
from interlock.resources.metadata import (
    Condition,
    ConditionStatus,
    Order,
    OwnerReference,
    Trouble,
)
from interlock.resources.process import FileProbe, ProcessSpec, ReadinessProbe
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    Progress,
    RetryWait,
    StopCause,
    TaskState,
    TaskStatus,
)
from interlock.resources.values.durations import Duration
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_holder, a_job, a_lock, a_request

NOW = T0 + timedelta(minutes=4)


def reader(*resources: Job | Lock) -> LineReader:
    jobs: Cache[Job] = Cache("Job", {BY_LOCK: locks_asked_for})
    locks: Cache[Lock] = Cache("Lock", {BY_HOLDER: holder_uids})
    for resource in resources:
        if isinstance(resource, Job):
            jobs.note(resource)
        else:
            locks.note(resource)
    return LineReader(jobs, locks)


def why(job: Job, *others: Job | Lock) -> Why:
    return explain(reader(job, *others).why_view(job), NOW)


def running(name: str, **spec: Any) -> Job:
    status = JobStatus(
        phase=JobPhase.RUNNING,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1),
        execution=ExecutionStatus(total=1, started_at=T0),
    )
    return a_job(name, status=status, **spec)


def waiting(name: str, sequence: int, *waits: Wait, **spec: Any) -> Job:
    status = JobStatus(admission=AdmissionStatus(sequence=sequence, waits=waits))
    return a_job(name, version=sequence, status=status, **spec)


def test_a_waiting_job_names_the_holder_of_its_lock_and_its_place_in_the_line() -> None:
    backup = running("backup", locks=(a_request(),), timeout=Duration(minutes=15))
    first = waiting("first", 5, locks=(a_request(),))
    second = waiting("second", 6, locks=(a_request(),))

    answer = why(second, first, backup, a_lock(holders=(a_holder(backup, token=42),)))

    assert answer.summary == "second is waiting (4 m), place 2 of 2 for lock db"
    (wait,) = answer.waits
    assert wait.message == (
        "lock db is held by job/backup (Running, 4 m); it is stopped at 12:15:00 UTC at the latest"
    )
    assert (wait.holders[0].job, wait.holders[0].token) == ("backup", 42)
    assert wait.until == T0 + timedelta(minutes=15)


@pytest.mark.parametrize(
    ("wait", "spec", "message"),
    [
        pytest.param(
            Wait(reason=WaitReason.SUSPENDED),
            {"suspend": True, "suspend_reason": "month end"},
            "it is suspended: month end; start it with: interlock resume job",
            id="suspended",
        ),
        pytest.param(
            Wait(reason=WaitReason.NOT_YET_DUE, until=T0 + timedelta(days=1)),
            {"start_after": T0 + timedelta(days=1)},
            "it is not due before 2026-01-06 12:00:00 UTC",
            id="not due",
        ),
    ],
)
def test_what_holds_a_job_back_is_told(wait: Wait, spec: dict[str, Any], message: str) -> None:
    (told,) = why(waiting("job", 5, wait, **spec)).waits

    assert told.message == message


def test_a_job_that_is_not_in_the_books_names_the_schedule_that_made_it() -> None:
    owner = OwnerReference(
        api_version="interlock.dev/v1alpha1",
        kind="JobConfig",
        name="nightly",
        uid="u",
        controller=True,
    )
    status = JobStatus(
        admission=AdmissionStatus(sequence=5, waits=(Wait(reason=WaitReason.NOT_IN_BOOKS),))
    )
    (wait,) = why(a_job("job", status=status, metadata={"owner_references": (owner,)})).waits

    assert wait.reason == "NotInBooks"
    assert wait.message.startswith("jobconfig/nightly made it and has not written it down yet")
    assert wait.message.endswith("interlock why jobconfig/nightly")


@pytest.mark.parametrize("reason", WaitReason)
def test_every_wait_has_words(reason: WaitReason) -> None:
    wait = Wait(reason=reason, until=T0 if reason is WaitReason.NOT_YET_DUE else None)

    assert why(waiting("job", 5, wait)).waits[0].message


def test_a_wait_of_another_version_is_told_by_its_name() -> None:
    (told,) = why(waiting("job", 5, Wait(reason=WaitReason("GateShut"), key="all"))).waits

    assert (told.reason, told.key) == ("GateShut", "all")
    assert "GateShut all" in told.message


def test_a_holder_of_unknown_fate_comes_with_the_way_out() -> None:
    lost = running("lost", locks=(a_request(),))
    lost = a_job(
        "lost",
        locks=(a_request(),),
        status=JobStatus(
            phase=JobPhase.UNKNOWN,
            admission=lost.status.admission,
            execution=ExecutionStatus(total=1, started_at=T0),
        ),
    )
    (wait,) = why(
        waiting("w", 5, locks=(a_request(),)), lost, a_lock(holders=(a_holder(lost),))
    ).waits

    assert "interlock release db --job lost --reason" in wait.message


def test_a_retrying_job_tells_when_it_tries_again() -> None:
    due = NOW + timedelta(seconds=30)
    status = JobStatus(
        phase=JobPhase.RETRY_BACKOFF,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
        execution=ExecutionStatus(
            total=3,
            started_at=T0,
            succeeded=IndexSet([0]),
            retrying=(RetryWait(index=1, attempt=1, not_before=due),),
        ),
    )

    answer = why(a_job(status=status))

    assert answer.summary == "job waits to try again: 1 of 3 tasks done"
    assert answer.waits[0].until == due


def test_a_task_that_waits_for_its_retry_beside_others_that_run_is_told() -> None:
    due = NOW + timedelta(seconds=30)
    task = TaskStatus(
        name="job-0-0", index=0, attempt=0, state=TaskState.RUNNING, created_at=T0, started_at=T0
    )
    status = JobStatus(
        phase=JobPhase.RUNNING,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
        execution=ExecutionStatus(
            total=2,
            started_at=T0,
            active=(task,),
            retrying=(RetryWait(index=1, attempt=1, not_before=due),),
        ),
    )

    answer = why(a_job(status=status, retries=Retries(limit=3)))

    assert answer.summary == ("job is running (4 m): 0 of 2 tasks done, 1 waits to be tried again")
    assert answer.waits[0].message == (
        "1 task to try again, the first (task 1, attempt 2 of 4) at 12:04:30 UTC; "
        "the other goes on meanwhile"
    )
    lines = told(to_builtins(answer), NOW)
    assert [line.split()[0] for line in lines if line] == ["job", "retry", "task"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param({}, "", id="nothing is told"),
        pytest.param({"ready": True}, "", id="ready, as one expects"),
        pytest.param({"ready": False}, ", not ready", id="not ready"),
        pytest.param(
            {"progress": Progress(percent=40, text="rows 1 to 7")},
            ", 40 % done rows 1 to 7",
            id="how far it is",
        ),
    ],
)
def test_a_task_that_runs_says_how_it_is(more: dict[str, Any], said: str) -> None:
    task = TaskStatus(
        name="job-0-0",
        index=0,
        attempt=0,
        state=TaskState.RUNNING,
        created_at=T0,
        started_at=T0,
        **more,
    )
    status = JobStatus(
        phase=JobPhase.RUNNING,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
        execution=ExecutionStatus(total=1, started_at=T0, active=(task,)),
    )

    answer = why(a_job(status=status))

    assert answer.details == (("task", f"job-0-0 running for 4 m{said}"),)


def test_a_task_of_unknown_fate_says_why() -> None:
    task = TaskStatus(
        name="job-0-0",
        index=0,
        attempt=0,
        state=TaskState.UNKNOWN,
        created_at=T0,
        message="its keeper was killed",
    )
    status = JobStatus(
        phase=JobPhase.UNKNOWN,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
        execution=ExecutionStatus(total=1, started_at=T0, active=(task,)),
    )

    answer = why(a_job(status=status))

    assert answer.summary == "job is in an unknown state"
    assert answer.details == (
        ("task", "job-0-0 unknown: its keeper was killed"),
        ("way out", "if it is surely gone: interlock release job --reason …"),
    )


def test_an_ended_job_holds_nothing_and_waits_for_nothing() -> None:
    status = JobStatus(
        phase=JobPhase.SUCCEEDED,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
        execution=ExecutionStatus(
            total=1,
            started_at=T0,
            ended_at=T0 + timedelta(seconds=12.4),
            result=JobResult.SUCCEEDED,
            reason=ExecutionReason.COMPLETED,
        ),
    )

    answer = why(a_job(locks=(a_request(),), status=status))

    assert answer.summary == "job succeeded in 12.4 s"
    assert (answer.waits, answer.locks) == ((), {})


def test_a_job_that_its_locks_do_not_name_holds_nothing() -> None:
    holder = running("holder", locks=(a_request(),))
    record = a_lock(holders=(a_holder(holder, token=2265),))
    forged = running("forged", locks=(a_request(), a_request("disk")))
    admission = replace(forged.status.admission, grants=(Grant(key="db", token=2265),))
    forged = replace(forged, status=JobStatus(phase=JobPhase.STARTING, admission=admission))

    answer = why(forged, holder, record)

    assert answer.summary.startswith("forged was not let in, whatever its status says")
    assert answer.locks == {}
    assert answer.details == (
        ("claims", "lock db (token 2265), but the lock names job/holder"),
        ("claims", "lock disk, but the lock names nobody"),
    )


def test_a_job_holds_the_locks_that_name_it() -> None:
    holder = running("holder", locks=(a_request(),))
    admission = replace(holder.status.admission, grants=(Grant(key="db", token=7),))
    holder = replace(holder, status=replace(holder.status, admission=admission))

    answer = why(holder, a_lock(holders=(a_holder(holder, token=7),)))

    assert (answer.locks, answer.details) == ({"db": 7}, ())


def test_a_refused_job_says_why() -> None:
    status = JobStatus(
        phase=JobPhase.REFUSED,
        admission=AdmissionStatus(
            phase=AdmissionPhase.REFUSED,
            refusal=RefusalReason.LOCK_FORBIDDEN,
            message="lock db is taken",
            refused_at=T0,
        ),
    )

    assert why(a_job(status=status)).summary == "job never started: lock db is taken"


def test_locks_tell_holders_and_the_first_who_wait() -> None:
    backup = running("backup", locks=(a_request(),))
    waiters = [waiting(f"w{i:02}", 10 + i, locks=(a_request(),)) for i in range(12)]

    (answer,) = reader(backup, *waiters, a_lock(holders=(a_holder(backup),))).locks("")

    assert [holder.job for holder in answer.holders] == ["backup"]
    assert answer.waiting == 12
    assert answer.waiters == tuple(f"w{i:02}" for i in range(10))


def denied(order: Order, state: TaskState, cause: StopCause | None = None) -> Job:
    """A Job with a task that an order is denied for."""
    task = TaskStatus(
        name="job-0-0",
        index=0,
        attempt=0,
        state=state,
        created_at=T0,
        stop_at=T0 if cause else None,
        stop_cause=cause,
    )
    trouble = Trouble(room="execution", message="no", since=T0, order=order)
    admission = AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1)
    execution = ExecutionStatus(total=1, started_at=T0, active=(task,))
    phase = JobPhase.PENDING if cause is None else JobPhase.KILLING
    status = JobStatus(phase=phase, admission=admission, execution=execution, trouble=trouble)
    return a_job("job", status=status, pending_timeout=Duration(minutes=15))


def test_a_launch_that_the_cluster_denies_is_what_a_job_waits_for() -> None:
    answer = why(denied(Order.LAUNCH, TaskState.STARTING))

    (wait,) = answer.waits
    assert wait.reason == "LaunchDenied"
    assert wait.message.startswith("it waits for the cluster: no (4 m;")
    assert wait.until == T0 + timedelta(minutes=15)


def test_a_stop_that_the_cluster_denies_is_not_told_as_given() -> None:
    answer = why(denied(Order.STOP, TaskState.KILLING, StopCause.KILLED))

    told = dict(answer.details)
    assert told["trouble"].startswith("its stop is denied by the cluster: no (4 m;")
    assert told["task"].startswith("job-0-0 killing, to be stopped for 4 m:")


def test_a_probed_job_tells_how_many_of_its_tasks_are_ready() -> None:
    probe = ReadinessProbe(file=FileProbe(path="up"))
    job = running("ring", process=ProcessSpec(command=("serve",), readiness_probe=probe))
    task = TaskStatus(
        name="ring-0-0",
        index=0,
        attempt=0,
        state=TaskState.RUNNING,
        created_at=T0,
        started_at=T0,
        ready=False,
        message="readiness probe: exit code 1",
    )
    condition = Condition(
        type="PodsReady",
        status=ConditionStatus.FALSE,
        reason="WaitForStart",
        last_transition_time=T0,
    )
    execution = replace(job.status.execution, active=(task,))
    status = replace(job.status, execution=execution, conditions=(condition,))

    answer = why(replace(job, status=status))

    assert answer.details == (
        ("ready", "WaitForStart: 0 of 1 task ready or done (since 12:00:00 UTC)"),
        ("task", "ring-0-0 running for 4 m, not ready: readiness probe: exit code 1"),
    )
