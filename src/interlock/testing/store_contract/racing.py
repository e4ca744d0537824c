"""Many writers at once: one of those who read the same version wins, and nothing is lost."""

from __future__ import annotations

import asyncio

from interlock.errors import AlreadyExistsError, ConflictError, InterlockError
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.store.contract import EventType, Selection, Store
from interlock.testing.store_contract.suite import (
    StoreSuite,
    events_until,
    new_job,
    on_store,
    with_spec,
)

WRITERS = 20


class RacingContract(StoreSuite):
    """What holds when calls overlap."""

    @on_store
    async def test_one_of_many_creates_wins(self, store: Store, namespace: str) -> None:
        results = await asyncio.gather(
            *(store.create(new_job(namespace)) for _ in range(WRITERS)), return_exceptions=True
        )

        made = [result for result in results if isinstance(result, Job)]
        assert len(made) == 1
        refused = [result for result in results if not isinstance(result, Job)]
        assert all(isinstance(error, AlreadyExistsError) for error in refused)
        assert await store.get(made[0].key) == made[0]

    @on_store
    async def test_one_of_many_updates_wins(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        tries = [store.update(with_spec(made, priority=n + 1)) for n in range(WRITERS)]
        results = await asyncio.gather(*tries, return_exceptions=True)

        won = [result for result in results if isinstance(result, Job)]
        assert len(won) == 1
        lost = [result for result in results if not isinstance(result, Job)]
        assert all(isinstance(error, ConflictError) for error in lost)
        assert await store.get(made.key) == won[0]

    @on_store
    async def test_no_increment_is_lost(self, store: Store, namespace: str) -> None:
        """Everyone counts up by compare-and-set, again and again until it worked."""
        key = (await store.create(new_job(namespace))).key
        await asyncio.gather(*(_count_up(store, key) for _ in range(WRITERS)))

        found = await store.get(key)
        assert isinstance(found, Job)
        assert found.spec.priority == WRITERS
        assert found.metadata.generation == WRITERS + 1

    @on_store
    async def test_a_watch_agrees_with_the_store(self, store: Store, namespace: str) -> None:
        """Whatever is done at the same time, playing the events gives what a list gives."""
        chosen = Selection(namespace=namespace)
        since = (await store.list("Job", chosen)).version
        async with store.watch("Job", chosen, since=since) as batches:
            await asyncio.gather(*(_live(store, namespace, n) for n in range(WRITERS)))
            await store.create(new_job(namespace, "last"))
            events = await events_until(
                batches,
                lambda seen: any(e.resource and e.resource.key.name == "last" for e in seen),
            )
        played: dict[Key, Resource] = {}
        for event in events:
            assert event.resource is not None
            key = event.resource.key
            if event.type is EventType.DELETED:
                played.pop(key, None)
            else:
                played[key] = event.resource

        listed = (await store.list("Job", chosen)).items
        assert played == {resource.key: resource for resource in listed}


async def _count_up(store: Store, key: Key) -> None:
    while True:
        found = await store.get(key)
        assert isinstance(found, Job)
        try:
            await store.update(with_spec(found, priority=found.spec.priority + 1))
        except ConflictError:
            continue
        return


async def _live(store: Store, namespace: str, number: int) -> None:
    """Create, change and for every other one delete; overlapping calls may be refused."""
    job = await store.create(new_job(namespace, f"job-{number}"))
    changes = [store.update(with_spec(job, priority=n + 1)) for n in range(3)]
    for result in await asyncio.gather(*changes, return_exceptions=True):
        assert isinstance(result, Job | InterlockError)
    if number % 2:
        await store.delete(job.key)
