"""A volatile store that forgets everything: for tests, plans and the simulation.

No call of it ever waits, watches apart, so a coroutine on it can be driven without a loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from msgspec.structs import replace

from interlock.resources.metadata import Key, Resource
from interlock.store.contract import Event, EventType, Identities, JournalEntry, Now
from interlock.store.in_memory import InMemoryStore
from interlock.store.watching import BUFFERED, REMEMBERED, Change

#: How many decisions the journal keeps.
JOURNAL_ENTRIES = 10_000


class MemoryStore(InMemoryStore):
    """Resources in memory, and nowhere else.

    What another store wrote can be put into it as it is, and whoever asks hears of every write.
    """

    def __init__(
        self,
        now: Now,
        identities: Identities,
        *,
        remembered: int = REMEMBERED,
        buffered: int = BUFFERED,
        on_commit: Callable[[Change], None] | None = None,
    ) -> None:
        super().__init__(now, identities, remembered=remembered, buffered=buffered)
        self._on_commit = on_commit
        first = self._default_namespace()
        assert first is not None
        self._last_version = first.version
        self._acknowledge((first,))

    # What is there, without waiting

    def find(self, key: Key) -> Resource | None:
        """The newest version of a resource; None when there is none."""
        return self._shelves.get(key)

    def find_all(self, kind: str, namespace: str | None = None) -> Sequence[Resource]:
        """The resources of a kind, or those of a namespace, in the order of their names."""
        return self._shelves.in_order(kind, namespace)

    # What another store wrote

    def go_on_from(self, version: int) -> None:
        """Number what is written from now on after what another store wrote."""
        self._last_version = max(self._last_version, version)

    def adopt(self, resource: Resource) -> Resource:
        """Store a resource as another store left it: with its status, identity and age.

        What it does not say of itself it is given, as a new one would be.
        """
        change = self._decide_create(resource)
        made = change.event.resource
        assert made is not None
        given = resource.metadata
        metadata = replace(
            made.metadata,
            uid=given.uid or made.metadata.uid,
            generation=given.generation or made.metadata.generation,
            creation_timestamp=given.creation_timestamp or made.metadata.creation_timestamp,
            deletion_timestamp=given.deletion_timestamp,
        )
        kept = replace(resource, metadata=metadata)
        event = Event(EventType.ADDED, kept, change.version)
        self._last_version = change.version
        self._commit(replace(change, event=event))
        return kept

    def _commit(self, change: Change) -> None:
        self._acknowledge((change,))
        if self._on_commit is not None:
            self._on_commit(change)

    def _under_way(self) -> None:
        return None

    async def close(self) -> None:
        """End every watch."""
        self._hub.close()


class MemoryJournal:
    """The newest decisions, in memory."""

    def __init__(self, entries: int = JOURNAL_ENTRIES) -> None:
        self._entries: deque[tuple[int, JournalEntry]] = deque(maxlen=entries)
        self._last = 0

    def append(self, entry: JournalEntry) -> None:
        """Keep an entry."""
        self._last += 1
        self._entries.append((self._last, entry))

    async def read(
        self, key: Key | None = None, *, limit: int = 100, before: int | None = None
    ) -> Sequence[tuple[int, JournalEntry]]:
        """The newest entries, newest first, each with its number; older than number `before`."""
        found = (
            (number, entry)
            for number, entry in reversed(self._entries)
            if (before is None or number < before)
            and (key is None or (entry.kind, entry.namespace, entry.name) == key)
        )
        return list(islice(found, limit))
