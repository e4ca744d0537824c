"""Facts from /proc: who lives, whose child it is, and which mark it carries.

The mark of a task is its soft limit for file locks (`RLIMIT_LOCKS`). Linux has not looked at
that limit since 2.4.25, but every process still hands it down to its children, through `setsid`,
double forks, `env -i`, closed descriptors and set-user-id programs alike. It costs one system
call per start and works everywhere; one that takes it off on purpose is known by its cgroup, where
there are any (`cgroups`).
"""

from __future__ import annotations

import ctypes
import os
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_FALLOC_KEEP_SIZE_AND_PUNCH_HOLE = 0x01 | 0x02
_PF_FORKNOEXEC = 0x40
_libc = ctypes.CDLL(None, use_errno=True)


class Stat(NamedTuple):
    """The part of /proc/PID/stat that says whose process it is."""

    state: str
    parent: int
    group: int
    session: int
    #: When it started, in clock ticks since boot: with the pid it is unique in one boot.
    ticks: int
    flags: int = 0

    @property
    def is_dead(self) -> bool:
        """Whether it ended, and only waits to be reaped."""
        return self.state in ("Z", "X", "x")

    @property
    def is_copy(self) -> bool:
        """Whether it never began a program of its own since it was forked."""
        return bool(self.flags & _PF_FORKNOEXEC)


def boot_id() -> str:
    """Which boot of the machine this is."""
    return read_file("/proc/sys/kernel/random/boot_id").decode("ascii").strip()


def become_subreaper() -> None:
    """Have every orphan among our descendants become our child, so that none escapes."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def punch_hole(fd: int, length: int) -> None:
    """Give the first bytes of a file back to the disk; all offsets stay as they are."""
    flags = _FALLOC_KEEP_SIZE_AND_PUNCH_HOLE
    if _libc.fallocate(fd, flags, ctypes.c_int64(0), ctypes.c_int64(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def mark_of(pid: int) -> int | None:
    """The mark a process wears; None without one, and when there is no such process."""
    limits = read_file(f"/proc/{pid}/limits")
    at = limits.find(b"Max file locks")
    words = limits[at + 14 : at + 60].split() if at >= 0 else []
    return int(words[0]) if words and words[0].isdigit() else None


def variable_of(pid: int, name: str) -> str | None:
    """A variable of the environment a process was started with."""
    prefix = name.encode() + b"="
    for line in read_file(f"/proc/{pid}/environ").split(b"\0"):
        if line.startswith(prefix):
            return line[len(prefix) :].decode("utf-8", "replace")
    return None


def stat_of(pid: int) -> Stat | None:
    """Whose process it is; None when there is none."""
    text = read_file(f"/proc/{pid}/stat")
    # The name is in parentheses and may hold anything, so count from the last one.
    words = text[text.rfind(b")") + 2 :].split()
    if len(words) < 20:
        return None
    parent, group, session, flags = (int(words[at]) for at in (1, 2, 3, 6))
    return Stat(words[0].decode(), parent, group, session, int(words[19]), flags)


def children_of(pid: int) -> list[int]:
    """The direct children of a process, those of all its threads, ended ones included."""
    try:
        threads = [entry.name for entry in os.scandir(f"/proc/{pid}/task")]
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        found += map(int, read_file(f"/proc/{pid}/task/{thread}/children").split())
    if not found and not HAS_CHILDREN_FILE:
        found = [other for other in processes() if (s := stat_of(other)) and s.parent == pid]
    return found


class OwnChildren:
    """The children of this process, read from a file that stays open: it is looked at often.

    Only the main thread starts processes, and orphans go to the first thread that lives, so the
    children of the main thread are all there are. None goes from the list before it is reaped.
    """

    def __init__(self) -> None:
        self._fd = -1
        if HAS_CHILDREN_FILE:
            path = f"/proc/self/task/{os.getpid()}/children"
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, known: int = -1) -> list[int]:
        """All of them, ended ones included; none when there are just as many as are known."""
        if self._fd < 0:
            return children_of(os.getpid())
        parts = []
        at = 0
        while part := os.pread(self._fd, 65536, at):
            parts.append(part)
            at += len(part)
        words = b"".join(parts).split()
        return [int(word) for word in words] if len(words) != known else []


def processes() -> list[int]:
    """Every process of the machine that we may see."""
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def marked(base: int) -> dict[int, list[int]]:
    """The living processes by their mark, for all marks of one data directory."""
    found: dict[int, list[int]] = {}
    for pid in processes():
        mark = mark_of(pid)
        if mark is None or mark >> 32 != base or pid == os.getpid():
            continue
        stat = stat_of(pid)
        if stat is not None and not stat.is_dead:
            found.setdefault(mark, []).append(pid)
    return found


def descendants_of(roots: list[int]) -> list[int]:
    """The roots and everything below them, parents first."""
    found = list(dict.fromkeys(roots))
    seen = set(found)
    for pid in found:
        below = [child for child in children_of(pid) if child not in seen]
        seen.update(below)
        found += below
    return found


def read_file(path: str) -> bytes:
    """What a file of the kernel's says; nothing when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


#: Some kernels are built without it; then all processes are looked at instead.
HAS_CHILDREN_FILE = os.access(f"/proc/self/task/{os.getpid()}/children", os.R_OK)
