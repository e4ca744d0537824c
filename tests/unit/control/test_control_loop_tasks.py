"""The loop and the runtime: what was launched is known, and what failed is tried again."""

from __future__ import annotations

from collections.abc import Callable

from control_world import ADMITTED, Script, World, cached, stored
from msgspec.structs import replace

from interlock.errors import FencedError, UnavailableError
from interlock.resources.actions import Decision, ForgetTask, LaunchTask
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.tasks import ReportState, TaskId, TaskOrder
from interlock.resources.work import ProcessWork


def an_order(job: Job) -> TaskOrder:
    return TaskOrder(
        job_uid=job.metadata.uid,
        index=0,
        attempt=0,
        name=f"{job.metadata.name}-0-0",
        namespace="default",
        job=job.metadata.name,
        work=ProcessWork(command=("true",)),
    )


def launches(world: World) -> Callable[[Key], Decision]:
    """Launch the one task of each Job as long as the runtime does not know it."""

    def look(key: Key) -> Decision:
        job = cached(world, key)
        if job is None or not world.reports.complete or world.reports.of(job.metadata.uid):
            return Decision()
        return Decision((LaunchTask(job, an_order(job)),))

    return look


def test_a_launched_task_is_known_at_once_and_a_forgotten_one_no_more() -> None:
    world = World()
    room = Script(launches(world))
    loop = world.loop(room)

    async def check() -> None:
        await world.inform_and_report(loop)
        job = await world.create_job()
        await world.passes(1)
        assert [name for name, _ in world.runtime.calls] == ["reports", "launch"]
        assert world.reports.count(ReportState.ACCEPTED) == 1
        loop.wake("room", job.key)
        await world.passes(1)
        assert len(world.runtime.calls) == 2

        room._look = lambda _: Decision((ForgetTask(job, TaskId(job.metadata.uid, 0, 0)),))
        loop.wake("room", job.key)
        await world.passes(1)
        assert not world.reports.of(job.metadata.uid)
        # Who forgets what is nothing that a person wants to read.
        assert [entry.actions for entry in await world.journalled()] == [("launch job-0-0",)]

    world.run(check())
    assert world.sample("tasks_launched_total") == 1


def test_after_the_runtime_was_away_it_is_read_again_and_jobs_are_looked_at() -> None:
    world = World()
    loop = world.loop(Script(launches(world)))

    async def check() -> None:
        await world.inform_and_report(loop)
        world.runtime.failure = UnavailableError("keeper restarts")
        for number in range(10):
            job = await world.create_job(f"job-{number}")
            await world.store.update_status(
                replace(job, status=replace(job.status, admission=ADMITTED))
            )
        await world.passes(100)
        assert not world.reports.complete
        world.runtime.failure = None
        await world.passes(31)
        launched = [things for name, things in world.runtime.calls if name == "launch"]
        assert len({order.job for order in launched[-1]}) == 10
        assert world.reports.count(ReportState.ACCEPTED) == 10

    world.run(check())


def test_a_runtime_that_follows_a_newer_leader_stops_this_one() -> None:
    world = World()
    loop = world.loop(Script(launches(world)))

    async def check() -> None:
        await world.inform_and_report(loop)
        world.runtime.failure = FencedError("term 7 leads")
        await world.create_job()
        await world.passes(1)
        assert not world.fence.is_open
        assert (await stored(world)).status.trouble is None

    world.run(check())


def test_what_an_earlier_term_hears_late_does_not_end_the_present_one() -> None:
    world = World()
    loop = world.loop(Script(launches(world)))

    async def check() -> None:
        await world.inform_and_report(loop)
        world.fence.open(world.fence.term + 1)
        world.runtime.failure = FencedError("that term is over")
        await world.create_job()
        await world.passes(1)
        assert world.fence.is_open

    world.run(check())
