"""kubectl, which nobody here wrote, does with Jobs what it does with any custom resource."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from interlock.testing.serving import PATIENCE_S, Server
from support.kubectl_program import Kubectl, find_kubectl


@pytest.fixture(scope="module")
def program() -> str:
    return find_kubectl()


@pytest.fixture(scope="module")
def kubectl(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    place = tmp_path_factory.mktemp("kubectl")
    with Server(place / "data") as server:
        yield Kubectl(program, server, place)


def manifest(name: str, **spec: Any) -> str:
    """A Job that is held back, so that nothing about it changes by itself."""
    given = {"process": {"command": ["true"]}, "suspend": True, **spec}
    return json.dumps(
        {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": given,
        }
    )


def apply(kubectl: Kubectl, name: str, *flags: str, **spec: Any) -> str:
    return kubectl("apply", *flags, "-f", "-", given=manifest(name, **spec))


def settle(kubectl: Kubectl, name: str) -> None:
    """Wait until the system has said why the Job waits; after that it writes no more to it."""
    for _ in range(1000):
        path = "jsonpath={.status.admission.waits[*].reason}"
        if kubectl("get", "ijob", name, "-o", path) == "Suspended":
            return
    raise AssertionError(f"{name} never settled")


def test_apply_creates_configures_and_leaves_alone(kubectl: Kubectl) -> None:
    assert apply(kubectl, "applied") == "job.interlock.dev/applied created\n"
    assert apply(kubectl, "applied") == "job.interlock.dev/applied unchanged\n"
    assert apply(kubectl, "applied", title="new") == "job.interlock.dev/applied configured\n"
    assert kubectl.json("get", "ijob", "applied")["spec"]["title"] == "new"
    apply(kubectl, "applied")
    assert "title" not in kubectl.json("get", "ijob", "applied")["spec"]


def test_create_and_replace(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=manifest("created"))
    again = kubectl.run("create", "-f", "-", given=manifest("created"))
    assert again.returncode != 0
    assert "already exists" in again.stderr
    settle(kubectl, "created")
    kubectl("replace", "-f", "-", given=manifest("created", title="replaced"))
    assert kubectl.json("get", "ijob", "created")["spec"]["title"] == "replaced"


def test_diff_tells_what_apply_would_change(kubectl: Kubectl) -> None:
    apply(kubectl, "diffed")
    settle(kubectl, "diffed")
    assert kubectl("diff", "-f", "-", given=manifest("diffed")) == ""
    differs = kubectl.run("diff", "-f", "-", given=manifest("diffed", title="other"))
    assert differs.returncode == 1
    assert "+  title: other" in differs.stdout


def test_get_in_every_form(kubectl: Kubectl) -> None:
    apply(kubectl, "shown")
    head, line = kubectl("get", "ijob", "shown").splitlines()
    assert head.split()[:2] == ["NAME", "PHASE"]
    assert line.split()[:2] == ["shown", "Queued"]
    assert "TITLE" in kubectl("get", "ijob", "shown", "-o", "wide").splitlines()[0]
    assert kubectl("get", "ijob", "shown", "-o", "name") == "job.interlock.dev/shown\n"
    assert "kind: Job" in kubectl("get", "jobs.interlock.dev", "shown", "-o", "yaml")
    assert kubectl.json("get", "ijob", "shown")["metadata"]["name"] == "shown"
    assert "shown" in kubectl("get", "ijob", "-A")
    assert kubectl.json("get", "ijob")["kind"] == "List"
    assert "job.interlock.dev/shown" in kubectl("get", "all", "-o", "name")
    assert kubectl("get", "ijob", "shown", "-o", "jsonpath={.spec.suspend}") == "true"


def test_get_in_parts_and_by_label(kubectl: Kubectl) -> None:
    for number in range(5):
        apply(kubectl, f"part-{number}")
        kubectl("label", "ijob", f"part-{number}", f"part={number % 2}")
    assert len(kubectl("get", "ijob", "-l", "part", "--chunk-size=2", "-o", "name").split()) == 5
    assert len(kubectl("get", "ijob", "-l", "part=1", "-o", "name").split()) == 2
    chosen = kubectl("get", "ijob", "--field-selector", "metadata.name=part-3", "-o", "name")
    assert chosen == "job.interlock.dev/part-3\n"


def test_get_what_is_not_there(kubectl: Kubectl) -> None:
    missing = kubectl.run("get", "ijob", "nowhere")
    assert missing.returncode == 1
    assert 'jobs.interlock.dev "nowhere" not found' in missing.stderr


def _read_until(stream: Any, word: str) -> str:
    told = ""
    while word not in told:
        assert select.select([stream], [], [], PATIENCE_S)[0], f"{word!r} never came: {told}"
        piece = os.read(stream.fileno(), 65536).decode()
        assert piece, f"{word!r} never came: {told}"
        told += piece
    return told


@pytest.mark.parametrize("form", ["table", "json"])
def test_get_and_go_on_watching(kubectl: Kubectl, form: str) -> None:
    apply(kubectl, f"watched-{form}")
    flags = ["-o", "json"] if form == "json" else []
    with subprocess.Popen(
        [kubectl.program, "get", "ijob", f"watched-{form}", "-w", *flags],
        stdout=subprocess.PIPE,
        env=kubectl.env,
    ) as watch:
        try:
            _read_until(watch.stdout, f"watched-{form}")
            kubectl("label", "ijob", f"watched-{form}", "seen=yes")
            if form == "json":
                _read_until(watch.stdout, '"seen": "yes"')
            else:
                _read_until(watch.stdout, f"watched-{form}")
            kubectl("delete", "ijob", f"watched-{form}", "--wait=false")
            word = "deletionTimestamp" if form == "json" else "deleting"
            _read_until(watch.stdout, word)
        finally:
            watch.kill()


def test_describe(kubectl: Kubectl) -> None:
    apply(kubectl, "described")
    told = kubectl("describe", "ijob", "described")
    assert "Name:         described" in told
    assert "Suspend:" in told


def test_explain(kubectl: Kubectl) -> None:
    assert "What to do about a task that failed" in kubectl("explain", "ijob.spec.retries")
    assert "maxDelay" in kubectl("explain", "ijob.spec.retries")
    assert "parallelism" in kubectl("explain", "ijob", "--recursive")
    assert "namespace" in kubectl("explain", "namespaces").lower()


def test_patch(kubectl: Kubectl) -> None:
    apply(kubectl, "patched")
    kubectl("patch", "ijob", "patched", "--type=merge", "-p", '{"spec":{"title":"one"}}')
    assert kubectl.json("get", "ijob", "patched")["spec"]["title"] == "one"
    operations = '[{"op":"replace","path":"/spec/title","value":"two"}]'
    kubectl("patch", "ijob", "patched", "--type=json", "-p", operations)
    assert kubectl.json("get", "ijob", "patched")["spec"]["title"] == "two"
    refused = kubectl.run("patch", "ijob", "patched", "-p", '{"spec":{"title":"three"}}')
    assert refused.returncode != 0
    assert "--type=merge" in refused.stderr


def test_label_and_annotate(kubectl: Kubectl) -> None:
    apply(kubectl, "marked")
    kubectl("label", "ijob", "marked", "team=blue")
    kubectl("annotate", "ijob", "marked", "note=hello")
    metadata = kubectl.json("get", "ijob", "marked")["metadata"]
    assert metadata["labels"] == {"team": "blue"}
    assert metadata["annotations"]["note"] == "hello"
    kubectl("label", "ijob", "marked", "team-")
    assert "labels" not in kubectl.json("get", "ijob", "marked")["metadata"]


def test_wait_for_a_condition(kubectl: Kubectl) -> None:
    apply(kubectl, "awaited", suspend=False, process=None, noop={})
    kubectl("wait", "--for=condition=Complete", "ijob/awaited", f"--timeout={PATIENCE_S:.0f}s")
    if kubectl.minor >= 23:
        kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "ijob/awaited")


def _await_watches(kubectl: Kubectl, some: bool) -> None:
    """Wait until somebody watches, or until nobody does."""
    for _ in range(1000):
        told = kubectl("get", "--raw", "/metrics")
        (line,) = (one for one in told.splitlines() if one.startswith("interlock_http_watches "))
        if (float(line.split()[1]) > 0) is some:
            return
    raise AssertionError("the watches never were as expected")


def test_wait_for_deletion(kubectl: Kubectl) -> None:
    apply(kubectl, "going")
    hold = '{"metadata":{"finalizers":["example.org/hold"]}}'
    kubectl("patch", "ijob", "going", "--type=merge", "-p", hold)
    kubectl("delete", "ijob", "going", "--wait=false")
    _await_watches(kubectl, some=False)
    with subprocess.Popen(
        [kubectl.program, "wait", "--for=delete", "ijob/going", f"--timeout={PATIENCE_S:.0f}s"],
        env=kubectl.env,
    ) as waiting:
        _await_watches(kubectl, some=True)
        kubectl("patch", "ijob", "going", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert waiting.wait(PATIENCE_S) == 0
    assert kubectl.run("get", "ijob", "going").returncode == 1


def test_delete_waits_until_it_is_gone(kubectl: Kubectl) -> None:
    apply(kubectl, "deleted")
    assert kubectl("delete", "ijob", "deleted") == 'job.interlock.dev "deleted" deleted\n'
    assert kubectl.run("get", "ijob", "deleted").returncode == 1
    for name in ("many-1", "many-2"):
        apply(kubectl, name)
        kubectl("label", "ijob", name, "many=yes")
    kubectl("delete", "ijob", "-l", "many=yes")
    assert kubectl("get", "ijob", "-l", "many=yes", "-o", "name") == ""


def test_dry_run_changes_nothing(kubectl: Kubectl) -> None:
    assert "(server dry run)" in apply(kubectl, "dry", "--dry-run=server")
    assert kubectl.run("get", "ijob", "dry").returncode == 1
    apply(kubectl, "dry")
    kubectl("delete", "ijob", "dry", "--dry-run=server")
    apply(kubectl, "dry", "--dry-run=server", title="x")
    assert "title" not in kubectl.json("get", "ijob", "dry")["spec"]


def test_a_bad_object_is_refused_with_every_reason(kubectl: Kubectl) -> None:
    bad = manifest("bad", timout="5m", retries={"delay": "soon"})
    refused = kubectl.run("create", "--validate=false", "-f", "-", given=bad)
    assert refused.returncode == 1
    assert "spec.retries.delay" in refused.stderr
    strict = kubectl.run("apply", "-f", "-", given=bad)
    assert strict.returncode == 1
    assert "timout" in strict.stderr


def test_namespaces(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "elsewhere")
    kubectl("label", "namespace", "elsewhere", "team=blue")
    kubectl("patch", "namespace", "elsewhere", "-p", '{"metadata":{"labels":{"more":"yes"}}}')
    labels = kubectl.json("get", "namespace", "elsewhere")["metadata"]["labels"]
    assert labels == {"team": "blue", "more": "yes"}
    kubectl("apply", "-n", "elsewhere", "-f", "-", given=manifest("there"))
    assert "there" in kubectl("get", "ijob", "-n", "elsewhere")
    assert kubectl.run("get", "ijob", "there").returncode == 1
    kubectl("delete", "namespace", "elsewhere")
    assert kubectl.run("get", "namespace", "elsewhere").returncode == 1


def test_what_the_server_has(kubectl: Kubectl) -> None:
    told = kubectl("api-resources", "--api-group=interlock.dev", "--no-headers")
    assert [line.split()[0] for line in told.splitlines()] == [
        "calendars",
        "controlledjobs",
        "jobconfigs",
        "jobs",
        "locks",
        "queuequotas",
        "queues",
        "schedulingclaims",
        "schedulings",
        "testbeds",
        "testbedslots",
    ]
    assert "interlock.dev/v1alpha1" in kubectl("api-versions")
    assert "ok" in kubectl("get", "--raw", "/readyz")
    refused = kubectl.run(
        "create",
        "-f",
        "-",
        given=json.dumps(
            {
                "apiVersion": "interlock.dev/v1alpha1",
                "kind": "Lock",
                "metadata": {"name": "mine"},
                "spec": {"key": "mine"},
            }
        ),
    )
    assert "made and removed by the system" in refused.stderr
