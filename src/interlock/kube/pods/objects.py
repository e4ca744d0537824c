"""The object API of one sort of objects: the few calls that the runtime makes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, cast

import msgspec

from interlock.control.clock import Clock
from interlock.errors import (
    ConflictError,
    ExpiredError,
    InvalidError,
    UnavailableError,
)
from interlock.kube.client.api_client import MERGE_PATCH, Call, Client, path_of
from interlock.kube.pods.models import BatchJob, KubeObject, Node, Pod, T
from interlock.kube.store.bodies import is_resource
from interlock.kube.store.codec import Happening, ListMetadata
from interlock.kube.store.watching import Watch
from interlock.resources.metadata import Key, Resource

#: How many objects are asked for at a time.
_PART = 500
#: How often a list is begun anew because it took so long that its version was forgotten.
_LIST_ATTEMPTS = 3
_WRITES = {"fieldManager": "interlock"}


class Listed(NamedTuple, Generic[T]):
    """All objects that were asked for, as they were at one version."""

    items: Sequence[T]
    version: int


class Event(NamedTuple, Generic[T]):
    """A line of a watch."""

    #: ADDED, MODIFIED, DELETED, or BOOKMARK, which tells nothing but a version.
    type: str
    #: As it is now, or as it last was.
    object: T | None
    version: int


class Objects(Protocol[T]):
    """Objects of one sort, in one namespace or in all.

    All calls may raise `UnavailableError`, after which nothing is known.
    """

    async def list(self, selector: str = "", *, namespace: str | None = None) -> Listed[T]:
        """The objects that a label selector chooses, of everywhere or of one namespace."""
        ...

    def watch(
        self, selector: str, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event[T]]]]:
        """What happens after a version, in batches. It may end at any time without a word.

        Raises:
            ExpiredError: The version is too old.
        """
        ...

    async def get(self, namespace: str, name: str) -> T:
        """The newest version of an object.

        Raises:
            NotFoundError: There is none.
        """
        ...

    async def create(self, namespace: str, manifest: Mapping[str, Any]) -> T:
        """Store a new object.

        Raises:
            AlreadyExistsError: The name is taken.
            ConflictError: Nothing was done; the same call may succeed.
            NoRightError, OverQuotaError: It is refused for now.
            InvalidError, ForbiddenError, BadRequestError, NotFoundError: It is refused.
        """
        ...

    async def patch(self, namespace: str, name: str, patch: Mapping[str, Any]) -> T:
        """Merge a patch into an object; a uid or version in it must be the object's.

        Raises:
            NotFoundError: There is none.
            ConflictError: It is another one, or has another version.
        """
        ...

    async def delete(self, namespace: str, name: str, *, uid: str, grace_s: int | None) -> T | None:
        """Ask for an object to go; returns it while something holds it.

        Raises:
            NotFoundError: There is none.
            ConflictError: It is another one.
        """
        ...


class Sort(Generic[T]):
    """Where a sort of objects is found, and how they are read."""

    def __init__(self, kind: str, group: str, version: str, plural: str, type: type[T]) -> None:
        self.kind = kind
        self.group = group
        self.version = version
        self.plural = plural
        self.type = type
        self._one = msgspec.json.Decoder(type)
        self._list = msgspec.json.Decoder(
            msgspec.defstruct(
                f"{kind}List",
                [("metadata", ListMetadata), ("items", list[type])],  # type: ignore[valid-type]
            )
        )
        self._event = msgspec.json.Decoder(
            msgspec.defstruct(f"{kind}Event", [("type", str), ("object", type)], gc=False)
        )

    def one(self, data: bytes) -> T:
        """A single object."""
        with _readable(self.kind):
            return self._one.decode(data)

    def part(self, data: bytes) -> tuple[ListMetadata, list[T]]:
        """A part of a list."""
        with _readable(self.kind):
            read: Any = self._list.decode(data)
        return read.metadata, read.items

    def happening(self, line: bytes) -> Happening:
        """One line of a watch.

        Raises:
            msgspec.DecodeError: It is not JSON, or no such object.
        """
        # Errors carry another object, bookmarks an empty one; servers write the type first.
        if line.startswith(b'{"type":"ERROR"'):
            return Happening("ERROR", None, 0, raw=bytes(_ERROR.decode(line).object))
        if line.startswith(b'{"type":"BOOKMARK"'):
            return Happening("BOOKMARK", None, _BOOKMARK.decode(line).object.version)
        read: Any = self._event.decode(line)
        # `Watch` hands on what it is given, and asks it nothing.
        return Happening(read.type, cast("Resource", read.object), read.object.version)


PODS: Sort[Pod] = Sort("Pod", "", "v1", "pods", Pod)
BATCH_JOBS: Sort[BatchJob] = Sort("Job", "batch", "v1", "jobs", BatchJob)
NODES: Sort[Node] = Sort("Node", "", "v1", "nodes", Node)


class KubernetesObjects(Generic[T]):
    """Implements `Objects` on a real API server. With `namespace` it sees only that one."""

    def __init__(
        self, client: Client, sort: Sort[T], clock: Clock, luck: Random, *, namespace: str = ""
    ) -> None:
        self._client = client
        self._sort = sort
        self._clock = clock
        self._luck = luck
        self._namespace = namespace

    async def list(self, selector: str = "", *, namespace: str | None = None) -> Listed[T]:
        """All chosen objects, read in parts of one version."""
        for attempt in range(1, _LIST_ATTEMPTS + 1):
            try:
                return await self._whole(selector, namespace)
            except ExpiredError:
                if attempt == _LIST_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    async def _whole(self, selector: str, namespace: str | None) -> Listed[T]:
        items: list[T] = []
        token = ""
        while True:
            query = {"limit": str(_PART), "labelSelector": selector}
            if token:
                query["continue"] = token
            metadata, part = self._sort.part(
                await self._client.send(self._collection("GET", namespace, query))
            )
            items += part
            token = metadata.continue_
            if not token:
                return Listed(items, int(metadata.resource_version or 0))

    def watch(
        self, selector: str, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event[T]]]]:
        """What happens, through as many connections as it takes."""
        return self._watch(selector, since)

    @asynccontextmanager
    async def _watch(
        self, selector: str, since: int
    ) -> AsyncGenerator[AsyncIterator[Sequence[Event[T]]], None]:
        call = self._collection("GET", None, {"labelSelector": selector})
        call = msgspec.structs.replace(call, version=since)
        watch = Watch(self._client, call, self._sort.happening, self._clock, self._luck)
        try:
            await watch.open()
            yield _events(watch)
        finally:
            watch.close()

    async def get(self, namespace: str, name: str) -> T:
        """The newest version of an object."""
        return self._sort.one(await self._client.send(self._call("GET", namespace, name)))

    async def create(self, namespace: str, manifest: Mapping[str, Any]) -> T:
        """Store a new object; fields that the server does not know are refused."""
        call = Call(
            method="POST",
            path=self._path(namespace),
            key=Key(self._sort.kind, namespace, manifest["metadata"]["name"]),
            query={**_WRITES, "fieldValidation": "Strict"},
            body=msgspec.json.encode(manifest),
        )
        return self._sort.one(await self._client.send(call))

    async def patch(self, namespace: str, name: str, patch: Mapping[str, Any]) -> T:
        """Merge a patch into an object."""
        call = self._call(
            "PATCH",
            namespace,
            name,
            query=_WRITES,
            body=msgspec.json.encode(patch),
            media=MERGE_PATCH,
        )
        try:
            return self._sort.one(await self._client.send(call))
        except InvalidError as error:
            if any(problem.path == "metadata.uid" for problem in error.problems):
                # So servers say that another object has the name now.
                raise ConflictError(call.key, expected="its uid", found="another one") from error
            raise

    async def delete(self, namespace: str, name: str, *, uid: str, grace_s: int | None) -> T | None:
        """Ask for an object to go."""
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        call = self._call("DELETE", namespace, name, body=msgspec.json.encode(options))
        data = await self._client.send(call)
        return self._sort.one(data) if is_resource(data, self._sort.kind) else None

    def _collection(self, method: str, namespace: str | None, query: Mapping[str, str]) -> Call:
        place = self._namespace if namespace is None else namespace
        key = Key(self._sort.kind, place, "")
        return Call(method=method, path=self._path(place), key=key, query=query)

    def _call(self, method: str, namespace: str, name: str, **more: Any) -> Call:
        key = Key(self._sort.kind, namespace, name)
        return Call(method=method, path=self._path(namespace, name), key=key, **more)

    def _path(self, namespace: str, name: str = "") -> str:
        sort = self._sort
        return path_of(sort.group, sort.version, sort.plural, namespace=namespace, name=name)


async def _events(watch: Watch) -> AsyncIterator[Sequence[Event[Any]]]:
    async for happenings in watch:
        yield [_event(each) for each in happenings]


def _event(happening: Happening) -> Event[Any]:
    thing = cast("Any", happening.resource)
    return Event(happening.type, thing, happening.version)


class _ErrorEvent(msgspec.Struct, frozen=True):
    object: msgspec.Raw


class _Bookmark(msgspec.Struct, frozen=True):
    object: KubeObject


_ERROR = msgspec.json.Decoder(_ErrorEvent)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)


@contextmanager
def _readable(kind: str) -> Iterator[None]:
    """Whoever answers with something else is no API server: a login page, a proxy in trouble."""
    try:
        yield
    except msgspec.DecodeError as error:
        raise UnavailableError(f"the answer about {kind} cannot be read: {error}") from error
