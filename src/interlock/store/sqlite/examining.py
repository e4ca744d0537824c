"""Integrity check before the first write: is the file sound, ours, and complete?

It is looked at by a connection that cannot write. One that can would tidy up when it is closed, and
what a person may still save from a damaged write-ahead log would be gone.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from interlock.store.sqlite.file import CorruptFileError, check, check_schema, in_our_words
from interlock.store.sqlite.loading import floor_of, newest_entry, newest_row, newest_version
from interlock.store.sqlite.schema import SEALED
from interlock.store.sqlite.seals import Broken, find_broken
from interlock.store.sqlite.witness import Claim


class Loss(Struct, frozen=True):
    """What a file lacks of what was acknowledged."""

    claim: Claim
    #: The newest version that it has.
    version: int
    is_behind: bool
    broken: Broken

    def __bool__(self) -> bool:
        return self.is_behind or bool(self.broken)

    def __str__(self) -> str:
        words = [str(self.broken)] if self.broken else []
        if self.claim.version > self.version:
            words.append(
                f"versions {self.version + 1} to {self.claim.version} are missing, the last of "
                f"them acknowledged at {self.claim.at.isoformat(timespec='seconds')}"
            )
        elif self.is_behind:
            words.append("the end of the history is missing")
        return "; ".join(words)


class LostWritesError(CorruptFileError):
    """The file is readable, but is not all that was acknowledged."""

    def __init__(self, path: Path, loss: Loss) -> None:
        super().__init__(path, str(loss))
        self.loss = loss
        self.hint = (
            "or go on with what is there: interlock up --accept-loss; copy the directory first"
        )


def examine(path: Path, claim: Claim) -> Loss:
    """Compare a file with what its witness claims, and with its own seals; it is not changed.

    Raises:
        CorruptFileError: It is damaged so that nothing can be said.
        UnavailableError: It cannot be read now.
    """
    if not path.exists() or not path.stat().st_size:
        return Loss(claim, 0, claim.version > 0, Broken())
    try:
        uri = path.absolute().as_uri() + "?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            # What is no text any more is told as damage too.
            connection.text_factory = lambda found: found.decode(errors="replace")
            check(connection, path)
            check_schema(connection, path)
            return _compare(connection, claim)
    except sqlite3.Error as error:
        raise in_our_words(path, error) from error


def _compare(connection: sqlite3.Connection, claim: Claim) -> Loss:
    (release,) = connection.execute("PRAGMA user_version").fetchone()
    if not release:
        return Loss(claim, 0, claim.version > 0, Broken())
    broken = find_broken(connection) if release >= SEALED else Broken()
    if broken.facts:
        return Loss(claim, newest_row(connection), False, broken)
    version, floor = newest_version(connection), floor_of(connection)
    # A file whose floor is above the claim was put back since, and its journal is another.
    has_its_journal = floor >= claim.version or newest_entry(connection) >= claim.journal
    is_behind = version < claim.version or not has_its_journal
    return Loss(claim, version, is_behind, broken)
