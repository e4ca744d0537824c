"""The file: who may open it, whether it is sound, and copies of it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from interlock.resources.errors import InterlockError, UnavailableError
from interlock.store.sqlite.schema import migrate

#: The write-ahead log is folded into the file whenever it has grown by so many pages.
CHECKPOINT_PAGES = 4_000
#: A write-ahead log that grew beyond this, under a long backup say, is cut back to it.
WAL_LIMIT_BYTES = 64 * 1024 * 1024
#: How many statements stay prepared; groups of different sizes are different statements.
_PREPARED = 300


class FileInUseError(UnavailableError):
    """Another process has the file open."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(
            f"{path} is in use by process {holder}: one server at a time can have it open"
        )
        self.path = path
        self.holder = holder


class CorruptFileError(InterlockError):
    """The file is damaged, or is no file of ours."""

    def __init__(self, path: Path, found: str) -> None:
        super().__init__(f"{path} is damaged: {found}; restore a backup with `interlock restore`")
        self.path = path
        self.found = found


class FileLock:
    """The right to open the file, held until it is released or the process ends."""

    def __init__(self, path: Path) -> None:
        """Take the right.

        Raises:
            FileInUseError: Another process has it.
        """
        place = path.with_name(path.name + ".lock")
        self._descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise FileInUseError(path, holder or "(unknown)") from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the right back. The lock file stays: removing it could split the right in two."""
        os.close(self._descriptor)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The one connection that writes; the caller holds the `FileLock`.

    Raises:
        CorruptFileError: The file is damaged.
        NewerFileError: It was written by a later release.
        UnavailableError: It cannot be opened now.
    """
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=_PREPARED
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
        check(connection, path)
        migrate(connection)
    except sqlite3.Error as error:
        connection.close()
        raise _told(path, error) from error
    except InterlockError:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that neither writes nor checkpoints.

    SQLite releases before 3.51.3 can damage a file when two connections write or checkpoint
    at the same moment, so all but one must do neither.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA query_only = 1")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure that the file is sound.

    Raises:
        CorruptFileError: It is not.
    """
    found = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise CorruptFileError(path, "; ".join(found))


def _told(path: Path, error: sqlite3.Error) -> InterlockError:
    """A library's error in our words."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return CorruptFileError(path, str(error))
    return UnavailableError(f"{path} cannot be opened: {error}")


def back_up(path: Path, target: Path) -> None:
    """Copy a file, that may be in use, as it is at one moment; `target` appears whole or not.

    Raises:
        CorruptFileError: The file is damaged.
        UnavailableError: It cannot be read, or the copy not written.
    """
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        source, copy = open_for_reading(path), sqlite3.connect(partial, isolation_level=None)
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            check(copy, partial)
        finally:
            copy.close()
            source.close()
        _make_durable(partial)
        partial.replace(target)
        _make_durable(target.parent)
    except sqlite3.Error as error:
        raise _told(path, error) from error
    except OSError as error:
        raise UnavailableError(f"no backup could be written to {target}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def restore(backup: Path, path: Path) -> None:
    """Put a backup in the place of the file.

    Raises:
        FileInUseError: A server has the file open.
        CorruptFileError: The backup is damaged; the file is left as it was.
        UnavailableError: The backup cannot be read, or the file not written.
    """
    if not backup.is_file():
        raise UnavailableError(f"there is no backup {backup}")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        fresh = path.with_name(path.name + ".restored")
        back_up(backup, fresh)
        # What is left of the old file's write-ahead log must not be played into the new one.
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        fresh.replace(path)
        _make_durable(path.parent)
    finally:
        lock.release()


def _make_durable(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
