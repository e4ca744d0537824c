"""The informer: whatever the store does, the cache comes to say what the store says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from control_world import World
from msgspec.structs import replace

from interlock.control.informer import Informer
from interlock.control.reconciler import Change
from interlock.errors import ExpiredError, UnavailableError
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.metadata import Key
from interlock.store.contract import Event, EventType
from interlock.testing.builders import a_job


class Following:
    """An informer of Jobs, and everything it told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.batches: list[Sequence[Change]] = []
        self.back = 0
        self.cache = world.caches["Job"]
        self.informer: Informer[Job] = Informer(
            world.store,
            self.cache,
            world.clock,
            world.luck,
            self.batches.append,
            on_back=self._is_back,
        )

    def _is_back(self) -> None:
        self.back += 1

    async def start(self) -> asyncio.Task[None]:
        task = self.world.events.create_task(self.informer.run())
        await self.informer.synced.wait()
        return task

    def told(self) -> list[tuple[str, str]]:
        """What was told: the name, and whether it came, changed or went."""
        lines = []
        for change in (change for batch in self.batches for change in batch):
            resource = change.after or change.before
            assert resource is not None
            how = "went" if change.after is None else "changed" if change.before else "came"
            lines.append((resource.metadata.name, how))
        return lines

    def names(self) -> list[str]:
        return sorted(job.metadata.name for job in self.cache)


def test_what_is_there_and_what_happens_is_told_once() -> None:
    world = World()
    follows = Following(world)

    async def check() -> None:
        await world.create_job("old", metadata={"finalizers": ()})
        await follows.start()
        assert follows.told() == [("old", "came")]
        job = await world.create_job("new")
        await world.store.update(replace(job, spec=replace(job.spec, title="t")))
        await world.store.delete(Key("Job", "default", "old"))
        await world.passes(1)
        assert follows.told()[1:] == [("new", "came"), ("new", "changed"), ("old", "went")]
        assert follows.names() == ["new"]

    world.run(check())


def test_what_cannot_be_read_any_more_is_kept_as_it_was() -> None:
    world = World()
    follows = Following(world)

    async def check() -> None:
        bad, good = await world.create_job("bad"), await world.create_job("good")
        await follows.start()
        world.store.unreadable = frozenset({bad.key})
        world.store.interrupt(ExpiredError(1, 2))
        await world.passes(20)
        assert follows.cache.get(bad.key) == bad
        assert follows.cache.unreadable == {bad.key}
        world.store.unreadable = frozenset()
        world.store.interrupt(ExpiredError(1, 2))
        await world.passes(20)
        assert follows.cache.unreadable == set()
        assert follows.names() == ["bad", good.metadata.name]

    world.run(check())


def test_what_a_write_returned_is_no_news_when_the_store_tells_of_it() -> None:
    world = World()
    follows = Following(world)

    async def check() -> None:
        await follows.start()
        follows.cache.note(await world.create_job("mine"))
        await world.passes(1)
        assert follows.told() == []

    world.run(check())


def test_after_an_outage_the_watch_resumes_where_it_stopped() -> None:
    world = World()
    follows = Following(world)
    down = True

    def fail(call: str) -> None:
        if down and call in ("watch", "list"):
            raise UnavailableError("down")

    async def check() -> None:
        nonlocal down
        down = False
        await follows.start()
        # End the watch under way, as a stopping server does, and refuse the next ones.
        down = True
        world.store.before = fail
        await world.passes(1)
        world.store.interrupt(UnavailableError("stopping"))
        await world.passes(20)
        await world.create_job("meanwhile")
        assert follows.names() == []
        down = False
        await world.passes(60)
        assert follows.names() == ["meanwhile"]
        assert follows.back == 1
        assert world.store.calls.count("list") == 1

    world.run(check())


def test_a_version_that_is_too_old_is_listed_again_and_what_went_is_told() -> None:
    world = World()
    follows = Following(world)

    async def check() -> None:
        for name in ("kept", "lost"):
            await world.create_job(name, metadata={"finalizers": ()})
        await follows.start()
        await world.passes(1)
        world.store.interrupt(ExpiredError(1, 2))
        await world.store.delete(Key("Job", "default", "lost"))
        await world.create_job("fresh")
        await world.passes(60)
        assert follows.names() == ["fresh", "kept"]
        assert ("lost", "went") in follows.told()
        assert world.store.calls.count("list") >= 2

    world.run(check())


def test_an_error_that_nobody_thought_of_does_not_end_it() -> None:
    world = World()
    follows = Following(world)
    failures = [ValueError("surprise"), UnavailableError("down"), KeyError("x")]

    def fail(call: str) -> None:
        if failures:
            raise failures.pop()

    async def check() -> None:
        await world.create_job("a")
        world.store.before = fail
        await follows.start()
        assert follows.names() == ["a"]

    world.run(check())


def test_a_long_list_comes_in_parts() -> None:
    world = World()
    follows = Following(world)

    async def check() -> None:
        for number in range(2500):
            await world.create_job(f"job-{number}")
        await follows.start()
        assert len(follows.cache) == 2500
        assert world.store.calls.count("list") == 3

    world.run(check())


def test_repeated_events_do_not_bring_back_what_was_deleted() -> None:
    world = World()
    follows = Following(world)
    old = a_job("a", version=5)
    added, deleted = Event(EventType.ADDED, old, 5), Event(EventType.DELETED, old, 6)
    follows.informer._hear([added, added, deleted])
    follows.informer._hear([added, deleted, Event(EventType.BOOKMARK, None, 9)])

    assert follows.told() == [("a", "came"), ("a", "went")]
    assert follows.cache.version == 9


def test_a_list_older_than_what_is_known_takes_nothing_back() -> None:
    world = World()
    follows = Following(world)
    newer = a_job("a", version=9, metadata={"finalizers": (JOB_FINALIZER,)})
    follows.cache.note(newer)
    follows.informer._replace({}, set(), 5)

    assert follows.names() == ["a"]
