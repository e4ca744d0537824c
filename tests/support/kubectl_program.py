"""kubectl, as a program that talks to one server of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from interlock.testing.serving import PATIENCE_S, Server

TOOL = Path(__file__).parents[2] / "tools" / "ensure_kubectl.py"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
contexts: [{{name: here, context: {{cluster: here, namespace: default}}}}]
current-context: here
"""


class Kubectl:
    """The program, talking to one server."""

    def __init__(self, program: str, server: Server, home: Path) -> None:
        self.program = program
        self.home = home
        config = home / "config"
        config.write_text(KUBECONFIG.format(url=server.url))
        self.env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(config)}

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        return subprocess.run(
            [self.program, *arguments],
            input=given,
            capture_output=True,
            text=True,
            env=self.env,
            timeout=PATIENCE_S,
            check=False,
        )

    def __call__(self, *arguments: str, given: str = "") -> str:
        """Run to a good end; returns what was printed."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """Run to a good end; returns the printed object."""
        return json.loads(self(*arguments, "-o", "json"))

    @property
    def minor(self) -> int:
        """The minor version of the program."""
        told = json.loads(self("version", "--client", "-o", "json"))
        return int(told["clientVersion"]["minor"].rstrip("+"))


def find_kubectl() -> str:
    """Find the program, or build it."""
    found = subprocess.run(
        [sys.executable, str(TOOL)], capture_output=True, text=True, check=False, timeout=600
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()
