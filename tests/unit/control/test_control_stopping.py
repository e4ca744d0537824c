"""Stopping in order."""

from __future__ import annotations

import pytest
from control_world import Script, World

from interlock.control.lease import LEASE, Election
from interlock.control.stopping import stop_in_order
from interlock.errors import NotFoundError
from interlock.resources.actions import Decision, DeleteResource
from interlock.resources.cluster import Lease
from interlock.resources.metadata import Key


def deletes(world: World) -> Script:
    def look(key: Key) -> Decision:
        job = world.caches["Job"].get(key)
        return Decision((DeleteResource(job),)) if job and not job.is_going else Decision()

    return Script(look)


async def holder(world: World) -> str:
    lease = await world.store.get(LEASE)
    assert isinstance(lease, Lease)
    return lease.spec.holder_identity


def test_the_lease_is_released_after_everything_under_way_is_done() -> None:
    world = World()
    loop = world.loop(deletes(world))
    election = Election(world.store, world.clock, world.luck, world.fence, "me")

    async def check() -> None:
        activity = world.events.create_task(election.run())
        await election.leading.wait()
        await world.inform(loop)
        world.store.go_on.clear()
        job = await world.create_job(metadata={"finalizers": ()})
        await world.passes(1)
        stopping = world.events.create_task(stop_in_order(loop, election, [activity], world.clock))
        await world.passes(1)
        assert not stopping.done()
        assert await holder(world) == "me"
        world.store.go_on.set()
        await stopping
        with pytest.raises(NotFoundError):
            await world.store.get(job.key)
        assert await holder(world) == ""
        assert not world.fence.is_open

    world.run(check())


def test_a_decision_that_never_ends_does_not_hold_up_the_stop_and_keeps_the_lease() -> None:
    world = World()
    loop = world.loop(deletes(world))
    election = Election(world.store, world.clock, world.luck, world.fence, "me")

    async def check() -> None:
        activity = world.events.create_task(election.run())
        await election.leading.wait()
        await world.inform(loop)
        await world.create_job(metadata={"finalizers": ()})
        world.store.go_on.clear()
        await world.passes(1)
        await stop_in_order(loop, election, [activity], world.clock, patience_s=5)
        assert activity.done()
        assert await holder(world) == "me"
        assert not world.fence.is_open

    world.run(check())
