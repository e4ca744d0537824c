"""The lease: whatever fails and for how long, two fences are never open at once."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.control.lease import Election
from interlock.control.stopping import end_task
from interlock.control.write_fence import WriteFence
from interlock.errors import UnavailableError
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.builders import T0

STEPS = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["reach", "cut off", "cut writes", "start", "vanish", "stop"]),
    st.sampled_from([0.5, 3.0, 9.0, 16.0, 40.0]),
)


class Reached:
    """The store as one candidate reaches it, or does not."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.state = "reach"

    async def get(self, key: Any) -> Any:
        self._check(self.state == "cut off")
        return await self._store.get(key)

    async def create(self, resource: Any) -> Any:
        self._check(self.state != "reach")
        return await self._store.create(resource)

    async def update(self, resource: Any) -> Any:
        self._check(self.state != "reach")
        return await self._store.update(resource)

    def _check(self, down: bool) -> None:
        if down:
            raise UnavailableError("cut off")


class Candidate:
    """A control plane that comes, goes and is cut off."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.store: Any = Reached(world.store)
        self.fence = WriteFence(world.clock)
        self.terms: list[int] = []
        self.running: tuple[Election, asyncio.Task[None]] | None = None

    async def change(self, what: str) -> None:
        if what in ("reach", "cut off", "cut writes"):
            self.store.state = what
        elif what == "start" and self.running is None:
            self._start()
        elif what in ("vanish", "stop") and self.running is not None:
            election, task = self.running
            await end_task(task)
            if what == "stop":
                await election.release()
            self.fence.shut("its process is gone")
            self.running = None

    def _start(self) -> None:
        identity = f"{self.name}-{len(self.terms)}-{self.world.clock.monotonic()}"
        election = Election(self.store, self.world.clock, Random(self.name), self.fence, identity)
        election.on_lead = self._lead
        self.running = (election, self.world.events.create_task(election.run()))

    def _lead(self, term: int) -> None:
        self.terms.append(term)
        self.world.terms.append(term)


class World:
    """A few candidates for one lease."""

    def __init__(self) -> None:
        self.events = SimLoop(Random(0))
        self.clock = SimClock(self.events, self.events.world, T0)
        self.store = MemoryStore(self.clock.now, SeededIdentities(Random(0)))
        self.terms: list[int] = []
        self.candidates = [Candidate(self, name) for name in ("a", "b", "c")]

    async def passes(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            await asyncio.sleep(0.5)
            assert sum(each.fence.is_open for each in self.candidates) <= 1, "two lead at once"

    async def run(self, steps: list[tuple[int, str, float]]) -> None:
        for number, what, seconds in steps:
            await self.candidates[number].change(what)
            await self.passes(seconds)
        for each in self.candidates:
            await each.change("reach")
            await each.change("start")
        await self.passes(40)
        assert sum(each.fence.is_open for each in self.candidates) == 1, "nobody leads"
        assert self.terms == sorted(set(self.terms)), "a later term has no higher number"


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, max_size=14))
def test_at_most_one_leads_and_in_the_end_one_does(steps: list[tuple[int, str, float]]) -> None:
    world = World()
    try:
        world.events.run(world.run(steps))
    finally:
        world.events.close()
