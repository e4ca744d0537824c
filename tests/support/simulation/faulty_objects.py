"""The objects of a cluster as one process sees them, and all that goes wrong on the way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from interlock.errors import ExpiredError, InterlockError, UnavailableError
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.pods.models import JobRecord, T
from interlock.kube.pods.objects import Event, Listed
from interlock.resources.codec import encode
from interlock.resources.metadata import Key
from interlock.store.contract import Store
from support.simulation.cluster import Cluster
from support.simulation.faults import Wire
from support.simulation.kube_api import Body, Happened, chosen

R = TypeVar("R")

#: A client waits for an answer no longer than this.
PATIENCE_S = 30.0


class Lateness(Struct):
    """How often a write is carried out long after its sender gave up, and how late."""

    late: float = 0.0
    latest_s: float = 300.0
    #: A create takes up to so long, and is answered.
    slow_s: float = 0.0
    #: A watch ends without a word.
    cut: float = 0.0
    #: When the last write that is still on its way arrives.
    until: float = 0.0


def draw_lateness(random: Random) -> Lateness:
    """Lateness for one world."""
    return Lateness(
        late=random.choice((0.0, 0.02, 0.15)),
        latest_s=random.choice((5.0, 60.0, 400.0)),
        slow_s=random.choice((0.0, 0.0, 0.0, 20.0)),
        cut=random.choice((0.0, 0.02, 0.2)),
    )


class FaultyObjects(Generic[T]):
    """Implements `kube.pods.objects.Objects` on a simulated cluster."""

    def __init__(
        self,
        cluster: Cluster,
        kind: str,
        type: type[T],
        wire: Wire,
        loop: SimLoop,
        lateness: Lateness,
    ) -> None:
        self._cluster = cluster
        self._api = cluster.api
        self._kind = kind
        self._type = type
        self._wire = wire
        self._loop = loop
        self._lateness = lateness
        self._watches: dict[BentWatch[T], None] = {}

    async def list(self, selector: str = "", *, namespace: str | None = None) -> Listed[T]:
        """The chosen objects, all of one version."""

        def do() -> Listed[T]:
            found = [body for body in self._api.all(self._kind) if chosen(body, selector)]
            if namespace is not None:
                found = [body for body in found if body["metadata"]["namespace"] == namespace]
            return Listed([self._read(body) for body in found], self._api.version)

        return await self._ask("list pods", do)

    def watch(
        self, selector: str, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event[T]]]]:
        """What happens after a version, as it comes through."""
        return BentWatch(self, selector, since)

    async def get(self, namespace: str, name: str) -> T:
        """The newest version of an object."""
        return self._read(
            await self._ask("get", lambda: self._api.get(self._kind, (namespace, name)))
        )

    async def create(self, namespace: str, manifest: Mapping[str, Any]) -> T:
        """Store a new object, now or much later."""
        name = manifest["metadata"]["name"]
        if self._lateness.slow_s:
            await self._wait(self._wire.random.uniform(0.0, self._lateness.slow_s))
        return await self._write(
            f"create pod {name}", lambda: self._cluster.create(self._kind, namespace, manifest)
        )

    async def patch(self, namespace: str, name: str, patch: Mapping[str, Any]) -> T:
        """Merge a patch, now or much later."""
        return await self._write(
            f"patch pod {name}", lambda: self._cluster.patch(self._kind, (namespace, name), patch)
        )

    async def delete(self, namespace: str, name: str, *, uid: str, grace_s: int | None) -> T | None:
        """Ask for an object to go, now or much later; the server answers with its last state."""
        place = (namespace, name)
        return await self._write(
            f"delete pod {name}",
            lambda: self._cluster.delete(self._kind, place, uid=uid, grace_s=grace_s),
        )

    def disconnect(self) -> None:
        """The process is gone: the server ends its watches."""
        for watch in tuple(self._watches):
            watch.disconnect()

    async def _ask(self, what: str, do: Callable[[], R]) -> R:
        return await self._wire.call(what, lambda: self._served(what, do))

    def _served(self, what: str, do: Callable[[], R]) -> R:
        if not self._cluster.reachable:
            raise UnavailableError(f"{what}: the API server does not answer")
        return do()

    async def _write(self, what: str, do: Callable[[], Body]) -> T:
        caller = self._wire.client.name

        def asked() -> Body:
            return self._cluster.asked(caller, do)

        if self._wire.random.random() < self._lateness.late:
            return await self._write_late(what, asked)
        return self._read(await self._ask(what, asked))

    async def _write_late(self, what: str, do: Callable[[], Body]) -> T:
        """Send a write that arrives some time, and hear nothing of it."""
        luck, lateness = self._wire.random, self._lateness
        delay = luck.uniform(0.0, lateness.latest_s)
        lateness.until = max(lateness.until, self._loop.time() + delay)
        context = self._cluster.process.context.copy()
        self._loop.call_later(delay, _arrive, do, context=context)
        await self._wait(min(delay, luck.uniform(0.0, PATIENCE_S)))
        raise UnavailableError(f"{what}: nobody answered in time")

    async def _wait(self, seconds: float) -> None:
        answer: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_later(seconds, _wake, answer)
        await answer

    def _read(self, body: Body) -> T:
        return msgspec.convert(body, self._type)


class FaultyRecords:
    """Implements `kube.pods.records.Records` on the store as one process sees it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, namespace: str, name: str) -> JobRecord:
        """The newest record of a Job, as it is written and read."""
        job = await self._store.get(Key("Job", namespace, name))
        return msgspec.json.decode(encode(job), type=JobRecord)


class BentWatch(AbstractAsyncContextManager[AsyncIterator[Sequence[Event[T]]]], Generic[T]):
    """A watch whose events come late or again, that ends, and that is told to list again."""

    def __init__(self, objects: FaultyObjects[T], selector: str, since: int) -> None:
        self._objects = objects
        self._selector = selector
        self._version = since
        self._told: deque[Event[T]] = deque(maxlen=4)
        self._news: asyncio.Future[None] | None = None

    async def __aenter__(self) -> AsyncIterator[Sequence[Event[T]]]:
        objects = self._objects
        await objects._wait(objects._wire.delay())
        objects._served("watch", lambda: objects._api.since(objects._kind, self._version))
        objects._api.listeners[self] = self._happened
        objects._watches[self] = None
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.disconnect()

    def __aiter__(self) -> BentWatch[T]:
        return self

    async def __anext__(self) -> Sequence[Event[T]]:
        objects = self._objects
        wire, rates = objects._wire, objects._wire.weather.rates
        while not (happened := objects._api.since(objects._kind, self._version)):
            self._news = objects._loop.create_future()
            await self._news
        await objects._wait(wire.delay())
        if wire.random.random() < rates.watch_late:
            await objects._wait(wire.random.uniform(0.0, rates.longest_stall))
        if wire.random.random() < objects._lateness.cut or not objects._cluster.reachable:
            raise StopAsyncIteration
        if wire.random.random() < rates.watch_expire:
            raise ExpiredError(self._version, objects._api.version)
        self._version = happened[-1].version
        events = [self._event(one) for one in happened if self._concerns(one)]
        again = tuple(self._told) if wire.random.random() < rates.watch_repeat else ()
        self._told.extend(events)
        return (*again, *events)

    def disconnect(self) -> None:
        """End the watch on the server's side."""
        self._objects._api.listeners.pop(self, None)
        self._objects._watches.pop(self, None)

    def _happened(self, happened: Happened) -> None:
        if happened.kind == self._objects._kind and self._news is not None:
            _wake(self._news)

    def _concerns(self, happened: Happened) -> bool:
        """Whether an object is among those that are watched, or was until now."""
        was = happened.before is not None and chosen(happened.before, self._selector)
        return was or chosen(happened.body, self._selector)

    def _event(self, happened: Happened) -> Event[T]:
        """What is told of a change: that an object went, too, when it is not chosen any more."""
        type = happened.type if chosen(happened.body, self._selector) else "DELETED"
        return Event(type, self._objects._read(happened.body), happened.version)


def _arrive(do: Callable[[], Body]) -> None:
    try:
        do()
    except InterlockError:
        return  # It is refused, and nobody is there to be told.


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
