"""The start queue: which attempts are next, which are being started, and failed starts.

A start is handed over and never waited for. It is over when its pipe is closed: then it runs, or it
has told why not. Until then it is an attempt that is accepted, that can be stopped like one that
runs, and that holds up nobody.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable
from pathlib import Path

from interlock.resources.tasks import ReportState, TaskId
from interlock.runtimes.keeper import kernel
from interlock.runtimes.keeper.journal import Journal
from interlock.runtimes.keeper.launcher import SHORTAGES
from interlock.runtimes.keeper.ledger import Ledger
from interlock.runtimes.keeper.log_file import pipe_path
from interlock.runtimes.keeper.moments import monotonic, wall_clock
from interlock.runtimes.keeper.output import Outputs, log_name
from interlock.runtimes.keeper.process_tree import Exit, ProcessTree
from interlock.runtimes.keeper.records import Entry, Over, Spawning, Started
from interlock.runtimes.keeper.spawn import Launch, Launcher, ShortageError, start_of

#: So many are started before the loop looks at other things again.
_AT_ONCE = 8
#: A machine that is short of processes or memory is tried again this often, for this long.
_SHORTAGE_PAUSE_S = 0.5
_SHORTAGE_LIMIT_S = 60.0
#: What is told of a start that takes long, and after how long.
STILL_STARTING = "it is still being started, and waits for"
_LONG_S = 1.0


class Starter:
    """The queue of attempts whose intents are durable."""

    def __init__(
        self,
        data_dir: Path,
        launcher: Launcher,
        journal: Journal,
        ledger: Ledger,
        family: ProcessTree,
        outputs: Outputs,
        changed: Callable[[Entry], None],
        finish: Callable[[Over], None],
    ) -> None:
        self._place = str(data_dir)
        self._launcher = launcher
        self._journal = journal
        self._ledger = ledger
        self._family = family
        self._outputs = outputs
        self._changed = changed
        self._finish = finish
        self._queue: deque[int] = deque()
        self._shortages: dict[int, float] = {}
        self._paused_until = 0.0
        #: Whether the launcher takes no more at this moment.
        self._is_full = False
        #: Starts that failed, whose process is not reaped yet.
        self._failed: dict[int, Launch] = {}
        #: A stop of these is being made durable: they are not started meanwhile.
        self.held: set[TaskId] = set()

    def add(self, serial: int) -> None:
        """An attempt is to be started."""
        self._queue.append(serial)

    @property
    def patience(self) -> float | None:
        """How long until something can be started; None when nothing waits."""
        if not self._queue or self._is_full:
            return None
        return max(0.0, self._paused_until - monotonic())

    def start_some(self) -> None:
        """Start the next few, after writing down that they may run from here on."""
        if not self._queue or self._is_full or monotonic() < self._paused_until:
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
        batch = [entry for entry in batch if self._prepare(entry)]
        # Before they begin: what they print is then read, whatever becomes of the keeper.
        self._outputs.drain.flush()
        for at, entry in enumerate(batch):
            if not self._hand_over(entry):
                self._is_full = True
                self._queue.extendleft(left.serial for left in reversed(batch[at:]))
                return

    # What becomes of those that were handed over.

    def has_room(self) -> None:
        """The launcher takes orders again."""
        self._is_full = False
        self._launcher.has_room()

    def lost_launcher(self) -> None:
        """The launcher ended: another one is begun for the next start."""
        self._is_full = False
        self._launcher.lost()

    def closed(self, fd: int) -> None:
        """The pipe of a start is closed: its program begins, or it has ended."""
        launch = self._launcher.ended(fd)
        entry = self._ledger.open.get(launch.serial)
        if entry is not None and entry.grace_s is not None and launch.pid is not None:
            self._meet(entry, launch)
            stat = kernel.stat_of(launch.pid)
            if stat is not None and stat.is_copy:
                # The order to stop reached it before its program began: it is about to be reaped.
                return
        self._settle(launch)

    def _settle(self, launch: Launch) -> None:
        """It runs, or has told why not."""
        entry = self._ledger.open.get(launch.serial)
        if entry is None:
            return
        if launch.pid is None:
            # The program begins after its process has told its number: it did not begin.
            self._postpone(entry, launch.failed or "the launcher ended")
            return
        self._meet(entry, launch)
        if launch.failed:
            self._failed[entry.serial] = launch
            return
        started = Started(entry.serial, launch.pid, 0, wall_clock())
        entry.message = ""
        # Not synced by itself: it outlives the keeper in the kernel's memory, and whatever takes
        # that memory takes the process too; the intent then says all that matters.
        self._journal.append(started)
        self._ledger.apply(started)
        self._changed(entry)

    def identify(self) -> None:
        """A process ended that nobody knows: those that are being started say who they are."""
        for serial, launch in self._launcher.launches.items():
            if not launch.is_met:
                self.meet(serial)

    def meet(self, serial: int) -> bool:
        """Learn which process is that of an attempt that is being started, if it has one already.

        Returns whether that is news; one that is to stop was told so then.
        """
        launch = self._launcher.launches.get(serial)
        entry = self._ledger.open.get(serial)
        if launch is None or entry is None:
            return False
        launch.hear()
        return launch.pid is not None and self._meet(entry, launch)

    def reaped(self, serial: int, how: Exit) -> bool:
        """The process of an attempt ended; returns whether its program ever began.

        What it told last is in the pipe by now, whether that was seen to be closed or not.
        """
        if serial in self._launcher.launches:
            ended = self._launcher.settle(serial)
            stopped = self._ledger.by_serial[serial].grace_s is not None
            if ended.failed or how.signal is None or not stopped:
                self._settle(ended)
        launch = self._failed.pop(serial, None)
        if launch is None:
            return True
        entry = self._ledger.by_serial[serial]
        if launch.is_short and how.signal is None:
            self._postpone(entry, launch.failed)
        else:
            self._not_started(entry, launch.failed)
        return False

    def look(self) -> None:
        """Tell of starts that take long what they wait for."""
        for serial, launch in list(self._launcher.launches.items()):
            if monotonic() - launch.handed_at < _LONG_S:
                continue
            self.meet(serial)
            entry = self._ledger.open.get(serial)
            if entry is None or launch.pid is None:
                continue
            waits = launch.does or "its working directory or its program"
            message = f"{STILL_STARTING} {waits}"
            if message != entry.message:
                entry.message = message
                self._changed(entry)

    @property
    def is_starting(self) -> bool:
        """Whether anything was handed over and is not known to run."""
        return bool(self._launcher.launches)

    def _meet(self, entry: Entry, launch: Launch) -> bool:
        if launch.is_met or launch.pid is None:
            return False
        launch.is_met = True
        self._family.add(entry.serial, launch.pid)
        if entry.grace_s is not None:
            # It was stopped before it was known which process it is.
            self._family.signal(entry.serial, signal.SIGTERM)
        return True

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

    def _prepare(self, entry: Entry) -> bool:
        """Have a place for what an attempt prints; False when it cannot be started without."""
        try:
            self._outputs.prepare(entry.task)
        except OSError as error:
            why = f"its output: {os.strerror(error.errno or 0)}"
            (self._postpone if error.errno in SHORTAGES else self._not_started)(entry, why)
            return False
        return True

    def _hand_over(self, entry: Entry) -> bool:
        assert entry.order is not None
        start = start_of(
            entry.order,
            base=self._ledger.env,
            working_dir=self._ledger.working_dir,
            umask=self._ledger.umask,
            pipe=pipe_path(log_name(self._place, entry.task)),
        )
        try:
            if not self._launcher.hand_over(entry.serial, start):
                return False
        except ShortageError as error:
            self._postpone(entry, str(error))
            return True
        return True

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
