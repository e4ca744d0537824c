"""The tables, and how a file of an older release is brought up to date."""

from __future__ import annotations

import sqlite3

from interlock.errors import InterlockError
from interlock.store.sqlite.seals import fact_seal_of, seal_of

#: Each brings a file one version further; what is here was released and is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Numbers above zero are versions of resources, in the order they were acknowledged.
        # Numbers below zero are the journal's: -n holds entries up to number n. One table
        # makes a group of writes one statement, and so one commit without a second trip.
        "CREATE TABLE log ("
        " number INTEGER PRIMARY KEY, kind TEXT NOT NULL, gone INTEGER NOT NULL,"
        " data BLOB NOT NULL)",
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        # Every change after this version is in the log.
        "INSERT INTO facts VALUES ('floor', 0)",
    ),
    (
        # What was written before is believed as it is found.
        "ALTER TABLE log ADD COLUMN seal INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE log ADD COLUMN total INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE facts ADD COLUMN seal INTEGER NOT NULL DEFAULT 0",
        "UPDATE log SET seal = seal_of(number, kind, gone, data)",
        "UPDATE log SET total = (SELECT sum(seal) FROM log WHERE number > 0) & 0xFFFFFFFF"
        " WHERE number = (SELECT max(number) FROM log) AND number > 0",
        # The sum of the seals of all versions that are no longer there.
        "INSERT INTO facts VALUES ('dropped', 0, 0)",
        "UPDATE facts SET seal = fact_seal_of(name, value)",
    ),
    (
        # What is kept of resources that are over and were removed: `archive` reads and writes it.
        "CREATE TABLE finished ("
        " id TEXT PRIMARY KEY, created INTEGER NOT NULL, ended INTEGER NOT NULL,"
        " name TEXT NOT NULL, parent TEXT NOT NULL, creator TEXT NOT NULL, owner TEXT NOT NULL,"
        " path TEXT NOT NULL, alias TEXT NOT NULL, completion TEXT NOT NULL, phase TEXT NOT NULL,"
        " digest TEXT NOT NULL, record BLOB NOT NULL, seal INTEGER NOT NULL)",
        "CREATE INDEX finished_in_order ON finished (created, id)",
        "CREATE INDEX finished_by_creator ON finished (creator, created, id)",
        "CREATE INDEX finished_by_owner ON finished (owner, created, id)",
        "CREATE INDEX finished_by_completion ON finished (completion, created, id)",
        "CREATE INDEX finished_by_parent ON finished (parent, created, id) WHERE parent <> ''",
        "CREATE INDEX finished_by_name ON finished (name, created, id)",
        "CREATE INDEX finished_by_end ON finished (ended, id)",
        # A row for each path that something is at or below.
        "CREATE TABLE finished_paths ("
        " path TEXT NOT NULL, created INTEGER NOT NULL, id TEXT NOT NULL,"
        " PRIMARY KEY (path, created, id)) WITHOUT ROWID",
    ),
)
#: Files from this release on carry seals.
SEALED = 2


class NewerFileError(InterlockError):
    """The file was written by a later release."""


def migrate(connection: sqlite3.Connection, upto: int = len(MIGRATIONS)) -> None:
    """Bring the tables up to date, or to an older release's, all of them or none.

    Raises:
        NewerFileError: They are of a later release.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > len(MIGRATIONS):
        raise NewerFileError(
            f"the data has format {found}, this release reads up to {len(MIGRATIONS)}: "
            "start a newer release on it"
        )
    connection.create_function("seal_of", 4, seal_of, deterministic=True)
    connection.create_function("fact_seal_of", 2, fact_seal_of, deterministic=True)
    for number in range(found, upto):
        connection.execute("BEGIN IMMEDIATE")
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
