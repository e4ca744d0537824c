"""Kinds that the product does not know, on a real API server: defined, guarded and reconciled.

Definitions and rights are made from their entries; the controller is `interlock` with `toy_kinds`
registered. One of the kinds is outside of namespaces, and the controller serves one namespace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installing import STRICT, allow, collection_of, install_definitions, wait_until_allowed

from interlock.testing.serving import PATIENCE_S
from support import toy_kinds
from support.kube import Access, Cluster, User
from support.kube.access import Answer, Document
from support.kube.controllers import Controller

PROGRAM = (sys.executable, toy_kinds.__file__)
API_VERSION = toy_kinds.BELLS.api_version


@pytest.fixture(scope="module", autouse=True)
def _toys() -> Iterator[None]:
    with toy_kinds.added():
        yield


@pytest.fixture(scope="module")
def access(own_cluster: Cluster, _toys: None) -> Access:
    """A cluster that knows the kinds. It is no other test's: theirs are not."""
    install_definitions(own_cluster.access)
    return own_cluster.access


@pytest.fixture
def place(access: Access) -> Iterator[str]:
    with access.namespace() as name:
        yield name


def create(access: Access, kind: str, place: str, name: str, **spec: Any) -> Answer:
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return access.ask("POST", f"{collection_of(kind, API_VERSION, place)}?{STRICT}", body)


def names(found: Document) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("Bell", {"tower": "west"}, "expected exactly one of tone and melody"),
    ("Bell", {"tower": "west", "tone": "c", "melody": ["d"]}, "expected exactly one of"),
    ("Bell", {"tower": "west", "tone": "c", "rings": 13}, "spec.rings"),
    ("Bell", {"tower": "No Name", "tone": "c"}, "spec.tower"),
    ("Bell", {"tower": "west", "ton": "c"}, 'unknown field "spec.ton"'),
    ("Tower", {"height": 101}, "spec.height"),
    ("Tower", {}, "spec.height"),
]


@pytest.mark.parametrize(("kind", "spec", "words"), BAD)
def test_the_api_server_enforces_the_rules(
    access: Access, place: str, kind: str, spec: dict[str, Any], words: str
) -> None:
    answer = create(access, kind, place if kind == "Bell" else "", "bad", **spec)
    assert answer.status in (400, 422)
    assert words in answer.body["message"]


def test_a_status_is_apart_and_fields_can_be_selected(access: Access, place: str) -> None:
    bells = collection_of("Bell", API_VERSION, place)
    for name, tower in (("big", "west"), ("small", "east")):
        assert create(access, "Bell", place, name, tower=tower, tone="c").status == 201
    changed = access.change(f"{bells}/big", {"spec": {"rings": 2}, "status": {"rung": 9}})
    assert changed["spec"]["rings"] == 2
    assert "rung" not in changed.get("status", {})
    told = access.change(f"{bells}/big/status", {"status": {"rung": 2, "state": "Rung"}})
    assert told["status"]["rung"] == 2

    assert names(access.read(f"{bells}?fieldSelector=spec.tower%3Deast")) == ["small"]
    assert names(access.read(f"{bells}?fieldSelector=status.state%3DRung")) == ["big"]


def test_a_controller_with_the_roles_of_one_namespace_reconciles_them(
    access: Access, place: str, tmp_path: Path
) -> None:
    allow(access, place)
    who = str(User.CONTROLLER)
    wait_until_allowed(access, who, "update", "interlock.dev/bells/status", place)
    wait_until_allowed(access, who, "update", "interlock.dev/towers/status")
    name = f"tower-of-{place}"
    assert create(access, "Bell", place, "big", tower=name, tone="c", rings=3).status == 201
    with Controller(access, tmp_path, user=User.CONTROLLER, namespace=place, program=PROGRAM):
        assert create(access, "Tower", "", name, height=30).status == 201
        bell = f"{collection_of('Bell', API_VERSION, place)}/big"
        tower = f"{collection_of('Tower', API_VERSION)}/{name}"
        access.wait_for(bell, lambda one: one.get("status", {}).get("rung") == 3)
        access.wait_for(tower, lambda one: one.get("status", {}).get("bells") == 1)
        access.remove(bell)
        access.wait_for(tower, lambda one: not one["status"].get("bells"))
    access.remove(tower)


def test_a_controller_with_the_roles_of_one_namespace_lets_jobs_into_a_queue(
    access: Access, place: str, tmp_path: Path
) -> None:
    allow(access, place)
    who = str(User.CONTROLLER)
    wait_until_allowed(access, who, "update", "interlock.dev/jobs/status", place)
    wait_until_allowed(access, who, "update", "interlock.dev/queuequotas/status")
    name = f"queue-of-{place}"
    quota = f"{collection_of('QueueQuota', API_VERSION)}/queue.{name}"
    jobs = collection_of("Job", "interlock.dev/v1alpha1", place)
    assert create(access, "Queue", "", name, resources={"gpu": 1}).status == 201
    asks = {"noop": {}, "queue": name, "resources": {"gpu": 1}}
    for job in ("first", "second"):
        assert create(access, "Job", place, job, **asks).status == 201
    with Controller(access, tmp_path, user=User.CONTROLLER, namespace=place, program=PROGRAM):
        for job in ("first", "second"):
            ended = access.wait_for(
                f"{jobs}/{job}", lambda one: one.get("status", {}).get("phase") == "Succeeded"
            )
            assert ended["status"]["admission"]["quota"]["queue"] == name
        access.wait_for(quota, lambda one: not one["status"].get("holders"))
        access.remove(f"{collection_of('Queue', API_VERSION)}/{name}")


def test_interlock_reads_and_writes_them_there(access: Access, place: str, tmp_path: Path) -> None:
    def interlock(*argv: str, given: str = "") -> str:
        return subprocess.run(
            [*PROGRAM, *argv],
            input=given,
            capture_output=True,
            text=True,
            env=os.environ | {"KUBECONFIG": str(access.kubeconfig())},
            cwd=tmp_path,
            timeout=PATIENCE_S,
            check=True,
        ).stdout

    spec = "{tower: west, tone: c}"
    bell = f"apiVersion: {API_VERSION}\nkind: Bell\nmetadata: {{name: big}}\nspec: {spec}\n"
    assert "bell/big" in interlock("apply", "-n", place, "-f", "-", given=bell)
    head, row = interlock("get", "bells", "-n", place, "-o", "wide").splitlines()
    assert head.split() == ["NAME", "STATE", "AGE", "TOWER"]
    assert row.split()[0] == "big"
    interlock("backup", "all.yaml", "-n", place)
    assert "kind: Bell" in (tmp_path / "all.yaml").read_text()
    assert "bell/big" in interlock("delete", "bell/big", "-n", place)
