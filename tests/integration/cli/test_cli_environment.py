"""The server runs with what `make up` installs; what needs more says what it needs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from cli_program import Program

from interlock.testing.serving import PATIENCE_S, Server

_TREE = Path(__file__).parents[3]
_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)

#: In every Python process that has it on its path, some packages cannot be found.
_HIDING = """
import sys
from importlib.metadata import packages_distributions

HIDDEN = {hidden!r}
NAMES = {{
    module
    for module, packages in packages_distributions().items()
    if all(name.lower().replace("_", "-") in HIDDEN for name in packages)
}}

class Hiding:
    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in NAMES:
            return self._finder.find_spec(name, path, target)

sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
"""


def _pins(name: str) -> dict[str, str]:
    return dict(_PIN.findall((_TREE / name).read_text()))


@pytest.fixture
def lean(tmp_path: Path) -> dict[str, str]:
    """The environment of programs that have no more than the server's packages."""
    hidden = _pins("requirements-dev.lock").keys() - _pins("requirements.lock").keys()
    folder = tmp_path / "hiding"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_HIDING.format(hidden=hidden))
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_both_environments_have_the_same_versions() -> None:
    server, everything = _pins("requirements.lock"), _pins("requirements-dev.lock")
    assert server.items() <= everything.items()
    assert not {"mypy", "pytest", "ruff", "aiohttp"} & server.keys()


def test_a_server_runs_with_its_own_packages(lean: dict[str, str], tmp_path: Path) -> None:
    with Server(tmp_path / "data", "--examples", env=lean) as server:
        told = _interlock(lean, "--server", server.url, "run", "--follow", "--", "echo", "hello")
        assert (told.stdout, told.returncode) == ("hello\n", 0)
        assert _interlock(lean, "--server", server.url, "next").returncode == 0


def test_a_controller_says_what_it_needs(lean: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "users: [{name: a, user: {token: x}}]\n"
        "current-context: a\n"
    )
    told = _interlock(lean, "controller", "--kubeconfig", str(config))
    assert told.returncode == 1
    assert told.stderr == (
        "error: a controller needs aiohttp and cryptography, which are not installed\n"
        "  install Interlock with them: pip install '.[kubernetes]' in its tree\n"
    )


def _interlock(env: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    command = Program("", Path()).command(*argv)
    return subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=PATIENCE_S, check=False
    )
