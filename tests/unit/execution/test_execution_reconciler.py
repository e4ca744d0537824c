"""What wakes the room, how it looks, and how it shares the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from execution_builders import (
    ADMITTED,
    a_report,
    a_task,
    an_admitted_job,
    at,
    carried_out,
    exited,
    kinds,
    started,
)
from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.reconciler import Change, Reconciler
from interlock.execution.capacity import Capacity, Rank
from interlock.execution.children import BY_PARENT, parents_of
from interlock.execution.reconciler import ExecutionReconciler
from interlock.resources.actions import (
    Decision,
    ForgetTask,
    LaunchTask,
    RecordExecution,
    StopTask,
)
from interlock.resources.admission import AdmissionStatus, Grant
from interlock.resources.job import (
    RELEASE_ANNOTATION,
    Job,
    JobPhase,
    JobStatus,
    LockRequest,
    Parallelism,
)
from interlock.resources.lock import Holder, Lock, lock_name
from interlock.resources.metadata import Key, Trouble
from interlock.resources.operation import ELABORATION
from interlock.resources.steps import ChildRequest, Elaboration, PythonSpec, Target
from interlock.resources.tasks import JobResult, TaskId, TaskReport, TaskState
from interlock.resources.transitions import with_execution
from interlock.testing.builders import T0, a_job, a_lock

VAULT = Key("Lock", "default", lock_name("vault"))
UID = "uid-default-job"


class HeldReports:
    """Reports that a test puts in by hand."""

    def __init__(self) -> None:
        self.complete = True
        self.held: dict[str, dict[tuple[int, int], TaskReport]] = {}

    def has_heard(self, runtime: str) -> bool:
        return self.complete and not runtime

    def of(self, job_uid: str) -> Mapping[tuple[int, int], TaskReport]:
        return self.held.get(job_uid, {})

    def put(self, report: TaskReport) -> None:
        self.held.setdefault(report.job_uid, {})[report.index, report.attempt] = report


class HeldProofs:
    """Proofs that a test lets come, or not."""

    def __init__(self) -> None:
        self.are_there = True
        self.asked: list[tuple[Key, str, int]] = []

    def is_not_granted(self, record: Key, job: Job, names: Callable[[Any], bool]) -> bool:
        assert not names(None)
        token = next(grant.token for grant in job.status.admission.grants)
        self.asked.append((record, job.metadata.uid, token))
        return self.are_there


class Desk:
    """Caches, reports and the reconciler between them; carries out what it decides."""

    def __init__(self, most_tasks: int = 1_000) -> None:
        self.jobs: Cache[Job] = Cache("Job", {BY_PARENT: parents_of})
        self.jobs.settle(1)
        self.locks: Cache[Lock] = Cache("Lock")
        self.reports = HeldReports()
        self.proofs = HeldProofs()
        self.reconciler = ExecutionReconciler(
            self.jobs,
            self.reports,
            self.locks,
            Cache("QueueQuota"),
            Cache("TestBedSlots"),
            self.proofs,
            most_tasks,
        )

    def hold(self, *tokens: tuple[str, int], version: int = 10, epoch: int = 0) -> list[Key]:
        """Have the record of the lock `vault` name these Jobs, by uid and token."""
        before = self.locks.get(VAULT)
        holders = tuple(
            Holder(job="any", uid=uid, epoch=epoch, token=token, granted_at=T0)
            for uid, token in tokens
        )
        lock = a_lock("vault", version=version, holders=holders)
        self.locks.note(lock)
        return list(self.reconciler.wakes(Change(before, lock)))

    def put(self, job: Job) -> list[Key]:
        before = self.jobs.get(job.key)
        version = str((before.version if before else 0) + 1)
        job = replace(job, metadata=replace(job.metadata, resource_version=version))
        self.jobs.note(job)
        return list(self.reconciler.wakes(Change(before, job)))

    def drop(self, job: Job) -> list[Key]:
        before = self.jobs.drop(job.key, 1_000_000)
        return list(self.reconciler.wakes(Change(before, None)))

    def tell(self, report: TaskReport) -> list[Key]:
        self.reports.put(report)
        job = Key("Job", report.namespace, report.job)
        return list(self.reconciler.reported(job, report.job_uid))

    def look(self, name: str, seconds: float = 0) -> Decision:
        return self.reconciler.look(Key("Job", "default", name), at(seconds))

    def work(self, names: Iterable[str]) -> dict[str, int]:
        """Look at these and at all that they wake; how many tasks each Job has in the end."""
        line = list(names)
        for name in line:
            decision = self.look(name)
            for action in decision.actions:
                if isinstance(action, RecordExecution):
                    status = with_execution(action.job, action.execution, T0)
                    line += [key.name for key in self.put(replace(action.job, status=status))]
        return {job.metadata.name: len(job.status.execution.active) for job in self.jobs}


def wide(name: str, count: int, sequence: int, priority: int = 0) -> Job:
    return an_admitted_job(
        name,
        admission=replace(ADMITTED, sequence=sequence),
        parallelism=Parallelism(count=count),
        priority=priority,
    )


def test_it_is_a_reconciler() -> None:
    reconciler: Reconciler = Desk().reconciler

    assert reconciler.room == "execution"


# What wakes it


RUNNING = an_admitted_job(execution=started(a_task(state=TaskState.RUNNING)))
OVER = replace(RUNNING.status.execution, active=(), result=JobResult.SUCCEEDED, ended_at=T0)
TROUBLE = Trouble(room="execution", message="m", since=T0)


def with_metadata(**changes: Any) -> Job:
    return replace(RUNNING, metadata=replace(RUNNING.metadata, **changes))


@pytest.mark.parametrize(
    ("after", "is_woken"),
    [
        pytest.param(with_metadata(resource_version="9"), False, id="nothing new"),
        pytest.param(with_metadata(labels={"a": "b"}), False, id="a label"),
        pytest.param(with_metadata(generation=2), True, id="its spec"),
        pytest.param(with_metadata(deletion_timestamp=T0), True, id="deleted"),
        pytest.param(with_metadata(finalizers=()), True, id="a finalizer"),
        pytest.param(with_metadata(annotations={RELEASE_ANNOTATION: "r"}), True, id="released"),
        pytest.param(
            replace(RUNNING, status=replace(RUNNING.status, trouble=TROUBLE)), False, id="trouble"
        ),
        pytest.param(
            replace(RUNNING, status=with_execution(RUNNING, started(a_task()), T0)),
            False,
            id="its own progress",
        ),
        pytest.param(
            replace(RUNNING, status=with_execution(RUNNING, OVER, T0)),
            True,
            id="an end that another wrote",
        ),
        pytest.param(
            replace(
                RUNNING,
                status=replace(RUNNING.status, admission=replace(ADMITTED, replaced_by="b")),
            ),
            True,
            id="replaced",
        ),
    ],
)
def test_what_wakes_a_job(after: Job, is_woken: bool) -> None:
    desk = Desk()
    desk.put(RUNNING)

    assert desk.put(after) == ([RUNNING.key] if is_woken else [])


def test_a_job_wakes_it_once_admission_has_decided() -> None:
    desk = Desk()
    waiting = a_job(status=JobStatus(admission=AdmissionStatus(sequence=1)))

    assert desk.put(waiting) == []
    assert desk.put(an_admitted_job()) == [waiting.key]


def test_other_kinds_do_not_wake_it() -> None:
    assert list(Desk().reconciler.wakes(Change(None, a_lock()))) == []


def test_a_report_wakes_its_job() -> None:
    assert Desk().tell(a_report()) == [Key("Job", "default", "job")]


# How it looks


def test_a_task_from_start_to_forgotten() -> None:
    desk = Desk()
    desk.put(an_admitted_job())
    assert desk.work(["job"]) == {"job": 1}

    desk.tell(exited(0))
    assert desk.work(["job"]) == {"job": 0}
    assert kinds(desk.look("job")) == ["ForgetTask"]
    desk.reports.held.clear()
    assert desk.look("job") == Decision()


def test_the_more_is_under_way_the_later_a_start_is_written() -> None:
    desk = Desk()
    desk.put(wide("crowd", 80, 2))
    desk.work(["crowd"])
    desk.put(RUNNING)
    desk.put(replace(RUNNING, status=with_execution(RUNNING, started(a_task()), T0)))
    desk.tell(a_report(started_at=T0))

    assert desk.look("job", 0.1).actions == ()
    assert kinds(desk.look("job", 2)) == ["RecordExecution"]


def ending(desk: Desk, name: str = "job") -> tuple[Decision, Job]:
    """The decision that ends a running Job, and the Job after it."""
    decision = desk.look(name)
    record = decision.actions[0]
    assert isinstance(record, RecordExecution)
    return decision, replace(record.job, status=with_execution(record.job, record.execution, T0))


def test_a_job_whose_last_decision_forgets_everything_needs_no_further_look() -> None:
    desk = Desk()
    desk.put(RUNNING)
    desk.tell(exited(0))
    decision, over = ending(desk)

    assert kinds(decision) == ["RecordExecution", "ForgetTask"]
    assert desk.put(over) == []


def test_a_job_that_ends_while_it_goes_is_looked_at_once_more() -> None:
    desk = Desk()
    desk.put(with_metadata(deletion_timestamp=T0))
    desk.tell(exited(0))

    assert desk.put(ending(desk)[1]) == [RUNNING.key]


def test_a_report_that_the_last_decision_did_not_know_is_cleared_away() -> None:
    desk = Desk()
    desk.put(RUNNING)
    desk.tell(exited(0))
    _, over = ending(desk)
    desk.tell(a_report(attempt=1))

    assert desk.put(over) == [RUNNING.key]


def test_a_job_that_is_not_there_is_nothing_to_decide() -> None:
    assert Desk().look("nothing") == Decision()


def test_strays_are_cleared_away() -> None:
    desk = Desk()
    desk.tell(a_report(uid="old"))
    task = TaskId("old", 0, 0)

    assert desk.look("job").actions == (StopTask(None, task, 30.0),)
    assert desk.look("job", 1).actions == ()
    assert desk.look("job", 6).actions == (StopTask(None, task, 30.0),)
    desk.tell(exited(0, uid="old"))
    assert desk.look("job", 7).actions == (ForgetTask(None, task),)
    desk.reports.held.clear()
    assert desk.look("job", 8) == Decision()


def test_a_job_that_vanished_leaves_strays() -> None:
    desk = Desk()
    desk.put(RUNNING)
    desk.tell(a_report())

    assert desk.drop(RUNNING) == [RUNNING.key]
    assert kinds(desk.look("job")) == ["StopTask"]


def test_a_new_job_of_the_same_name_is_told_from_the_old_one() -> None:
    desk = Desk()
    desk.put(RUNNING)
    desk.tell(a_report())
    fresh = an_admitted_job(metadata={"uid": "new"})

    assert desk.put(fresh) == [fresh.key]
    assert kinds(desk.look("job")) == ["RecordExecution", "LaunchTask", "StopTask"]


def test_nothing_is_a_stray_before_the_jobs_were_listed() -> None:
    desk = Desk()
    desk.jobs.version = 0
    desk.tell(a_report(uid="old"))

    assert desk.look("job") == Decision(wake_at=at(1))


def test_tasks_of_a_job_that_cannot_be_read_are_no_strays() -> None:
    desk = Desk()
    desk.jobs.unreadable.add(Key("Job", "default", "job"))
    desk.tell(a_report(uid="old"))

    assert desk.look("job") == Decision(wake_at=at(1))


def test_a_stop_is_not_repeated_at_every_look() -> None:
    desk = Desk()
    desk.put(replace(RUNNING, spec=replace(RUNNING.spec, kill_at=T0)))
    desk.tell(a_report())
    desk.work(["job"])

    assert desk.look("job", 1).actions == ()
    assert kinds(desk.look("job", 6)) == ["StopTask"]


# The room on the machine


def test_room_goes_by_priority_then_by_the_order_of_creation() -> None:
    desk = Desk(most_tasks=2)
    for job in (wide("a", 2, 1), wide("b", 1, 2), wide("c", 1, 3), wide("d", 1, 4, priority=9)):
        desk.put(job)
    assert desk.work("abcd") == {"a": 2, "b": 0, "c": 0, "d": 0}

    desk.tell(replace(exited(0, index=0, uid="uid-default-a"), job="a"))
    assert desk.work("a") == {"a": 1, "b": 0, "c": 0, "d": 1}
    desk.tell(replace(exited(0, index=1, uid="uid-default-a"), job="a"))
    assert desk.work("a") == {"a": 0, "b": 1, "c": 0, "d": 1}


def test_a_wide_job_uses_its_own_room_again_while_nobody_is_before_it() -> None:
    desk = Desk(most_tasks=2)
    desk.put(wide("a", 5, 1))
    desk.put(wide("b", 1, 2))
    assert desk.work("ab") == {"a": 2, "b": 0}

    desk.tell(replace(a_report(index=1, uid="uid-default-a"), job="a"))
    desk.tell(replace(exited(0, index=0, uid="uid-default-a"), job="a"))
    decision = desk.look("a")
    assert kinds(decision) == ["RecordExecution", "LaunchTask"]


def test_a_wide_job_leaves_its_room_to_a_more_urgent_one() -> None:
    desk = Desk(most_tasks=2)
    desk.put(wide("a", 5, 1))
    assert desk.work("a") == {"a": 2}
    desk.put(wide("urgent", 1, 2, priority=1))
    assert desk.work(["urgent"]) == {"a": 2, "urgent": 0}

    desk.tell(replace(exited(0, index=0, uid="uid-default-a"), job="a"))
    assert desk.work("a") == {"a": 1, "urgent": 1}


def test_two_looks_do_not_give_the_same_room_away() -> None:
    desk = Desk(most_tasks=1)
    desk.put(wide("a", 1, 1))
    desk.put(wide("b", 1, 2))

    assert kinds(desk.look("a")) == ["RecordExecution", "LaunchTask"]
    assert kinds(desk.look("b")) == []
    # The first decision came to nothing: the next look at it says the same again.
    assert kinds(desk.look("a")) == ["RecordExecution", "LaunchTask"]


def test_what_runs_already_is_counted_before_the_first_look() -> None:
    desk = Desk(most_tasks=1)
    desk.jobs.note(RUNNING)
    desk.jobs.note(wide("b", 1, 2))

    assert desk.look("b") == Decision()


def test_a_job_that_no_longer_wants_room_does_not_block_the_next() -> None:
    desk = Desk(most_tasks=1)
    for job in (wide("x", 1, 1), wide("a", 1, 2), wide("b", 1, 3)):
        desk.put(job)
    desk.work("xab")
    held = desk.jobs.get(Key("Job", "default", "x"))
    assert held is not None
    over = replace(held.status.execution, active=(), result=JobResult.SUCCEEDED, ended_at=T0)
    woken = desk.put(replace(held, status=with_execution(held, over, T0)))
    assert woken == [Key("Job", "default", "x"), Key("Job", "default", "a")]

    # Before it could look, the Job that was woken is held back.
    paused = wide("a", 1, 2)
    paused = replace(
        paused,
        spec=replace(paused.spec, suspend=True),
        metadata=replace(paused.metadata, generation=2),
    )
    woken = desk.put(paused)
    assert woken == [Key("Job", "default", "a"), Key("Job", "default", "b")]
    assert desk.work("ab") == {"x": 0, "a": 0, "b": 1}


def test_the_line_keeps_its_order_and_wakes_each_once() -> None:
    capacity = Capacity(2)
    keys = {name: Key("Job", "default", name) for name in "abc"}
    capacity.hold(keys["a"], 2)
    for name, rank in (("c", 3), ("b", 2), ("a", 1)):
        capacity.wait(Rank(0, rank, keys[name]))
    assert list(capacity.next()) == []
    assert capacity.left_for(Rank(0, 9, keys["a"])) == -3

    capacity.hold(keys["a"], 0)
    assert [key.name for key in capacity.next()] == ["a", "b"]
    assert list(capacity.next()) == []
    capacity.leave(keys["a"])
    assert [key.name for key in capacity.next()] == ["c"]
    assert capacity.left_for(Rank(0, 1, keys["a"])) == 2


def test_a_start_that_was_foreseen_needs_no_other_look() -> None:
    """Only the very admission that was decided on counts as foreseen."""
    desk = Desk()
    waiting = a_job()
    assert desk.put(waiting) == []
    admitted = replace(waiting, status=replace(waiting.status, admission=ADMITTED))

    decision = desk.reconciler.foresee(admitted, T0)

    assert kinds(decision) == ["RecordExecution", "LaunchTask"]
    assert isinstance(decision.actions[0], RecordExecution)
    started_status = with_execution(
        replace(admitted, status=replace(admitted.status, phase=JobPhase.STARTING)),
        decision.actions[0].execution,
        T0,
    )
    assert desk.put(replace(admitted, status=started_status)) == []


def test_an_admission_other_than_the_foreseen_is_looked_at() -> None:
    desk = Desk()
    waiting = a_job()
    desk.put(waiting)
    admitted = replace(waiting, status=replace(waiting.status, admission=ADMITTED))
    desk.reconciler.foresee(admitted, T0)
    other = replace(ADMITTED, sequence=ADMITTED.sequence + 1)

    woken = desk.put(replace(admitted, status=replace(admitted.status, admission=other)))

    assert woken == [waiting.key]


def test_room_that_was_foreseen_and_not_taken_is_free_again() -> None:
    desk = Desk(most_tasks=1)
    first, second = a_job("first"), a_job("second")
    desk.put(first)
    desk.put(second)
    let_in = replace(first.status, admission=ADMITTED)
    desk.reconciler.foresee(replace(first, status=let_in), T0)

    # The write was refused: it is looked at as it is stored.
    assert desk.reconciler.look(first.key, T0) == Decision()

    decision = desk.reconciler.foresee(replace(second, status=let_in), T0)
    assert kinds(decision) == ["RecordExecution", "LaunchTask"]


# Before a launch the records of the locks are looked at: a status alone lets nobody in.


def a_holder(token: int = 7, **spec: Any) -> Job:
    """A Job whose status says that it was let in with the lock `vault`."""
    job = an_admitted_job(locks=(LockRequest(key="vault"),), **spec)
    admission = replace(job.status.admission, grants=(Grant(key="vault", token=token),))
    return replace(job, status=replace(job.status, admission=admission))


def launched(decision: Decision) -> int:
    return sum(isinstance(action, LaunchTask) for action in decision.actions)


def test_a_job_that_its_lock_names_is_launched_without_a_question() -> None:
    desk = Desk()
    desk.hold(("other", 3), (UID, 7))
    desk.put(a_holder())

    assert launched(desk.look("job")) == 1
    assert desk.proofs.asked == []


@pytest.mark.parametrize(
    ("tokens", "epoch"),
    [
        pytest.param((("other", 7),), 0, id="the holder's token, taken by another"),
        pytest.param(((UID, 6),), 0, id="another token"),
        pytest.param(((UID, 7),), 3, id="another epoch"),
        pytest.param((), 0, id="nobody holds it"),
    ],
)
def test_a_job_that_its_lock_does_not_name_starts_nothing_and_says_so(
    tokens: tuple[tuple[str, int], ...], epoch: int
) -> None:
    desk = Desk()
    desk.hold(*tokens, epoch=epoch)
    desk.put(a_holder())

    found = desk.look("job")

    assert found.actions == ()
    assert "lock vault does not name this Job" in found.trouble


def test_a_job_without_a_grant_for_its_lock_starts_nothing() -> None:
    desk = Desk()
    desk.put(an_admitted_job(locks=(LockRequest(key="vault"),)))

    found = desk.look("job")

    assert (found.actions, desk.proofs.asked) == ((), [])
    assert "vault" in found.trouble


def test_a_grant_that_was_not_asked_for_starts_nothing() -> None:
    """Its token would be given to the task, and a stranger's writes pass for the holder's."""
    desk = Desk()
    desk.hold(("other", 7))
    job = a_holder()
    desk.put(replace(job, spec=replace(job.spec, locks=())))

    assert launched(desk.look("job")) == 0


def test_a_lock_that_was_not_heard_of_is_waited_for_without_a_word() -> None:
    desk = Desk()
    desk.proofs.are_there = False
    desk.put(a_holder())

    assert desk.look("job") == Decision()
    assert desk.proofs.asked == [(VAULT, UID, 7)]

    assert desk.hold((UID, 7)) == [Key("Job", "default", "job")]
    assert launched(desk.look("job")) == 1


def test_a_lock_that_cannot_be_read_proves_nothing() -> None:
    desk = Desk()
    desk.locks.unreadable.add(VAULT)
    desk.put(a_holder())

    assert desk.look("job") == Decision()
    assert desk.proofs.asked == []


def test_an_attempt_in_a_forged_status_is_not_launched_either() -> None:
    desk = Desk()
    desk.hold(("other", 7))
    job = a_holder()
    desk.put(replace(job, status=replace(job.status, execution=started(a_task()))))

    found = desk.look("job")

    assert launched(found) == 0
    assert "vault" in found.trouble


def test_a_job_that_does_not_hold_its_lock_can_still_be_stopped() -> None:
    desk = Desk()
    desk.hold(("other", 7))
    desk.put(a_holder(kill_at=T0))

    assert kinds(desk.look("job", 1)) == ["RecordExecution"]


def test_a_part_is_held_against_the_targets_of_all_operations_above_it() -> None:
    desk = Desk()
    function, top = PythonSpec(function="f"), Target(path="domains/acme")
    desk.put(an_admitted_job("top", python=function, target=top))
    desk.put(an_admitted_job("job", python=function, parent="top"))
    begun = desk.look("job")
    job = desk.jobs.get(Key("Job", "default", "job"))
    assert job is not None
    desk.put(carried_out(job, begun))

    made = Elaboration(children=(ChildRequest(python=function, target=top),))
    desk.tell(exited(0, ELABORATION, elaboration=made))
    # That it was taken up is recorded first.
    desk.work(["job", "job"])
    job = desk.jobs.get(job.key)
    assert job is not None
    operation = job.status.execution.operation
    assert operation is not None
    assert "job/top, which it is a part of, is done to domains/acme too" in operation.error
