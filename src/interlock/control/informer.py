"""The informer of a kind: keeps its cache fresh with a list, then a watch that resumes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Generic, TypeVar

from interlock.control.backoff import Backoff
from interlock.control.cache import Cache
from interlock.control.clock import Clock, pause
from interlock.control.reconciler import Change
from interlock.errors import ExpiredError, InterlockError
from interlock.resources.metadata import Key, Resource
from interlock.store.contract import Event, EventType, Store

logger = logging.getLogger("interlock.informer")

R = TypeVar("R", bound=Resource)

#: Told of the changes of one batch, in order.
Publish = Callable[[Sequence[Change]], None]

#: How many resources one part of a list holds: small enough not to stall the loop.
_PART = 1000


class Informer(Generic[R]):
    """Feeds a cache, and tells what changed in it.

    The cache outlives failures: until the store is back it is merely old. After `ExpiredError`
    the kind is listed again, and what is no longer there is dropped.
    """

    def __init__(
        self,
        store: Store,
        cache: Cache[R],
        clock: Clock,
        luck: Random,
        publish: Publish,
        *,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._cache = cache
        self._clock = clock
        self._publish = publish
        self._on_back = on_back
        self._backoff = Backoff(luck)
        #: Watches that ended or expired without having told anything.
        self._interruptions = Backoff(luck)
        #: Whether the cache may only be continued by listing again.
        self._must_list = True
        #: Set once the whole kind was listed for the first time.
        self.synced = asyncio.Event()

    @property
    def kind(self) -> str:
        """The kind that is kept up to date."""
        return self._cache.kind

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if self._must_list:
                    await self._list()
                await self._watch()
                # The store ended the watch, as it may. Resume, but do not spin.
                await pause(self._clock, self._interruptions.failed())
            except ExpiredError:
                self._must_list = True
                if self._interruptions.failures:
                    await pause(self._clock, self._interruptions.failed())
                else:
                    self._interruptions.failed()
            except InterlockError as error:
                await self._wait_after(error)
            except Exception as error:
                # Something nobody thought of. Listing again is always right.
                logger.exception("informer of %s failed", self.kind)
                self._must_list = True
                await self._wait_after(error)

    async def _wait_after(self, error: Exception) -> None:
        delay = self._backoff.failed()
        logger.warning("%s: watching failed, again in %.2f s: %s", self.kind, delay, error)
        await pause(self._clock, delay)

    def _reached(self) -> None:
        if self._backoff.failures:
            self._backoff.reset()
            self._on_back()

    async def _list(self) -> None:
        listed: dict[Key, Resource] = {}
        unreadable: set[Key] = set()
        token = ""
        while True:
            page = await self._store.list(self.kind, limit=_PART, continue_token=token)
            listed.update((resource.key, resource) for resource in page.items)
            unreadable.update(page.unreadable)
            token = page.continue_token
            if not token:
                break
        self._replace(listed, unreadable, page.version)
        self._must_list = False
        self.synced.set()
        self._reached()

    def _replace(self, listed: dict[Key, Resource], unreadable: set[Key], version: int) -> None:
        """Make the cache say what the list says, except where the cache knows better."""
        changes = []
        vanished = self._cache.unreadable - unreadable - listed.keys()
        self._cache.unreadable = unreadable
        if vanished:
            changes += self._everything()
        for held in self._cache:
            if held.key in unreadable:
                continue
            if held.key not in listed and held.version <= version:
                self._cache.drop(held.key, version)
                changes.append(Change(held, None))
        for resource in listed.values():
            note_in(self._cache, resource, changes)
        self._cache.settle(version)
        if changes:
            self._publish(changes)

    async def _watch(self) -> None:
        async with self._store.watch(self.kind, since=self._cache.version) as batches:
            self._reached()
            async for batch in batches:
                self._hear(batch)
                self._interruptions.reset()

    def _hear(self, batch: Sequence[Event]) -> None:
        changes: list[Change] = []
        heard = self._cache.version
        for event in batch:
            # Events come in order, so one that is not newer is a repetition. Taking it for
            # news could bring back what was deleted since.
            if event.version <= heard:
                continue
            heard = event.version
            resource = event.resource
            if resource is None:
                if event.unreadable is not None:
                    self._cache.unreadable.add(event.unreadable)
                continue
            if event.type is EventType.DELETED:
                if resource.key in self._cache.unreadable:
                    changes += self._everything()
                drop_from(self._cache, resource.key, event.version, changes)
            else:
                note_in(self._cache, resource, changes)
        self._cache.settle(heard)
        if changes:
            self._publish(changes)

    def _everything(self) -> list[Change]:
        """All that is held, as if it were new: nobody knows whom it matters to that what could not
        be read is gone.
        """
        return [Change(None, held) for held in self._cache]


def note_in(cache: Cache[Any], resource: Resource, changes: list[Change]) -> None:
    """Hold a resource in the cache, and add what that changed."""
    before = cache.note(resource)
    if before is not resource:
        changes.append(Change(before, resource))


def drop_from(cache: Cache[Any], key: Key, version: int, changes: list[Change]) -> None:
    """Drop a resource from the cache, and add what that changed."""
    before = cache.drop(key, version)
    if before is not None:
        changes.append(Change(before, None))
