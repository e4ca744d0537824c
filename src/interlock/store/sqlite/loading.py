"""Loading: the log read at the start, for what is current and what changed last."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.resources.kinds import decode
from interlock.resources.metadata import Key, Resource
from interlock.store.contract import Event, EventType
from interlock.store.sqlite.file import CorruptFileError
from interlock.store.sqlite.seals import Sums, read_sums
from interlock.store.state import State
from interlock.store.watching import Change


class Loaded(Struct):
    """What was in the log."""

    changes: list[Change]
    floor: int
    version: int
    #: Versions that were replaced before the floor, and stayed because a clean-up was cut short.
    spare: list[int]
    #: The number of the newest journal entry.
    journal: int
    sums: Sums
    #: Whether it was put back to an earlier state, and that is not settled yet.
    is_restored: bool
    #: What else was written down once and for all.
    facts: frozenset[str] = frozenset()


def newest_entry(connection: sqlite3.Connection) -> int:
    """The number of the newest entry of the journal."""
    (oldest,) = connection.execute("SELECT min(number) FROM log").fetchone()
    return -min(oldest or 0, 0)


def newest_version(connection: sqlite3.Connection) -> int:
    """The newest version that the file knows of."""
    return max(floor_of(connection), newest_row(connection))


def newest_row(connection: sqlite3.Connection) -> int:
    """The newest version that is in the log."""
    (newest,) = connection.execute("SELECT max(number) FROM log").fetchone()
    return max(0, newest or 0)


def floor_of(connection: sqlite3.Connection) -> int:
    """The version after which every change is in the log."""
    (floor,) = connection.execute("SELECT value FROM facts WHERE name = 'floor'").fetchone()
    return int(floor)


def load(connection: sqlite3.Connection, path: Path, shelves: State) -> Loaded:
    """Put everything that is current on the shelves.

    Raises:
        CorruptFileError: A row cannot be read.
    """
    floor = floor_of(connection)
    facts = frozenset(name for (name,) in connection.execute("SELECT name FROM facts"))
    journal, sums = newest_entry(connection), read_sums(connection)
    loaded = Loaded([], floor, floor, [], journal, sums, "restored" in facts, facts)
    rows = connection.execute(
        "SELECT number, kind, gone, data FROM log WHERE number > 0 ORDER BY number"
    )
    note = _note_into(loaded, shelves)
    number = 0
    try:
        for number, kind, gone, data in rows:
            note(number, decode(kind, data), gone)
    except (KeyError, msgspec.DecodeError) as error:
        raise CorruptFileError(path, f"version {number} cannot be read: {error}") from error
    loaded.version = max(number, floor)
    return loaded


def _note_into(loaded: Loaded, shelves: State) -> Callable[[int, Resource, int], None]:
    floor, changes, spare = loaded.floor, loaded.changes, loaded.spare

    def note(version: int, resource: Resource, gone: int) -> None:
        key: Key = resource.key
        before = shelves.get(key)
        kind = EventType.DELETED if gone else EventType.MODIFIED if before else EventType.ADDED
        change = Change(key, before, Event(kind, resource, version), version)
        shelves.apply((change,))
        if version > floor:
            changes.append(change)
        else:
            spare.extend(unneeded(change))

    return note


def unneeded(change: Change) -> tuple[int, ...]:
    """The versions that nobody needs once a change is no longer remembered."""
    before = () if change.before is None else (change.before.version,)
    return (*before, change.version) if change.event.type is EventType.DELETED else before
