"""A control plane that loses the lead and wins it back leaves nothing of itself behind."""

from __future__ import annotations

import gc
import weakref
from datetime import timedelta

from control_world import NotedRuntime, World

from interlock.control.lease import Election
from interlock.control.loop import Loop
from interlock.control.runtime import Runtime
from interlock.control.write_fence import WriteFence
from interlock.forecast.rehearsal.simulated_loop import current_process
from interlock.plane import ControlPlane


def a_plane(world: World) -> ControlPlane:
    async def connect(term: int) -> Runtime:
        return NotedRuntime()

    return ControlPlane(
        store=world.store,
        journal=world.journal,
        clock=world.clock,
        luck=world.luck,
        connect=connect,
        election=Election(world.store, world.clock, world.luck, WriteFence(world.clock), "plane"),
    )


def test_nothing_of_a_term_is_held_once_the_next_has_begun() -> None:
    world = World()

    async def check() -> None:
        plane = a_plane(world)
        plane.start()
        await world.create_job(start_after=world.clock.now() + timedelta(hours=1))
        terms: list[weakref.ref[Loop]] = []
        for _ in range(4):
            await world.passes(10)
            assert plane.loop is not None
            terms.append(weakref.ref(plane.loop))
            plane.election.resign("the lease was lost")
        await world.passes(10)
        # The simulated process remembers tasks that are done; a real one does not.
        process = current_process()
        process.tasks = [task for task in process.tasks if not task.done()]
        gc.collect()
        assert plane.loop is not None
        assert [term() for term in terms] == [None] * 4

    world.run(check())
