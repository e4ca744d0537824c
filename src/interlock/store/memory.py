"""A store that forgets everything: for tests, plans and the simulation.

No call of it ever waits, watches apart, so a coroutine on it can be driven without a loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from interlock.resources.metadata import Key
from interlock.store.contract import Identities, JournalEntry, Now
from interlock.store.kept import KeptStore
from interlock.store.watching import BUFFERED, REMEMBERED, Change

#: How many decisions the journal keeps.
JOURNAL_ENTRIES = 10_000


class MemoryStore(KeptStore):
    """Resources in memory, and nowhere else."""

    def __init__(
        self,
        now: Now,
        identities: Identities,
        *,
        remembered: int = REMEMBERED,
        buffered: int = BUFFERED,
    ) -> None:
        super().__init__(now, identities, remembered=remembered, buffered=buffered)
        first = self._default_namespace()
        assert first is not None
        self._last_version = first.version
        self._acknowledge((first,))

    def _commit(self, change: Change) -> None:
        self._acknowledge((change,))

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
