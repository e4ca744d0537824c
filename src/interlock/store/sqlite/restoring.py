"""Restoring: a backup put in place, with versions that go on above all that were ever given out.

Versions are terms and fencing tokens too, and a store that was put back knows only those of its
backup. What was given out since then is known in part: to the store that is replaced, and to the
keeper beside it. For the rest there is the clock: a restored store counts on from the microseconds
since 1970. No server makes a million writes a second, so a later restore, of this backup or
another, here or elsewhere, begins above everything that the earlier one has given out. That rests
on one thing: that the clock of the later restore is not behind that of the earlier one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from interlock.errors import InterlockError, UnavailableError
from interlock.private_files import open_private
from interlock.resources.codec import encode
from interlock.resources.metadata import Resource
from interlock.store.rules import with_version
from interlock.store.sqlite.examining import Loss
from interlock.store.sqlite.file import (
    CorruptFileError,
    FileLock,
    back_up,
    check_schema,
    in_our_words,
    make_durable,
    open_for_reading,
)
from interlock.store.sqlite.loading import load, newest_version
from interlock.store.sqlite.schema import migrate
from interlock.store.sqlite.seals import put_fact, sealed
from interlock.store.sqlite.witness import read_claim
from interlock.store.state import State

#: Numbers up to 2^53 are exact in every JSON reader. A clock that is wrong by a century must not
#: use them up: what it says is taken up to here, the year 2112.
HIGHEST_BY_CLOCK = 1 << 52
#: A clock that is behind what is known says nothing; so many writes may then have been lost.
BLIND_JUMP = 1 << 32

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def version_after(known: int, now: datetime) -> int:
    """Where versions go on, above `known` and above what may be lost."""
    by_clock = (now - _EPOCH) // _MICROSECOND
    return by_clock if known < by_clock <= HIGHEST_BY_CLOCK else known + BLIND_JUMP


def renumbered(held: Iterable[Resource], version: int) -> Iterator[Resource]:
    """The resources with versions after this one, in the order of those that they had."""
    in_order = sorted(held, key=lambda resource: resource.version)
    return (with_version(resource, number) for number, resource in enumerate(in_order, version + 1))


def lift(connection: sqlite3.Connection, path: Path, known: int, now: datetime) -> None:
    """Store everything anew, with versions above those that were given out, and write that down.

    Every resource gets a new version, and not only the next write: a Lock's version is the token
    of its next grant, and nobody who read something before may take it for unchanged.

    Raises:
        CorruptFileError: A row cannot be read.
    """
    shelves = State()
    load(connection, path, shelves)
    version = version_after(max(known, newest_version(connection)), now)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("DELETE FROM log WHERE number > 0")
        total = 0
        for resource in renumbered(shelves.all(), version):
            version = resource.version
            row, total = sealed([(version, resource.kind, 0, encode(resource))], total)
            connection.execute("INSERT INTO log VALUES (?,?,?,?,?,?)", row)
        put_fact(connection, "dropped", 0)
        put_fact(connection, "floor", version)
        put_fact(connection, "restored", version)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def accept(
    connection: sqlite3.Connection, path: Path, loss: Loss, known: int, now: datetime
) -> None:
    """Go on without what was lost, as after a restore, and write the loss down.

    Raises:
        CorruptFileError: A row cannot be read.
        OSError: It could not be written down.
    """
    file = open_private(losses_of(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with os.fdopen(file, "a", encoding="utf-8") as losses:
        losses.write(f"{now.isoformat(timespec='seconds')} {loss}\n")
        losses.flush()
        os.fsync(file)
    connection.executemany("DELETE FROM log WHERE number = ?", [(n,) for n in loss.broken.rows])
    if loss.broken.facts:
        connection.execute("DELETE FROM facts")
        put_fact(connection, "floor", 0)
        put_fact(connection, "dropped", 0)
    lift(connection, path, max(known, loss.claim.version), now)


def losses_of(path: Path) -> Path:
    """Where the losses of a store are written down that were accepted."""
    return path.with_name(path.name + ".losses")


def restore(backup: Path, path: Path, *, now: datetime, known: int = 0) -> None:
    """Put a backup in the place of the file; versions go on above `known` and what is there.

    Raises:
        FileInUseError: A server has the file open.
        CorruptFileError: The backup is damaged or holds what is not ours; the file is left as it
            was.
        UnavailableError: The backup cannot be read, or the file not written.
    """
    if not backup.is_file():
        raise UnavailableError(f"there is no backup {backup}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        fresh = path.with_name(path.name + ".restored")
        try:
            back_up(backup, fresh)
            _make_ours(fresh, backup, max(known, _given_out_by(path)), now)
            # What is left of the old file's write-ahead log must not be played into the new one.
            for ending in ("-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            fresh.replace(path)
            make_durable(path.parent)
        finally:
            fresh.unlink(missing_ok=True)
    finally:
        lock.release()


def _make_ours(fresh: Path, backup: Path, known: int, now: datetime) -> None:
    try:
        with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            (release,) = connection.execute("PRAGMA user_version").fetchone()
            if not release:
                raise CorruptFileError(backup, "no store of ours")
            check_schema(connection, backup)
            migrate(connection)
            lift(connection, backup, known, now)
    except sqlite3.Error as error:
        raise in_our_words(backup, error) from error
    make_durable(fresh)


def _given_out_by(path: Path) -> int:
    """The newest version of the file that is replaced, as far as it or its witness can be read."""
    claimed = read_claim(path).version
    if not path.exists():
        return claimed
    try:
        with closing(open_for_reading(path)) as connection:
            return max(claimed, newest_version(connection))
    except (sqlite3.Error, InterlockError):
        # It is replaced because it is damaged, as likely as not.
        return claimed
