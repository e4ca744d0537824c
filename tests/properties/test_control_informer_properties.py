"""A cache comes to say what the store says, whatever happened in between."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.informer import Informer
from interlock.control.reconciler import Change
from interlock.errors import InterlockError, UnavailableError
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.builders import T0, a_job

NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "update", "delete", "note"]), NAMES),
    st.tuples(st.just("pass"), st.sampled_from([0.0, 1.0])),
    st.tuples(st.sampled_from(["down", "up", "stop", "start"]), st.none()),
)


class _Store(MemoryStore):
    down = False

    async def list(self, *args: Any, **more: Any) -> Any:
        if self.down:
            raise UnavailableError("down")
        return await super().list(*args, **more)


class Following:
    """An informer that is stopped, started and cut off, beside a store that is written to."""

    def __init__(self, seed: int) -> None:
        self.events = SimLoop(Random(seed))
        self.clock = SimClock(self.events, self.events.world, T0)
        # It remembers so little that a watch cannot always be resumed.
        self.store = _Store(self.clock.now, SeededIdentities(Random(seed)), remembered=3)
        self.cache: Cache[Job] = Cache("Job")
        #: What one knows who only hears of the changes.
        self.heard: dict[Key, Any] = {}
        self.informer = Informer(self.store, self.cache, self.clock, Random(seed), self._publish)
        self.task: asyncio.Task[None]

    def _publish(self, changes: Any) -> None:
        for change in changes:
            self._hear(change)

    def _hear(self, change: Change) -> None:
        resource = change.after or change.before
        assert resource is not None
        assert self.heard.get(resource.key) == change.before, "a change was not told"
        if change.after is None:
            del self.heard[resource.key]
        else:
            self.heard[resource.key] = change.after

    async def step(self, what: str, value: Any) -> None:
        key = Key("Job", "default", str(value))
        match what:
            case "create":
                await self.store.create(a_job(value, metadata={"finalizers": ()}))
            case "update":
                job = await self.store.get(key)
                assert isinstance(job, Job)
                await self.store.update(
                    replace(job, spec=replace(job.spec, priority=job.spec.priority + 1))
                )
            case "delete":
                await self.store.delete(key)
            case "note":
                await self._note(key)
            case "pass":
                await self._pass(value)
            case "down" | "up":
                self.store.down = what == "down"
            case _:
                self.task.cancel()
                self.task = self.events.create_task(self.informer.run())

    async def _note(self, key: Key) -> None:
        """Put in what a write has returned, as the loop does."""
        job = await self.store.get(key)
        assert isinstance(job, Job)
        before = self.cache.note(job)
        if before is not job:
            self._hear(Change(before, job))

    async def _pass(self, seconds: float) -> None:
        done = self.events.create_future()
        self.events.call_later(seconds, done.set_result, None)
        await done

    async def run(self, steps: list[tuple[str, Any]]) -> dict[Key, Any]:
        self.task = self.events.create_task(self.informer.run())
        for step in steps:
            # Such as to delete what is not there.
            with suppress(InterlockError):
                await self.step(*step)
        self.store.down = False
        await self._pass(300)
        return {job.key: job for job in (await self.store.list("Job")).items}


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEPS, max_size=40), seed=st.integers(0, 9))
def test_a_cache_comes_to_say_what_the_store_says(steps: list[tuple[str, Any]], seed: int) -> None:
    follows = Following(seed)
    try:
        stored = follows.events.run(follows.run(steps))
        assert {job.key: job for job in follows.cache} == stored
        assert follows.heard == stored
    finally:
        follows.events.close()
