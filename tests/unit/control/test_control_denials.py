"""Orders that are denied for now: told once, given again later and later, and never burnt."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from control_world import ADMITTED, Script, World, stored
from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.live_reads import LiveReads
from interlock.control.loop import Loop
from interlock.control.runtime import OrderDeniedError
from interlock.errors import ForbiddenError
from interlock.execution.reconciler import ExecutionReconciler
from interlock.resources.actions import Decision
from interlock.resources.job import Job
from interlock.resources.lock import Lock
from interlock.resources.metadata import Key, Order
from interlock.resources.queue import QueueQuota
from interlock.resources.tasks import ReportState, StopCause, TaskReport
from interlock.resources.test_bed import TestBedSlots
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0

NO_ROOM = OrderDeniedError(Order.LAUNCH, "exceeded quota: q, requested: pods=1")
NO_RIGHT = OrderDeniedError(Order.STOP, "you cannot delete pods")


async def admitted(world: World, **spec: Any) -> Job:
    """A Job in the store that may start."""
    job = await world.create_job(**spec)
    return await world.store.update_status(
        replace(job, status=replace(job.status, admission=ADMITTED))
    )


def executing() -> tuple[World, Loop]:
    """A world with the room that gives orders."""
    world = World()
    jobs, locks = world.caches["Job"], Cache[Lock]("Lock")
    grants = LiveReads(world.store, world.caches, world.clock)
    quotas = Cache[QueueQuota]("QueueQuota")
    slots = Cache[TestBedSlots]("TestBedSlots")
    room = ExecutionReconciler(jobs, world.reports, locks, quotas, slots, grants)
    return world, world.loop(room)


def runs(job: Job) -> TaskReport:
    """What a runtime says of the Job's only attempt once it runs."""
    return TaskReport(
        job_uid=job.metadata.uid,
        index=0,
        attempt=0,
        namespace="default",
        job=job.metadata.name,
        state=ReportState.RUNNING,
        started_at=T0,
    )


def given(world: World, order: str) -> int:
    """How often an order was given."""
    return sum(name == order for name, _ in world.runtime.calls)


def test_a_launch_that_is_denied_is_given_again_and_its_attempt_is_not_burnt() -> None:
    world, loop = executing()

    async def check() -> None:
        await world.inform_and_report(loop)
        world.runtime.failure = NO_ROOM
        job = await admitted(world)
        await world.passes(300)
        held = await stored(world)
        assert [task.attempt for task in held.status.execution.active] == [0]
        assert not held.status.execution.ended
        trouble = held.status.trouble
        assert trouble is not None
        assert (trouble.order, trouble.message) == (Order.LAUNCH, str(NO_ROOM))
        # Later and later, and nobody else is suspected of anything.
        assert 10 < given(world, "launch") < 30
        assert world.reports.complete
        # It was let in, it starts, and what it waits for is told.
        assert world.store.calls.count("update_status") == 3

        world.runtime.failure = None
        await world.passes(31)
        world.runtime.tell(runs(job))
        await world.passes(1)
        held = await stored(world)
        assert held.status.trouble is None
        assert held.status.phase == "Running"

    world.run(check())


def test_what_is_denied_for_a_moment_is_worth_no_word() -> None:
    world, loop = executing()

    async def check() -> None:
        await world.inform_and_report(loop)
        world.runtime.failure = NO_ROOM
        await admitted(world)
        while not given(world, "launch"):
            await world.passes(0.001)
        world.runtime.failure = None
        await world.passes(10)
        assert given(world, "launch") == 2
        # The Job was let in, and it starts.
        assert world.store.calls.count("update_status") == 2

    world.run(check())


def test_a_denied_launch_is_waited_for_until_its_time_is_over() -> None:
    """The delay between two tries may be longer than the time that is left."""
    world, loop = executing()

    async def check() -> None:
        await world.inform_and_report(loop)
        world.runtime.failure = NO_ROOM
        await admitted(world, pending_timeout=Duration(seconds=61))
        await world.passes(61.5)
        (task,) = (await stored(world)).status.execution.active
        assert task.stop_cause is StopCause.PENDING_TIMEOUT
        assert given(world, "stop") > 0

    world.run(check())


def test_a_denied_stop_is_told_until_it_is_carried_out() -> None:
    world, loop = executing()

    async def check() -> None:
        await world.inform_and_report(loop)
        job = await admitted(world)
        await world.passes(1)
        world.runtime.tell(runs(job))
        await world.passes(2)
        world.runtime.failure = NO_RIGHT
        held = await stored(world)
        await world.store.update(replace(held, spec=replace(held.spec, kill_at=world.clock.now())))
        await world.passes(1)
        before = len(world.store.calls)
        for _ in range(100):
            # Others have it looked at all the time.
            loop.wake("execution", job.key)
            await world.passes(3)
            trouble = (await stored(world)).status.trouble
            assert trouble is not None
            assert trouble.order is Order.STOP
        assert set(world.store.calls[before:]) == {"get"}

        world.runtime.failure = None
        await world.passes(31)
        assert (await stored(world)).status.trouble is None
        assert (await stored(world)).status.phase == "Killing"

    world.run(check())


def test_a_denied_stop_is_given_again_later_and_later() -> None:
    world, loop = executing()

    async def check() -> None:
        await world.inform_and_report(loop)
        job = await admitted(world)
        await world.passes(1)
        world.runtime.tell(runs(job))
        await world.passes(2)
        world.runtime.failure = NO_RIGHT
        held = await stored(world)
        await world.store.update(replace(held, spec=replace(held.spec, kill_at=world.clock.now())))
        await world.passes(600)
        assert 20 < given(world, "stop") < 60

    world.run(check())


def test_what_the_store_refuses_is_one_line_and_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Somebody forbids it: that is no bug, and where it was found out is of no interest."""
    world = World()

    def look(key: Key) -> Decision:
        raise ForbiddenError("namespace default is being terminated")

    loop = world.loop(Script(look))

    async def check() -> None:
        await world.inform(loop)
        await world.create_job()
        with caplog.at_level(logging.WARNING):
            await world.passes(600)
        trouble = (await stored(world)).status.trouble
        assert trouble is not None
        assert "being terminated" in trouble.message

    world.run(check())
    (line,) = caplog.records
    assert (line.levelname, line.exc_info) == ("WARNING", None)
    assert world.sample("failures_total", room="room") > 10
