"""Every example does on a real server what its first line says."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.resources.manifests import read_manifests
from interlock.testing.serving import PATIENCE_S, Server

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
_RUN = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("examples") / "data") as server:
        yield server


def interlock(server: Server, *arguments: str) -> str:
    """What a command that ends well prints."""
    command = [sys.executable, "-c", _RUN, "--server", server.url, *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def jobs_in(file: Path) -> list[dict[str, Any]]:
    """The Jobs that a file defines."""
    return [document.data for document in read_manifests(file.read_bytes())]


def job_of(server: Server, name: str) -> dict[str, Any]:
    """A Job as it is now."""
    place = f"{server.url}/apis/interlock.dev/v1alpha1/namespaces/default/jobs/{name}"
    with urllib.request.urlopen(place, timeout=PATIENCE_S) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_comes_to_its_end(server: Server, file: Path) -> None:
    interlock(server, "apply", "-f", str(file))
    for job in jobs_in(file):
        name = job["metadata"]["name"]
        if job["spec"].get("suspend"):
            assert not job_of(server, name)["status"].get("execution", {}).get("startedAt")
            interlock(server, "resume", name)
        interlock(server, "wait", name)
        assert job_of(server, name)["status"]["phase"] == "Succeeded"


def test_every_example_tells_what_it_is_for() -> None:
    assert FILES
    assert all(file.read_text().startswith("# ") for file in FILES)


def test_names_differ_so_that_all_examples_can_be_applied_together() -> None:
    names = [job["metadata"]["name"] for file in FILES for job in jobs_in(file)]
    assert len(names) == len(set(names))
