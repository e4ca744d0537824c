"""A real Kubernetes control plane for the tests of this folder.

Tests that do it no harm share one among all test processes, each test in a namespace of its own.
Tests that pause, kill or restart something get one for their file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kube import Access, Cluster, find, shared
from support.kube.binaries import HELP


@pytest.fixture(scope="session")
def kube_programs() -> Path:
    """The folder of the programs; without them the test is skipped."""
    found = find()
    if found is None:
        pytest.skip(f"there is no Kubernetes control plane here: {HELP}")
    return found.folder


@pytest.fixture(scope="session")
def cluster(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """The control plane that all tests share; do it no harm."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Each test process has its own folder within the run's.
        base = base.parent
    with shared(kube_programs, base / "kube") as access:
        yield access


@pytest.fixture
def namespace(cluster: Access) -> Iterator[str]:
    """A fresh namespace of the shared control plane."""
    with cluster.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def own_cluster(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane that the tests of one file have for themselves, to do with as they like."""
    with Cluster(kube_programs, tmp_path_factory.mktemp("kube")) as started:
        yield started
