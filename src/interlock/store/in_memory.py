"""The in-memory store, base of the others: reads answered and writes decided in memory.

What differs between backends is only how a change becomes durable: `_commit`.

A write is decided against the newest decided state, which may not be durable yet; a read is
answered from the acknowledged state alone. An answer that rests on something undecided (a name
that is taken by a write under way, say) waits until that is settled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar, cast

from interlock.errors import (
    AlreadyExistsError,
    ForbiddenError,
    InterlockError,
    NotFoundError,
    UnavailableError,
)
from interlock.resources.cluster import Namespace
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.store import rules
from interlock.store.contract import (
    DeleteOptions,
    Event,
    EventType,
    Gate,
    Identities,
    Now,
    Page,
    Selection,
)
from interlock.store.paging import Paging
from interlock.store.selectors import matcher_for
from interlock.store.state import State
from interlock.store.watching import BUFFERED, REMEMBERED, Change, Hub

R = TypeVar("R", bound=Resource)

_ADDED, _MODIFIED, _DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
_NO_OPTIONS = DeleteOptions()
_EVERYTHING = Selection()
#: How often another ending is tried when a generated name is taken.
_NAME_ATTEMPTS = 8


class InMemoryStore(ABC):
    """What all backends with their resources in memory have in common."""

    def __init__(
        self,
        now: Now,
        identities: Identities,
        *,
        remembered: int = REMEMBERED,
        buffered: int = BUFFERED,
    ) -> None:
        self._now = now
        self._identities = identities
        self._shelves = State()
        self._paging = Paging()
        self._hub = Hub(remembered=remembered, buffered=buffered)
        #: The newest change of each resource that was decided and is not acknowledged.
        self._pending: dict[Key, Change] = {}
        #: The newest version that was given out.
        self._last_version = 0
        self._gate: Gate | None = None

    def guard(self, gate: Gate) -> None:
        """Have a gate judge all that is created from now on."""
        gate.begin(self._shelves.all())
        self._gate = gate

    @abstractmethod
    def _commit(self, change: Change) -> Awaitable[Exception | None] | None:
        """Begin to make a decided change durable; it is acknowledged when it is.

        Returns None when it is already, else something to wait for that tells what went wrong.
        """

    @abstractmethod
    def _under_way(self) -> Awaitable[Exception | None] | None:
        """Something to wait for until all that was decided so far is settled; None if it is."""

    # Reading

    @property
    def version(self) -> int:
        """The newest acknowledged version."""
        return self._hub.version

    async def get(self, key: Key) -> Resource:
        """The newest acknowledged version of a resource."""
        found = self._shelves.get(key)
        if found is None:
            raise NotFoundError(key)
        return found

    async def list(
        self,
        kind: str,
        selection: Selection | None = None,
        *,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Page:
        """The resources of a kind, in the order of namespace and name, all at one version."""
        chosen = selection or _EVERYTHING
        if continue_token:
            return self._paging.next(continue_token, kind, chosen, limit=limit, now=self._now())
        matcher = matcher_for(kind, chosen)
        items = self._shelves.in_order(rules.kind_of(kind).name, chosen.namespace)
        if matcher is not None and (chosen.labels or chosen.fields):
            items = [resource for resource in items if matcher(resource)]
        return self._paging.first(
            kind, chosen, items, version=self._hub.version, limit=limit, now=self._now()
        )

    def watch(
        self, kind: str, selection: Selection | None = None, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]:
        """Changes after version `since`, in batches, in order, with bookmarks now and then."""
        return self._watch(kind, selection, since)

    @asynccontextmanager
    async def _watch(
        self, kind: str, selection: Selection | None, since: int
    ) -> AsyncGenerator[AsyncIterator[Sequence[Event]], None]:
        matcher = matcher_for(rules.kind_of(kind).name, selection)
        watcher = self._hub.join(kind, matcher, since)
        try:
            yield watcher
        finally:
            self._hub.leave(watcher)

    def tick(self) -> None:
        """Send a bookmark to every watch that does not know how far the store is."""
        self._hub.tick()

    # Writing

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        """Store a new resource; fills in name, uid, versions, generation and creation time."""
        try:
            change = self._decide_create(resource)
        except InterlockError:
            await self._settle()
            raise
        return cast("R", await self._carry_out(change, dry_run))

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace spec and metadata; the stored status stays."""
        try:
            change = self._decide_update(resource)
        except InterlockError:
            await self._settle()
            raise
        return cast("R", await self._carry_out(change, dry_run))

    async def update_ties(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace finalizers and owners; all else stays."""
        try:
            change = self._decide_update(rules.with_ties(self._stored_as(resource), resource))
        except InterlockError:
            await self._settle()
            raise
        return cast("R", await self._carry_out(change, dry_run))

    async def update_status(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace the status; the stored spec and metadata stay."""
        try:
            change = self._decide_status(resource)
        except InterlockError:
            await self._settle()
            raise
        return cast("R", await self._carry_out(change, dry_run))

    async def delete(
        self, key: Key, options: DeleteOptions | None = None, *, dry_run: bool = False
    ) -> Resource:
        """Remove a resource, or mark it as going while finalizers hold it."""
        try:
            change = self._decide_delete(key, options or _NO_OPTIONS)
        except InterlockError:
            await self._settle()
            raise
        return await self._carry_out(change, dry_run)

    async def _carry_out(self, decided: Change | Resource, dry_run: bool) -> Resource:
        """Make a decision durable: a change, or the resource that stays as it is."""
        if not isinstance(decided, Change):
            await self._settle()
            return decided
        resource = decided.event.resource
        assert resource is not None
        if dry_run:
            before = decided.before
            return rules.with_version(resource, before.version if before is not None else 0)
        self._last_version = decided.version
        outcome = self._commit(decided)
        if self._gate is not None:
            gone = decided.event.type is _DELETED
            self._gate.decided(decided.before, None if gone else resource)
        if outcome is not None:
            error = await outcome
            if error is not None:
                raise UnavailableError(f"the write was not made durable: {error}") from error
        return resource

    async def _settle(self) -> None:
        """Wait for what an answer may rest on: a refusal is true once that is durable.

        Raises:
            UnavailableError: It did not become durable, and so the answer may be false.
        """
        if not self._pending:
            return
        under_way = self._under_way()
        error = None if under_way is None else await under_way
        if error is not None:
            raise UnavailableError(f"a write under way was not made durable: {error}") from error

    def _decide_create(self, resource: R) -> Change:
        version = self._last_version + 1
        key = self._free_key(resource)
        made = rules.created(
            resource, key, uid=self._identities.uid(), version=version, now=self._now()
        )
        if key[1]:
            self._check_namespace(key[1])
        if self._gate is not None:
            self._gate.admit(made, self._newest)
        return Change(key, None, Event(_ADDED, made, version), version)

    def _free_key(self, resource: Resource) -> Key:
        key = resource.key
        if key[2]:
            if self._newest(key) is not None:
                raise AlreadyExistsError(key)
            return key
        for _ in range(_NAME_ATTEMPTS):
            key = rules.generated_key(resource, self._identities.suffix())
            if self._newest(key) is None:
                return key
        raise AlreadyExistsError(key)

    def _check_namespace(self, name: str) -> None:
        key = Key("Namespace", "", name)
        namespace = self._newest(key)
        if namespace is None:
            raise NotFoundError(key)
        if namespace.metadata.deletion_timestamp is not None:
            raise ForbiddenError(f"the namespace {name} is being deleted: nothing new can be in it")

    def _decide_update(self, resource: R) -> Change | R:
        stored = self._stored_as(resource)
        version = self._last_version + 1
        after = rules.updated(stored, resource, version=version)
        if after is stored:
            return stored
        going = rules.is_removable(after.metadata)
        event = Event(_DELETED if going else _MODIFIED, after, version)
        return Change(stored.key, stored, event, version)

    def _decide_status(self, resource: R) -> Change | R:
        stored = self._stored_as(resource)
        version = self._last_version + 1
        after = rules.with_status(stored, resource, version=version)
        if after is stored:
            return stored
        return Change(stored.key, stored, Event(_MODIFIED, after, version), version)

    def _decide_delete(self, key: Key, options: DeleteOptions) -> Change | Resource:
        stored = self._newest(key)
        if stored is None:
            raise NotFoundError(key)
        version = self._last_version + 1
        after = rules.to_delete(stored, options, version=version, now=self._now())
        if after is stored:
            return stored
        removed = not after.metadata.finalizers
        event = Event(_DELETED if removed else _MODIFIED, after, version)
        return Change(key, stored, event, version)

    def _stored_as(self, resource: R) -> R:
        """The newest decided version of a resource."""
        key = resource.key
        stored = self._newest(key)
        if stored is None:
            raise NotFoundError(key)
        return cast("R", stored)

    def _newest(self, key: Key) -> Resource | None:
        change = self._pending.get(key)
        if change is None:
            return self._shelves.get(key)
        return None if change.event.type is _DELETED else change.event.resource

    def _acknowledge(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Let readers and watchers see changes; returns those that are no longer remembered."""
        self._shelves.apply(changes)
        return self._hub.publish(changes)

    def _default_namespace(self) -> Change | None:
        """The creation of the namespace that must always be there, when it is not."""
        key = Key("Namespace", "", rules.DEFAULT_NAMESPACE)
        if self._shelves.get(key) is not None:
            return None
        return self._decide_create(Namespace(metadata=Metadata(name=key.name)))
