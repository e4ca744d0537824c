"""The sweeper at work: who may sweep, and what a failure does to the next sweep."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from random import Random

import pytest

from interlock.control.cache import Cache
from interlock.control.loop import Loop
from interlock.forecast.rehearsal.scenario import WorkRule
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.forecast.rehearsal.world import Plane, World
from interlock.modes.settings import Sweeping
from interlock.modes.sweeper import SweepAnswer, Sweeper
from interlock.reporting.job_index import JobIndex
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Metadata
from interlock.resources.steps import StepRetries
from interlock.resources.values.durations import Duration
from interlock.testing.asking import Asker, a_store, asking
from interlock.testing.builders import T0
from support.operation_play import a_step, an_operation
from support.reports import Reports


def test_who_does_not_lead_does_not_know_what_is_under_way() -> None:
    store = a_store()
    ask = asking(Asker(store=store, routes=Reports(store).routes()))
    refused = ask("POST", "/operations/sweep")
    assert (refused.status, refused.header("retry-after")) == (503, "1")
    assert "another control plane leads" in refused.json["message"]


@pytest.mark.parametrize(("every_s", "looks"), [(600, 6), (0, 0)])
def test_a_sweep_that_fails_does_not_stop_those_after_it(
    every_s: float, looks: int, caplog: pytest.LogCaptureFixture
) -> None:
    events = SimLoop(Random(1))
    clock = SimClock(events, events.world, T0)
    asked: list[float] = []

    def leading() -> Loop | None:
        asked.append(clock.monotonic())
        if len(asked) % 2:
            raise RuntimeError("the caches are upside down")
        return None

    jobs: Cache[Job] = Cache("Job")
    sweeping = Sweeping(every_s=every_s)
    sweeper = Sweeper(leading, jobs, JobIndex(), clock, sweeping)

    async def an_hour() -> None:
        going_on = asyncio.ensure_future(sweeper.run())
        await asyncio.sleep(3601)
        assert not going_on.done()
        going_on.cancel()

    with caplog.at_level(logging.ERROR, logger="interlock.sweeper"):
        try:
            events.run(an_hour(), within=7200.0)
        finally:
            events.close()
    assert len(asked) == looks
    assert len(caplog.records) == looks // 2


def a_retrying_operation() -> Job:
    """Its one step fails ever, and is tried again after 10 s, then after 20 s."""
    retries = StepRetries(limit=3, delay=Duration(seconds=10))
    new = Metadata(name="op", namespace="default")
    return Job(metadata=new, spec=an_operation(a_step("a", undo=None, retries=retries)))


def at_work(world: World) -> Plane:
    assert world.plane is not None
    return world.plane


def lose_every_moment(world: World) -> None:
    """What was to wake somebody at a moment is forgotten: a planted bug."""
    loop = at_work(world).plane.loop
    assert loop is not None
    loop._queue._moments.take_all()


def a_sweeper(world: World) -> Sweeper:
    life = at_work(world)
    jobs = life.plane.cache(Job)
    return Sweeper(lambda: life.plane.loop, jobs, life.roster, life.clock, Sweeping())


def swept(world: World, sweeper: Sweeper, older_than_s: float = 600) -> SweepAnswer:
    """What a sweep of now does."""
    return world.loop.run(sweeper.sweep(timedelta(seconds=older_than_s)), within=0.0)


def state_of(world: World) -> tuple[str, int]:
    job = world.get(Key("Job", "default", "op"))
    assert isinstance(job, Job)
    operation = job.status.execution.operation
    assert operation is not None
    return operation.state.value, operation.retry_count


def test_a_retry_whose_wake_up_was_lost_is_found_once_it_is_overdue_and_not_before() -> None:
    """The sheet's arithmetic: a delay of 10 s and one retry made are 610 s."""
    world = World(T0, work=(WorkRule(lasts="1s", exit=1),))
    try:
        world.put((a_retrying_operation(),))
        world.begin()
        sweeper = a_sweeper(world)
        # It ran for a second, failed, was tried again at once, and waits since two seconds.
        world.play_until(T0 + timedelta(seconds=5))
        assert state_of(world) == ("queued", 1)
        lose_every_moment(world)
        world.play_until(T0 + timedelta(seconds=611))
        assert state_of(world) == ("queued", 1)
        assert sum(swept(world, sweeper).posted.values()) == 0
        world.play_until(T0 + timedelta(seconds=613))
        found = swept(world, sweeper)
        assert found.posted == {
            "NeverSeen": 0, "Untouched": 0, "RetryOverdue": 1, "UndoOverdue": 0,
        }  # fmt: skip
        assert sum(swept(world, sweeper).posted.values()) == 0
        world.play_until(T0 + timedelta(seconds=620))
        assert state_of(world) == ("queued", 2)
        world.play_until(T0 + timedelta(seconds=1000))
        assert state_of(world)[0] == "complete"
    finally:
        world.close()


def test_sweeping_all_the_time_changes_nothing_that_happens() -> None:
    def played(every_s: int) -> list[str]:
        world = World(T0, work=(WorkRule(lasts="1s", exit=1),))
        try:
            world.put((a_retrying_operation(),))
            world.begin()
            sweeper = a_sweeper(world)
            for second in range(1, 120):
                world.play_until(T0 + timedelta(seconds=second))
                if every_s and second % every_s == 0:
                    swept(world, sweeper, 0)
            return [str(line) for line in world.lines]
        finally:
            world.close()

    assert played(0)
    assert played(0) == played(1) == played(7)
