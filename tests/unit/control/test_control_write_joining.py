"""Two rooms, one write: what is done together, and what is left of it when it fails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from control_world import ADMITTED, Script, World, admits, cached, item, stored
from msgspec.structs import replace

from interlock.control.write_joining import about_to_be, joined
from interlock.errors import ConflictError, UnavailableError
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    Decision,
    DeleteResource,
    LaunchTask,
    RecordAdmission,
    RecordExecution,
)
from interlock.resources.job import JOB_FINALIZER, Job, JobPhase, JobStatus
from interlock.resources.metadata import Key
from interlock.resources.tasks import ExecutionStatus, TaskOrder, TaskState, TaskStatus
from interlock.resources.transitions import is_admitted
from interlock.resources.work import ProcessWork
from interlock.testing.builders import T0, a_job

TASK = TaskStatus(name="job-0", index=0, attempt=0, state=TaskState.STARTING, created_at=T0)
STARTED = ExecutionStatus(total=1, started_at=T0, active=(TASK,), attempts=1)


def start(job: Job) -> Decision:
    """Record an attempt, then have it launched."""
    order = TaskOrder(
        job_uid=job.metadata.uid,
        index=0,
        attempt=0,
        name="job-0",
        namespace=job.metadata.namespace,
        job=job.metadata.name,
        work=ProcessWork(command=("true",)),
    )
    return Decision((RecordExecution(job, STARTED), LaunchTask(job, order)), reason="starts")


class Starter(Script):
    """A room that starts what is let in, and may be asked ahead."""

    def __init__(self, world: World, foresee: Callable[[Job], Decision] = start) -> None:
        super().__init__(self._start, room="starter")
        self._world = world
        self._foresee = foresee
        self.foreseen: list[Job] = []

    def is_next(self, job: Job) -> bool:
        return is_admitted(job)

    def foresee(self, job: Job, now: datetime) -> Decision:
        assert now == T0
        self.foreseen.append(job)
        return self._foresee(job)

    def _start(self, key: Key) -> Decision:
        job = cached(self._world, key)
        if job is None or not is_admitted(job) or job.status.execution.started_at is not None:
            return Decision()
        return start(job)


def ran(world: World, starter: Starter, **job: Any) -> Job:
    """The Job after everything that happens to a new one."""
    loop = world.loop(Script(admits(world)), starter)

    async def work() -> Job:
        await world.inform(loop)
        await world.create_job(**job)
        await world.passes(60)
        return await stored(world)

    return world.run(work())


def test_a_job_is_let_in_and_started_with_one_write() -> None:
    world = World()
    starter = Starter(world)
    job = ran(world, starter)

    assert job.status.phase is JobPhase.PENDING
    assert job.status.admission == ADMITTED
    assert job.status.execution == STARTED
    assert world.store.calls.count("update_status") == 1
    assert [name for name, _ in world.runtime.calls] == ["launch"]
    assert starter.foreseen[0].status.phase is JobPhase.STARTING


class Placer(Script):
    """A room between the one that lets in and the one that starts."""

    PLACED = ExecutionStatus(total=1)

    def __init__(self, world: World) -> None:
        super().__init__(lambda _: Decision(), room="placer")
        self._world = world

    def is_next(self, job: Job) -> bool:
        return is_admitted(job) and not job.status.execution.total

    def foresee(self, job: Job, now: datetime) -> Decision:
        return Decision((RecordExecution(job, self.PLACED),), reason="placed")


def test_any_chain_of_rooms_makes_one_write() -> None:
    world = World()
    starter = Starter(world)
    loop = world.loop(Script(admits(world)), Placer(world), starter)

    async def work() -> list[tuple[str, str]]:
        await world.inform(loop)
        await world.create_job()
        await world.passes(60)
        return [(entry.room, entry.reason) for entry in await world.journalled()]

    told = world.run(work())

    assert told == [("room", "room enough"), ("placer", "placed"), ("starter", "starts")]
    assert world.store.calls.count("update_status") == 1
    assert starter.foreseen[0].status.execution == Placer.PLACED
    assert [name for name, _ in world.runtime.calls] == ["launch"]


@pytest.mark.parametrize(
    "failure", [UnavailableError("gone"), ZeroDivisionError("a bug")], ids=["away", "a bug"]
)
def test_a_chain_whose_write_fails_has_done_nothing_and_is_made_again(failure: Exception) -> None:
    world = World()
    failures = [failure]

    def before(call: str) -> None:
        if call == "update_status" and failures:
            assert world.runtime.calls == []
            raise failures.pop()

    world.store.before = before
    loop = world.loop(Script(admits(world)), Placer(world), Starter(world))

    async def work() -> Job:
        await world.inform(loop)
        await world.create_job()
        await world.passes(60)
        return await stored(world)

    assert world.run(work()).status.phase is JobPhase.PENDING
    assert [name for name, _ in world.runtime.calls] == ["launch"]


def test_both_rooms_are_in_the_journal() -> None:
    world = World()
    loop = world.loop(Script(admits(world)), Starter(world))

    async def work() -> list[tuple[str, str]]:
        await world.inform(loop)
        await world.create_job()
        await world.passes(60)
        return [(entry.room, entry.reason) for entry in await world.journalled()]

    assert world.run(work()) == [("room", "room enough"), ("starter", "starts")]


def test_a_room_that_fails_when_asked_ahead_keeps_nobody_out() -> None:
    def fails(job: Job) -> Decision:
        raise ZeroDivisionError("a bug")

    world = World()
    job = ran(world, Starter(world, fails))

    assert job.status.phase is JobPhase.PENDING
    assert world.store.calls.count("update_status") == 2


def test_a_room_that_does_nothing_yet_looks_for_itself() -> None:
    world = World()
    job = ran(world, Starter(world, lambda _: Decision()))

    assert job.status.phase is JobPhase.PENDING


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(UnavailableError("gone"), id="the store does not answer"),
        pytest.param(
            ConflictError(Key("Job", "default", "job"), expected="1", found="2"), id="a conflict"
        ),
        pytest.param(ZeroDivisionError("a bug"), id="a bug"),
    ],
)
def test_a_write_that_fails_starts_nothing_and_is_made_again(failure: Exception) -> None:
    world = World()
    failures = [failure]

    def before(call: str) -> None:
        if call == "update_status" and failures:
            assert world.runtime.calls == []
            raise failures.pop()

    world.store.before = before
    job = ran(world, Starter(world))

    assert job.status.phase is JobPhase.PENDING
    assert [name for name, _ in world.runtime.calls] == ["launch"]


def test_a_launch_that_fails_is_the_next_rooms_to_repeat() -> None:
    world = World()
    world.runtime.failure = UnavailableError("gone")
    starter = Starter(world)
    loop = world.loop(Script(admits(world)), starter)

    async def work() -> Job:
        await world.inform(loop)
        await world.create_job()
        await world.passes(60)
        return await stored(world)

    job = world.run(work())

    assert job.status.execution == STARTED
    assert item("job", "starter").key in starter.looks


def test_a_room_at_work_on_the_job_is_not_asked_ahead() -> None:
    world = World()
    starter = Starter(world)
    loop = world.loop(Script(admits(world)), starter)

    async def work() -> Job:
        await world.inform(loop)
        assert world.queue.join(item("job", "starter"))
        await world.create_job()
        await world.passes(60)
        assert starter.foreseen == []
        assert is_admitted(await stored(world))
        world.queue.done(item("job", "starter"))
        await world.passes(60)
        return await stored(world)

    assert world.run(work()).status.phase is JobPhase.PENDING


JOB = a_job()
RIVAL = a_job("rival")
ENDED = replace(JOB, status=JobStatus(phase=JobPhase.SUCCEEDED))


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param((), id="nothing"),
        pytest.param((AddFinalizer(JOB, JOB_FINALIZER),), id="no record"),
        pytest.param((RecordAdmission(ENDED, ADMITTED),), id="a move that no Job may make"),
        pytest.param((RecordAdmission(JOB, ADMITTED), DeleteResource(JOB)), id="more than records"),
        pytest.param(
            (RecordAdmission(JOB, JOB.status.admission), RecordAdmission(RIVAL, ADMITTED)),
            id="another Job is to make way",
        ),
    ],
)
def test_what_no_room_is_asked_ahead_about(actions: tuple[Action, ...]) -> None:
    assert about_to_be(Decision(actions), T0) is None


def test_a_job_is_foreseen_with_all_that_is_recorded_of_it() -> None:
    hold = AddFinalizer(JOB, JOB_FINALIZER)
    records = (RecordAdmission(JOB, ADMITTED), RecordExecution(JOB, STARTED))
    job = about_to_be(Decision((hold, *records)), T0)

    assert job is not None
    assert job.status.phase is JobPhase.PENDING
    assert (job.status.admission, job.status.execution) == (ADMITTED, STARTED)


def test_a_job_is_held_first_so_that_the_records_are_together() -> None:
    first = Decision((RecordAdmission(JOB, ADMITTED),))
    then = start(JOB)
    hold = AddFinalizer(JOB, JOB_FINALIZER)
    then = replace(then, actions=(hold, *then.actions))

    assert joined(first, then).actions == (hold, *first.actions, *then.actions[1:])
