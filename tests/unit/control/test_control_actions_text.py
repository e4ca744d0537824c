"""Actions in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.control.actions_text import describe_action, describe_actions
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    CreateResource,
    DeleteResource,
    DropOwner,
    ForgetTask,
    LaunchTask,
    RecordAdmission,
    RecordExecution,
    RecordStatus,
    RemoveFinalizer,
    ReviseJob,
    StopTask,
)
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Grant,
    RefusalReason,
    Wait,
    WaitReason,
)
from interlock.resources.lock import LockStatus
from interlock.resources.schedule import STOPS_AT_ANNOTATION
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    TaskId,
    TaskOrder,
)
from interlock.resources.values.indexes import IndexSet
from interlock.resources.work import ProcessWork
from interlock.testing.builders import T0, a_holder, a_job, a_lock

JOB, LOCK = a_job("x"), a_lock("db")
TASK = TaskId("uid", 0, 1)
WAITING = AdmissionStatus(waits=(Wait(reason=WaitReason.LOCK_TAKEN, key="db"),))
ADMITTED = AdmissionStatus(phase=AdmissionPhase.ADMITTED, grants=(Grant(key="db", token=7),))
REFUSED = AdmissionStatus(phase=AdmissionPhase.REFUSED, refusal=RefusalReason.REPLACED)
RUNNING = ExecutionStatus(total=3, succeeded=IndexSet([0]), failed=IndexSet([1]))
ENDED = ExecutionStatus(result=JobResult.FAILED, reason=ExecutionReason.TIMEOUT)


def launch(index: int) -> LaunchTask:
    order = TaskOrder(
        job_uid="uid",
        index=index,
        attempt=0,
        name=f"x-{index}-0",
        namespace="default",
        job="x",
        work=ProcessWork(command=("true",)),
    )
    return LaunchTask(JOB, order)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (RecordAdmission(JOB, WAITING), "hold: LockTaken db"),
        (RecordAdmission(JOB, AdmissionStatus()), "hold"),
        (RecordAdmission(JOB, ADMITTED), "admit (db fence 7)"),
        (RecordAdmission(JOB, replace(ADMITTED, grants=())), "admit"),
        (RecordAdmission(JOB, REFUSED), "refuse: Replaced"),
        (RecordExecution(JOB, RUNNING), "record tasks: 1 of 3 succeeded, 1 failed"),
        (RecordExecution(JOB, ENDED), "end: Failed (Timeout)"),
        (CreateResource(LOCK), "create lock db"),
        (RecordStatus(LOCK, LockStatus()), "lock db: free"),
        (RecordStatus(LOCK, LockStatus(holders=(a_holder(JOB),))), "lock db: held by x"),
        (launch(4), "launch x-4-0"),
        (StopTask(JOB, TASK, 30.0), "stop x-0-1 within 30 s"),
        (ForgetTask(JOB, TASK), "forget x-0-1"),
        (ForgetTask(None, TASK), "forget uid/0/1"),
        (AddFinalizer(JOB, "a/b"), "add finalizer a/b"),
        (RemoveFinalizer(JOB, "a/b"), "remove finalizer a/b"),
        (DropOwner(JOB, "u"), "drop owner u of job/default/x"),
        (DeleteResource(JOB), "delete job/default/x"),
        (ReviseJob(JOB, replace(JOB.spec, priority=7)), "revise job/default/x"),
        (ReviseJob(JOB, replace(JOB.spec, kill_at=T0)), "stop job/default/x"),
        (
            ReviseJob(JOB, replace(JOB.spec, kill_at=T0), {STOPS_AT_ANNOTATION: T0.isoformat()}),
            f"move the stop of job/default/x to {T0:%Y-%m-%dT%H:%M:%SZ}",
        ),
    ],
)
def test_an_action_in_words(action: Action, text: str) -> None:
    assert describe_action(action) == text


def test_many_actions_are_told_as_the_first_and_a_number() -> None:
    actions: tuple[Action, ...] = (
        RecordExecution(JOB, ENDED),
        *(launch(index) for index in range(100)),
    )

    assert describe_actions(actions) == ("end: Failed (Timeout)", "launch x-0-0 … and 99 more")
    assert describe_actions(actions[1:4]) == ("launch x-0-0", "launch x-1-0", "launch x-2-0")
