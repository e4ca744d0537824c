"""The Helm chart says what `interlock manifests` says, object by object."""

from __future__ import annotations

import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import manifests, usual_parts
from interlock.testing.serving import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "chart" / "interlock"
WRITER = runpy.run_path(str(ROOT / "tools" / "write_chart.py"))
HELM = runpy.run_path(str(ROOT / "tools" / "ensure_helm.py"))
FILES: dict[str, str] = WRITER["files"]()


@pytest.mark.parametrize("file", list(FILES))
def test_a_file_is_up_to_date(file: str) -> None:
    written = (ROOT / file).read_text("utf-8")

    assert written == FILES[file], f"{file} is out of date: run `make docs`"


def test_there_are_no_other_files() -> None:
    found = {str(path.relative_to(ROOT)) for path in CHART.rglob("*") if path.is_file()}

    assert found == set(FILES)


@pytest.fixture(scope="module")
def helm() -> Helm:
    found: Path | None = HELM["find"]()
    if found is None:
        pytest.skip(f"there is no helm here: {HELM['HELP']}")
    return Helm(found)


class Helm:
    """The program that people install the chart with."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def rendered(self, namespace: str, *values: str) -> list[dict[str, Any]]:
        """Every object that the chart becomes with these values."""
        given = [word for value in values for word in ("--set", value)]
        where = ("--namespace", namespace, "--include-crds", "--kube-version", "1.36.0")
        done = self("template", "interlock", str(CHART), *where, *given)
        assert (done.returncode, done.stderr) == (0, "")
        return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    found = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert len(found) == len(objects)
    return found


ALONE = Installation(namespace="batch", everywhere=False)


@pytest.mark.parametrize(
    ("values", "install", "more"),
    [
        pytest.param([], Installation(), (), id="as usual"),
        pytest.param([], Installation(namespace="123"), (), id="a namespace like a number"),
        pytest.param(
            ["replicas=3", "image=registry.example:5000/interlock@sha256:0a"],
            Installation(replicas=3, image="registry.example:5000/interlock@sha256:0a"),
            (),
            id="image and replicas",
        ),
        pytest.param(["replicas=0"], Installation(replicas=0), (), id="nobody"),
        pytest.param(["serviceMonitor=true"], Installation(), ("monitor",), id="a monitor"),
        pytest.param(["namespaced=true"], ALONE, (), id="one namespace"),
        pytest.param(
            ["workerApp=broker:app", "workerReplicas=3", "workerConcurrency=8"],
            Installation(worker_app="broker:app", worker_replicas=3, worker_concurrency=8),
            ("workers",),
            id="workers",
        ),
        pytest.param(
            ["namespaced=true", "workerApp=broker:app", "workerImage=broker:1"],
            replace(ALONE, worker_app="broker:app", worker_image="broker:1"),
            ("workers",),
            id="workers of one namespace",
        ),
        pytest.param(
            ["slots=true", "schedulerImage=scheduler:1"],
            Installation(slots=True, scheduler_image="scheduler:1"),
            ("slots",),
            id="slots",
        ),
        pytest.param(["slots=true", "namespaced=true"], ALONE, (), id="no slots of one namespace"),
        pytest.param(
            ["namespaced=true", "webhook=true", "serviceMonitor=true"],
            ALONE,
            ("webhook", "monitor"),
            id="one namespace with all",
        ),
    ],
)
def test_it_becomes_what_the_manifests_are(
    values: list[str], install: Installation, more: tuple[str, ...], helm: Helm
) -> None:
    found = by_name(helm.rendered(install.namespace, *values))

    wanted = by_name(manifests(install, (*usual_parts(install), *more)))
    # Helm makes the namespace itself.
    wanted.pop(("Namespace", install.namespace), None)
    assert found.keys() == wanted.keys()
    for name, one in wanted.items():
        assert found[name] == one


def test_the_webhook_can_be_left_out(helm: Helm) -> None:
    kinds = {one["kind"] for one in helm.rendered("batch", "webhook=false")}

    assert not [kind for kind in kinds if "Webhook" in kind]


def test_helm_finds_nothing_to_complain_about(helm: Helm) -> None:
    done = helm("lint", "--strict", "--kube-version", "1.36.0", str(CHART))

    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout


@pytest.mark.parametrize(
    "value", ["replicas=x", "replicas=-1", "image=", "replcas=2", "workerApp=x"]
)
def test_bad_values_are_refused(value: str, helm: Helm) -> None:
    done = helm("template", "interlock", str(CHART), "--kube-version", "1.36.0", "--set", value)

    assert done.returncode != 0
    assert value.partition("=")[0] in done.stderr


def test_every_value_is_described() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))["properties"]
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))

    assert schema.keys() - {"global"} == values.keys()
    assert all(schema[name]["description"] for name in values)
