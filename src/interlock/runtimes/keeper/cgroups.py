"""Control groups: every descendant of a task is in its cgroup, whatever else it sheds.

Where the keeper may make cgroups (v2) below its own, each task begins in one of its own, and only
who may write cgroups can leave it: root, and the server's user in a tree that was delegated to it.
No controller is ever enabled, so nothing is limited or counted by it. Where they cannot be made,
the mark, the session and the environment of a process are all there is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from interlock.runtimes.keeper.kernel import read_file, stat_of


class NoCgroupsError(Exception):
    """Why no cgroups can be made."""


class Cgroups:
    """The cgroups of the tasks of one data directory, those of earlier keepers included."""

    def __init__(self, data_dir: Path, base: int) -> None:
        # A copy of a data directory has the same base, and tasks of its own.
        self._name = f"interlock-{base:08x}-{data_dir.stat().st_ino:x}"
        #: Where the cgroups of new tasks are made; empty where that cannot be.
        self.place = ""
        #: Directories with cgroups of our tasks: ours first, then those of earlier keepers.
        self._places: list[str] = []
        #: Cgroups that could not be removed yet: the kernel may still be busy with their dead.
        self._unremoved: set[str] = set()

    def make_place(self) -> None:
        """Make the directory for new tasks, and say in the log which way is in use."""
        try:
            self.place = _made(own_cgroup(), self._name)
            self._places = [self.place]
            _say(f"each task has a cgroup of its own, in {self.place}")
        except NoCgroupsError as error:
            _say(f"tasks are known by their marks, as they get no cgroups: {error}")

    def find_places(self) -> None:
        """Look for the cgroups of earlier keepers, wherever they were started."""
        with contextlib.suppress(NoCgroupsError):
            for place, below, _ in os.walk(_mount()[0]):
                if self._name in below:
                    below.remove(self._name)
                    found = f"{place}/{self._name}"
                    if found not in self._places:
                        self._places.append(found)

    def serial_of(self, pid: int) -> int | None:
        """In which task's cgroup, or a cgroup below it, a process is."""
        found = _path_of(pid).partition(f"/{self._name}/")[2].partition("/")[0]
        return _serial_of(found)

    def members(self, serial: int) -> list[int]:
        """The living processes in the cgroup of a task, and in those that it made itself."""
        return [pid for cgroup in self._cgroups_of(serial) for pid in _living_in(cgroup)]

    def all_members(self) -> dict[int, list[int]]:
        """The living processes of every task that has any."""
        serials = {serial for serial, _ in self._entries()}
        return {serial: pids for serial in serials if (pids := self.members(serial))}

    def kill(self, serial: int) -> None:
        """Kill all of a task at once, so that none can fork meanwhile; older kernels cannot."""
        for cgroup in self._cgroups_of(serial):
            _write(f"{cgroup}/cgroup.kill", b"1")

    def remove(self, serial: int) -> None:
        """A task is over: remove its cgroup, and those that it made itself."""
        name = _name_of(serial)
        for place in self._places:
            self._remove(f"{place}/{name}")

    def tidy(self, is_open: Collection[int] = ()) -> None:
        """Remove the cgroups of tasks that are over."""
        for serial, cgroup in list(self._entries()):
            if serial not in is_open and not _living_in(cgroup):
                self._remove(cgroup)

    def retry(self) -> None:
        """Remove what could not be removed before."""
        for cgroup in tuple(self._unremoved):
            self._remove(cgroup)

    def close(self) -> None:
        """Leave nothing behind that is empty."""
        self.tidy()
        for place in self._places:
            with contextlib.suppress(OSError):
                Path(place).rmdir()

    def _cgroups_of(self, serial: int) -> Iterator[str]:
        for place in self._places:
            cgroup = f"{place}/{_name_of(serial)}"
            try:
                has_below = os.stat(cgroup).st_nlink > 2  # noqa: PTH116  For every stop.
            except OSError:
                continue
            yield cgroup
            if has_below:
                yield from (f"{at}/{name}" for at, below, _ in os.walk(cgroup) for name in below)

    def _entries(self) -> Iterator[tuple[int, str]]:
        for place in self._places:
            with contextlib.suppress(OSError), os.scandir(place) as entries:
                for entry in entries:
                    serial = _serial_of(entry.name)
                    if serial is not None and entry.is_dir(follow_symlinks=False):
                        yield serial, entry.path

    def _remove(self, cgroup: str) -> None:
        self._unremoved.discard(cgroup)
        try:
            os.rmdir(cgroup)  # noqa: PTH106  For every task.
        except OSError as error:
            if error.errno != errno.ENOENT:
                _remove_below(cgroup)
                self._unremoved.add(cgroup)


def can_make_cgroups() -> bool:
    """Whether a process like this one may make cgroups."""
    try:
        return os.access(own_cgroup(), os.W_OK)
    except NoCgroupsError:
        return False


def own_cgroup() -> str:
    """The directory of the cgroup that this process is in.

    Raises:
        NoCgroupsError: There is none to be seen.
    """
    mount, root = _mount()
    return f"{mount}{_path_of(os.getpid()).removeprefix(root)}".rstrip("/")


def _mount() -> tuple[str, str]:
    """Where that part of cgroup v2 is mounted that our own is in, and which part it is."""
    path = _path_of(os.getpid()) + "/"
    is_mounted = False
    for line in read_file("/proc/self/mountinfo").decode("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            is_mounted = True
            _, _, _, root, place = before.split()[:5]
            root = root.rstrip("/")
            if path.startswith(f"{root}/") and not path.startswith("/../"):
                return place, root
    raise NoCgroupsError(
        "that of the keeper is outside of what is mounted"
        if is_mounted
        else "cgroup v2 is not mounted"
    )


def _made(above: str, name: str) -> str:
    place = f"{above}/{name}"
    try:
        Path(place).mkdir(exist_ok=True)
    except OSError as error:
        raise NoCgroupsError(f"{above}: {os.strerror(error.errno or 0)}") from error
    kind = read_file(f"{place}/cgroup.type").strip()
    movable = all(os.access(f"{at}/cgroup.procs", os.W_OK) for at in (above, place))
    if kind != b"domain" or not movable:
        with contextlib.suppress(OSError):
            Path(place).rmdir()
        raise NoCgroupsError(f"{above}: processes cannot be put into cgroups below it")
    return place


def _path_of(pid: int) -> str:
    for line in read_file(f"/proc/{pid}/cgroup").decode("utf-8", "replace").splitlines():
        if line.startswith("0::"):
            return line[3:]
    return ""


def _living_in(cgroup: str) -> list[int]:
    pids = map(int, read_file(f"{cgroup}/cgroup.procs").split())
    # One that is outside of our pid namespace has the number 0.
    return [pid for pid in pids if pid and (stat := stat_of(pid)) and not stat.is_dead]


def _remove_below(cgroup: str) -> None:
    for found, _, _ in os.walk(cgroup, topdown=False):
        with contextlib.suppress(OSError):
            Path(found).rmdir()


def _write(path: str, data: bytes) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)


def _name_of(serial: int) -> str:
    return f"{serial:x}"


def _serial_of(name: str) -> int | None:
    try:
        return int(name, 16)
    except ValueError:
        return None


def _say(what: str) -> None:
    sys.stderr.write(what + "\n")
    sys.stderr.flush()
