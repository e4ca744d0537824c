"""Every example does on a real server what its first line says."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.resources.door.manifests import read_manifests
from interlock.testing.serving import PATIENCE_S, Server

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
_RUN = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("examples") / "data") as server:
        yield server


def interlock(server: Server, *arguments: str, given: str = "") -> str:
    """What a command that ends well prints."""
    command = [sys.executable, "-c", _RUN, "--server", server.url, *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        input=given,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def defined_in(file: Path) -> list[dict[str, Any]]:
    """What a file defines."""
    return [document.data for document in read_manifests(file.read_bytes())]


def of_kind(kind: str, file: Path) -> list[str]:
    """The names of what a file defines of one kind."""
    return [each["metadata"]["name"] for each in defined_in(file) if each["kind"] == kind]


def files_with(kind: str) -> list[Path]:
    """The examples that define something of a kind."""
    return [file for file in FILES if of_kind(kind, file)]


def job_of(server: Server, name: str) -> dict[str, Any]:
    """A Job as it is now."""
    place = f"{server.url}/apis/interlock.dev/v1alpha1/namespaces/default/jobs/{name}"
    with urllib.request.urlopen(place, timeout=PATIENCE_S) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def job_on_demand(server: Server, *words: str) -> str:
    """The Job that a verb makes, or finds at work."""
    told = interlock(server, *words)
    found = re.search(r"job/(\S+?)( created|;)", told)
    assert found is not None, told
    return found[1]


@pytest.mark.parametrize("file", files_with("Job"), ids=lambda file: file.stem)
def test_an_example_comes_to_its_end(server: Server, file: Path) -> None:
    interlock(server, "apply", "-f", str(file))
    for job in defined_in(file):
        if job["kind"] != "Job":
            continue
        name = job["metadata"]["name"]
        if job["spec"].get("suspend"):
            assert not job_of(server, name)["status"].get("execution", {}).get("startedAt")
            interlock(server, "resume", name)
        interlock(server, "wait", name)
        assert job_of(server, name)["status"]["phase"] == "Succeeded"


def test_the_example_of_readiness_is_ready_once_all_of_its_tasks_are(server: Server) -> None:
    (ring,) = defined_in(EXAMPLES / "ready.yaml")
    watched = {**ring, "metadata": {"name": "watched-ring"}}
    told = interlock(server, "apply", "-f", "-", given=json.dumps(watched))
    assert "created" in told
    interlock(server, "wait", "watched-ring")

    conditions = job_of(server, "watched-ring")["status"]["conditions"]
    (ready,) = (one for one in conditions if one["type"] == "PodsReady")
    assert ready["status"] == "True"


def test_what_shares_a_queue_was_let_into_its_quota(server: Server) -> None:
    file = EXAMPLES / "shared-encoders.yaml"
    (queue,) = of_kind("Queue", file)
    interlock(server, "apply", "-f", str(file))
    for name in of_kind("Job", file):
        interlock(server, "wait", name)
        held = job_of(server, name)["status"]["admission"]["quota"]
        assert held["queue"] == queue
        assert held["tasks"] <= 2
    told = json.loads(interlock(server, "queue", queue, "-o", "json"))
    assert (told["admitted"], told["waiting"]) == (0, 0)


def test_teams_of_a_cohort_are_let_into_what_both_have(server: Server) -> None:
    file = EXAMPLES / "lending-teams.yaml"
    interlock(server, "apply", "-f", str(file))
    for name in of_kind("Job", file):
        interlock(server, "wait", name)
        assert 1 <= job_of(server, name)["status"]["admission"]["quota"]["tasks"] <= 5
    for name in of_kind("Queue", file):
        told = json.loads(interlock(server, "queue", name, "-o", "json"))
        assert (told["cohort"], told["admitted"], told["waiting"]) == ("lab", 0, 0)
        assert told["resources"]["card"]["borrowed"] == 0


@pytest.mark.parametrize("file", files_with("JobConfig"), ids=lambda file: file.stem)
def test_a_config_runs_on_demand(server: Server, file: Path) -> None:
    interlock(server, "apply", "-f", str(EXAMPLES / "calendars.yaml"), "-f", str(file))
    for name in of_kind("JobConfig", file):
        job = job_on_demand(server, "run", name)
        interlock(server, "wait", job)
        assert job_of(server, job)["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("file", files_with("ControlledJob"), ids=lambda file: file.stem)
def test_what_is_kept_in_hours_starts_and_stops_by_hand(server: Server, file: Path) -> None:
    interlock(server, "apply", "-f", str(EXAMPLES / "calendars.yaml"), "-f", str(file))
    for each in defined_in(file):
        name = each["metadata"]["name"]
        if each["spec"].get("suspend"):
            interlock(server, "resume", f"controlledjob/{name}")
        job = job_on_demand(server, "start", name)
        interlock(server, "wait", job, "--for", "started")
        interlock(server, "stop", f"controlledjob/{name}", "--wait")
        assert job_of(server, job)["status"]["phase"] == "Killed"
        interlock(server, "delete", "controlledjob", name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_an_example_starts_by_the_clock_is_seldom(file: Path) -> None:
    """`make up` applies the examples: it must not keep a machine busy."""
    files = [flag for each in (EXAMPLES / "calendars.yaml", file) for flag in ("-f", str(each))]
    wanted = ("next", *files, "--from", "2030-01-01", "--to", "2030-01-31", "--limit", "1000")
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *wanted, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    starts = [one for one in json.loads(done.stdout) if one["action"] in {"run", "start"}]
    assert len(starts) <= 31


def test_every_example_tells_what_it_is_for() -> None:
    assert FILES
    assert all(file.read_text().startswith("# ") for file in FILES)


def test_names_differ_so_that_all_examples_can_be_applied_together() -> None:
    names = [each["metadata"]["name"] for file in FILES for each in defined_in(file)]
    assert len(names) == len(set(names))


def test_the_unit_starts_a_server_and_spares_its_tasks(tmp_path: Path) -> None:
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(EXAMPLES / "service" / "interlock.service")
    service = unit["Service"]
    # By systemd's default a restart of the server would end every task.
    assert service["KillMode"] == "process"
    assert service["Delegate"] == "yes"
    assert service["StateDirectoryMode"] == "0700"
    program, verb, flag, data, *more = service["ExecStart"].split()
    assert (Path(program).name, verb, flag) == ("interlock", "up", "--data")
    assert data == f"/var/lib/{service['StateDirectory']}"
    with Server(tmp_path / "data", *more) as server:
        assert "hello" in interlock(server, "run", "--follow", "--", "echo", "hello")
