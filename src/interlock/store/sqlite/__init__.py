"""The embedded default: one process, one file, every acknowledged write durable.

The file holds a log: one row per version of a resource, and the journal's entries. All that is
current is in memory, so reads never touch the file, and writing only ever appends to it.
"""

from interlock.store.sqlite.examining import LostWritesError
from interlock.store.sqlite.file import CorruptFileError, FileInUseError
from interlock.store.sqlite.store import SqliteStore

__all__ = ["CorruptFileError", "FileInUseError", "LostWritesError", "SqliteStore"]
