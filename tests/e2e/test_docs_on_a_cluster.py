"""Every command of the pages about Kubernetes is run on a real cluster."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster_store import install
from support.kube import Access, User
from support.kube.controllers import Controller

# The pages are read where those for a server of our own are.
sys.path.append(str(Path(__file__).resolve().parents[1] / "docs"))

from docs_cluster import ClusterRunner, a_cluster
from docs_pages import ROOT, name_of
from docs_runner import obey, pages_to_run

PAGES = pages_to_run(on_cluster=True)


@pytest.fixture(scope="module")
def access(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A cluster that the pages have for themselves, one after another."""
    with a_cluster(kube_programs, tmp_path_factory.mktemp("kube")) as started:
        yield started.access


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_says_works_on_a_cluster(page: Path, access: Access, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    with ClusterRunner(access, tmp_path, text) as reader:
        obey(text, reader)


def test_every_metric_of_a_controller_is_told(access: Access, tmp_path: Path) -> None:
    install(access)
    with access.namespace() as name, Controller(access, tmp_path, namespace=name) as controller:
        answer = controller.ask("GET", "/metrics", token=access.tokens[User.ADMIN])
    exported = re.findall(
        r"^# TYPE (interlock_\w+) (\w+)$", str(answer.body["message"]), re.MULTILINE
    )
    told = (ROOT / "docs/reference/metrics.md").read_text("utf-8")

    assert exported
    ours = {(metric, kind) for metric, kind in exported if not metric.endswith("_created")}
    assert set(re.findall(r"^\| `(interlock_\w+)` \| (\w+) \|", told, re.MULTILINE)) == ours
