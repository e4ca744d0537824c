"""How much of a machine there is, read from trees as Linux has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from interlock.modes.machine_size import machine_size

MEMINFO = {"proc/meminfo": "MemTotal:       24684000 kB\nMemFree: 1 kB\n"}
ALL_OF_IT = 24684000 // 1024


def tree(place: Path, files: Mapping[str, str]) -> tuple[Path, Path]:
    for name, text in {**MEMINFO, **files}.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return place / "proc", place / "cgroups"


V2 = {"proc/self/cgroup": "0::/a.slice/b.service\n"}
V1 = {"proc/self/cgroup": "4:memory:/box\n2:cpu,cpuacct:/box\n0::/\n"}


@pytest.mark.parametrize(
    ("files", "mib"),
    [
        pytest.param({}, ALL_OF_IT, id="nothing is said of groups"),
        pytest.param(V2, ALL_OF_IT, id="groups that cannot be seen"),
        pytest.param(
            V2 | {"cgroups/a.slice/b.service/memory.max": "max\n"}, ALL_OF_IT, id="no limit"
        ),
        pytest.param(
            V2 | {"cgroups/a.slice/b.service/memory.max": "2147483648\n"}, 2048, id="its own"
        ),
        pytest.param(
            V2
            | {
                "cgroups/a.slice/b.service/memory.max": "2147483648",
                "cgroups/a.slice/memory.max": "1073741824",
            },
            1024,
            id="that of a group above",
        ),
        pytest.param(V2 | {"cgroups/memory.max": "536870912"}, 512, id="in a container"),
        pytest.param(
            V1 | {"cgroups/memory/box/memory.limit_in_bytes": "1073741824"}, 1024, id="v1"
        ),
        pytest.param(
            V1 | {"cgroups/memory/memory.limit_in_bytes": "9223372036854771712"},
            ALL_OF_IT,
            id="v1 without a limit",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/../x\n", "x/memory.max": "1"}, ALL_OF_IT, id="outside"
        ),
    ],
)
def test_memory(files: Mapping[str, str], mib: int, tmp_path: Path) -> None:
    assert machine_size(*tree(tmp_path, files)).memory_mib == mib


@pytest.mark.parametrize(
    ("files", "milli"),
    [
        pytest.param({}, None, id="nothing is said of groups"),
        pytest.param(V2 | {"cgroups/a.slice/b.service/cpu.max": "max 100000"}, None, id="no limit"),
        pytest.param(V2 | {"cgroups/a.slice/b.service/cpu.max": "50000 100000"}, 500, id="half"),
        pytest.param(V2 | {"cgroups/cpu.max": "10 100000"}, 1, id="next to nothing"),
        pytest.param(
            V1
            | {
                "cgroups/cpu/box/cpu.cfs_quota_us": "75000",
                "cgroups/cpu/box/cpu.cfs_period_us": "100000",
            },
            750,
            id="v1",
        ),
        pytest.param(V1 | {"cgroups/cpu/box/cpu.cfs_quota_us": "-1"}, None, id="v1, no limit"),
    ],
)
def test_cores(files: Mapping[str, str], milli: int | None, tmp_path: Path) -> None:
    found = machine_size(*tree(tmp_path, files)).cpu_milli
    assert found == (len(os.sched_getaffinity(0)) * 1000 if milli is None else milli)


def test_a_process_bound_to_one_core_has_one(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert machine_size(*tree(tmp_path, {})).cpu_milli == 1000
    finally:
        os.sched_setaffinity(0, allowed)


def test_this_machine_has_some_of_both() -> None:
    size = machine_size()
    assert size.cpu_milli > 0
    assert size.memory_mib > 1
