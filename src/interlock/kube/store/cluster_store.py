"""The store whose resources are kept by a Kubernetes API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from interlock.control.clock import Clock
from interlock.errors import (
    BadRequestError,
    ConflictError,
    ExpiredError,
    InvalidError,
    Problem,
    UnavailableError,
)
from interlock.kube.client.api_client import MERGE_PATCH, Call, Client, path_of
from interlock.kube.store import bodies
from interlock.kube.store.codec import WIRES, Items, Undecodable, Wire
from interlock.kube.store.selecting import Sight, split_selection
from interlock.kube.store.undecodable import Undecodables
from interlock.kube.store.watching import Watch
from interlock.resources.kinds import Kind
from interlock.resources.metadata import GROUP, Key, Resource
from interlock.store import rules
from interlock.store.contract import DeleteOptions, Event, Page, Selection

R = TypeVar("R", bound=Resource)

#: How many resources are asked for at a time when all of them are wanted.
PART = 1000
#: How often a write without a version is tried against others who write the same resource.
_FORCED_ATTEMPTS = 20
#: How often a list is begun anew because it took so long that its version was forgotten.
_LIST_ATTEMPTS = 3
_EVERYTHING = Selection()
_NO_OPTIONS = DeleteOptions()


class KubernetesStore:
    """Resources in a cluster.

    Our own kinds are replaced as a whole. Kubernetes' own kinds have fields that we do not
    know: only what we do know is changed in them, by merge patches.

    With `namespace` the store sees only that one, and so do lists and watches of "all".
    """

    def __init__(self, client: Client, clock: Clock, luck: Random, *, namespace: str = "") -> None:
        self._client = client
        self._clock = clock
        self._luck = luck
        self._namespace = namespace
        self._undecodables = Undecodables()

    @property
    def client(self) -> Client:
        """What the store asks the API server with."""
        return self._client

    @property
    def undecodable(self) -> tuple[Undecodable, ...]:
        """The stored objects that cannot be read, as they were last seen."""
        return self._undecodables.held

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    # Reading

    async def get(self, key: Key) -> Resource:
        """The newest version of a resource.

        Raises:
            NotFoundError: It is not there.
            InvalidError: It is there, and cannot be read.
        """
        kind = rules.kind_of(key.kind)
        call = Call(method="GET", path=_path(kind, key.namespace, key.name), key=key)
        return self._one(key, await self._client.send(call))

    async def list(
        self,
        kind: str,
        selection: Selection | None = None,
        *,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Page:
        """The resources of a kind, in the order of namespace and name, all at one version.

        Between parts the order is the API server's, which puts "a-b/c" before "a/c".
        """
        if limit or continue_token:
            return await self._part(kind, selection, limit, continue_token)
        for attempt in range(1, _LIST_ATTEMPTS + 1):
            try:
                return await self._whole(kind, selection)
            except ExpiredError:
                if attempt == _LIST_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    async def _whole(self, kind: str, selection: Selection | None) -> Page:
        page = await self._part(kind, selection, PART, "")
        items, unreadable = list(page.items), list(page.unreadable)
        while page.continue_token:
            page = await self._part(kind, selection, PART, page.continue_token)
            items += page.items
            unreadable += page.unreadable
        return Page(tuple(sorted(items, key=_key)), page.version, unreadable=tuple(unreadable))

    async def _part(
        self, kind: str, selection: Selection | None, limit: int | None, token: str
    ) -> Page:
        wire, (query, matcher) = self._wire(kind), split_selection(kind, selection or _EVERYTHING)
        if limit:
            query["limit"] = str(limit)
        if token:
            query["continue"] = token
        data = await self._client.send(self._collection(wire.kind, selection, "GET", query))
        read = self._items(wire, data)
        for bad in read.undecodable:
            self._undecodables.note(bad)
        for item in read.items if self._undecodables.held else ():
            self._undecodables.clear(item.key)
        items = sorted(read.items, key=_key)
        metadata = read.metadata
        remaining = metadata.remaining_item_count
        if matcher is not None:
            items, remaining = [item for item in items if matcher(item)], None
        version = int(metadata.resource_version or 0)
        unreadable = tuple(bad.key for bad in read.undecodable)
        return Page(tuple(items), version, metadata.continue_, remaining, unreadable)

    def watch(
        self, kind: str, selection: Selection | None = None, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]:
        """Changes after version `since`, in batches, in order, with bookmarks now and then.

        A lost connection is resumed unnoticed. A version that is too old is told when the
        server tells it: on entering or with the first batch.
        """
        return self._watch(kind, selection, since)

    @asynccontextmanager
    async def _watch(
        self, kind: str, selection: Selection | None, since: int
    ) -> AsyncGenerator[AsyncIterator[Sequence[Event]], None]:
        wire, (query, matcher) = self._wire(kind), split_selection(kind, selection or _EVERYTHING)
        if since < 1:
            # To an API server 0 means "anything, in any order", which is not what is asked.
            raise ExpiredError(since, 1)
        call = replace(self._collection(wire.kind, selection, "GET", query), version=since)
        watch = Watch(self._client, call, wire.happening, self._clock, self._luck)
        try:
            await watch.open()
            yield Sight(watch, matcher, self._undecodables)
        finally:
            watch.close()

    # Writing

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        """Store a new resource; fills in name, uid, versions, generation and creation time."""
        kind, metadata = rules.kind_of(resource.kind), resource.metadata
        if kind.namespaced is not bool(metadata.namespace):
            raise _wrong_scope(kind, metadata.namespace)
        name = metadata.name or metadata.generate_name
        call = Call(
            method="POST",
            path=_path(kind, metadata.namespace),
            key=Key(kind.name, metadata.namespace, name),
            query=_write_query(dry_run),
            body=bodies.to_create(resource),
        )
        return cast("R", self._one(call.key, await self._client.send(call)))

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace spec and metadata; the stored status stays."""
        return await self._write(resource, "", dry_run)

    async def update_ties(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace finalizers and owners; all else stays."""
        call = self._writing(resource, "", dry_run)
        call = replace(call, method="PATCH", body=bodies.to_ties(resource), media=MERGE_PATCH)
        return cast("R", self._one(resource.key, await self._client.send(call)))

    async def update_status(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace the status; the stored spec and metadata stay."""
        if not rules.kind_of(resource.kind).has_status:
            raise BadRequestError(f"a {resource.kind} has no status")
        return await self._write(resource, "status", dry_run)

    async def _write(self, resource: R, part: str, dry_run: bool) -> R:
        foreign = rules.kind_of(resource.kind).group != GROUP
        if resource.metadata.resource_version and not foreign:
            return await self._replace(resource, part, dry_run)
        # What is written depends on what is stored. Whoever gave no version means any, so a
        # write that came between is no reason to refuse; whoever gave one is told.
        for _ in range(_FORCED_ATTEMPTS):
            stored = cast("R", await self.get(resource.key))
            wanted = resource.metadata
            rules.check_version(
                stored.key,
                stored.metadata,
                uid=wanted.uid,
                resource_version=wanted.resource_version,
            )
            try:
                if foreign:
                    return await self._patch(stored, resource, part, dry_run)
                return await self._replace(
                    rules.with_version(resource, stored.version), part, dry_run
                )
            except ConflictError as error:
                if wanted.resource_version:
                    raise
                conflict = error
        raise conflict

    async def _replace(self, resource: R, part: str, dry_run: bool) -> R:
        body = bodies.to_update_status(resource) if part else bodies.to_update(resource)
        call = self._writing(resource, part, dry_run)
        call = replace(call, method="PUT", body=body)
        return cast("R", self._one(resource.key, await self._client.send(call)))

    async def _patch(self, stored: R, wanted: R, part: str, dry_run: bool) -> R:
        patch = bodies.to_patch(stored, wanted, part)
        if patch is None:
            return stored
        call = self._writing(stored, part, dry_run)
        call = replace(call, method="PATCH", body=patch, media=MERGE_PATCH)
        return cast("R", self._one(stored.key, await self._client.send(call)))

    def _writing(self, resource: Resource, part: str, dry_run: bool) -> Call:
        key = resource.key
        return Call(
            method="",
            path=_path(rules.kind_of(key.kind), key.namespace, key.name, part),
            key=key,
            query=_write_query(dry_run),
            expected=resource.metadata.resource_version,
        )

    async def delete(
        self, key: Key, options: DeleteOptions | None = None, *, dry_run: bool = False
    ) -> Resource:
        """Remove a resource, or mark it as going while finalizers hold it.

        Servers do not show what they removed. It is read first, and then nothing but that very
        object is deleted.
        """
        asked = options or _NO_OPTIONS
        for _ in range(_FORCED_ATTEMPTS):
            last = await self.get(key)
            try:
                return await self._delete(last, asked, dry_run)
            except ConflictError as error:
                if asked.uid or asked.resource_version:
                    raise
                # Another object got the name in between: the caller means whichever there is.
                conflict = error
        raise conflict

    async def _delete(self, last: Resource, asked: DeleteOptions, dry_run: bool) -> Resource:
        key = last.key
        call = Call(
            method="DELETE",
            path=_path(rules.kind_of(key.kind), key.namespace, key.name),
            key=key,
            body=bodies.to_delete(asked, uid=asked.uid or last.metadata.uid, dry_run=dry_run),
            expected=asked.resource_version or last.metadata.resource_version,
        )
        data = await self._client.send(call)
        return self._one(key, data) if bodies.is_resource(data, key.kind) else last

    # Helpers

    def _wire(self, kind: str) -> Wire:
        return WIRES[rules.kind_of(kind).name]

    def _one(self, key: Key, data: bytes) -> Resource:
        wire = self._wire(key.kind)
        try:
            return wire.one(data)
        except msgspec.ValidationError as error:
            self._undecodables.note(wire.undecodable(data, error))
            problem = Problem("", f"the stored object cannot be read: {error}")
            raise InvalidError(key.kind, key.name, [problem]) from error
        except msgspec.DecodeError as error:
            raise _garbled(key.kind, error) from error

    def _items(self, wire: Wire, data: bytes) -> Items:
        try:
            return wire.list(data)
        except msgspec.DecodeError as error:
            raise _garbled(wire.kind.name, error) from error

    def _collection(
        self, kind: Kind, selection: Selection | None, method: str, query: dict[str, str]
    ) -> Call:
        namespace = (selection or _EVERYTHING).namespace
        place = (self._namespace if namespace is None else namespace) if kind.namespaced else ""
        return Call(
            method=method, path=_path(kind, place), key=Key(kind.name, place, ""), query=query
        )


@asynccontextmanager
async def open_store(
    client: Client, clock: Clock, luck: Random, *, namespace: str = ""
) -> AsyncGenerator[KubernetesStore, None]:
    """A store that closes its connections when the context ends."""
    store = KubernetesStore(client, clock, luck, namespace=namespace)
    try:
        yield store
    finally:
        await store.close()


def _key(resource: Resource) -> Any:
    return resource.key


def _garbled(kind: str, error: Exception) -> UnavailableError:
    """Whoever answered is no API server: a login page, a proxy in trouble."""
    return UnavailableError(f"the answer about {kind} cannot be read: {error}")


def _path(kind: Kind, namespace: str, name: str = "", part: str = "") -> str:
    return path_of(kind.group, kind.version, kind.plural, namespace=namespace, name=name, part=part)


def _write_query(dry_run: bool) -> dict[str, str]:
    query = {"fieldManager": "interlock", "fieldValidation": "Strict"}
    if dry_run:
        query["dryRun"] = "All"
    return query


def _wrong_scope(kind: Kind, namespace: str) -> BadRequestError:
    if namespace:
        return BadRequestError(f"a {kind.name} has no namespace, found {namespace!r}")
    return BadRequestError(f"a {kind.name} needs a namespace")
