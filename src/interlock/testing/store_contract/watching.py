"""Watching: nothing is missed from a version on, and what leaves a selection is deleted from it."""

from __future__ import annotations

from interlock.resources.job import JobPhase
from interlock.store.contract import EventType, Selection, Store
from interlock.testing.store_contract.suite import (
    StoreSuite,
    events_until,
    has,
    in_phase,
    new_job,
    on_store,
    with_metadata,
)

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


class WatchingContract(StoreSuite):
    """What `watch` promises."""

    @on_store
    async def test_a_watch_tells_what_happens(self, store: Store, namespace: str) -> None:
        chosen = Selection(namespace=namespace)
        listed = await store.list("Job", chosen)
        async with store.watch("Job", chosen, since=listed.version) as batches:
            made = await store.create(new_job(namespace))
            await events_until(batches, has(ADDED, "job"))
            await store.update_status(in_phase(made, JobPhase.RUNNING))
            moved = await events_until(batches, has(MODIFIED, "job"))
            assert moved[-1].resource == await store.get(made.key)
            await store.delete(made.key)
            await events_until(batches, has(DELETED, "job"))

    @on_store
    async def test_a_watch_resumes(self, store: Store, namespace: str) -> None:
        """All that was written after the version is told, in order, whenever the watch begins."""
        chosen = Selection(namespace=namespace)
        since = (await store.list("Job", chosen)).version
        for number in range(5):
            await store.create(new_job(namespace, f"job-{number}"))
        async with store.watch("Job", chosen, since=since) as batches:
            events = await events_until(batches, has(ADDED, "job-4"))

        assert [e.resource.metadata.name for e in events if e.resource] == [
            f"job-{number}" for number in range(5)
        ]
        versions = [event.version for event in events]
        assert versions == sorted(versions)

    @on_store
    async def test_a_watch_begins_after_its_version(self, store: Store, namespace: str) -> None:
        chosen = Selection(namespace=namespace)
        await store.create(new_job(namespace, "old"))
        since = (await store.list("Job", chosen)).version
        await store.create(new_job(namespace, "new"))
        async with store.watch("Job", chosen, since=since) as batches:
            events = await events_until(batches, has(ADDED, "new"))

        assert not has(ADDED, "old")(events)

    @on_store
    async def test_versions_rise_and_fit_the_objects(self, store: Store, namespace: str) -> None:
        chosen = Selection(namespace=namespace)
        since = (await store.list("Job", chosen)).version
        made = await store.create(new_job(namespace))
        async with store.watch("Job", chosen, since=since) as batches:
            events = await events_until(batches, has(ADDED, "job"))

        assert events[0].version == made.version > since

    @on_store
    async def test_leaving_the_selection_is_a_deletion(self, store: Store, namespace: str) -> None:
        chosen = Selection(namespace=namespace, labels="team=red")
        since = (await store.list("Job", chosen)).version
        async with store.watch("Job", chosen, since=since) as batches:
            made = await store.create(new_job(namespace, labels={"team": "red"}))
            await events_until(batches, has(ADDED, "job"))
            left = await store.update(with_metadata(made, labels={"team": "blue"}))
            await events_until(batches, has(DELETED, "job"))
            await store.update(with_metadata(left, labels={"team": "red"}))
            await events_until(batches, has(ADDED, "job"))

    @on_store
    async def test_other_kinds_and_namespaces_are_not_told(
        self, store: Store, namespace: str
    ) -> None:
        chosen = Selection(namespace=namespace)
        since = (await store.list("Job", chosen)).version
        async with store.watch("Job", chosen, since=since) as batches:
            other = await store.create(new_job("default", namespace))
            await store.delete(other.key)
            await store.create(new_job(namespace, "mine"))
            events = await events_until(batches, has(ADDED, "mine"))

        keys = {event.resource.key for event in events if event.resource}
        assert keys == {new_job(namespace, "mine").key}

    @on_store
    async def test_a_change_of_nothing_is_no_event(self, store: Store, namespace: str) -> None:
        chosen = Selection(namespace=namespace)
        made = await self.create_filled_in(store, namespace)
        since = (await store.list("Job", chosen)).version
        await store.update(made)
        await store.update_status(made)
        await store.create(new_job(namespace, "last"))
        async with store.watch("Job", chosen, since=since) as batches:
            events = await events_until(batches, has(ADDED, "last"))

        assert [event.type for event in events] == [ADDED]

    @on_store
    async def test_a_watch_can_be_left(self, store: Store, namespace: str) -> None:
        for _ in range(3):
            since = (await store.list("Job")).version
            async with store.watch("Job", since=since):
                pass
        await store.create(new_job(namespace))
