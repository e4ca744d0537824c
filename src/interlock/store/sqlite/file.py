"""The file: who may open it, whether it is sound, and copies of it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from interlock.errors import InterlockError, UnavailableError
from interlock.private_files import open_private
from interlock.store.sqlite.schema import MIGRATIONS, SEALED, migrate
from interlock.store.sqlite.seals import find_broken

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


class ForeignContentError(CorruptFileError):
    """The file holds something besides our own tables."""

    def __init__(self, path: Path, found: str) -> None:
        InterlockError.__init__(self, f"{path} holds {found}, which is not ours: it is not used")
        self.path = path
        self.found = found


class FilesGoneError(UnavailableError):
    """A file of the store was deleted or replaced while it is open."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} was deleted or replaced while the server runs, so nothing is written any "
            "more. Save everything with `interlock backup FILE`, stop the server, and put it back "
            "with `interlock restore FILE --force`"
        )
        self.file = file


class Presence:
    """Whether the files that are open are still those at their paths.

    What is written to a file that was deleted is gone when it is closed, though every sync works.
    """

    def __init__(self, path: Path) -> None:
        # Texts: asking the kernel about a `Path` takes as long again as the kernel does.
        files = [f"{path}{ending}" for ending in ("", "-wal", "-shm")]
        self._held = [(file, _identity(os.stat(file))) for file in files]  # noqa: PTH116

    def check(self) -> None:
        """Make sure that they are.

        Raises:
            FilesGoneError: One of them is not.
        """
        for file, identity in self._held:
            try:
                found = _identity(os.stat(file))  # noqa: PTH116
            except (FileNotFoundError, NotADirectoryError):
                raise FilesGoneError(Path(file)) from None
            except OSError:
                # Nobody can tell, so nothing is said.
                continue
            if found != identity:
                raise FilesGoneError(Path(file))


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


class FileLock:
    """The right to open the file, held until it is released or the process ends.

    The lock file says who has it. The directory is locked too, for a lock file can be deleted, and
    whoever then makes another would have the same right.
    """

    def __init__(self, path: Path) -> None:
        """Take the right.

        Raises:
            FileInUseError: Another process has it.
        """
        place = path.with_name(path.name + ".lock")
        self._descriptor = open_private(place, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise FileInUseError(path, holder or "(unknown)") from error
        try:
            self._directory = _lock_directory(path.parent)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise FileInUseError(path, "(unknown: its lock file was deleted)") from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the right back. The lock file stays: removing it could split the right in two."""
        os.close(self._descriptor)
        if self._directory is not None:
            os.close(self._directory)


def _lock_directory(place: Path) -> int | None:
    """Lock a directory; None where there are no such locks.

    Raises:
        BlockingIOError: Another process has it.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def keep_private(path: Path) -> None:
    """Make a database that its owner alone can read, whatever the umask; or make it so.

    SQLite gives the files that it makes beside it the same mode.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for ending in ("", "-wal", "-shm"):
        file = path.with_name(path.name + ending)
        if file.exists() and file.stat().st_mode & 0o077:
            file.chmod(0o600)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The one connection that writes; the caller holds the `FileLock`.

    Raises:
        CorruptFileError: The file is damaged.
        NewerFileError: It was written by a later release.
        UnavailableError: It cannot be opened now.
    """
    try:
        keep_private(path)
    except OSError as error:
        raise UnavailableError(f"{path} cannot be opened: {error}") from error
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=_PREPARED
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
        check_schema(connection, path)
        migrate(connection)
    except sqlite3.Error as error:
        connection.close()
        raise in_our_words(path, error) from error
    except InterlockError:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that neither writes nor checkpoints.

    SQLite releases before 3.51.3 can damage a file when two connections write or checkpoint
    at the same moment, so all but one must do neither.
    """
    # Were it missing, the usual mode would make one.
    uri = path.absolute().as_uri() + "?mode=rw"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
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


def check_seals(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure that every row is as it was written, and none missing.

    Raises:
        CorruptFileError: One is not.
    """
    (release,) = connection.execute("PRAGMA user_version").fetchone()
    if SEALED <= release <= len(MIGRATIONS) and (broken := find_broken(connection)):
        raise CorruptFileError(path, str(broken))


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure that there is nothing in the file but our own tables: a trigger acts by itself.

    Raises:
        ForeignContentError: There is something else.
    """
    (release,) = connection.execute("PRAGMA user_version").fetchone()
    if release > len(MIGRATIONS):
        # A later release may have more; `migrate` has the word for it.
        return
    found = dict(_schema_of(connection))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as blank:
        migrate(blank, upto=release)
        ours = dict(_schema_of(blank))
    for (sort, name), definition in found.items():
        if ours.get((sort, name)) != definition:
            raise ForeignContentError(path, f"the {sort} {name}")
    if found != ours:
        raise CorruptFileError(path, "tables are missing")


def _schema_of(connection: sqlite3.Connection) -> list[tuple[tuple[str, str], str]]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema")
    return [((sort, name), definition) for sort, name, definition in rows]


def in_our_words(path: Path, error: sqlite3.Error) -> InterlockError:
    """A library's error in our words."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return CorruptFileError(path, str(error))
    return UnavailableError(f"{path} cannot be opened: {error}")


def back_up(path: Path, target: Path, source: sqlite3.Connection | None = None) -> None:
    """Copy a file, that may be in use, as it is at one moment; `target` appears whole or not.

    A file that is no longer at its path can be copied by the connection that has it open, `source`.

    Raises:
        CorruptFileError: The file is damaged.
        UnavailableError: It cannot be read, or the copy not written.
    """
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        keep_private(partial)
        with ExitStack() as stack:
            copy = stack.enter_context(closing(sqlite3.connect(partial, isolation_level=None)))
            if source is None:
                source = stack.enter_context(closing(open_for_reading(path)))
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            check(copy, path)
            check_seals(copy, path)
        make_durable(partial)
        partial.replace(target)
        make_durable(target.parent)
    except sqlite3.Error as error:
        raise in_our_words(path, error) from error
    except OSError as error:
        raise UnavailableError(f"no backup could be written to {target}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def make_durable(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
