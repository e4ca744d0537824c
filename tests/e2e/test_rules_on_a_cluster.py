"""A real API server draws the line of every rule where our own door draws it."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installing import DRY_RUN, collection_of, install_definitions

from support.kube.access import Access

ROOT = Path(__file__).resolve().parents[2]
#: Every rule of every noun on both sides of its boundary, as the unit tests try them.
CASES: list[Any] = runpy.run_path(str(ROOT / "tests/unit/resources/test_resources_rules.py"))[
    "CASES"
]


@pytest.fixture(scope="module")
def namespace(cluster: Access) -> Iterator[str]:
    install_definitions(cluster)
    with cluster.namespace() as name:
        yield name


@pytest.mark.parametrize("kind", sorted({case.body["kind"] for case in CASES}))
def test_the_line_is_the_same(kind: str, cluster: Access, namespace: str) -> None:
    place = collection_of(kind, "interlock.dev/v1alpha1", namespace)
    wrong = []
    for case in CASES:
        if case.body["kind"] == kind:
            answer = cluster.ask("POST", f"{place}?{DRY_RUN}", case.body)
            is_taken = case.is_good or not case.in_cluster
            if answer.status != (201 if is_taken else 422):
                wrong.append(f"{case}: {answer.status} {answer.body.get('message', '')[:200]}")

    assert wrong == []
