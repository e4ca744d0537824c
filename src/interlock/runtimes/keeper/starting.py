"""Which attempts are to be started next, and what is done when that fails."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from interlock.resources.tasks import ReportState, TaskId
from interlock.runtimes.keeper.environment import NotStartedError
from interlock.runtimes.keeper.family import Family
from interlock.runtimes.keeper.journal import Journal
from interlock.runtimes.keeper.ledger import Ledger
from interlock.runtimes.keeper.moments import monotonic, wall_clock
from interlock.runtimes.keeper.output import Outputs, log_name
from interlock.runtimes.keeper.records import Entry, Over, Spawning, Started
from interlock.runtimes.keeper.spawn import ShortageError, start

#: So many are started before the loop looks at other things again.
_AT_ONCE = 8
#: A machine that is short of processes or memory is tried again this often, for this long.
_SHORTAGE_PAUSE_S = 0.5
_SHORTAGE_LIMIT_S = 60.0


class Starter:
    """The queue of attempts whose intents are durable."""

    def __init__(
        self,
        data_dir: Path,
        journal: Journal,
        ledger: Ledger,
        family: Family,
        outputs: Outputs,
        changed: Callable[[Entry], None],
        finish: Callable[[Over], None],
    ) -> None:
        self._place = str(data_dir)
        self._journal = journal
        self._ledger = ledger
        self._family = family
        self._outputs = outputs
        self._changed = changed
        self._finish = finish
        self._queue: deque[int] = deque()
        self._shortages: dict[int, float] = {}
        self._paused_until = 0.0
        #: A stop of these is being made durable: they are not started meanwhile.
        self.held: set[TaskId] = set()

    def add(self, serial: int) -> None:
        """An attempt is to be started."""
        self._queue.append(serial)

    @property
    def patience(self) -> float | None:
        """How long until something can be started; None when nothing waits."""
        return max(0.0, self._paused_until - monotonic()) if self._queue else None

    def start_some(self) -> None:
        """Start the next few, after writing down that they may run from here on."""
        if not self._queue or monotonic() < self._paused_until:
            return
        batch = self._next_batch()
        if not batch:
            return
        spawning = Spawning(tuple(entry.serial for entry in batch))
        failed: list[OSError] = []
        self._journal.append(spawning, failed=failed.append)
        if not self._journal.write():
            self._queue.extendleft(entry.serial for entry in reversed(batch))
            self._paused_until = monotonic() + _SHORTAGE_PAUSE_S
            return
        self._ledger.apply(spawning)
        for entry in batch:
            self._start(entry)
        # No directory is kept busy by a keeper that only waits.
        os.chdir("/")

    def _next_batch(self) -> list[Entry]:
        batch: list[Entry] = []
        for _ in range(min(_AT_ONCE, len(self._queue))):
            serial = self._queue.popleft()
            entry = self._ledger.open.get(serial)
            if entry is None:
                continue
            if entry.task in self.held:
                self._queue.append(serial)
            elif entry.grace_s is not None:
                # It was tried before, and stopped while the machine was short of room.
                self._not_started(entry, "it was stopped before it was started")
            else:
                batch.append(entry)
        return batch

    def _start(self, entry: Entry) -> None:
        assert entry.order is not None
        log = log_name(self._place, entry.task)
        at = wall_clock()
        try:
            pid = start(
                entry.order,
                entry.serial,
                base=self._ledger.env,
                working_dir=self._ledger.working_dir,
                log=log,
            )
        except NotStartedError as error:
            self._not_started(entry, str(error))
            return
        except ShortageError as error:
            self._postpone(entry, str(error))
            return
        self._family.add(entry.serial, pid)
        self._outputs.add(log)
        started = Started(entry.serial, pid, 0, at)
        # Not synced by itself: it outlives the keeper in the kernel's memory, and whatever takes
        # that memory takes the process too; the intent then says all that matters.
        self._journal.append(started)
        self._ledger.apply(started)
        self._changed(entry)

    def _postpone(self, entry: Entry, why: str) -> None:
        since = self._shortages.setdefault(entry.serial, monotonic())
        if monotonic() - since > _SHORTAGE_LIMIT_S:
            self._not_started(entry, f"the machine is short of room for it: {why}")
            return
        self._queue.append(entry.serial)
        self._paused_until = monotonic() + _SHORTAGE_PAUSE_S

    def _not_started(self, entry: Entry, message: str) -> None:
        self._shortages.pop(entry.serial, None)
        state = ReportState.NOT_STARTED
        self._finish(Over(entry.serial, state, wall_clock(), None, None, message))
