"""How a test of the contract gets its store, and what the tests are made of."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from msgspec.structs import replace

from interlock.resources.cluster import Namespace
from interlock.resources.job import Job, JobPhase, JobSpec, JobStatus
from interlock.resources.metadata import Metadata
from interlock.resources.process import ProcessSpec
from interlock.store.contract import Event, EventType, Store

#: Nothing here takes long; this only keeps a broken backend from hanging the tests.
PATIENCE_S = 120.0

S = TypeVar("S", bound="StoreSuite")


class StoreSuite:
    """Base of the suites. A backend says here where it may differ, and nowhere else."""

    #: Whether defaults are stored with the first change and not with the creation, so that the
    #: first change of nothing makes a version. API servers do that with what they fill in.
    fills_in_late = False
    #: Whether the version at which a resource was created is told of it for good. API servers tell
    #: the second alone.
    tells_creation = True

    @abstractmethod
    def open_store(self) -> AbstractAsyncContextManager[Store]:
        """A store to test; it may hold things of other tests."""
        raise NotImplementedError

    async def run(self, test: Callable[[Store, str], Awaitable[None]]) -> None:
        """Run a test on a store, in a namespace of its own."""
        async with asyncio.timeout(PATIENCE_S), self.open_store() as store:
            made = await store.create(Namespace(metadata=Metadata(generate_name="contract-")))
            await test(store, made.metadata.name)

    async def create_filled_in(self, store: Store, namespace: str) -> Job:
        """A Job in which everything that the backend fills in is stored."""
        made = await store.create(new_job(namespace))
        if self.fills_in_late:
            made = await store.update(with_metadata(made, labels={"filled": "in"}))
        return made


def on_store(test: Callable[[S, Store, str], Awaitable[None]]) -> Callable[[S], None]:
    """Make a plain test of an asynchronous one that wants a store and a namespace."""

    def run(self: S) -> None:
        asyncio.run(self.run(lambda store, namespace: test(self, store, namespace)))

    # Not functools.wraps: pytest would see the arguments of the wrapped test and want fixtures.
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def new_job(namespace: str, name: str = "job", **metadata: Any) -> Job:
    """A Job that was not stored yet."""
    return Job(
        metadata=Metadata(name=name, namespace=namespace, **metadata),
        spec=JobSpec(process=ProcessSpec(command=("true",))),
    )


def with_metadata(job: Job, **metadata: Any) -> Job:
    """The Job with other metadata."""
    return replace(job, metadata=replace(job.metadata, **metadata))


def with_spec(job: Job, **spec: Any) -> Job:
    """The Job with another spec."""
    return replace(job, spec=replace(job.spec, **spec))


def in_phase(job: Job, phase: JobPhase) -> Job:
    """The Job with another phase."""
    return replace(job, status=JobStatus(phase=phase))


async def events_until(
    batches: AsyncIterator[Sequence[Event]], done: Callable[[list[Event]], bool]
) -> list[Event]:
    """The events of a watch, bookmarks apart, up to the batch that makes it enough."""
    seen: list[Event] = []
    async for batch in batches:
        seen.extend(e for e in batch if e.unreadable or e.type is not EventType.BOOKMARK)
        if done(seen):
            return seen
    raise AssertionError(f"the watch ended early, after {seen}")


def has(kind: EventType, name: str) -> Callable[[list[Event]], bool]:
    """Whether a change of this kind to that name is among the events."""

    def check(events: list[Event]) -> bool:
        return any(e.type is kind and e.resource and e.resource.key.name == name for e in events)

    return check
