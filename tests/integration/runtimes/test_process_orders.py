"""What an order says is what the process gets; what cannot be is told."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.private_files import check_directory
from interlock.resources.process import EnvFile, ProcessLimits
from interlock.resources.tasks import ReportState, TaskOrder, TaskReport
from interlock.resources.values.durations import parse_duration
from interlock.runtimes.keeper.output import logs_place
from interlock.runtimes.logs import LogReader
from interlock.testing.builders import with_process
from interlock.testing.runtime_contract import Exits, is_over
from support.workshop import ProcessShop

#: A program that has another user print, and prints what the log then says.
_PRINTS = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_process_orders import run, shell
script = "echo one > /dev/stdout; echo two >> /dev/stderr"
print(run(Path(sys.argv[1]), command=shell(script), user="nobody", working_dir="/")[1], end="")
"""


def run(place: Path, **order: Any) -> tuple[TaskReport, str]:
    """Run one order to its end; what became of it, and what it printed."""
    outcome: list[tuple[TaskReport, str]] = []

    async def scene(shop: ProcessShop) -> None:
        given: TaskOrder = with_process(shop.order(Exits()), **order)
        await shop.runtime.launch([given])
        told = await shop.until(is_over(given.id))
        pieces = [piece async for piece in LogReader(shop.data_dir).stream(given.id)]
        outcome.append((told[given.id], b"".join(pieces).decode()))

    ProcessShop.play(scene, place)  # type: ignore[arg-type]
    return outcome[0]


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


def test_output_and_errors_share_a_file_in_order(tmp_path: Path) -> None:
    _, said = run(tmp_path, command=shell("echo one; echo two >&2; echo three"))
    assert said == "one\ntwo\nthree\n"


def test_variables_come_from_the_server_then_files_then_the_job(tmp_path: Path) -> None:
    (tmp_path / "first").write_text("# a comment\n\nA=file\nB='file'\nexport C=\"a b\"\n")
    (tmp_path / "second").write_text("B=second\n")
    report, said = run(
        tmp_path,
        command=shell(
            'echo "$A $B $C $INTERLOCK_TASK_ID ${PATH:+path} ${PYTEST_CURRENT_TEST-none}"'
        ),
        env={"A": "job"},
        env_from=(
            EnvFile(file=str(tmp_path / "first")),
            EnvFile(file="second"),
            EnvFile(file="missing", optional=True),
        ),
        working_dir=str(tmp_path),
    )
    assert report.exit_code == 0
    assert said == "job second a b uid-job/0/1 path none\n"


def test_directory_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    command = shell("pwd; cat")
    _, said = run(tmp_path, command=command, working_dir=str(tmp_path / "here"), stdin="words")
    assert said == f"{(tmp_path / 'here').resolve()}\nwords"


def test_nothing_but_the_three_descriptors_is_inherited(tmp_path: Path) -> None:
    _, said = run(tmp_path, command=shell("ls /proc/$$/fd | tr '\\n' ' '; wc -c"))
    # The shell itself may hold the pipe it just made, never one of the keeper's files.
    assert set(said.split()) <= {"0", "1", "2", "3", "10", "255"}


def test_signals_start_as_the_kernel_has_them(tmp_path: Path) -> None:
    _, said = run(tmp_path, command=("grep", "-E", "SigIgn|SigBlk", "/proc/self/status"))
    # Two belong to the C library, which ignores them in what it spawns.
    internal = 1 << 31 | 1 << 32
    assert [int(line.split()[1], 16) & ~internal for line in said.splitlines()] == [0, 0]


@pytest.mark.parametrize("nice", [None, 3])
def test_limits_are_the_kernels(nice: int | None, tmp_path: Path) -> None:
    limits = ProcessLimits(cpu_time=parse_duration("30s"), memory="2Gi", open_files=64, nice=nice)
    script = "ulimit -t; ulimit -v; ulimit -n; nice"
    _, said = run(tmp_path, command=shell(script), limits=limits)
    assert said.split() == ["30", str(2 << 20), "64", str(os.nice(0) + (nice or 0))]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change users")
def test_user_and_group(tmp_path: Path) -> None:
    _, said = run(tmp_path, command=("id", "-u"), user="65534", working_dir="/")
    assert said == "65534\n"
    _, said = run(tmp_path, command=("id", "-g"), user="0", group="65534", working_dir="/")
    assert said == "65534\n"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        pytest.param({"command": ("no-such-program",)}, "no such program on the PATH", id="PATH"),
        pytest.param({"command": ("/no/such",)}, "No such file", id="path"),
        pytest.param({"command": ("/etc",)}, "Permission denied", id="a directory"),
        pytest.param({"working_dir": "/no/such"}, "workingDir: /no/such", id="directory"),
        pytest.param({"env_from": (EnvFile(file="/no/such"),)}, "envFrom: /no/such", id="file"),
        pytest.param({"user": "nobody-such"}, "nobody-such", id="user"),
        pytest.param({"limits": ProcessLimits(memory="lots")}, "limits.memory", id="quantity"),
        pytest.param({"command": ("a\0b",)}, "null", id="null byte"),
    ],
)
def test_what_cannot_start_says_why(order: dict[str, Any], expected: str, tmp_path: Path) -> None:
    report, _ = run(tmp_path, **order)
    assert report.state is ReportState.NOT_STARTED
    assert expected in report.message


@pytest.mark.parametrize("umask", [0o002, 0o027])
def test_tasks_get_the_umask_of_their_server(umask: int, tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        before = os.umask(umask)
        try:
            await shop.lead()
        finally:
            os.umask(before)
        order = with_process(shop.order(Exits()), command=shell("umask"))
        await shop.runtime.launch([order])
        await shop.until(is_over(order.id))
        pieces = [piece async for piece in LogReader(shop.data_dir).stream(order.id)]
        assert int(b"".join(pieces), 8) == umask

    ProcessShop.play(scene, tmp_path)  # type: ignore[arg-type]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change users")
@pytest.mark.parametrize(
    "group", [pytest.param(None, id="its own group"), pytest.param("1", id="another group")]
)
def test_another_user_may_open_its_own_output(group: str | None, tmp_path: Path) -> None:
    script = "echo one > /dev/stdout; echo two >> /dev/stderr; ls -L -n /proc/self/fd/1"
    report, said = run(tmp_path, command=shell(script), user="nobody", group=group, working_dir="/")
    assert report.exit_code == 0
    one, two, mode, _, owner, *_ = said.split()
    assert (one, two) == ("one", "two")
    assert (mode[:10], owner) == ("prw-rw----", "0")
    logs = logs_place(tmp_path / "data")
    assert {stat.S_IMODE(place.stat().st_mode) for place in (logs, *logs.iterdir())} == {0o700}
    check_directory(tmp_path / "data")


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root may change users, and setpriv takes rights from it",
)
@pytest.mark.parametrize(
    "lacks", [pytest.param("-chown", id="give"), pytest.param("-dac_override", id="read")]
)
def test_a_root_that_may_not_give_or_read_files_keeps_logs(lacks: str, tmp_path: Path) -> None:
    """A service that runs as root, and may become others, but has few rights besides."""
    lacks = f"{lacks},-dac_read_search"
    command = ["setpriv", "--bounding-set", lacks, sys.executable, "-c", _PRINTS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("one\ntwo\n", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change users")
def test_files_of_variables_are_read_with_the_rights_of_the_user(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("A=1\n")
    secret.chmod(0o600)
    report, _ = run(tmp_path, env_from=(EnvFile(file=str(secret)),), user="65534", working_dir="/")
    assert report.state is ReportState.NOT_STARTED
    assert report.message == f"envFrom: {secret}: Permission denied"
