"""Jobs that have to be ready in time, on a real cluster: pods that no node takes, and slow ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cluster_store import install
from support.kube import Access
from support.kube.access import Document
from support.kube.controllers import Controller
from support.kube.pods import Play, a_batch_job, a_pod

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/{}/jobs"
QUEUES = "/apis/interlock.dev/v1alpha1/queues"
#: Nobody waits for the long limit, nor for the next try.
POLICY = (
    '{"enable": true, "timeout": "1h", "unscheduledTimeout": "1s",'
    ' "requeuingStrategy": {"backoffBaseSeconds": 3600}}'
)


@pytest.fixture
def controller(cluster: Access, namespace: str, tmp_path: Path) -> Iterator[Controller]:
    """A controller of a fresh namespace with a policy for all Queues, and a Queue without one."""
    install(cluster)
    queue = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": namespace},
        "spec": {"resources": {"tasks": 20}},
    }
    cluster.create(QUEUES, queue)
    with Controller(
        cluster, tmp_path, "--wait-for-pods-ready", POLICY, namespace=namespace
    ) as started:
        yield started


def add(controller: Controller, name: str, **spec: Any) -> None:
    job = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}}
    spec = {"queue": controller.namespace, **spec}
    controller.access.create(JOBS.format(controller.namespace), job | {"spec": spec})


def template(played: dict[Play, str] | None = None, **spec: Any) -> Document:
    pod = a_pod("x", played, **spec)
    return {
        "metadata": {"annotations": pod["metadata"].get("annotations", {})},
        "spec": pod["spec"],
    }


def batch(played: dict[Play, str] | None = None, **spec: Any) -> Document:
    return {"spec": a_batch_job("x", played, **spec)["spec"]}


def wait(controller: Controller, name: str, type: str, reason: str) -> Document:
    """The Job, once one of its conditions has a reason."""

    def has(job: Document) -> bool:
        conditions = job.get("status", {}).get("conditions", ())
        return any((one["type"], one["reason"]) == (type, reason) for one in conditions)

    return controller.access.wait_for(f"{JOBS.format(controller.namespace)}/{name}", has)


def test_pods_that_no_node_takes_are_told_from_slow_ones(controller: Controller) -> None:
    # Where a machine takes longer than the limit to place a pod, it is placed in another try.
    again = {"requeuingStrategy": {"backoffBaseSeconds": 0}}
    slow = template({Play.STARTS_AFTER: "600s"})
    add(controller, "slow", pod=slow, waitForPodsReady=again)
    pulls = template({Play.NEVER_STARTS: "ImagePullBackOff"})
    add(controller, "pulls", pod=pulls, waitForPodsReady=again)
    placed = {name: wait(controller, name, "PodsScheduled", "Placed") for name in ("slow", "pulls")}
    add(controller, "nowhere", pod=template(nodeSelector={"no-node": "has-this"}))

    def is_back(job: Document) -> bool:
        return bool(job.get("status", {}).get("admission", {}).get("evictions"))

    path = f"{JOBS.format(controller.namespace)}/nowhere"
    admission = controller.access.wait_for(path, is_back)["status"]["admission"]

    eviction = admission["eviction"]
    assert (eviction["reason"], eviction["cause"]) == ("PodsReadyTimeout", "Unscheduled")
    assert [one["reason"] for one in admission["waits"]] == ["RequeueBackoff"]
    for name in ("slow", "pulls"):
        job = wait(controller, name, "PodsReady", "WaitForStart")
        assert _evictions(job) == _evictions(placed[name]), "it has its hour"
    # The command line finds what holds in the record, for it has no settings of a controller.
    records = controller.access.read("/apis/interlock.dev/v1alpha1/queuequotas")["items"]
    members = [one for each in records for one in each["status"].get("members", ())]
    [ours] = [one for one in members if one["queue"] == controller.namespace]
    assert '"unscheduledTimeout":"1s"' in ours["ready"]


def _evictions(job: Document) -> int:
    evictions: int = job["status"]["admission"].get("evictions", 0)
    return evictions


def test_a_batch_job_is_ready_when_as_many_pods_are_as_run_at_a_time(
    controller: Controller,
) -> None:
    add(controller, "never", batchJob=batch({Play.NEVER_READY: "true"}, parallelism=2))
    add(controller, "both", batchJob=batch(parallelism=2, completions=2))
    wait(controller, "both", "PodsReady", "Started")
    wait(controller, "never", "PodsReady", "WaitForStart")
