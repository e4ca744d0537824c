"""The keeper's loop: requests in, facts to the journal, processes started, stopped and reaped.

Every turn does the same things in the same order: take in what happened, start what may be
started, write, have it synced, and only then tell.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from functools import partial
from pathlib import Path

from interlock.private_files import NotPrivateError
from interlock.resources.tasks import ReportState
from interlock.runtimes.keeper import kernel, recovery
from interlock.runtimes.keeper.cgroups import Cgroups
from interlock.runtimes.keeper.connections import Connections
from interlock.runtimes.keeper.draining import Drain
from interlock.runtimes.keeper.journal import Journal
from interlock.runtimes.keeper.ledger import Ledger, report_of
from interlock.runtimes.keeper.moments import monotonic, wall_clock
from interlock.runtimes.keeper.output import Outputs
from interlock.runtimes.keeper.own_log import redirect_output
from interlock.runtimes.keeper.probing import Probing
from interlock.runtimes.keeper.process_tree import ProcessTree
from interlock.runtimes.keeper.protocol import (
    JOURNAL_NAME,
    KEEPER_LOG_NAME,
    SOCKET_NAME,
    batches,
)
from interlock.runtimes.keeper.records import (
    Booted,
    Entry,
    Founded,
    MainEnded,
    Over,
    Record,
    Started,
)
from interlock.runtimes.keeper.requests import Requests
from interlock.runtimes.keeper.spawn import Launcher, start_of
from interlock.runtimes.keeper.starting import Starter
from interlock.runtimes.keeper.timers import Timers

#: A keeper without tasks waits this long for a server to come back.
LINGER_S = 60.0
_RETRY_S = 1.0
_LOOK_S = 1.0
#: After SIGKILL, look again for processes that were born meanwhile.
_KILL_AGAIN_S = 0.1
#: With more attempts open than this, starts are told a little later.
_FEW = 3
_TELL_STARTS_S = 0.05
_REWRITE_ABOVE = 4 << 20


class Keeper:
    """All of the keeper that is not a file, a process or a socket."""

    def __init__(self, data_dir: Path, lock: int, linger_s: float = LINGER_S) -> None:
        self._data_dir = data_dir
        self._place = str(data_dir)
        self._linger_s = linger_s
        self._poll = select.epoll()
        self._timers = Timers()
        self.journal = Journal(data_dir / JOURNAL_NAME)
        self.ledger = Ledger()
        for record in self.journal.read():
            self.ledger.apply(record)
        self._found()
        #: The children that are no tasks.
        helpers: set[int] = set()
        self._launcher = Launcher(self._poll, lock, self._cgroups.place, helpers)
        self.family = ProcessTree(self.ledger.base, self._cgroups, self._serial_of, helpers)
        outputs = self._outputs = Outputs(self._place)
        drain = outputs.drain = self._drain = Drain(
            self._poll, self._timers, self._place, helpers, outputs.drained, outputs.tell_all
        )
        self._probing = Probing(self._poll, self._timers, helpers, self._turned)
        self.starter = Starter(
            data_dir,
            self._launcher,
            self.journal,
            self.ledger,
            self.family,
            self._outputs,
            self._started,
            self.finish,
        )
        self.family.identify = self.starter.identify
        self._news: dict[int, Entry] = {}
        #: Starts that are not told yet.
        self._fresh: list[Entry] = []
        #: When a task that was told to stop gets SIGKILL, by serial number.
        self._kill_at: dict[int, float] = {}
        self._pidfds: dict[int, int] = {}
        self._retry_set = self._look_set = False
        self._idle_since = monotonic()
        self.leaving = False
        self._connections = Connections(data_dir, self._poll)
        self._requests = Requests(self, self._connections)
        self._log_moved = False
        self._signals = self._watch_signals()
        self._poll.register(self.journal.ready_fd, select.EPOLLIN)
        self._recover()
        # Not before: the pipes of tasks are open here when the logger before is killed.
        drain.begin()
        self._write()

    def run(self) -> None:
        """Serve until there is nothing left to keep."""
        while not self._is_over():
            events = self._poll.poll(self._patience())
            for fd, what in events:
                if fd != self._signals.fileno():
                    self._handle(fd, what)
            # Last: what ended tells first, on its pipe, that it had begun.
            if any(fd == self._signals.fileno() for fd, _ in events):
                self._drain_signals()
                self._reap()
                self._reopen_log()
            self._timers.run_due()
            self.starter.start_some()
            self._write()
            self._publish()
            self._drain.flush()
            self._connections.flush()
        self._connections.close_all()
        self._launcher.close()
        self._drain.close()
        self._probing.close()
        self._cgroups.close()
        (self._data_dir / SOCKET_NAME).unlink(missing_ok=True)
        self.journal.close()

    # What the parts tell the loop.

    def changed(self, entry: Entry) -> None:
        """Something new can be told of an attempt."""
        self._news[entry.serial] = entry

    def _started(self, entry: Entry) -> None:
        """Tell of a start at once when few run; else a little later, unless it is over by then.

        Of many short tasks the end alone is told: half the messages, and half the writes of
        those who record them.
        """
        if entry.probe is not None and entry.state is ReportState.RUNNING:
            self._probe(entry)
        if len(self.ledger.open) <= _FEW:
            self.changed(entry)
            return
        if not self._fresh:
            self._timers.call_later(_TELL_STARTS_S, self._tell_starts)
        self._fresh.append(entry)

    def _tell_starts(self) -> None:
        for entry in self._fresh:
            if entry.serial in self.ledger.open:
                self.changed(entry)
        self._fresh.clear()

    def _probe(self, entry: Entry) -> None:
        """Have it looked at whether an attempt that runs can do its work."""
        if entry.order is None or entry.probe is None or entry.grace_s is not None:
            return
        ran_s = 0.0
        if entry.started_at is not None:
            ran_s = (wall_clock() - entry.started_at).total_seconds()
        start = start_of(
            entry.order,
            base=self.ledger.env,
            working_dir=self.ledger.working_dir,
            umask=self.ledger.umask,
            pipe="",
        )
        delay_s = entry.probe.initial_delay.total_seconds() - max(0.0, ran_s)
        self._probing.watch(entry.serial, start, entry.probe, entry.ready, delay_s)

    def _turned(self, serial: int, ready: bool, why_not: str) -> None:
        """An attempt became ready or is not, or it is known at last why it is not."""
        entry = self.ledger.open.get(serial)
        if entry is None:
            return
        if entry.ready is not ready:
            entry.ready, entry.ready_at = ready, wall_clock()
        entry.why_not = f"readiness probe: {why_not}" if why_not else ""
        self.changed(entry)

    def finish(self, over: Over) -> None:
        """An attempt is over; that is told once its output is complete, and it is durable."""
        self._kill_at.pop(over.serial, None)
        self._cgroups.remove(over.serial)
        task = self.ledger.by_serial[over.serial].task
        then = partial(self._outputs.end, task, partial(self._finish, over))
        self._probing.end(over.serial, then)

    def _finish(self, over: Over) -> None:
        entry = self.ledger.by_serial[over.serial]

        def then() -> None:
            self.ledger.apply(over)
            # Again: a stop may have been asked for until now.
            self._kill_at.pop(over.serial, None)
            self.changed(entry)

        self.journal.append(over, then)

    def stop(self, entry: Entry) -> None:
        """Send SIGTERM, and SIGKILL after the grace; a shorter grace moves that nearer."""
        if entry.serial not in self.ledger.open:
            self.changed(entry)
            return
        grace_s = entry.grace_s or 0.0
        due = monotonic() + grace_s
        known = self._kill_at.get(entry.serial)
        if known is not None and known <= due:
            return
        self._kill_at[entry.serial] = due
        self._probing.drop(entry.serial)
        if not self.starter.meet(entry.serial) and known is None and grace_s > 0:
            self.family.signal(entry.serial, signal.SIGTERM)
        self._timers.call_later(grace_s, partial(self._kill, entry.serial))

    # What happens.

    def _handle(self, fd: int, what: int) -> None:
        if self._launcher.knows(fd):
            self.starter.closed(fd)
        elif fd == self._launcher.door:
            if what & ~select.EPOLLOUT:
                self.starter.lost_launcher()
            else:
                self.starter.has_room()
        elif fd == self._drain.door:
            self._drain.receive()
        elif fd == self._probing.door:
            self._probing.handle(what)
        elif fd == self._connections.listener.fileno():
            self._connections.accept()
        elif fd == self.journal.ready_fd:
            self.journal.settle()
        elif fd in self._pidfds:
            self._adopted_ended(fd)
        elif fd in self._connections.open and what & ~select.EPOLLOUT:
            self._connections.receive(fd, self._requests.handle)

    def _reap(self) -> None:
        over, outlived = self.family.reap()
        now = wall_clock()
        for serial, how in over.items():
            if not self.starter.reaped(serial, how):
                continue
            message = self._why(serial, how.signal)
            state = ReportState.ENDED
            self.finish(Over(serial, state, now, how.exit_code, how.signal, message))
        for serial, how in outlived.items():
            entry = self.ledger.by_serial[serial]
            if not entry.main_ended:
                self.starter.reaped(serial, how)
                self._keep(MainEnded(serial, how.exit_code, how.signal))
            left = self.family.left(serial)
            if entry.survivor not in left:
                # The oldest is told of, and another once that is gone: what is told of lives.
                entry.survivor = min(left)
                entry.message = "its main process ended; children of it still run"
                self.changed(entry)

    def _why(self, serial: int, number: int | None) -> str:
        if number is None:
            return ""
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        killed = number == signal.SIGKILL and self.ledger.by_serial[serial].grace_s is None
        return f"ended by {name}" + (" (out of memory, or killed from outside)" if killed else "")

    def _kill(self, serial: int) -> None:
        due = self._kill_at.get(serial)
        if due is None or due > monotonic() + 0.001:
            return
        self.starter.meet(serial)
        self.family.signal(serial, signal.SIGKILL)
        self._timers.call_later(_KILL_AGAIN_S, partial(self._kill, serial))

    # Writing and telling.

    def _write(self) -> None:
        self.journal.write()
        grown = self.journal.size > max(_REWRITE_ABOVE, 4 * self.journal.rewritten_size)
        if grown and not self.journal.is_syncing:
            self._rewrite()
        self.journal.sync(is_idle=self.starter.patience is None)
        if self.journal.is_stuck and not self._retry_set:
            self._retry_set = True
            self._timers.call_later(_RETRY_S, self._retry)

    def _retry(self) -> None:
        self._retry_set = False
        if self.journal.broken is not None and not self.journal.is_syncing:
            self._rewrite()

    def _rewrite(self) -> None:
        try:
            self.journal.rewrite(self.ledger.snapshot())
        except OSError:
            # The old file is in place; the next turn or the next retry tries again.
            self.journal.rewritten_size = self.journal.size

    def _publish(self) -> None:
        if (self._outputs or self.starter.is_starting) and not self._look_set:
            self._look_set = True
            self._timers.call_later(_LOOK_S, self._look)
        if not self._news:
            return
        reports = tuple(map(report_of, self._news.values()))
        self._news.clear()
        servers = [c for c in self._connections.open.values() if c.term is not None]
        for told in batches(reports, 0) if servers else ():
            for connection in servers:
                if not connection.fenced:
                    connection.send(told)

    def _look(self) -> None:
        began = monotonic()
        self._outputs.look(wall_clock(), began)
        self._note_start_times()
        self._cgroups.retry()
        self._probing.look()
        self.starter.look()
        # Thousands of tasks are looked at less often, so that looking stays a small part of it.
        pause = max(_LOOK_S, 20 * (monotonic() - began))
        self._look_set = bool(self._outputs) or self.starter.is_starting
        if self._look_set:
            self._timers.call_later(pause, self._look)

    def _note_start_times(self) -> None:
        for entry in self.ledger.open.values():
            if entry.pid is None or entry.ticks or entry.started_at is None:
                continue
            stat = kernel.stat_of(entry.pid)
            if stat is not None:
                self._keep(Started(entry.serial, entry.pid, stat.ticks, entry.started_at))

    # Beginning and end.

    def _found(self) -> None:
        if not self.ledger.base:
            base = int.from_bytes(os.urandom(4), "big") >> 1 | 1
            self._keep(Founded(base, base << 32))
        self._cgroups = Cgroups(self._data_dir, self.ledger.base)
        self._cgroups.make_place()
        if self.ledger.boot_id == kernel.boot_id():
            # Another keeper was here, and may have been started in another cgroup.
            self._cgroups.find_places()
        self._findings = recovery.find_out(
            self.ledger,
            boot_id=kernel.boot_id(),
            marked=self._members() if self.ledger.open else {},
            stat_of=kernel.stat_of,
            now=wall_clock(),
        )
        self._keep(Booted(kernel.boot_id()))

    def _members(self) -> dict[int, list[int]]:
        """The living processes of every task, by their marks and their cgroups."""
        found = kernel.marked(self.ledger.base)
        for serial, pids in self._cgroups.all_members().items():
            known = found.setdefault(serial, [])
            known += [pid for pid in pids if pid not in known]
        return found

    def _keep(self, record: Record) -> None:
        self.ledger.apply(record)
        self.journal.append(record)

    def _recover(self) -> None:
        for record in self._findings.records:
            if isinstance(record, Over):
                # What it printed last may still be in its pipe.
                self._outputs.adopt(self.ledger.by_serial[record.serial].task)
                self.finish(record)
            else:
                self._keep(record)
        self._cgroups.tidy(self.ledger.open)
        for serial in self._findings.to_start:
            self.starter.add(serial)
        for serial in self._findings.adopted:
            entry = self.ledger.by_serial[serial]
            entry.message = recovery.ADOPTED
            entry.ready = entry.ready_at = None
            self.family.adopt(serial, entry.pid)
            self._outputs.adopt(entry.task)
            self._watch_adopted(serial)
            if entry.grace_s is not None and serial in self.ledger.open:
                self.stop(entry)
            elif serial in self.ledger.open:
                self._probe(entry)

    def _watch_adopted(self, serial: int) -> None:
        """Wait for any process of the task; it is over when two looks find none."""
        entry = self.ledger.by_serial[serial]
        for _ in range(2):
            # The main process first: while it lives it is the one to be told of.
            for pid in sorted(self._survivors_of(entry), key=lambda pid: (pid != entry.pid, pid)):
                try:
                    fd = os.pidfd_open(pid)
                except OSError:
                    continue
                self._pidfds[fd] = serial
                self._poll.register(fd, select.EPOLLIN)
                entry.survivor = None if pid == entry.pid else pid
                self.changed(entry)
                return
        self.family.drop(serial)
        self.finish(recovery.gone(entry, wall_clock()))

    def _survivors_of(self, entry: Entry) -> list[int]:
        # By its cgroup first: looking for marks means to look at all processes there are.
        return self._cgroups.members(entry.serial) or recovery.survivors_of(
            entry, kernel.marked(self.ledger.base), kernel.stat_of
        )

    def _adopted_ended(self, fd: int) -> None:
        serial = self._pidfds.pop(fd)
        self._poll.unregister(fd)
        os.close(fd)
        self._watch_adopted(serial)

    def _serial_of(self, task: str) -> int | None:
        for serial, entry in self.ledger.open.items():
            if str(entry.task) == task:
                return serial
        return None

    def _watch_signals(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self._signals_in = theirs
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "leaving", True))
        signal.signal(signal.SIGHUP, lambda *_: setattr(self, "_log_moved", True))
        for ignored in (signal.SIGINT, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        self._poll.register(ours.fileno(), select.EPOLLIN)
        return ours

    def _drain_signals(self) -> None:
        try:
            while len(self._signals.recv(4096)) == 4096:
                pass
        except BlockingIOError:
            return

    def _reopen_log(self) -> None:
        if self._log_moved:
            self._log_moved = False
            # Without a new file the old one is written on: it is a log, and no reason to end.
            with contextlib.suppress(OSError, NotPrivateError):
                redirect_output(self._data_dir / KEEPER_LOG_NAME)

    def _is_over(self) -> bool:
        if self.ledger.open or not self.journal.is_quiet:
            self._idle_since = monotonic()
            return False
        if self._connections.open:
            self._idle_since = monotonic()
            return False
        return self.leaving or monotonic() - self._idle_since >= self._linger_s

    def _patience(self) -> float | None:
        waits = [self._timers.patience(), self.starter.patience]
        if not self._connections.open and not self.ledger.open:
            waits.append(max(0.0, self._idle_since + self._linger_s - monotonic()))
        return min((wait for wait in waits if wait is not None), default=None)
