"""The store on SQLite: decided in memory, acknowledged when durable."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from interlock.errors import InterlockError, UnavailableError
from interlock.resources.codec import encode
from interlock.resources.metadata import Resource
from interlock.store.contract import EventType, Identities, Now
from interlock.store.in_memory import InMemoryStore
from interlock.store.sqlite.archive import Archived, ArchiveReader
from interlock.store.sqlite.examining import LostWritesError, examine
from interlock.store.sqlite.file import (
    FileLock,
    FilesGoneError,
    Presence,
    back_up,
    in_our_words,
    open_for_writing,
)
from interlock.store.sqlite.journal import JOURNAL_ENTRIES, SqliteJournal
from interlock.store.sqlite.loading import Loaded, load, newest_version, unneeded
from interlock.store.sqlite.restoring import accept, lift
from interlock.store.sqlite.witness import Witness, read_claim
from interlock.store.sqlite.writer import Batch, Outcome, Writer
from interlock.store.watching import BUFFERED, REMEMBERED, Change

logger = logging.getLogger("interlock.store")

_DELETED = EventType.DELETED
#: While nothing can be written, it is tried this often whether it works again.
_PROBE_S = 1.0


class SqliteStore(InMemoryStore):
    """Resources in one file that one process owns. Make it with `open`."""

    def __init__(
        self,
        path: Path,
        now: Now,
        identities: Identities,
        *,
        remembered: int,
        buffered: int,
        journal_entries: int,
    ) -> None:
        super().__init__(now, identities, remembered=remembered, buffered=buffered)
        self._path = path
        self._journal_entries = journal_entries
        self._loop = asyncio.get_running_loop()
        #: Held for moments only, by the loop that fills a batch and the thread that takes it.
        self._handing = Lock()
        self._open: Batch | None = None
        #: The batch that was opened last; it may be committed by now.
        self._latest: Batch | None = None
        self._era = 0
        self._drops: list[int] = []
        self._is_closed = False
        #: Whether the store was put back to an earlier state, and nobody has `settled` that: there
        #: may be tasks at work that it knows nothing of.
        self.is_restored = False
        #: What was lost, when the store went on without it.
        self.accepted = ""
        #: What is to be kept of a resource that is removed; None keeps nothing of it.
        self.keeps: Callable[[Resource], Archived | None] = lambda _: None
        self._trouble = ""
        self._probing: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls,
        path: Path | str,
        now: Now,
        identities: Identities,
        *,
        remembered: int = REMEMBERED,
        buffered: int = BUFFERED,
        journal_entries: int = JOURNAL_ENTRIES,
        known: int = 0,
        accept_loss: bool = False,
    ) -> SqliteStore:
        """Open the file, or make it.

        Somebody else remembers that the version `known` was given out. A file that does not was
        put back, or made anew: its versions go on above that, as after a restore.

        A file that lacks something that was acknowledged is refused, unless the loss is accepted:
        then it goes on with what is there, as after a restore too, and the loss is written down.

        Raises:
            FileInUseError: Another process has it open.
            LostWritesError: It lacks something that was acknowledged.
            CorruptFileError: It is damaged.
            NewerFileError: It was written by a later release.
            UnavailableError: It cannot be opened now.
        """
        store = cls(
            Path(path),
            now,
            identities,
            remembered=remembered,
            buffered=buffered,
            journal_entries=journal_entries,
        )
        await store._begin(known, accept_loss)
        return store

    async def _begin(self, known: int, accept_loss: bool) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = FileLock(self._path)
        except OSError as error:
            raise UnavailableError(f"{self._path} cannot be opened: {error}") from error
        try:
            loaded = await asyncio.to_thread(self._load, known, accept_loss)
        except BaseException:
            self._lock.release()
            raise
        self._writer = Writer(
            self._connection,
            self._loop,
            self._take,
            self._finish,
            loaded.sums,
            self._presence.check,
            self._attest,
        )
        await self._make_default_namespace()

    def _load(self, known: int, accept_loss: bool) -> Loaded:
        claim = read_claim(self._path)
        loss = examine(self._path, claim)
        if loss and not accept_loss:
            raise LostWritesError(self._path, loss)
        connection = open_for_writing(self._path)
        try:
            if loss:
                accept(connection, self._path, loss, known, self._now())
                self.accepted = str(loss)
            elif known > newest_version(connection):
                logger.warning("the store is older than what was given out in its name")
                lift(connection, self._path, known, self._now())
            loaded = load(connection, self._path, self._shelves)
            # What a process left in the write-ahead log when it was killed is safer in the file.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._presence = Presence(self._path)
            self._witness = Witness(self._path)
        except InterlockError:
            connection.close()
            raise
        except sqlite3.Error as error:
            connection.close()
            raise in_our_words(self._path, error) from error
        except OSError as error:
            connection.close()
            raise UnavailableError(f"{self._path} cannot be opened: {error}") from error
        self._connection = connection
        self._begin_with(loaded)
        return loaded

    def _begin_with(self, loaded: Loaded) -> None:
        self.is_restored = loaded.is_restored
        #: What was written down with `remember`.
        self.facts = set(loaded.facts)
        self._attested = (loaded.version, loaded.journal)
        self._last_version = loaded.version
        spare = self._hub.remember(loaded.changes, floor=loaded.floor, version=loaded.version)
        self._drops.extend(loaded.spare)
        self._forget(spare)
        #: The durable, bounded record of decisions.
        self.journal = SqliteJournal(
            self._path,
            loaded.journal,
            self._call_writer,
            self._presence.check,
            entries=self._journal_entries,
        )
        #: What is kept of resources that were removed.
        self.archive = ArchiveReader(self._path, self._presence.check)

    async def _make_default_namespace(self) -> None:
        change = self._default_namespace()
        if change is None:
            return
        try:
            await self._carry_out(change, dry_run=False)
        except UnavailableError:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what is under way, end every watch, and let go of the file."""
        if self._is_closed:
            return
        self._call_writer()
        self._is_closed = True
        self.journal.close()
        if self._probing is not None:
            self._probing.cancel()
        # The thread hands its outcomes to the loop, so the loop must not wait for it itself.
        await asyncio.to_thread(self._writer.stop)
        if self._latest is not None:
            await self._latest.outcome
        self._hub.close()
        await asyncio.to_thread(self.archive.close)
        self._witness.close()
        self._lock.release()

    @property
    def trouble(self) -> str:
        """Why nothing can be written; empty when the last write worked."""
        if not self._trouble:
            try:
                self._presence.check()
            except FilesGoneError as error:
                return str(error)
        return self._trouble

    async def back_up(self, target: Path) -> None:
        """Write a copy, as everything is at one moment, while writes go on.

        It also works when the files were deleted: the writer still has them open, and is idle.

        Raises:
            UnavailableError: It could not be written.
        """
        source = None
        try:
            self._presence.check()
        except FilesGoneError:
            source = self._connection
        await asyncio.to_thread(back_up, self._path, target, source)

    async def prune(self, ids: Sequence[str]) -> None:
        """Keep these no longer in the archive.

        Raises:
            UnavailableError: That could not be written.
        """
        if self._is_closed:
            raise UnavailableError("the store is closed")
        with self._handing:
            batch = self._open or self._open_batch()
            batch.pruned.extend(ids)
        error = await batch.outcome
        if error is not None:
            raise UnavailableError(f"the write was not made durable: {error}") from error

    async def settled(self) -> None:
        """Write down that nothing is left of what the store knew before it was put back.

        Raises:
            UnavailableError: That could not be written.
        """
        if self._is_closed:
            raise UnavailableError("the store is closed")
        with self._handing:
            batch = self._open or self._open_batch()
            batch.settles = True
        error = await batch.outcome
        if error is not None:
            raise UnavailableError(f"the write was not made durable: {error}") from error
        self.is_restored = False

    async def remember(self, fact: str) -> None:
        """Write a fact down, once and for all: `facts` has it, also after a restore of a backup.

        Raises:
            UnavailableError: That could not be written.
        """
        if self._is_closed:
            raise UnavailableError("the store is closed")
        with self._handing:
            batch = self._open or self._open_batch()
            batch.facts.append(fact)
        error = await batch.outcome
        if error is not None:
            raise UnavailableError(f"the write was not made durable: {error}") from error
        self.facts.add(fact)

    def _commit(self, change: Change) -> Outcome:
        if self._is_closed:
            raise UnavailableError("the store is closed")
        event = change.event
        row = (change.version, change.key[0], int(event.type is _DELETED), encode(event.resource))
        kept = None
        if event.type is _DELETED and event.resource is not None:
            kept = self.keeps(event.resource)
        self._pending[change.key] = change
        with self._handing:
            batch = self._open
            if batch is None:
                batch = self._open_batch()
            batch.changes.append(change)
            batch.rows.append(row)
            if kept is not None:
                batch.archived.append(kept)
        return batch.outcome

    def _open_batch(self) -> Batch:
        batch = self._open = self._latest = Batch(self._loop, self._era)
        if self._drops:
            batch.drops, self._drops = self._drops, []
            batch.floor = self._hub.floor
        self._writer.call()
        return batch

    def _call_writer(self) -> Outcome:
        """Have the writer come by even though there may be no write."""
        if self._is_closed:
            raise UnavailableError("the store is closed")
        with self._handing:
            return (self._open or self._open_batch()).outcome

    def _take(self) -> Batch | None:
        """Give the open batch to the writer; called on its thread."""
        with self._handing:
            batch, self._open = self._open, None
        if batch is not None:
            batch.journal = self.journal.take()
        return batch

    def _attest(self, batch: Batch) -> None:
        """Tell the witness what is durable now; called on the writer's thread."""
        if not batch.changes and batch.journal is None:
            # Nothing was written, and so perhaps nothing synced since the file was opened.
            return
        version, journal = self._attested
        if batch.changes:
            version = batch.changes[-1].version
        if batch.journal is not None:
            journal = -batch.journal.row[0]
        self._attested = (version, journal)
        self._witness.tell(version, journal, self._now())

    def _finish(self, batch: Batch) -> None:
        """Acknowledge what the writer has made durable, or take it all back."""
        if batch.error is None:
            self._acknowledge_batch(batch)
        else:
            self._take_back(batch)
        self._note_trouble(batch)
        batch.outcome.set_result(batch.error)

    def _note_trouble(self, batch: Batch) -> None:
        """Remember why writing fails, and try again now and then until it works."""
        if batch.error is not None:
            if not self._trouble:
                self._trouble = str(batch.error)
                logger.error("nothing can be written: %s", self._trouble)
            if self._probing is None and not self._is_closed:
                self._probing = self._loop.call_later(_PROBE_S, self._probe)
        elif self._trouble and batch.writes:
            self._trouble = ""
            logger.info("writing works again")

    def _probe(self) -> Outcome | None:
        """Write something, unless that has worked meanwhile."""
        self._probing = None
        if not self._trouble or self._is_closed:
            return None
        with self._handing:
            batch = self._open or self._open_batch()
            batch.probes = True
        return batch.outcome

    def _acknowledge_batch(self, batch: Batch) -> None:
        if not batch.changes:
            return
        pending = self._pending
        for change in batch.changes:
            if pending.get(change.key) is change:
                del pending[change.key]
        self._forget(self._acknowledge(batch.changes))

    def _take_back(self, batch: Batch) -> None:
        """Forget every decision that is not durable: later ones may build on those that failed."""
        self._drops.extend(batch.drops)
        if batch.journal is not None:
            self.journal.give_back(batch.journal)
        if batch.era != self._era:
            return
        self._era += 1
        self._pending.clear()
        with self._handing:
            late, self._open = self._open, None
        if late is not None:
            late.error = batch.error
            self._drops.extend(late.drops)
            late.outcome.set_result(late.error)
        if self._gate is not None:
            self._gate.begin(self._shelves.all())

    def _forget(self, changes: Sequence[Change]) -> None:
        """Have the versions dropped that were kept for these changes alone."""
        for change in changes:
            self._drops.extend(unneeded(change))

    def _under_way(self) -> Outcome | None:
        return None if self._latest is None else self._latest.outcome
