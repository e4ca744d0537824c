"""Everything that `interlock manifests` installs, with controllers that have no other rights."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from installing import apply, install_definitions, path_of, wait_until_allowed

from interlock.kube.adoption.reading import stand_in_name
from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import manifests
from interlock.kube.pods.naming import GATE
from interlock.resources.adopted import QUEUE_LABEL, AdoptedKind
from interlock.resources.job import JOB_FINALIZER
from interlock.testing.serving import PATIENCE_S
from support.kube import Cluster
from support.kube.access import Access, Document
from support.kube.controllers import Controller
from support.kube.pods import Play, a_batch_job, a_pod
from support.kube.ports import Ports

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
INSTALL = Installation()


def a_job(name: str, **container: Any) -> dict[str, Any]:
    pod = a_pod("", {Play.RUNS_FOR: "100ms"})
    pod["spec"]["containers"][0] |= container
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    metadata = {"name": name}
    kind = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job"}
    return {**kind, "metadata": metadata, "spec": {"pod": template, "locks": [{"key": "db"}]}}


def as_account(access: Access, folder: Path) -> Path:
    """A kubeconfig with a token of the controller's account, as its pods are given one."""
    account = f"/api/v1/namespaces/{INSTALL.namespace}/serviceaccounts/{INSTALL.name}"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = access.create(f"{account}/token", asked)["status"]["token"]
    cluster = {"server": access.url, "certificate-authority": str(access.authority)}
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "account"}}],
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "account", "user": {"token": token}}],
    }
    file = folder / "account.kubeconfig"
    file.write_text(yaml.safe_dump(config), "utf-8")
    return file


@pytest.fixture(scope="module")
def installed(
    own_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Controller]]:
    """Two controllers; the API server asks the one whose webhook has the port."""
    access, folder = own_cluster.access, tmp_path_factory.mktemp("installed")
    install_definitions(access)
    for one in manifests(INSTALL, ["rbac", "webhook"]):
        if "Configuration" not in one["kind"]:
            assert apply(access, one).status in (200, 201)
    wait_until_allowed(access, INSTALL.account, "create", "/pods", "default")
    leases = "coordination.k8s.io/leases"
    wait_until_allowed(access, INSTALL.account, "create", leases, INSTALL.namespace)
    hooks = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
    wait_until_allowed(access, INSTALL.account, "patch", hooks, "", INSTALL.cluster_name)
    with ExitStack() as stack:
        ports = Ports()
        stack.callback(ports.close)
        port = ports.take()
        environment = {"KUBECONFIG": str(as_account(access, folder))}
        found = [
            stack.enter_context(
                Controller(access, folder, "--plain-http", *more, environment=environment)
            )
            for more in (("--webhook-listen", f"127.0.0.1:{port}"), ())
        ]
        for one in configurations(port):
            assert apply(access, one).status in (200, 201)
        yield found
        for one in configurations(port):
            access.ask("DELETE", path_of(one))


def configurations(port: int) -> list[Document]:
    """The webhook configurations, for a webhook on this machine instead of behind a service."""
    made = [one for one in manifests(INSTALL, ["webhook"]) if "Configuration" in one["kind"]]
    for one in made:
        for hook in one["webhooks"]:
            path = hook["clientConfig"].pop("service")["path"]
            hook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
    return made


def refusal_of(access: Access, job: Document) -> Document:
    """The refusal, once the API server has heard of the configurations; it takes its own time."""
    until = time.monotonic() + PATIENCE_S
    while (answer := access.ask("POST", f"{JOBS}?dryRun=All", job)).status != 422:
        assert time.monotonic() < until, answer.body
        select.select([], [], [], 0.05)
    return answer.body


def test_a_job_is_judged_completed_and_run(
    own_cluster: Cluster, installed: list[Controller]
) -> None:
    """The leader says whom to trust, so it has to be the one with the webhook that leads."""
    access = own_cluster.access
    if installed[1].leads:
        installed[1].kill()
    installed[0].wait_until_leading()
    for one in configurations(0):
        access.wait_for(
            path_of(one),
            lambda found: all(hook["clientConfig"].get("caBundle") for hook in found["webhooks"]),
        )
    refused = refusal_of(access, a_job("bad", args=["${task.indx}"]))
    assert "spec.pod.spec.containers[0].args[0]" in refused["message"]
    assert "task.index" in refused["message"]

    made = access.create(JOBS, a_job("good"))

    assert JOB_FINALIZER in made["metadata"]["finalizers"]
    ended = access.wait_for(
        f"{JOBS}/good", lambda job: job.get("status", {}).get("phase") == "Succeeded"
    )
    assert ended["status"]["admission"]["grants"][0]["token"] > 0
    # The finalizer that came with it was not written a second time: nothing but its status was.
    assert ended["metadata"]["generation"] == 1
    access.remove(f"{JOBS}/good")
    access.wait_until_gone(f"{JOBS}/good")


def test_schedules_run_with_the_rights_of_the_account(
    own_cluster: Cluster, installed: list[Controller]
) -> None:
    """A JobConfig and a ControlledJob, in any namespace, with their events; then all of it goes."""
    access = own_cluster.access
    assert any(one.running for one in installed)
    with access.namespace() as namespace:
        root = f"/apis/interlock.dev/v1alpha1/namespaces/{namespace}"
        work = {"spec": {"pod": a_job("")["spec"]["pod"]}}
        kind = {"apiVersion": "interlock.dev/v1alpha1"}
        config = {"schedules": [{"cron": "* * * * * * *"}], "template": work}
        body = {"kind": "JobConfig", "metadata": {"name": "tick"}, "spec": config}
        access.create(f"{root}/jobconfigs", kind | body)
        year = [("start", "0 0 1 1 *"), ("stop", "59 23 31 12 *")]
        events = [{"action": action, "cron": cron} for action, cron in year]
        engine = {"events": events, "jobTemplate": work}
        body = {"kind": "ControlledJob", "metadata": {"name": "engine"}, "spec": engine}
        access.create(f"{root}/controlledjobs", kind | body)

        access.wait_for(
            f"{root}/jobconfigs/tick", lambda one: "lastSuccess" in one.get("status", {})
        )
        access.wait_for(
            f"{root}/controlledjobs/engine",
            lambda one: (one.get("status", {}).get("window") or {}).get("outcome") == "Finished",
        )
        told = {"CreatedJob", "JobStarted"}
        until = time.monotonic() + PATIENCE_S
        while not told <= reasons_in(access, namespace):
            assert time.monotonic() < until, reasons_in(access, namespace)
            select.select([], [], [], 0.1)
        access.remove(f"{root}/jobconfigs/tick")
        access.remove(f"{root}/controlledjobs/engine")
        while access.read(f"{root}/jobs")["items"]:
            assert time.monotonic() < until + PATIENCE_S
            select.select([], [], [], 0.1)


def reasons_in(access: Access, namespace: str) -> set[str]:
    """The reasons of all events of a namespace."""
    return {one["reason"] for one in access.read(f"/api/v1/namespaces/{namespace}/events")["items"]}


def test_what_others_label_waits_until_its_namespace_may_use_the_queue(
    own_cluster: Cluster, installed: list[Controller]
) -> None:
    """Held back by the webhook, let run by whoever leads, with the rights of the account."""
    access = own_cluster.access
    installed[0].wait_until_leading()
    queue: Document = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Queue"}
    selector = {"matchLabels": {"team": "ml"}}
    queue |= {"metadata": {"name": "ml"}}
    queue |= {"spec": {"resources": {"tasks": 2}, "namespaceSelector": selector}}
    access.create("/apis/interlock.dev/v1alpha1/queues", queue)
    jobs, pods = "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces/default/pods"

    job = access.create(jobs, labelled(a_batch_job("theirs", {Play.RUNS_FOR: "100ms"})))
    pod = access.create(pods, labelled(a_pod("single")))
    other = access.create(jobs, a_batch_job("unlabelled", {Play.RUNS_FOR: "100ms"}))

    assert job["spec"]["suspend"] is True
    assert other["spec"].get("suspend") is not True
    assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
    for kind, made in ((AdoptedKind.BATCH_JOB, job), (AdoptedKind.POD, pod)):
        name = stand_in_name(kind, made["metadata"]["name"], made["metadata"]["uid"])
        access.wait_for(f"{JOBS}/{name}", lambda found: waits_for(found) == ["QueueNotAllowed"])
    # Labelled only now: that wakes those who wait.
    access.change("/api/v1/namespaces/default", {"metadata": {"labels": {"team": "ml"}}})
    access.wait_for(f"{jobs}/theirs", lambda found: found["status"].get("succeeded") == 1)
    access.wait_for(f"{pods}/single", lambda found: found["status"]["phase"] == "Running")
    access.remove(f"{pods}/single")
    access.wait_until_gone(f"{pods}/single")
    for name in ("theirs", "unlabelled"):
        access.remove(f"{jobs}/{name}", propagationPolicy="Background")
        access.wait_until_gone(f"{jobs}/{name}")
    access.remove("/apis/interlock.dev/v1alpha1/queues/ml")


def labelled(thing: Document) -> Document:
    """An object that asks for the Queue."""
    thing["metadata"].setdefault("labels", {})[QUEUE_LABEL] = "ml"
    return thing


def waits_for(job: Document) -> list[str]:
    waits = job.get("status", {}).get("admission", {}).get("waits") or ()
    return [wait["reason"] for wait in waits]
