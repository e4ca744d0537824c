"""The store contract: the Kubernetes API's promises, and nothing that needs more.

Every backend passes the one suite in `interlock.testing.store_contract`. No operation touches
more than one object; everything above is built on compare-and-set.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import Struct

from interlock.resources.metadata import Key, Resource

R = TypeVar("R", bound=Resource)


class Propagation(StrEnum):
    """What becomes of the dependents of a deleted resource."""

    #: The resource goes at once, its dependents after it.
    BACKGROUND = "Background"
    #: The dependents go first; the resource waits for them.
    FOREGROUND = "Foreground"
    #: The dependents stay, without this owner.
    ORPHAN = "Orphan"


class DeleteOptions(Struct, frozen=True, kw_only=True):
    """How to delete, and only if what."""

    #: None leaves an earlier choice as it is, and means Background when there was none.
    propagation: Propagation | None = None
    #: Only this very object, not another of the same name.
    uid: str | None = None
    #: Only this very version.
    resource_version: str | None = None


class Selection(Struct, frozen=True, kw_only=True):
    """Which resources of a kind: the parsed form of Kubernetes' selectors."""

    #: None means every namespace.
    namespace: str | None = None
    labels: str = ""
    fields: str = ""


class Page(Struct, frozen=True):
    """Part of a list, all of it as it was at one version."""

    items: tuple[Resource, ...]
    #: The version the whole list was read at; a watch from it misses nothing.
    version: int
    #: Give this to `list` for the next part; empty at the end.
    continue_token: str = ""
    #: How many are left after this part, when known.
    remaining: int | None = None
    #: What is stored as well and cannot be read: it is there, and nothing more is known of it.
    unreadable: tuple[Key, ...] = ()


class EventType(StrEnum):
    """What happened to a resource."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: Nothing happened up to this version.
    BOOKMARK = "BOOKMARK"


class Event(Struct, frozen=True):
    """A change, or a bookmark. Watchers must bear changes that repeat or were merged."""

    type: EventType
    #: The resource after the change; as it last was, for DELETED; None for BOOKMARK.
    resource: Resource | None
    version: int
    #: With BOOKMARK: something of this name was written that cannot be read.
    unreadable: Key | None = None


class Store(Protocol):
    """Resources at rest.

    Every write is durable when its call returns. All methods may raise `UnavailableError`;
    then the write may or may not have happened, and only a read tells.
    """

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        """Store a new resource; fills in name, uid, versions, generation and creation time.

        The status of kinds that have one is dropped: it starts empty.

        Raises:
            AlreadyExistsError: The name is taken.
            NotFoundError: The namespace does not exist.
            ForbiddenError: The namespace is being deleted.
        """
        ...

    async def get(self, key: Key) -> Resource:
        """The newest acknowledged version of a resource.

        Raises:
            NotFoundError: It is not there.
        """
        ...

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace spec and metadata; the stored status stays.

        An empty `resource_version` means "whatever version there is". An update that changes
        nothing returns the resource as stored, and makes no version and no event. The last
        finalizer taken off a resource that is going removes it.

        Raises:
            NotFoundError: It is not there.
            ConflictError: It changed since it was read, or has another uid.
        """
        ...

    async def update_ties(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace finalizers and owners; all that people wrote stays, to the letter.

        Otherwise as `update`: for a version, or any; the last finalizer taken off a resource that
        is going removes it.

        Raises:
            NotFoundError: It is not there.
            ConflictError: It changed since it was read, or has another uid.
        """
        ...

    async def update_status(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace the status; the stored spec and metadata stay.

        Raises:
            NotFoundError: It is not there.
            ConflictError: It changed since it was read, or has another uid.
        """
        ...

    async def delete(
        self, key: Key, options: DeleteOptions | None = None, *, dry_run: bool = False
    ) -> Resource:
        """Remove a resource, or mark it as going while finalizers hold it.

        Returns the resource as it last was; `is_going` tells that it is still there.

        Raises:
            NotFoundError: It is not there.
            ConflictError: A precondition does not hold.
        """
        ...

    async def list(
        self,
        kind: str,
        selection: Selection | None = None,
        *,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Page:
        """The resources of a kind, in the order of namespace and name, all at one version.

        Raises:
            BadRequestError: A selector or token that cannot be read.
            ExpiredError: The version of the token was compacted away.
        """
        ...

    def watch(
        self, kind: str, selection: Selection | None = None, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]:
        """Changes after version `since`, in batches, in order, with bookmarks now and then.

        The watch is in place when the context is entered. An iterator that falls too far
        behind raises `ExpiredError`: list again.

        Raises:
            ExpiredError: `since` was compacted away.
            BadRequestError: A selector that cannot be read.
        """
        ...


class Gate(Protocol):
    """Says of what is created whether it may be, by all that was decided before."""

    def begin(self, resources: Iterable[Resource]) -> None:
        """Begin with what there is; what was told before counts no more."""
        ...

    def admit(self, new: Resource, newest: Callable[[Key], Resource | None]) -> None:
        """Let something new in, or raise why not; `newest` finds what was decided before."""
        ...

    def decided(self, before: Resource | None, after: Resource | None) -> None:
        """Take in a write: how something was, and how it is."""
        ...


class JournalEntry(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """One decision that was carried out, or failed to be."""

    at: datetime
    kind: str
    namespace: str
    name: str
    #: Which room decided.
    room: str
    #: The actions, one short line each.
    actions: tuple[str, ...]
    reason: str
    #: The version of the object that the decision looked at.
    version: int
    #: Empty when every action was carried out; else what stopped it.
    outcome: str = ""


class Journal(Protocol):
    """The durable, bounded record of decisions."""

    def append(self, entry: JournalEntry) -> None:
        """Keep an entry. It becomes durable with the next write, or by itself soon after."""
        ...

    async def read(
        self, key: Key | None = None, *, limit: int = 100, before: int | None = None
    ) -> Sequence[tuple[int, JournalEntry]]:
        """The newest entries, newest first, each with its number; older than number `before`."""
        ...


class Identities(Protocol):
    """Where new uids and the endings of generated names come from."""

    def uid(self) -> str:
        """A new uid."""
        ...

    def suffix(self) -> str:
        """Five characters to put after a generateName."""
        ...


#: Tells the time; stores do not read the clock themselves.
Now = Callable[[], datetime]
