"""The default Queue: who asks it, and what becomes of whom when it comes and goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.control.reconciler import Change
from interlock.resources.actions import RecordAdmission
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    RefusalReason,
    Wait,
    WaitReason,
)
from interlock.resources.default_queue import DEFAULT_QUEUE, default_queue_in, queue_asked
from interlock.resources.job import Job, JobSpec, JobStatus, LockRequest, Parallelism
from interlock.resources.metadata import Key
from interlock.resources.modes import Mode
from interlock.resources.process import NoopSpec, ProcessSpec
from interlock.resources.queue import StopPolicy, demand_of
from interlock.resources.steps import PythonSpec, Step, StepWork, Target
from interlock.resources.values.amounts import Amount
from interlock.testing.builders import T0, a_job
from support.queue_desk import BLUE, Desk, a_queue, a_record, newer, runs

TRUE = ProcessSpec(command=("true",))
LATER = T0 + timedelta(minutes=1)
QUEUE = Key("Queue", "", "blue")


def anybody(name: str, sequence: int = 1, **spec: Any) -> Job:
    """A process that names no Queue."""
    status = JobStatus(admission=AdmissionStatus(sequence=sequence))
    return a_job(name, version=sequence, status=status, **spec)


def let_in(job: Job) -> Job:
    """It was let in without asking a Queue."""
    admission = replace(job.status.admission, phase=AdmissionPhase.ADMITTED)
    return newer(job, JobStatus(admission=admission))


def decided(desk: Desk, job: Job) -> AdmissionStatus | None:
    """What is written down about a Job now."""
    actions = desk.room.look(job.key, LATER).actions
    assert len(actions) <= 1
    if not actions:
        return None
    assert isinstance(actions[0], RecordAdmission)
    return actions[0].admission


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        pytest.param(JobSpec(process=TRUE), "machine", id="a process"),
        pytest.param(JobSpec(process=TRUE, queue="blue"), "blue", id="one that names another"),
        pytest.param(JobSpec(noop=NoopSpec()), None, id="nothing to run"),
        pytest.param(
            JobSpec(steps=(Step(name="a", run=StepWork(process=TRUE)),)), None, id="an operation"
        ),
        pytest.param(JobSpec(python=PythonSpec(function="a")), None, id="a worker's operation"),
        pytest.param(
            JobSpec(process=ProcessSpec(command=("a",)), locks=(LockRequest(key="db"),)),
            None,
            id="its lock limits it",
        ),
        pytest.param(
            JobSpec(process=ProcessSpec(command=("a",)), target=Target(path="a")),
            None,
            id="its target does",
        ),
        pytest.param(
            JobSpec(
                process=ProcessSpec(command=("a",)),
                locks=(LockRequest(key="db"),),
                resources={"cpu": Amount.read(1)},
            ),
            DEFAULT_QUEUE,
            id="one with a lock that says what it takes",
        ),
    ],
)
def test_who_asks_it(spec: JobSpec, asked: str | None) -> None:
    assert queue_asked(spec, DEFAULT_QUEUE) == asked
    demand = demand_of(Job(spec=spec), DEFAULT_QUEUE)
    assert (demand.queue if demand is not None else None) == asked


def test_a_cluster_has_none() -> None:
    assert default_queue_in(Mode.EMBEDDED) == "machine"
    assert queue_asked(JobSpec(process=TRUE), default_queue_in(Mode.CLUSTER)) is None


def test_it_lets_in_as_many_as_there_is_room_for() -> None:
    jobs = [anybody(f"job-{number}", number) for number in range(1, 5)]
    desk = Desk(a_queue(tasks=3), a_record(), *jobs, default="blue")
    assert desk.grants() == ["job-1x1", "job-2x1", "job-3x1"]
    first, last = decided(desk, jobs[0]), decided(desk, jobs[3])
    assert first is not None
    assert first.phase is AdmissionPhase.ADMITTED
    assert first.quota is not None
    assert first.quota.queue == "blue"
    assert last is not None
    assert last.waits == (Wait(reason=WaitReason.QUOTA_TAKEN, key="blue"),)


def test_what_a_task_takes_is_counted() -> None:
    asks = {"cpu": Amount.read("1500m")}
    jobs = [anybody("first", 1, resources=asks), anybody("second", 2, resources=asks)]
    desk = Desk(a_queue(cpu=2), a_record(), *jobs, default="blue")
    assert desk.grants() == ["firstx1"]
    assert desk.grants() == []


def test_where_it_is_not_nobody_waits_for_it() -> None:
    job = anybody("job")
    desk = Desk(job, default="blue")
    found = decided(desk, job)
    assert found is not None
    assert found.phase is AdmissionPhase.ADMITTED
    assert found.quota is None


def test_where_it_is_not_its_quota_is_not_looked_at() -> None:
    desk = Desk(default="blue")
    assert BLUE not in desk.put(anybody("job"))


def test_once_it_is_there_those_who_wait_ask_it() -> None:
    job = anybody("job", locks=(LockRequest(key="db"),), min_parallelism=1)
    desk = Desk(a_record(), job, default="blue")
    woken = desk.put(a_queue(tasks=1, version=1100))
    assert BLUE in woken
    assert job.key in woken
    # It leaves the line of its lock until it has its part.
    assert any(key.kind == "Lock" for key in woken)
    assert desk.grants() == ["jobx1"]


def test_once_it_is_gone_those_who_wait_wait_no_more() -> None:
    jobs = [anybody("first", 1), anybody("second", 2)]
    desk = Desk(a_queue(tasks=1), a_record(), *jobs, default="blue")
    assert desk.grants() == ["firstx1"]
    gone = desk.caches["Queue"].drop(QUEUE, 2000)
    woken = desk.room.wakes(Change(gone, None))
    assert {job.key for job in jobs} <= set(woken)
    # What was granted is given back first, and then needed no more.
    first, second = decided(desk, jobs[0]), decided(desk, jobs[1])
    assert first is not None
    assert (first.epoch, first.phase) == (1, AdmissionPhase.WAITING)
    assert second is not None
    assert second.phase is AdmissionPhase.ADMITTED


def test_what_was_let_in_before_holds_nothing_of_it() -> None:
    early, late = let_in(anybody("early", 1)), anybody("late", 2)
    desk = Desk(a_queue(tasks=1, stop=StopPolicy.NONE), a_record(), early, late, default="blue")
    assert desk.grants() == ["latex1"]


def test_a_definition_is_checked_once_while_it_waits_for_room_and_anew_when_it_is_edited() -> None:
    job = anybody("job")
    desk = Desk(a_queue(tasks=1), a_record(), job, default="blue")
    assert desk.room.look(job.key, T0).actions == ()
    assert desk.room.view_of_job(job).is_checked

    edited = newer(replace(job, spec=replace(job.spec, noop=NoopSpec(), process=TRUE)), job.status)
    desk.put(edited)
    found = decided(desk, edited)
    assert found is not None
    assert found.refusal is RefusalReason.INVALID


def test_who_is_refused_was_not_found_good() -> None:
    """That it is refused may not be written: then it is checked again."""
    job = anybody("job", noop=NoopSpec(), process=TRUE)
    desk = Desk(a_queue(tasks=1), a_record(), job, default="blue")
    for _ in range(2):
        found = decided(desk, job)
        assert found is not None
        assert found.refusal is RefusalReason.INVALID


def test_who_was_let_in_is_looked_at_where_something_puts_it_back() -> None:
    job = anybody("job")
    desk = Desk(a_queue(tasks=1), a_record(), job, default="blue")
    assert job.key not in desk.put(runs(job, 1))

    desk = Desk(a_queue(tasks=1, stop=StopPolicy.HOLD_AND_DRAIN), a_record(), job, default="blue")
    assert job.key in desk.put(runs(job, 1))


def test_what_was_let_in_before_is_not_drained() -> None:
    drained = a_queue(tasks=1, stop=StopPolicy.HOLD_AND_DRAIN)
    early, later = let_in(anybody("early", 1)), runs(anybody("later", 2), 1)
    desk = Desk(drained, a_record(), early, later, default="blue")
    assert decided(desk, early) is None
    found = decided(desk, later)
    assert found is not None
    assert found.phase is AdmissionPhase.EVICTING


@pytest.mark.parametrize(
    ("has", "spec", "expected"),
    [
        pytest.param({"tasks": 64}, {}, (32, 32), id="half of the tasks"),
        pytest.param({"tasks": 64}, {"min_parallelism": 4}, (32, 4), id="fewer do"),
        pytest.param({"tasks": 2000}, {}, (1000, 1000), id="all of them fit"),
        pytest.param({"cpu": 8}, {"resources": {"cpu": 2}}, (4, 4), id="as many as it has cores"),
        pytest.param({"cpu": 1}, {"resources": {"cpu": 2}}, (1, 1), id="one that never fits"),
        pytest.param({"cpu": 8}, {}, (1000, 1000), id="nothing in the way"),
        pytest.param({"tasks": 1}, {}, (1, 1), id="a single place"),
        pytest.param({"tasks": 64}, {"queue": "blue"}, (1000, 1000), id="one that chose it"),
    ],
)
def test_a_job_of_many_tasks_asks_for_no_more_than_there_is(
    has: dict[str, Any], spec: dict[str, Any], expected: tuple[int, int]
) -> None:
    if "resources" in spec:
        amounts = {name: Amount.read(one) for name, one in spec["resources"].items()}
        spec = spec | {"resources": amounts}
    job = anybody("wide", parallelism=Parallelism(count=1000), **spec)
    desk = Desk(a_queue(**has), a_record(), job, default="blue")
    view = desk.room.view_of_job(job).quota
    assert view is not None
    assert (view.demand.tasks, view.demand.least) == expected


def test_what_it_asks_for_follows_an_edit_of_the_queue() -> None:
    wide = anybody("wide", parallelism=Parallelism(count=1000))
    desk = Desk(a_queue(tasks=8), a_record(), wide, default="blue")
    desk.put(a_queue(tasks=20, version=1100))
    assert desk.grants() == ["widex10"]
