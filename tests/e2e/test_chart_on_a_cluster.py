"""Helm installs the chart in a real cluster, changes it, and takes all of it away again."""

from __future__ import annotations

import os
import runpy
import subprocess
from pathlib import Path

import pytest
from installing import collection_of, install_definitions

from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "ensure_helm.py"))


class Helm:
    """The program that people install the chart with."""

    def __init__(self, program: Path, cluster: Access, namespace: str, home: Path) -> None:
        self._program = program
        self._where = ("--namespace", namespace, "--kubeconfig", str(cluster.kubeconfig()))
        self._env = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def __call__(self, *arguments: str) -> str:
        """Run to a good end."""
        done = subprocess.run(
            [self._program, *arguments, *self._where],
            capture_output=True,
            text=True,
            env=self._env,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_a_release_is_installed_changed_and_removed(
    cluster: Access, namespace: str, tmp_path: Path
) -> None:
    program: Path | None = TOOL["find"]()
    if program is None:
        pytest.skip(f"there is no helm here: {TOOL['HELP']}")
    install_definitions(cluster)
    helm = Helm(program, cluster, namespace, tmp_path)
    chart = (str(ROOT / "chart" / "interlock"), "--set", "namespaced=true", "--skip-crds")
    controller = f"{collection_of('Deployment', 'apps/v1', namespace)}/interlock-controller"

    told = helm("install", "interlock", *chart)
    assert f"serves the namespace {namespace}" in told
    assert cluster.read(controller)["spec"]["replicas"] == 2

    helm("upgrade", "interlock", *chart, "--set", "replicas=1")
    assert cluster.read(controller)["spec"]["replicas"] == 1

    helm("uninstall", "interlock")
    cluster.wait_until_gone(controller)
