"""Checksums of our own: that the file holds what was written, every row of it and unchanged.

SQLite checks the pages of its write-ahead log, and ends it at the first that is bad; the pages of
the file itself it does not check. So each row carries its own checksum, its seal. The row that was
written last also carries the sum of all seals so far, so that a row that is missing is missed too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from zlib import crc32

from msgspec import Struct

#: One row of the log: number, kind, whether the resource is gone, and the resource.
Row = tuple[int, str, int, bytes]

#: Sums are kept to 32 bits.
MASK = 0xFFFFFFFF


class Sums(Struct, frozen=True):
    """The seals of all versions that were ever written, and of those that were dropped since."""

    written: int = 0
    dropped: int = 0


class Broken(Struct, frozen=True):
    """What is not as it was written."""

    #: Rows of the log, by their numbers.
    rows: tuple[int, ...] = ()
    facts: tuple[str, ...] = ()
    #: Whether rows are missing.
    is_short: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows or self.facts or self.is_short)

    def __str__(self) -> str:
        if self.is_short:
            return "rows are missing"
        found = [f"version {n}" if n > 0 else f"the history up to {-n}" for n in self.rows]
        found += [f"the fact {name}" for name in self.facts]
        more = f" and {len(found) - 3} others" if len(found) > 3 else ""
        return f"{', '.join(found[:3])}{more}: not as written"


def seal_of(number: int, kind: str, gone: int, data: bytes) -> int:
    """The seal of a row of the log."""
    return crc32(data, crc32(f"{number} {kind} {gone}".encode()))


def fact_seal_of(name: str, value: int) -> int:
    """The seal of a fact."""
    return crc32(f"{name} {value}".encode())


def put_fact(connection: sqlite3.Connection, name: str, value: int) -> None:
    """Store a fact with its seal."""
    fact = (name, value, fact_seal_of(name, value))
    connection.execute("INSERT OR REPLACE INTO facts (name, value, seal) VALUES (?,?,?)", fact)


def sealed(rows: Iterable[Row], written: int) -> tuple[list[object], int]:
    """Rows with their seals and sums, value after value; and the sum after them.

    The journal's rows are not in the sum: they come and go by themselves.
    """
    values: list[object] = []
    for number, kind, gone, data in rows:
        seal = crc32(data, crc32(f"{number} {kind} {gone}".encode()))
        if number > 0:
            written = (written + seal) & MASK
        values += (number, kind, gone, data, seal, written)
    return values, written


def read_sums(connection: sqlite3.Connection) -> Sums:
    """The sums to go on from."""
    (dropped,) = connection.execute("SELECT value FROM facts WHERE name = 'dropped'").fetchone()
    (kept,) = connection.execute("SELECT sum(seal) FROM log WHERE number > 0").fetchone()
    return Sums(((kept or 0) + dropped) & MASK, dropped)


def find_broken(connection: sqlite3.Connection) -> Broken:
    """Compare every row with its seal, and all seals with their sum."""
    facts, bad_facts = _facts_in(connection)
    bad_rows, summed, newest, total = [], 0, 0, 0
    stored = "SELECT number, kind, gone, data, seal, total FROM log ORDER BY number"
    for number, kind, gone, data, seal, so_far in connection.execute(stored):
        if not _is_sealed(number, kind, gone, data, seal):
            bad_rows.append(number)
        elif number > 0:
            summed += seal
            newest, total = number, so_far
    if bad_rows or bad_facts:
        return Broken(tuple(bad_rows), bad_facts)
    # A version that was deleted may be dropped, but only up to the floor. Above it the newest row
    # is the one that was written last, and knows the sum.
    knows_sum = newest > 0 and newest >= facts["floor"]
    return Broken(is_short=knows_sum and (summed + facts["dropped"]) & MASK != total)


def _facts_in(connection: sqlite3.Connection) -> tuple[dict[str, int], tuple[str, ...]]:
    """The facts, and the names of those that are not as they were written."""
    facts: dict[str, int] = {}
    bad = []
    for name, value, seal in connection.execute("SELECT name, value, seal FROM facts"):
        if isinstance(value, int) and fact_seal_of(name, value) == seal:
            facts[name] = value
        else:
            bad.append(name)
    return facts, (*bad, *(name for name in ("floor", "dropped") if name not in {*facts, *bad}))


def _is_sealed(number: int, kind: object, gone: object, data: object, seal: object) -> bool:
    # A bit that flips can change the type of a value too.
    if not (isinstance(kind, str) and isinstance(gone, int) and isinstance(data, bytes)):
        return False
    return seal_of(number, kind, gone, data) == seal
