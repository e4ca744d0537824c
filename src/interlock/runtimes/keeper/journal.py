"""The keeper's memory on disk: framed records, synced in groups, rewritten when they grow old.

A record is its length, a checksum and its bytes. A tail that was torn by a crash is cut off when
the journal is opened: nothing in it was acknowledged. One sync at a time runs beside the loop in a
thread; what is appended meanwhile shares the next one.
"""

from __future__ import annotations

import os
import struct
import threading
from binascii import crc32
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import SimpleQueue

from msgspec import MsgspecError, Struct

from interlock.private_files import open_private
from interlock.runtimes.keeper.moments import monotonic
from interlock.runtimes.keeper.records import Entry, Record, TookOver, decode_record, encode_record

#: A disk that syncs faster than this is waited for.
_QUICK_S = 0.001
_HEAD = struct.Struct("<II")
#: How the records of terms begin: up to their tag.
_TOOK_OVER = encode_record(TookOver(0, "", {})).partition(b"tookover")[0] + b"tookover"
Callback = Callable[[], None]
Failure = Callable[[OSError], None]


class Pending(Struct, eq=False):
    """Something that waits to be written or to be durable."""

    payload: bytes
    #: Called once it is durable.
    then: Callback | None
    #: Called instead when it cannot be; without it, it is tried again until it can.
    failed: Failure | None


class Journal:
    """An append-only file. All calls come from one thread, and so do all callbacks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = open_private(path, os.O_RDWR | os.O_CREAT)
        self.size = 0
        #: What the rewritten journal took: a guide to when rewriting pays again.
        self.rewritten_size = 0
        self._buffer: list[Pending] = []
        self._unsynced: list[Pending] = []
        self._syncing: list[Pending] | None = None
        #: Why the file cannot be trusted to take more, until it is rewritten.
        self.broken: OSError | None = None
        self._work: SimpleQueue[int | None] = SimpleQueue()
        self._error: OSError | None = None
        self._last_sync_s = float("inf")
        #: Becomes readable when a sync is over.
        self.ready_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: threading.Thread | None = None

    def read(self) -> list[Record | Entry]:
        """Every whole record; what follows the last one is cut off."""
        data = _read_all(self._fd)
        records, at = records_in(data)
        if at != len(data):
            os.ftruncate(self._fd, at)
            os.fsync(self._fd)
        self.size = self.rewritten_size = at
        return records

    def append(
        self,
        record: Record | None,
        then: Callback | None = None,
        failed: Failure | None = None,
    ) -> None:
        """Have a record written with the next `write`; None waits for what is before it."""
        payload = b"" if record is None else framed(encode_record(record))
        self._buffer.append(Pending(payload, then, failed))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits to be written or synced."""
        return not (self._buffer or self._unsynced or self._syncing)

    @property
    def is_syncing(self) -> bool:
        """Whether a sync runs; the file cannot be replaced meanwhile."""
        return self._syncing is not None

    @property
    def is_stuck(self) -> bool:
        """Whether something waits for the disk to work again."""
        return self.broken is not None or bool(self._buffer)

    def write(self) -> bool:
        """Hand what was appended to the kernel: it survives the keeper, if not the machine.

        On failure nothing of it is in the file. What may fail has failed; the rest stays.
        """
        if not self._buffer:
            return True
        if self.broken is not None:
            self._fail_buffer(self.broken)
            return False
        try:
            self._write_bytes(b"".join([pending.payload for pending in self._buffer]))
        except OSError as error:
            self._fail_buffer(error)
            return False
        self._unsynced += [pending for pending in self._buffer if pending.then is not None]
        self._buffer.clear()
        return True

    def sync(self, *, is_idle: bool = False) -> None:
        """Start a sync of what was written, unless one runs or nobody waits for it.

        When there is nothing else to do and the disk is quick, waiting for it here is cheaper
        than waking a thread; it is then over when this returns.
        """
        if not self._unsynced or self._syncing is not None or self.broken is not None:
            return
        self._syncing, self._unsynced = self._unsynced, []
        if is_idle and self._last_sync_s < _QUICK_S:
            self._sync_once(self._fd)
            self._settle()
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._sync_forever, daemon=True)
            self._thread.start()
        self._work.put(self._fd)

    def settle(self) -> None:
        """A sync is over: tell those who waited for it."""
        try:
            os.eventfd_read(self.ready_fd)
        except BlockingIOError:
            return
        self._settle()

    def _settle(self) -> None:
        done, self._syncing = self._syncing or [], None
        error, self._error = self._error, None
        if error is None:
            for pending in done:
                if pending.then is not None:
                    pending.then()
            return
        # After a failed sync the kernel may have dropped the pages: the file is not trusted.
        self.broken = error
        self._buffer[:0] = done + self._unsynced
        self._unsynced = []
        self._fail_buffer(error)

    def rewrite(self, records: Iterable[Record | Entry]) -> None:
        """Replace the file by these records; what was waiting to be durable then is.

        Raises:
            OSError: The old file is still in place.
        """
        assert self._syncing is None, "a sync runs on the file that would be replaced"
        fresh = self._path.with_name(self._path.name + ".new")
        data = b"".join([framed(encode_record(record)) for record in records])
        waiting = self._unsynced + self._buffer
        data += b"".join([pending.payload for pending in waiting])
        fd = open_private(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            _write_at(fd, data, 0)
            os.fsync(fd)
            fresh.replace(self._path)
            _sync_directory(self._path.parent)
        except OSError:
            os.close(fd)
            raise
        os.close(self._fd)
        self._fd, self.size, self.rewritten_size, self.broken = fd, len(data), len(data), None
        self._unsynced, self._buffer = [], []
        for pending in waiting:
            if pending.then is not None:
                pending.then()

    def close(self) -> None:
        """End the thread and close the files."""
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
        os.close(self._fd)
        os.close(self.ready_fd)

    def _write_bytes(self, data: bytes) -> None:
        try:
            _write_at(self._fd, data, self.size)
        except OSError as error:
            try:
                os.ftruncate(self._fd, self.size)
            except OSError:
                self.broken = error
            raise
        self.size += len(data)

    def _fail_buffer(self, error: OSError) -> None:
        failing = [pending for pending in self._buffer if pending.failed is not None]
        self._buffer = [pending for pending in self._buffer if pending.failed is None]
        for pending in failing:
            assert pending.failed is not None
            pending.failed(error)

    def _sync_forever(self) -> None:
        while (fd := self._work.get()) is not None:
            self._sync_once(fd)
            os.eventfd_write(self.ready_fd, 1)

    def _sync_once(self, fd: int) -> None:
        began = monotonic()
        try:
            os.fdatasync(fd)
        except OSError as error:
            self._error = error
        self._last_sync_s = monotonic() - began


def records_in(data: bytes) -> tuple[list[Record | Entry], int]:
    """The whole records of a journal, and where the last one ends."""
    records: list[Record | Entry] = []
    at = 0
    while (payload := _payload_at(data, at)) is not None:
        try:
            records.append(decode_record(payload))
        except MsgspecError:
            break
        at += _HEAD.size + len(payload)
    return records, at


def newest_term(path: Path) -> int:
    """The highest term that a journal knows of; 0 without a journal. A keeper may be writing it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    term = at = 0
    while (payload := _payload_at(data, at)) is not None:
        # All other records are passed over unread: there may be hundreds of thousands.
        if payload.startswith(_TOOK_OVER):
            record = decode_record(payload)
            assert isinstance(record, TookOver)
            term = max(term, record.term)
        at += _HEAD.size + len(payload)
    return term


def framed(payload: bytes) -> bytes:
    """A record with its length and checksum."""
    return _HEAD.pack(len(payload), crc32(payload)) + payload


def _payload_at(data: bytes, at: int) -> bytes | None:
    if len(data) - at < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack_from(data, at)
    payload = data[at + _HEAD.size : at + _HEAD.size + length]
    if not length or len(payload) < length or crc32(payload) != checksum:
        return None
    return payload


def _read_all(fd: int) -> bytes:
    parts = []
    at = 0
    while part := os.pread(fd, 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _write_at(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        at += written
        view = view[written:]


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
