"""How much of a machine this process may use: cores and memory, by affinity and cgroups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_MIB = 1 << 20


class MachineSize(Struct, frozen=True):
    """What there is of a machine for this process and what it starts."""

    #: In thousandths of a core.
    cpu_milli: int
    #: In whole MiB.
    memory_mib: int


def machine_size(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> MachineSize:
    """Find out how much this process may use; what cannot be read limits nothing."""
    paths = _paths(proc)
    cpu = min([_cores() * 1000, *_cpu_limits(cgroups, paths)])
    memory = min([_memory(proc), *_memory_limits(cgroups, paths)])
    return MachineSize(max(1, cpu), max(1, memory // _MIB))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory(proc: Path) -> int:
    for line in _read(proc / "meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal" and rest.split()[:1]:
            return int(rest.split()[0]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _paths(proc: Path) -> Mapping[str, str]:
    """Where this process is in each hierarchy, by controller; that of cgroup v2 has no name."""
    found: dict[str, str] = {}
    for line in _read(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _cpu_limits(cgroups: Path, paths: Mapping[str, str]) -> Iterator[int]:
    for group in _upward(cgroups, paths.get("")):
        quota, _, period = _read(group / "cpu.max").partition(" ")
        yield from _share(quota, period)
    for group in _upward(cgroups / "cpu", paths.get("cpu")):
        quota, period = _read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")
        yield from _share(quota, period)


def _share(quota: str, period: str) -> Iterator[int]:
    """So much time in such a time, in thousandths of a core; "max" and -1 are no limit."""
    if _is_number(quota) and _is_number(period) and int(period):
        yield int(quota) * 1000 // int(period)


def _memory_limits(cgroups: Path, paths: Mapping[str, str]) -> Iterator[int]:
    for group in _upward(cgroups, paths.get("")):
        yield from _bytes(group / "memory.max")
    for group in _upward(cgroups / "memory", paths.get("memory")):
        yield from _bytes(group / "memory.limit_in_bytes")


def _bytes(file: Path) -> Iterator[int]:
    text = _read(file)
    if _is_number(text):
        yield int(text)


def _upward(root: Path, path: str | None) -> Iterator[Path]:
    """A group and all above it, as far as they can be seen from here.

    In a container the path may be that of the host, and what is seen begins at the container's own
    group: those that are not there limit nothing, and the root is looked at in any case.
    """
    if path is None:
        return
    group = root / path.strip("/")
    if ".." in group.parts:
        group = root
    while group != root and root in group.parents:
        yield group
        group = group.parent
    yield root


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
