"""Readiness the whole way: real probes, the condition of the Job, and what people are told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.testing.clients import Client, Object, phase_of
from interlock.testing.serving import PATIENCE_S, Server

_RUN = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", cwd=tmp_path) as running:
        yield running


def interlock(server: Server, *arguments: str) -> str:
    """What a command that ends well prints."""
    command = [sys.executable, "-c", _RUN, "--server", server.url, *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout


def readiness(job: Object) -> tuple[str, str]:
    """The status and the reason of a Job's condition; empty before there is one."""
    for condition in job["status"].get("conditions", ()):
        if condition["type"] == "PodsReady":
            return condition["status"], condition["reason"]
    return "", ""


def moment(job: Object) -> str:
    (found,) = (one for one in job["status"]["conditions"] if one["type"] == "PodsReady")
    return str(found["lastTransitionTime"])


def test_a_gang_is_ready_loses_it_and_recovers(server: Server, tmp_path: Path) -> None:
    client = Client(server.url)
    client.create(
        "gang",
        process={
            "command": ["sleep", "100000"],
            "readinessProbe": {
                "file": {"path": "up-${task.index}"},
                "period": "100ms",
                "timeout": "2m",
                "failureThreshold": 2,
            },
        },
        parallelism={"count": 2},
    )
    client.wait(lambda jobs: phase_of(jobs["gang"]) == "Running")
    (tmp_path / "up-0").touch()

    def ready(jobs: dict[str, Object]) -> list[bool]:
        return [task.get("ready", False) for task in jobs["gang"]["status"]["execution"]["active"]]

    found = client.wait(lambda jobs: ready(jobs) == [True, False])["gang"]
    assert readiness(found) == ("False", "WaitForStart")
    assert "1/2 WaitForStart" in interlock(server, "get", "jobs", "-o", "wide")
    told = interlock(server, "why", "gang")
    assert "WaitForStart: 1 of 2 tasks ready or done" in told
    assert "Ready:        False (WaitForStart)" in interlock(server, "describe", "job/gang")

    (tmp_path / "up-1").touch()
    interlock(server, "wait", "gang", "--for", "ready")
    assert readiness(client.job("gang")) == ("True", "Started")
    (tmp_path / "up-0").unlink()
    lost = client.wait(lambda jobs: readiness(jobs["gang"]) == ("False", "WaitForRecovery"))["gang"]
    assert "No such file or directory" in interlock(server, "why", "gang")
    (tmp_path / "up-1").unlink()
    worse = client.wait(lambda jobs: ready(jobs) == [False, False])["gang"]
    assert moment(worse) == moment(lost)
    for index in range(2):
        (tmp_path / f"up-{index}").touch()
    client.wait(lambda jobs: readiness(jobs["gang"]) == ("True", "Recovered"))


def test_a_server_that_is_killed_knows_what_was_ready_and_what_turned_since(
    server: Server, tmp_path: Path
) -> None:
    client = Client(server.url)
    for name in ("stays", "turns"):
        (tmp_path / name).touch()
        often = {"period": "100ms", "timeout": "2m", "failureThreshold": 1}
        probe = {"file": {"path": name}, **often}
        client.create(name, process={"command": ["sleep", "100000"], "readinessProbe": probe})
    client.wait(
        lambda jobs: all(
            readiness(jobs[name]) == ("True", "Started") for name in ("stays", "turns")
        )
    )

    server.kill()
    (tmp_path / "turns").unlink()
    server.start()
    client = Client(server.url)
    jobs = client.wait(lambda jobs: readiness(jobs["turns"]) == ("False", "WaitForRecovery"))

    assert readiness(jobs["stays"]) == ("True", "Started")
    assert jobs["stays"]["status"]["execution"]["attempts"] == 1


def test_a_bad_probe_is_refused_with_its_place(server: Server) -> None:
    probe = {"tcpSocket": {"port": 70000}, "file": {"path": "x"}}
    process = {"command": ["true"], "readinessProbe": probe}
    job = {"kind": "Job", "metadata": {"name": "bad"}, "spec": {"process": process}}
    place = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"

    status, answer = Client(server.url).ask("POST", place, job)

    assert status == 422
    paths = [cause["field"] for cause in answer["details"]["causes"]]
    assert paths == [
        "spec.process.readinessProbe",
        "spec.process.readinessProbe.tcpSocket.port",
    ]
