"""The witness: a small file that remembers how far the store was acknowledged.

SQLite ends a write-ahead log at the first page that is bad, without a word: what came after it was
never there. The witness stands beside it and knows better. It is told after a commit is durable
and before anybody hears of it, so it never claims what a healthy file does not hold. It is not
synced itself: the kernel keeps it when the process is killed; when the power fails it may be a few
seconds behind, or torn. A torn one is known by its checksum, and says nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from interlock.private_files import open_private

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: More than the longest line.
_BYTES = 128


class Claim(Struct, frozen=True):
    """How far a store was acknowledged, and when."""

    version: int = 0
    #: The number of the newest entry of the journal.
    journal: int = 0
    at: datetime = _EPOCH


def witness_of(path: Path) -> Path:
    """Where the witness of a store is."""
    return path.with_name(path.name + ".witness")


def read_claim(path: Path) -> Claim:
    """What the witness of a store claims; nothing at all if it is not there, or torn."""
    try:
        descriptor = open_private(witness_of(path), os.O_RDONLY)
    except OSError:
        return Claim()
    try:
        return _read(os.pread(descriptor, _BYTES, 0))
    finally:
        os.close(descriptor)


def _read(found: bytes) -> Claim:
    line = found.partition(b"\n")[0]
    try:
        version, journal, micros, _ = line.split()
        if _line(int(version), int(journal), int(micros)) == line + b"\n":
            return Claim(int(version), int(journal), _EPOCH + int(micros) * _MICROSECOND)
    except (ValueError, OverflowError):
        pass
    return Claim()


def _line(version: int, journal: int, micros: int) -> bytes:
    told = b"%d %d %d" % (version, journal, micros)
    return b"%b %08x\n" % (told, crc32(told))


class Witness:
    """The witness of a store that is open."""

    def __init__(self, path: Path) -> None:
        """Find it, or make it.

        Raises:
            OSError: It cannot be opened.
        """
        self._descriptor = open_private(witness_of(path), os.O_RDWR | os.O_CREAT)

    def tell(self, version: int, journal: int, at: datetime) -> None:
        """Claim that everything so far is durable; the caller knows that it is."""
        # One that cannot be told goes on claiming less, which is true too.
        with suppress(OSError):
            os.pwrite(self._descriptor, _line(version, journal, (at - _EPOCH) // _MICROSECOND), 0)

    def close(self) -> None:
        """Make it durable, and let go of it."""
        with suppress(OSError):
            os.fsync(self._descriptor)
        os.close(self._descriptor)
