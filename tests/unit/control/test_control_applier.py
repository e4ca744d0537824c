"""The applier: every action makes its one write or call, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from control_world import World
from msgspec.structs import replace

from interlock.control.applier import Applied, Applier
from interlock.control.forgetting import ENOUGH, LATER_S
from interlock.control.runtime import RuntimeUnavailableError, TaskStop
from interlock.errors import (
    AlreadyExistsError,
    ConflictError,
    FencedError,
    UnavailableError,
)
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    CreateResource,
    Decision,
    DeleteResource,
    DropOwner,
    ForgetTask,
    LaunchTask,
    RecordAdmission,
    RecordExecution,
    RecordStatus,
    RemoveFinalizer,
    StopTask,
)
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import JOB_FINALIZER, Job, JobPhase
from interlock.resources.lock import Lock, LockStatus
from interlock.resources.metadata import Metadata, OwnerReference, Resource
from interlock.resources.tasks import ExecutionStatus, JobResult, TaskId, TaskOrder
from interlock.resources.work import ProcessWork
from interlock.testing.builders import T0, a_holder, a_job, a_lock

ADMITTED = AdmissionStatus(phase=AdmissionPhase.ADMITTED, admitted_at=T0)
ENDED = ExecutionStatus(total=1, started_at=T0, ended_at=T0, result=JobResult.SUCCEEDED)
OWNER = OwnerReference(api_version="v1", kind="Namespace", name="default", uid="owner")


def order(index: int, job: str = "job") -> TaskOrder:
    return TaskOrder(
        job_uid=f"uid-{job}",
        index=index,
        attempt=0,
        name=f"{job}-{index}-0",
        namespace="default",
        job=job,
        work=ProcessWork(command=("true",)),
    )


def launch(index: int, job: str = "job") -> LaunchTask:
    return LaunchTask(a_job(job), order(index, job))


def applied(*make: Callable[[Job], Action], **more: Any) -> tuple[World, Applied, Job]:
    """Carry out actions on a stored Job."""
    world = World()

    async def work() -> tuple[Applied, Job]:
        job = await world.create_job(**more)
        decision = Decision(tuple(each(job) for each in make))
        return await world.applier.apply(decision), job

    return world, *world.run(work())


def test_the_whole_status_follows_from_the_part_that_a_room_writes() -> None:
    _, done, job = applied(lambda job: RecordAdmission(job, ADMITTED))

    written = done.stored[job.key]
    assert isinstance(written, Job)
    assert written.status.phase is JobPhase.STARTING
    assert [condition.type for condition in written.status.conditions] == ["Admitted"]
    assert written.version > job.version
    assert done.writes == 1


def test_a_second_action_on_a_job_builds_on_what_the_first_left() -> None:
    """Both carry the Job as it was read; the version in the second is old by then."""
    _, done, job = applied(
        lambda job: RecordAdmission(job, ADMITTED),
        lambda job: RecordExecution(job, ENDED),
        lambda job: RemoveFinalizer(job, JOB_FINALIZER),
    )

    written = done.stored[job.key]
    assert isinstance(written, Job)
    assert written.status.phase is JobPhase.SUCCEEDED
    assert written.status.admission == ADMITTED
    assert written.metadata.finalizers == ()


def test_what_rooms_record_of_a_job_one_after_the_other_is_one_write() -> None:
    world, done, job = applied(
        lambda job: RecordAdmission(job, ADMITTED), lambda job: RecordExecution(job, ENDED)
    )

    written = done.stored[job.key]
    assert isinstance(written, Job)
    assert done.writes == world.store.calls.count("update_status") == 1
    assert [condition.type for condition in written.status.conditions] == ["Admitted", "Complete"]


def test_what_is_recorded_of_two_jobs_is_two_writes() -> None:
    world = World()

    async def work() -> Applied:
        jobs = [await world.create_job(name) for name in ("a", "b")]
        return await world.applier.apply(
            Decision(tuple(RecordAdmission(job, ADMITTED) for job in jobs))
        )

    done = world.run(work())

    assert done.writes == 2
    assert {key.name for key in done.stored} == {"a", "b"}


@pytest.mark.parametrize(
    ("make", "finalizers", "owners"),
    [
        pytest.param(lambda j: AddFinalizer(j, "a/b"), ("a/b",), 1, id="added"),
        pytest.param(lambda j: RemoveFinalizer(j, "a/b"), (), 1, id="removed though not there"),
        pytest.param(lambda j: DropOwner(j, "owner"), (), 0, id="owner dropped"),
    ],
)
def test_metadata_actions(
    make: Callable[[Resource], Action], finalizers: tuple[str, ...], owners: int
) -> None:
    metadata = {"finalizers": (), "owner_references": (OWNER,)}
    _, done, job = applied(make, metadata=metadata)

    stored = done.stored[job.key]
    assert stored.metadata.finalizers == finalizers
    assert len(stored.metadata.owner_references) == owners


def test_a_lock_is_made_and_written() -> None:
    world = World()
    lock = replace(
        a_lock("db"), metadata=Metadata(name=a_lock("db").metadata.name, namespace="default")
    )
    held = LockStatus(holders=(a_holder(a_job()),), last_token=1)

    async def work() -> Applied:
        return await world.applier.apply(Decision((CreateResource(lock), RecordStatus(lock, held))))

    written = world.run(work()).stored[lock.key]
    assert isinstance(written, Lock)
    assert written.status == held


def test_a_deleted_resource_is_gone_or_going() -> None:
    _, done, job = applied(DeleteResource, metadata={"finalizers": ()})
    assert list(done.removed) == [job.key]
    assert not done.stored

    _, done, job = applied(DeleteResource)
    assert done.stored[job.key].is_going
    assert not done.removed


def test_the_last_finalizer_of_what_is_going_removes_it() -> None:
    _, done, job = applied(DeleteResource, lambda job: RemoveFinalizer(job, JOB_FINALIZER))

    assert list(done.removed) == [job.key]
    assert not done.stored


def test_a_resource_is_deleted_only_as_it_was_read() -> None:
    world = World()

    async def work() -> None:
        job = await world.create_job()
        await world.store.update(replace(job, spec=replace(job.spec, title="changed")))
        with pytest.raises(ConflictError):
            await world.applier.apply(Decision((DeleteResource(job),)))

    world.run(work())


def test_consecutive_orders_to_the_runtime_are_one_call() -> None:
    task = TaskId("uid-job", 0, 0)
    world, done, _ = applied(
        lambda _: launch(0),
        lambda _: launch(1),
        lambda job: StopTask(job, task, 3.0),
    )

    assert world.runtime.calls == [
        ("launch", (order(0), order(1))),
        ("stop", (TaskStop(task, 3.0, "default", "job"),)),
    ]
    assert [each.index for each in done.launched] == [0, 1]
    assert done.writes == 0


@pytest.mark.parametrize(("groups", "calls"), [(True, 1), (False, 2)])
def test_orders_of_several_jobs_are_joined_where_that_is_cheaper(groups: bool, calls: int) -> None:
    """Where it is not, no Job waits until another's tasks are launched."""
    world = World()
    world.runtime.groups_orders = groups
    applier = Applier(world.store, world.runtime, world.clock, world.fence)

    async def work() -> None:
        decisions = (Decision((launch(number),)) for number in range(2))
        await asyncio.gather(*map(applier.apply, decisions))

    world.run(work())
    assert len(world.runtime.calls) == calls


def test_what_may_be_forgotten_waits_for_company() -> None:
    world = World()
    tasks = [TaskId("gone", number, 0) for number in range(3)]

    async def work() -> None:
        for task in tasks:
            done = await world.applier.apply(Decision((ForgetTask(None, task),)))
            assert done.forgotten == [task]
        assert world.runtime.calls == []
        await world.passes(LATER_S)

    world.run(work())
    assert world.runtime.calls == [("forget", tuple(tasks))]


def test_enough_to_forget_waits_for_nothing() -> None:
    world = World()
    forgets = tuple(ForgetTask(None, TaskId("gone", number, 0)) for number in range(ENOUGH))

    async def work() -> None:
        await world.applier.apply(Decision(forgets))
        await world.passes(0)

    world.run(work())
    assert [(name, len(things)) for name, things in world.runtime.calls] == [("forget", ENOUGH)]


def test_what_could_not_be_forgotten_is_tried_again() -> None:
    world = World()
    tasks = [TaskId("gone", number, 0) for number in range(2)]

    async def work() -> None:
        await world.applier.apply(Decision((ForgetTask(None, tasks[0]),)))
        world.runtime.failure = UnavailableError("no keeper")
        await world.passes(LATER_S)
        world.runtime.failure = None
        await world.applier.apply(Decision((ForgetTask(None, tasks[1]),)))
        await world.passes(2 * LATER_S)

    world.run(work())
    assert world.runtime.calls[-1] == ("forget", tuple(tasks))


def test_orders_for_different_keys_in_one_turn_are_one_call() -> None:
    world = World()

    async def work() -> None:
        decisions = [Decision((launch(0, f"job-{n}"),)) for n in range(20)]
        tasks = [world.events.create_task(world.applier.apply(each)) for each in decisions]
        for task in tasks:
            await task

    world.run(work())
    assert [(name, len(things)) for name, things in world.runtime.calls] == [("launch", 20)]


def test_a_call_that_fails_fails_for_everyone_in_it() -> None:
    world = World()
    world.runtime.failure = UnavailableError("keeper is gone")

    async def one(number: int) -> str:
        try:
            await world.applier.apply(Decision((launch(0, f"job-{number}"),)))
        except RuntimeUnavailableError as error:
            return str(error)
        return "launched"

    async def work() -> list[str]:
        tasks = [world.events.create_task(one(number)) for number in range(3)]
        return [await task for task in tasks]

    assert world.run(work()) == ["keeper is gone"] * 3


def test_a_caller_that_is_cancelled_does_not_take_the_call_from_the_others() -> None:
    world = World()

    async def work() -> None:
        first = world.events.create_task(world.applier.apply(Decision((launch(0),))))
        second = world.events.create_task(world.applier.apply(Decision((launch(1),))))
        await asyncio.sleep(0)
        first.cancel()
        assert [each.index for each in (await second).launched] == [1]

    world.run(work())


def test_the_first_failure_stops_the_rest_and_what_was_done_is_told() -> None:
    world = World()
    done = Applied()

    async def work() -> None:
        job = await world.create_job()
        world.runtime.failure = UnavailableError("down")
        actions = (RecordAdmission(job, ADMITTED), launch(0), DeleteResource(job))
        with pytest.raises(UnavailableError):
            await world.applier.apply(Decision(actions), done)
        assert list(done.stored) == [job.key]
        assert not done.removed
        assert not done.launched

    world.run(work())


def test_creating_what_is_there_is_an_error() -> None:
    world = World()
    lock = replace(a_lock("db"), metadata=Metadata(name="db", namespace="default"))

    async def work() -> None:
        await world.applier.apply(Decision((CreateResource(lock),)))
        with pytest.raises(AlreadyExistsError):
            await world.applier.apply(Decision((CreateResource(lock),)))

    world.run(work())


def test_nothing_is_written_or_called_once_the_gate_is_shut() -> None:
    world = World()

    async def work() -> None:
        job = await world.create_job()
        world.store.calls.clear()
        world.fence.shut("somebody else leads")
        for action in (RecordAdmission(job, ADMITTED), launch(0), DeleteResource(job)):
            with pytest.raises(FencedError, match="somebody else leads"):
                await world.applier.apply(Decision((action,)))
        with pytest.raises(FencedError):
            await world.applier.record_trouble(job, None)

    world.run(work())
    assert world.store.calls == []
    assert world.runtime.calls == []


def test_the_gate_is_checked_between_the_actions_and_before_the_gathered_call() -> None:
    world = World()

    async def work() -> None:
        job = await world.create_job()
        task = world.events.create_task(world.applier.apply(Decision((launch(0),))))
        await asyncio.sleep(0)
        world.fence.shut("lost")
        with pytest.raises(FencedError):
            await task
        assert job.version

    world.run(work())
    assert world.runtime.calls == []
