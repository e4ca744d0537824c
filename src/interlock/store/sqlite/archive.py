"""The archive: what is kept of resources that are over and were removed, to ask for and to list.

It is a table beside the log: nothing of it is in memory, and what goes into it is committed with
the removal. Every row carries a seal of its own, which is compared when the row is read.
"""

from __future__ import annotations

import asyncio
import heapq
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar
from zlib import crc32

from interlock.errors import UnavailableError
from interlock.store.sqlite.file import CorruptFileError, open_for_reading

T = TypeVar("T")

#: So many rows are asked for, or dropped, in one statement.
_AT_ONCE = 200


class Archived(NamedTuple):
    """A row: what it is found by, and what is told of it."""

    id: str
    #: Microseconds since 1970: when it was made, and when it was over.
    created: int
    ended: int
    #: Its namespace and name, and those of what it was a part of.
    name: str
    parent: str
    creator: str
    owner: str
    path: str
    #: One more path under which it is listed.
    alias: str
    completion: str
    phase: str
    #: Of the request that it was made of.
    digest: str
    record: bytes


class Place(NamedTuple):
    """Where a row is in the order of lists."""

    created: int
    id: str


class Head(NamedTuple):
    """A row without its record."""

    created: int
    id: str
    name: str
    parent: str
    creator: str
    owner: str
    path: str
    alias: str
    completion: str
    phase: str


class Walk(NamedTuple):
    """A way through the rows: by a column and its values, or by all of them."""

    #: One of `BY`; empty means all rows.
    by: str = ""
    values: tuple[str, ...] = ()
    newest: bool = True
    after: Place | None = None


#: What can be walked by.
BY = ("path", "creator", "owner", "completion", "parent", "name")

_INSERT = "INSERT OR REPLACE INTO finished VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_HEAD = ", ".join(f"f.{column}" for column in Head._fields)


def write(connection: sqlite3.Connection, rows: Sequence[Archived]) -> None:
    """Put rows into the archive, in the transaction that is open."""
    connection.executemany(_INSERT, [(*row, _seal_of(row.id, row.record)) for row in rows])
    connection.executemany(
        "INSERT OR REPLACE INTO finished_paths VALUES (?,?,?)",
        [(path, row.created, row.id) for row in rows for path in paths_of(row.path, row.alias)],
    )


def drop(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Take rows out of the archive, in the transaction that is open."""
    for id in ids:
        found = connection.execute(
            "SELECT path, alias, created FROM finished WHERE id = ?", (id,)
        ).fetchone()
        if found is not None:
            path, alias, created = found
            places = [(one, created, id) for one in paths_of(path, alias)]
            connection.executemany(
                "DELETE FROM finished_paths WHERE path = ? AND created = ? AND id = ?", places
            )
            connection.execute("DELETE FROM finished WHERE id = ?", (id,))


def paths_of(path: str, alias: str) -> tuple[str, ...]:
    """A path and all that it is below, and one more."""
    words = path.split("/") if path else []
    paths = ["/".join(words[: at + 1]) for at in range(len(words))]
    return tuple(dict.fromkeys((*paths, alias) if alias else paths))


def _seal_of(id: str, record: bytes) -> int:
    return crc32(record, crc32(id.encode()))


class ArchiveReader:
    """Reads the archive beside everything else, on a thread and a connection of its own."""

    def __init__(self, path: Path, check: Callable[[], None]) -> None:
        self._path = path
        #: Raises when the file is not at its path any more.
        self._check = check
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="interlock-archive")

    def close(self) -> None:
        """Let go of the file."""
        self._thread.submit(self._close)
        self._thread.shutdown()

    async def ask(self, question: Callable[[Reading], T]) -> T:
        """Ask something, all of it of one state of the archive.

        Raises:
            CorruptFileError: A row is not as it was written.
            UnavailableError: It cannot be read now.
        """
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._answer, question
        )

    def _answer(self, question: Callable[[Reading], T]) -> T:
        self._check()
        try:
            if self._connection is None:
                self._connection = open_for_reading(self._path)
            self._connection.execute("BEGIN")
            try:
                return question(Reading(self._connection, self._path))
            finally:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise UnavailableError(f"the archive cannot be read: {error}") from error

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class Reading:
    """What can be asked of the archive."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def records(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The records of these ids, of those that are there."""
        found: dict[str, bytes] = {}
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            among = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT id, record, seal FROM finished WHERE id IN ({among})", part
            )
            for id, record, seal in rows:
                if not isinstance(record, bytes) or _seal_of(id, record) != seal:
                    raise CorruptFileError(self._path, f"the finished Job {id}: not as written")
                found[id] = record
        return found

    def heads(self, ids: Iterable[str]) -> list[Head]:
        """The rows of these ids, of those that are there, in no order."""
        query = f"SELECT {_HEAD} FROM finished f WHERE f.id = ?"
        rows = (self._connection.execute(query, (id,)).fetchone() for id in ids)
        return [Head(*row) for row in rows if row is not None]

    def walk(self, walk: Walk) -> Iterator[Head]:
        """Rows in their order; the next is read when it is asked for."""
        if not walk.by:
            return self._rows(walk, "")
        ways = [self._rows(walk, value) for value in walk.values]
        if len(ways) == 1:
            return ways[0]
        merged = heapq.merge(*ways, key=lambda head: head[:2], reverse=walk.newest)
        return (head for head, _ in groupby(merged))

    def children(self, parent: str, since: int, upto: int) -> list[str]:
        """The ids of what was a part of something that was there in that time."""
        rows = self._connection.execute(
            "SELECT id FROM finished WHERE parent = ? AND parent <> '' AND created BETWEEN ? AND ?"
            " ORDER BY created, id",
            (parent, since, upto),
        )
        return [id for (id,) in rows]

    def newest_named(self, name: str, upto: int | None = None) -> tuple[str, str] | None:
        """The id and digest of the newest of a name, of those made up to a moment."""
        row: tuple[str, str] | None = self._connection.execute(
            "SELECT id, digest FROM finished WHERE name = ? AND created <= ?"
            " ORDER BY created DESC, id DESC LIMIT 1",
            (name, (1 << 62) if upto is None else upto),
        ).fetchone()
        return row

    def ended_before(
        self, moment: int, after: tuple[int, str], limit: int
    ) -> list[tuple[int, str, str, str]]:
        """The rows that were over before a moment, oldest first: ended, id, name, parent."""
        rows = self._connection.execute(
            "SELECT ended, id, name, parent FROM finished WHERE ended < ? AND (ended, id) > (?, ?)"
            " ORDER BY ended, id LIMIT ?",
            (moment, *after, limit),
        )
        return rows.fetchall()

    def _rows(self, walk: Walk, value: str) -> Iterator[Head]:
        table, place = "finished f", "f"
        wheres: list[str] = []
        values: list[object] = []
        if walk.by == "path":
            # In this order, or a sort of everything would come before the first row.
            table, place = "finished_paths p CROSS JOIN finished f ON f.id = p.id", "p"
        if walk.by:
            wheres.append(f"{place}.{walk.by} = ? AND {place}.{walk.by} <> ''")
            values.append(value)
        if walk.after is not None:
            sign = "<" if walk.newest else ">"
            wheres.append(f"({place}.created, {place}.id) {sign} (?, ?)")
            values += walk.after
        where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
        way = "DESC" if walk.newest else "ASC"
        rows = self._connection.execute(
            f"SELECT {_HEAD} FROM {table}{where} ORDER BY {place}.created {way}, {place}.id {way}",
            values,
        )
        return (Head(*row) for row in rows)
