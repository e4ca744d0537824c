"""The journal at rest: entries ride along with whatever is committed next."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock

from interlock.errors import UnavailableError
from interlock.resources.codec import decoder_for, encode
from interlock.resources.metadata import Key
from interlock.store.contract import JournalEntry
from interlock.store.sqlite.file import open_for_reading
from interlock.store.sqlite.writer import JournalRow, Outcome

#: How many entries are kept.
JOURNAL_ENTRIES = 100_000
#: How many more may pile up before they are dropped, all at once.
_SLACK = 1_000
#: While nothing can be written, so many entries wait; older ones are let go of.
_WAITING_AT_MOST = 10_000
#: Entries that no write takes along become durable after this time.
_FLUSH_AFTER_S = 0.2

_DECODER = decoder_for(tuple[JournalEntry, ...])


class SqliteJournal:
    """The durable, bounded record of decisions."""

    def __init__(
        self,
        path: Path,
        last: int,
        flush: Callable[[], Outcome],
        check: Callable[[], None],
        *,
        entries: int = JOURNAL_ENTRIES,
    ) -> None:
        self._path = path
        self._flush = flush
        #: Raises when what is at the path is not ours.
        self._check = check
        self._kept = entries
        self._lock = Lock()
        self._waiting: list[JournalEntry] = []
        #: The number of the newest entry, and up to which entries were dropped.
        self._last = last
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None

    def append(self, entry: JournalEntry) -> None:
        """Keep an entry. It becomes durable with the next write, or by itself soon after."""
        with self._lock:
            self._waiting.append(entry)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_FLUSH_AFTER_S, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._waiting:
            self._flush()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take(self) -> JournalRow | None:
        """The waiting entries as one row; called by the writer, for each batch."""
        if not self._waiting:
            return None
        with self._lock:
            entries, self._waiting = self._waiting, []
        # Entries that cannot be written get other numbers the next time: none is used twice.
        self._last += len(entries)
        upto = self._last - self._kept
        if upto - self._dropped < _SLACK:
            upto = 0
        self._dropped = max(self._dropped, upto)
        return JournalRow((-self._last, "", 0, encode(entries)), upto, entries)

    def give_back(self, row: JournalRow) -> None:
        """Keep entries that could not be written for the next time."""
        with self._lock:
            self._waiting = [*row.entries, *self._waiting][-_WAITING_AT_MOST:]

    async def read(
        self, key: Key | None = None, *, limit: int = 100, before: int | None = None
    ) -> Sequence[tuple[int, JournalEntry]]:
        """The newest entries, newest first, each with its number; older than number `before`."""
        if self._waiting:
            await self._flush()
        return await asyncio.to_thread(self._read, key, limit, before)

    def _read(
        self, key: Key | None, limit: int, before: int | None
    ) -> Sequence[tuple[int, JournalEntry]]:
        found: list[tuple[int, JournalEntry]] = []
        self._check()
        try:
            with closing(open_for_reading(self._path)) as connection:
                for number, entry in _newest_first(connection, key):
                    if len(found) >= limit:
                        break
                    if (before is None or number < before) and _is_of(entry, key):
                        found.append((number, entry))
        except sqlite3.Error as error:
            raise UnavailableError(f"the journal cannot be read: {error}") from error
        return found


def _is_of(entry: JournalEntry, key: Key | None) -> bool:
    return key is None or (entry.kind, entry.namespace, entry.name) == key


def _newest_first(
    connection: sqlite3.Connection, key: Key | None
) -> Iterator[tuple[int, JournalEntry]]:
    # Rows that do not even mention the name are passed over without being decoded.
    hint = b"" if key is None else b'"name":' + encode(key.name)
    rows = connection.execute(
        "SELECT number, data FROM log WHERE number < 0 AND instr(data, ?) ORDER BY number", (hint,)
    )
    for number, data in rows:
        entries = _DECODER.decode(data)
        last = -number
        for back, entry in enumerate(reversed(entries)):
            yield last - back, entry
