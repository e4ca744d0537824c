"""The writer thread: takes whatever is waiting and commits it as one group.

The loop fills a batch; the thread takes it when it is free, and the loop begins another. So a
lone write does not wait for company, and under load the groups grow by themselves.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import cache

from interlock.store.contract import JournalEntry
from interlock.store.sqlite import archive
from interlock.store.sqlite.archive import Archived
from interlock.store.sqlite.seals import MASK, Row, Sums, put_fact, sealed
from interlock.store.watching import Change

#: A group of up to so many rows is one statement, and so one commit without a second trip.
_ROWS = 256


class Outcome(asyncio.Future["Exception | None"]):
    """What became of a batch: None, or why it failed. Everyone with a part in it waits for it.

    A caller that is cancelled must not take it from the others, so it learns of the
    cancellation only when the commit is over.
    """

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002
        """Refuse: the commit is under way."""
        return False


class Batch:
    """Writes that are committed together."""

    __slots__ = (
        "archived",
        "changes",
        "drops",
        "era",
        "error",
        "facts",
        "floor",
        "journal",
        "outcome",
        "probes",
        "pruned",
        "rows",
        "settles",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, era: int) -> None:
        self.outcome = Outcome(loop=loop)
        #: Writes of one era were decided on the belief that all those before it succeed.
        self.era = era
        self.changes: list[Change] = []
        self.rows: list[Row] = []
        #: What is kept of resources that are removed with it, and what is kept no longer.
        self.archived: list[Archived] = []
        self.pruned: list[str] = []
        #: Versions that nobody needs any more, and the version up to which changes are forgotten.
        self.drops: Sequence[int] = ()
        self.floor = 0
        #: Facts that are written down with it.
        self.facts: list[str] = []
        #: Whether what a restore left open is settled with it.
        self.settles = False
        #: Whether something is written with it in any case, to see whether that works.
        self.probes = False
        self.journal: JournalRow | None = None
        self.error: Exception | None = None

    @property
    def writes(self) -> bool:
        """Whether anything is written with it."""
        return bool(
            self.rows
            or self.drops
            or self.settles
            or self.probes
            or self.journal
            or self.archived
            or self.pruned
            or self.facts
        )


class JournalRow:
    """Entries of the journal that are committed with a batch."""

    __slots__ = ("drop_upto", "entries", "row")

    def __init__(self, row: Row, drop_upto: int, entries: list[JournalEntry]) -> None:
        self.row = row
        self.entries = entries
        #: Entries up to this number are dropped; zero drops none.
        self.drop_upto = drop_upto


@cache
def _insert(rows: int) -> str:
    return "INSERT INTO log VALUES " + ",".join(["(?,?,?,?,?,?)"] * rows)


@cache
def _among(rows: int) -> str:
    return "FROM log WHERE number IN (" + ",".join("?" * rows) + ")"


def commit(connection: sqlite3.Connection, batch: Batch, sums: Sums) -> Sums:
    """Make a batch durable, all of it or nothing; returns the sums after it.

    Every statement gives the interpreter to the loop and has to wait to get it back, so the
    usual group is one statement, which is its own transaction.
    """
    rows, journal = batch.rows, batch.journal
    if journal is not None:
        rows = [*rows, journal.row]
    values, written = sealed(rows, sums.written)
    more = (
        batch.drops
        or batch.settles
        or batch.probes
        or batch.archived
        or batch.pruned
        or batch.facts
        or (journal and journal.drop_upto)
    )
    if len(rows) <= _ROWS and not more:
        if rows:
            connection.execute(_insert(len(rows)), values)
        return Sums(written, sums.dropped)
    connection.execute("BEGIN IMMEDIATE")
    try:
        dropped = (sums.dropped + _write_all(connection, batch, values)) & MASK
        if batch.drops:
            put_fact(connection, "dropped", dropped)
            put_fact(connection, "floor", batch.floor)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return Sums(written, dropped)


def _write_all(connection: sqlite3.Connection, batch: Batch, values: list[object]) -> int:
    """Write and drop what is in a batch; returns the sum of the seals that were dropped."""
    for start in range(0, len(values), 6 * _ROWS):
        part = values[start : start + 6 * _ROWS]
        connection.execute(_insert(len(part) // 6), part)
    if batch.archived:
        archive.write(connection, batch.archived)
    if batch.pruned:
        archive.drop(connection, batch.pruned)
    dropped = 0
    for start in range(0, len(batch.drops), _ROWS):
        going = batch.drops[start : start + _ROWS]
        among = _among(len(going))
        dropped += connection.execute(f"SELECT total(seal) {among}", going).fetchone()[0]
        connection.execute(f"DELETE {among}", going)
    if batch.probes:
        # It is as it was; yet a page is written.
        (release,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {release}")
    if batch.settles:
        connection.execute("DELETE FROM facts WHERE name = 'restored'")
    for fact in batch.facts:
        put_fact(connection, fact, 1)
    if batch.journal is not None and batch.journal.drop_upto:
        connection.execute(
            "DELETE FROM log WHERE number BETWEEN ? AND -1", (-batch.journal.drop_upto,)
        )
    return int(dropped)


class Writer:
    """The thread and the one connection that writes."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[], Batch | None],
        finished: Callable[[Batch], None],
        sums: Sums,
        check: Callable[[], None],
        attest: Callable[[Batch], None],
    ) -> None:
        self._connection = connection
        self._sums = sums
        #: Raises when what is written would not last.
        self._check = check
        self._attest = attest
        self._loop = loop
        self._take = take
        self._finished = finished
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._failed_era = -1
        self._thread = threading.Thread(target=self._run, name="interlock-writer", daemon=True)
        self._thread.start()

    def call(self) -> None:
        """Tell the thread that a batch waits."""
        self._calls.put(True)

    def stop(self) -> None:
        """Have the thread finish what waits and close the connection; waits until it has."""
        self._calls.put(False)
        self._thread.join()

    def _run(self) -> None:
        while self._calls.get():
            batch = self._take()
            if batch is None:
                continue
            self._carry_out(batch)
            try:
                self._loop.call_soon_threadsafe(self._finished, batch)
            except RuntimeError:
                # The loop was closed under the store: there is nobody left to tell.
                break
        self._connection.close()

    def _carry_out(self, batch: Batch) -> None:
        if batch.era == self._failed_era:
            batch.error = RuntimeError("a write that this one builds on has failed")
            return
        try:
            self._check()
            self._sums = commit(self._connection, batch, self._sums)
        except Exception as error:
            # Whatever it is, nobody in the batch may believe that the write is durable.
            self._failed_era = batch.era
            batch.error = error
            return
        self._attest(batch)
