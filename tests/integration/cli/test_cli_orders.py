"""Orders that are typed, and our own server: it carries them out, and the program stays light."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_program import Program

from interlock.testing.serving import PATIENCE_S, Server

SCHEDULES = """\
kind: JobConfig
metadata: {name: config}
spec:
  options:
    - {name: full, type: Bool}
  schedules: [{cron: "0 0 29 2 *"}, {cron: "0 0 29 2 *", timezone: Asia/Tokyo}]
  template: {spec: {process: {command: ["true"]}}}
---
kind: ControlledJob
metadata: {name: engine}
spec:
  events: [{action: start, cron: "* * * * *"}, {action: stop, cron: "0 0 29 2 *"}]
  jobTemplate: {spec: {process: {command: [sleep, "100000"]}, gracePeriod: 1s}}
"""
#: Each verb that orders something, and its exit code.
ORDERS = [
    ("suspend job -o json", 0),
    ("resume job", 0),
    ("requeue job --reason x", 0),
    ("op retry job --reason x", 5),
    ("op resolve job --as failed --reason x", 5),
    ("release job --reason x", 5),
    ("kill job", 0),
    ("stop job", 0),
    ("retry job", 0),
    ("disable config", 0),
    ("enable config --schedule 0", 0),
    ("run config --option full=yes --after 1h", 0),
    ("start engine", 0),
    ("restart engine --reason x", 0),
    ("skip engine --count 1", 0),
    ("extend engine --by 1h", 0),
    ("hold engine --for 1h", 0),
    ("stop controlledjob/engine", 0),
]
#: What an order takes on a cluster, and what takes long to load.
HEAVY = ("msgspec", "interlock.commands.change", "interlock.resources.job", "asyncio", "yaml")
#: Tells which of these were loaded.
_SCRIPT = f"""\
import sys
from interlock.modes.cli.main import main
code = main(sys.argv[1:])
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def program(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A program whose server has a Job and two schedules."""
    made = Program(server.url, tmp_path_factory.mktemp("here"))
    (made.folder / "schedules.yaml").write_text(SCHEDULES)
    made("apply", "-f", "schedules.yaml")
    made("run", "--name", "job", "--", "sleep", "1000")
    return made


@pytest.mark.parametrize(("typed", "code"), ORDERS, ids=[typed for typed, _ in ORDERS])
def test_an_order_is_not_worked_out_by_the_program(program: Program, typed: str, code: int) -> None:
    command = [sys.executable, "-c", _SCRIPT, *typed.split()]
    done = subprocess.run(
        command, env=program.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert done.returncode == code, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_one_that_is_refused_keeps_no_other_from_being_changed(
    server: Server, tmp_path: Path
) -> None:
    interlock = Program(server.url, tmp_path)
    for name in ("over", "alive"):
        interlock("run", "--name", name, "--", "sleep", "1000")
    interlock("stop", "over", "--wait")

    told = interlock("requeue", "over", "alive", "--reason", "x", code=5)

    assert told.startswith("job/alive is being stopped")
    assert "job/over is over" in interlock.errors


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        pytest.param(
            ["run", "config", "--at", "2030-01-01 19:00"],
            "--at '2030-01-01 19:00': the schedules of jobconfig/config are in several",
            id="what was typed for an option",
        ),
        pytest.param(
            ["suspend", "job", "--reason", "a\nb"], "--reason: expected one line", id="no line"
        ),
        pytest.param(
            ["run", "config", "--option", "full=perhaps"], "cannot be run like this", id="option"
        ),
        pytest.param(
            ["run", "config", "--option", "full=yes", "--option", "full=no"],
            "--option full is given more than once",
            id="twice",
        ),
        pytest.param(["run", "config", "--name", "A B"], "  metadata.name: ", id="one of a Job"),
    ],
)
def test_what_is_refused_is_told_in_flags(program: Program, argv: list[str], told: str) -> None:
    assert program(*argv, code=2) == ""
    assert told in program.errors
