"""Process trees: who belongs to which task, and whether anything of it still lives.

The keeper is the subreaper of its tasks: whatever a task leaves behind becomes the keeper's child.
So when the main process is reaped, all that is left of its task is below children of the keeper
that are not main processes; each is given to its task by its mark, its cgroup, its session or its
environment. Where there are no cgroups, one that took off the other three on purpose is given to
none, and its task is over without it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from msgspec import Struct

from interlock.runtimes.keeper import kernel
from interlock.runtimes.keeper.cgroups import Cgroups
from interlock.runtimes.keeper.environment import TASK_VARIABLE

#: A process that forks while it is being killed is looked for again this often.
_ROUNDS = 20


class Exit(Struct, frozen=True):
    """How a process ended: one of the two is set."""

    exit_code: int | None
    signal: int | None


class ProcessTree:
    """The keeper's children: the main processes of tasks, and the orphans they left."""

    def __init__(
        self,
        base: int,
        cgroups: Cgroups,
        serial_of: Callable[[str], int | None],
        helpers: set[int],
    ) -> None:
        self._base = base
        self._cgroups = cgroups
        #: The children that belong to no task; those that ended are taken out.
        self._helpers = helpers
        #: Has processes that are being started say who they are.
        self.identify: Callable[[], None] = lambda: None
        #: The serial number of a task by the text of its identity.
        self._serial_of = serial_of
        self._children = kernel.OwnChildren()
        self._mains: dict[int, int] = {}
        self._orphans: dict[int, int] = {}
        #: What is left of each task, by its serial number.
        self._left: dict[int, set[int]] = {}
        #: How the main process ended, for tasks of which something is left.
        self._exits: dict[int, Exit] = {}
        #: Tasks that a killed keeper started: their processes are not our children.
        self._adopted: dict[int, int | None] = {}

    def add(self, serial: int, pid: int) -> None:
        """A process is to become a task."""
        self._mains[pid] = serial
        self._left[serial] = {pid}

    def adopt(self, serial: int, pid: int | None) -> None:
        """A task was found that a killed keeper had started."""
        self._adopted[serial] = pid

    def drop(self, serial: int) -> None:
        """An adopted task is proven gone."""
        self._adopted.pop(serial, None)

    @property
    def running(self) -> list[int]:
        """The tasks of which something may live."""
        return [*self._left, *self._adopted]

    def reap(self) -> tuple[dict[int, Exit], dict[int, Exit]]:
        """Take in every child that ended.

        Returns the tasks of which nothing is left, and those of which something is left without
        their main process; each with the exit of its main process.
        """
        touched: set[int] = set()
        while (ended := _reap_one()) is not None:
            pid, how = ended
            if pid in self._helpers:
                self._helpers.discard(pid)
                continue
            if pid not in self._mains and pid not in self._orphans:
                self.identify()
            serial = self._mains.pop(pid, None)
            if serial is not None:
                self._exits[serial] = how
            else:
                serial = self._orphans.pop(pid, None)
            if serial is not None:
                self._left[serial].discard(pid)
                touched.add(serial)
        if not touched:
            return {}, {}
        self._find_orphans()
        return self._sort(touched)

    def left(self, serial: int) -> set[int]:
        """The processes of a task that are our own children, and end before our eyes."""
        return self._left.get(serial, set())

    def living(self, serial: int) -> list[int]:
        """Every process of a task, its escapees and their children included."""
        if serial in self._adopted:
            main = self._adopted[serial]
            roots = kernel.marked(self._base).get(serial, []) + ([] if main is None else [main])
        else:
            self._find_orphans()
            roots = list(self._left.get(serial, ()))
        roots += self._cgroups.members(serial)
        found = []
        for pid in kernel.descendants_of(roots):
            stat = kernel.stat_of(pid)
            if stat is not None and not stat.is_dead:
                found.append(pid)
        return found

    def signal(self, serial: int, number: signal.Signals) -> None:
        """Send a signal to every process of a task; SIGKILL until no new one turns up."""
        if number is signal.SIGKILL:
            self._cgroups.kill(serial)
        seen: set[int] = set()
        for _ in range(_ROUNDS):
            fresh = [pid for pid in self.living(serial) if pid not in seen]
            if not fresh:
                return
            for pid in fresh:
                _kill(pid, number)
            seen.update(fresh)
            if number is not signal.SIGKILL:
                return

    def _sort(self, touched: set[int]) -> tuple[dict[int, Exit], dict[int, Exit]]:
        over: dict[int, Exit] = {}
        outlived: dict[int, Exit] = {}
        for serial in touched:
            how = self._exits.get(serial)
            if how is None:
                continue
            if not self._left[serial]:
                over[serial] = how
                del self._exits[serial], self._left[serial]
            else:
                outlived[serial] = how
        return over, outlived

    def _find_orphans(self) -> None:
        # A child that is known stays in the list until it is reaped, and then is known no more.
        known = len(self._mains) + len(self._orphans) + len(self._helpers)
        children = self._children.read(known)
        if not children:
            return
        self.identify()
        for pid in children:
            if pid in self._mains or pid in self._orphans or pid in self._helpers:
                continue
            serial = self._owner_of(pid)
            if serial is not None:
                self._orphans[pid] = serial
                self._left[serial].add(pid)

    def _owner_of(self, pid: int) -> int | None:
        """The task of an orphan: by its mark, its cgroup, its session, or its environment."""
        for mark in (kernel.mark_of(pid), self._cgroups.serial_of(pid)):
            if mark is not None and mark in self._left:
                return mark
        stat = kernel.stat_of(pid)
        if stat is not None and stat.session in self._mains:
            return self._mains[stat.session]
        named = kernel.variable_of(pid, TASK_VARIABLE)
        serial = None if named is None else self._serial_of(named)
        return serial if serial in self._left else None


def _reap_one() -> tuple[int, Exit] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    if pid == 0:
        return None
    if os.WIFSIGNALED(status):
        return pid, Exit(None, os.WTERMSIG(status))
    return pid, Exit(os.WEXITSTATUS(status), None)


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
        if number is signal.SIGTERM:
            # One that is stopped would not see the signal before it is continued.
            os.kill(pid, signal.SIGCONT)
    except (ProcessLookupError, PermissionError):
        return
