"""Kinds that the product does not know are served to kubectl and to `interlock` from their entries.

The server and the command line are `interlock` with `toy_kinds` registered, in processes of their
own. One of the kinds is outside of namespaces.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.testing.serving import PATIENCE_S, Server
from support import toy_kinds
from support.kubectl_program import Kubectl, find_kubectl

PROGRAM = (sys.executable, toy_kinds.__file__)


class Toys:
    """Both command lines, talking to one server."""

    def __init__(self, server: Server, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.env = os.environ | {"INTERLOCK_SERVER": server.url}

    def run(self, *argv: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run `interlock` to the end."""
        return subprocess.run(
            [*PROGRAM, *argv],
            input=given,
            capture_output=True,
            text=True,
            env=self.env,
            timeout=PATIENCE_S,
            check=False,
        )

    def __call__(self, *argv: str, given: str = "") -> str:
        """Run `interlock` to a good end; gives what it printed."""
        done = self.run(*argv, given=given)
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stdout}{done.stderr}"
        return done.stdout

    def until(self, path: str, expected: str, *named: str) -> None:
        """Wait until a field of a resource is as expected."""
        for _ in range(1000):
            if self.kubectl("get", *named, "-o", f"jsonpath={path}") == expected:
                return
        raise AssertionError(f"{named}: {path} never became {expected}")


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toys]:
    place = tmp_path_factory.mktemp("toys")
    with Server(place / "data", program=PROGRAM) as server:
        yield Toys(server, Kubectl(find_kubectl(), server, place))


def a_bell(name: str, **spec: Any) -> str:
    given = {"tower": "west", "tone": "c"} | spec
    return _document("Bell", name, {part: value for part, value in given.items() if value})


def a_tower(name: str, **spec: Any) -> str:
    return _document("Tower", name, {"height": 30} | spec)


def _document(kind: str, name: str, spec: dict[str, Any]) -> str:
    api_version = toy_kinds.BELLS.api_version
    metadata = {"name": name}
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})


def test_kubectl_applies_gets_describes_explains_and_deletes(toys: Toys) -> None:
    kubectl = toys.kubectl
    assert kubectl("apply", "-f", "-", given=a_tower("north")) == (
        "tower.interlock.dev/north created\n"
    )
    bell = a_bell("big", tower="north", rings=3)
    assert kubectl("apply", "-f", "-", given=bell) == "bell.interlock.dev/big created\n"
    assert kubectl("apply", "-f", "-", given=bell) == "bell.interlock.dev/big unchanged\n"
    toys.until("{.status.rung}", "3", "bell", "big")
    toys.until("{.status.bells}", "1", "tower", "north")

    head, row = kubectl("get", "bl", "big").splitlines()
    assert head.split() == ["NAME", "STATE", "AGE"]
    assert row.split()[:2] == ["big", "Rung"]
    head, row = kubectl("get", "bells", "big", "-o", "wide").splitlines()
    assert head.split() == ["NAME", "STATE", "AGE", "TOWER"]
    assert row.split()[-1] == "north"
    assert kubectl("get", "towers", "north").splitlines()[1].split()[:2] == ["north", "1"]
    assert kubectl("get", "bells", "--field-selector", "spec.tower=south", "-o", "name") == ""
    assert "Rings:" in kubectl("describe", "bell", "big")
    assert "Height:" in kubectl("describe", "tower/north")
    assert "How often it rings." in kubectl("explain", "bell.spec")
    assert "In metres." in kubectl("explain", "tower.spec.height")
    gone = kubectl("delete", "bell/big", "tower/north").splitlines()
    assert gone[0].startswith('bell.interlock.dev "big" deleted')
    assert gone[1].startswith('tower.interlock.dev "north" deleted')


def test_interlock_applies_gets_describes_and_deletes(toys: Toys, tmp_path: Path) -> None:
    file = tmp_path / "toys.yaml"
    file.write_text(f"{a_tower('west')}\n---\n{a_bell('small')}\n")
    assert toys("check", "-f", str(file))
    assert toys("apply", "-f", str(file)).split() == [
        "tower/west", "created", "bell/small", "created"
    ]  # fmt: skip
    toys.until("{.status.state}", "Rung", "bell", "small")
    assert toys("diff", "-f", str(file)) == ""

    head, row = toys("get", "bells", "small", "-o", "wide").splitlines()
    assert head.split() == ["NAME", "STATE", "AGE", "TOWER"]
    assert row.split()[:2] == ["small", "Rung"]
    assert "tower/west\n" in toys("get", "towers", "-o", "name")
    described = toys("describe", "bell/small")
    assert "state: Rung" in described
    assert "its tower is there" in described
    assert "bells came or went" in toys("describe", "tower", "west")
    assert "its tower is there" in toys("history", "bell/small")
    toys("delete", "bell/small", "tower/west")
    assert "bell/small" not in toys("get", "bells", "-o", "name")


BAD = [
    pytest.param(a_bell("bad", tone=None), "spec", "exactly one of tone and melody", id="neither"),
    pytest.param(a_bell("bad", melody=["d"]), "spec", "found tone and melody", id="both"),
    pytest.param(a_bell("bad", rings=13), "spec.rings", "expected 1 to 12", id="a limit"),
    pytest.param(
        a_bell("bad", tone=None, melody=["silence"]), "spec.melody[0]", "cannot be silent",
        id="a check",
    ),
    pytest.param(a_bell("bad", ton="c"), "spec.ton", "did you mean spec.tone?", id="unknown"),
    pytest.param(a_tower("bad", height=101), "spec.height", "expected 1 to 100", id="its limit"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "path", "words"), BAD)
def test_bad_input_is_refused_with_the_path(
    toys: Toys, tmp_path: Path, given: str, path: str, words: str
) -> None:
    refused = toys.kubectl.run("apply", "-f", "-", given=given)
    assert refused.returncode != 0
    file = tmp_path / "bad.yaml"
    file.write_text(given)
    for verb in ("apply", "check"):
        ours = toys.run(verb, "-f", str(file))
        assert ours.returncode != 0
        assert path in ours.stdout + ours.stderr
        assert words in ours.stdout + ours.stderr
    assert path in refused.stderr
    assert words in refused.stderr


def test_words_are_completed(toys: Toys) -> None:
    toys("apply", "-f", "-", given=a_tower("completed"))
    kinds = toys("__complete", "get", "").split()
    assert {"bells", "towers", "jobs"} <= set(kinds)
    assert toys("__complete", "describe", "towers", "comp").split() == ["completed"]
    typed = toys.run("get", "towr")
    assert "did you mean `tower`?" in typed.stderr
    toys("delete", "tower/completed")


def test_they_are_there_after_a_restart_and_in_a_backup(tmp_path: Path) -> None:
    with Server(tmp_path / "data", program=PROGRAM) as server:
        toys = Toys(server, Kubectl(find_kubectl(), server, tmp_path))
        toys("apply", "-f", "-", given=a_bell("kept"))
        toys("backup", str(tmp_path / "copy"))
        toys("delete", "bell/kept")
        server.put_back(tmp_path / "copy")
        toys = Toys(server, Kubectl(find_kubectl(), server, tmp_path))
        toys("apply", "-f", "-", given=a_tower("west"))
        toys.until("{.status.state}", "Rung", "bell", "kept")
