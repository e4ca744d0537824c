"""The door that people of a world go through: the writes of the API, as they are served.

What it adds stands on objects and in the journal: who asked, and what they did.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import cycle
from typing import Any, TypeVar

from interlock.api.answers import RefusedError
from interlock.api.callers import trusted
from interlock.api.encodings import Encodings
from interlock.api.requests import Request
from interlock.api.routing import Target
from interlock.api.views import Views
from interlock.api.writes import Writes
from interlock.errors import ConflictError, InterlockError
from interlock.resources.codec import encode
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Key, Resource
from interlock.store.contract import DeleteOptions, Event, JournalEntry, Now, Page, Selection, Store
from interlock.store.memory import MemoryJournal
from support.simulation.truth import Truth

R = TypeVar("R", bound=Resource)

#: Who asks, one after another.
PEOPLE = ("ann", "bob", "carol")


class RefusedAtTheDoorError(InterlockError):
    """A write that the door does not let in."""


class WatchedJournal(MemoryJournal):
    """The journal, with a judge who hears of each deed of a person as it is written down."""

    def __init__(self, on_deed: Callable[[JournalEntry], None]) -> None:
        super().__init__(1)
        self._on_deed = on_deed

    def append(self, entry: JournalEntry) -> None:
        """Keep an entry."""
        super().append(entry)
        if entry.room == "api":
            self._on_deed(entry)


class Door:
    """The store as people find it behind the door: reads go through, writes are judged."""

    def __init__(self, store: Store, journal: WatchedJournal, now: Now, truth: Truth) -> None:
        self._behind = store
        self._writes = Writes(store, Views(Encodings(), now), now, journal=journal)
        self._truth = truth
        self._people = cycle(PEOPLE)

    async def get(self, key: Key) -> Resource:
        """The newest version of a resource."""
        return await self._behind.get(key)

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        """Ask for a new resource."""
        place = Target(KINDS[resource.kind], resource.metadata.namespace)
        await self._asked(self._writes.create, place, resource)
        return resource

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        """Ask for a change of a resource."""
        await self._asked(self._writes.update, _target(resource.key), resource)
        return resource

    async def delete(
        self,
        key: Key,
        options: DeleteOptions | None = None,
        *,
        dry_run: bool = False,
    ) -> Resource:
        """Ask for a resource to go."""
        gone = await self._behind.get(key)
        uid = options.uid if options is not None else None
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        await self._asked(self._writes.delete, _target(key), body)
        return gone

    async def update_ties(self, resource: R, *, dry_run: bool = False) -> R:
        """Refuse: what holds a resource is the control plane's."""
        raise RefusedAtTheDoorError(f"{resource.key}: nobody writes that from outside")

    async def update_status(self, resource: R, *, dry_run: bool = False) -> R:
        """Refuse: a status is written by the control plane alone."""
        raise RefusedAtTheDoorError(f"{resource.key}: nobody writes a status from outside")

    async def list(
        self,
        kind: str,
        selection: Selection | None = None,
        *,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Page:
        """The resources of a kind."""
        return await self._behind.list(kind, selection, limit=limit, continue_token=continue_token)

    def watch(
        self, kind: str, selection: Selection | None = None, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]:
        """Changes after a version."""
        return self._behind.watch(kind, selection, since=since)

    async def _asked(
        self,
        write: Callable[[Target, Request], Coroutine[Any, Any, object]],
        target: Target,
        body: object,
    ) -> None:
        request = _request(encode(body))
        self._truth.person = next(self._people)
        request.caller = trusted(self._truth.person)
        try:
            await write(target, request)
        except RefusedError as refused:
            if refused.status.code == 409:
                raise ConflictError(target.key, expected="this", found="another") from refused
            raise RefusedAtTheDoorError(str(refused)) from refused
        finally:
            self._truth.person = ""


def _target(key: Key) -> Target:
    return Target(KINDS[key.kind], key.namespace, key.name)


def _request(body: bytes) -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    scope = {"type": "http", "method": "POST", "path": "", "query_string": b"", "headers": []}
    return Request(scope, receive)
