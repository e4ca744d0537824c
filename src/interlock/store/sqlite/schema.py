"""The tables, and how a file of an older release is brought up to date."""

from __future__ import annotations

import sqlite3

from interlock.resources.errors import InterlockError

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
)


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
    for number in range(found, upto):
        connection.execute("BEGIN IMMEDIATE")
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
