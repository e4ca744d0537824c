"""Workers of a cluster: the leader gives them orders, and a result outlives it."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed, InvalidStatus

from interlock.kube.install.installation import Installation
from interlock.kube.install.workers import workers
from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube import Access
from support.kube.access import Document
from support.kube.controllers import Controller
from support.scripted_worker import ScriptedWorker

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/{}/jobs"


@pytest.fixture
def installed(cluster: Access) -> Access:
    """The shared cluster with our kinds."""
    install(cluster)
    return cluster


@pytest.fixture
def controller(installed: Access, namespace: str, tmp_path: Path) -> Iterator[Controller]:
    """A controller of a fresh namespace."""
    with Controller(installed, tmp_path, namespace=namespace) as started:
        yield started.wait_until_leading()


def worker_token(access: Access, namespace: str) -> str:
    """A token of the account that the manifests make for workers, with its one right."""
    install = Installation(namespace=namespace, everywhere=False, worker_app="broker:app")
    kinds = {
        "ServiceAccount": f"/api/v1/namespaces/{namespace}/serviceaccounts",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    }
    for one in workers(install):
        if one["kind"] in kinds:
            access.create(kinds[one["kind"]], one)
    path = f"{kinds['ServiceAccount']}/interlock-worker/token"
    made = access.create(
        path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    )
    return str(made["status"]["token"])


def an_operation(name: str) -> Document:
    run: dict[str, Any] = {"python": {"function": "broker.reserve"}}
    job = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}}
    return job | {"spec": {"steps": [{"name": "reserve", "run": run}]}}


def ends(access: Access, namespace: str, name: str) -> Document:
    return access.wait_for(
        f"{JOBS.format(namespace)}/{name}",
        lambda job: job.get("status", {}).get("phase") in ("Succeeded", "Failed"),
    )


@contextmanager
def connected(worker: ScriptedWorker) -> Iterator[ScriptedWorker]:
    """The worker once it is let in: rights are heard of late, and so is who leads."""
    until = time.monotonic() + PATIENCE_S
    while (code := refused_with(worker)) is not None:
        assert code in (403, 503), code
        assert time.monotonic() < until, f"it is refused with {code}"
        select.select([], [], [], 0.1)
    with ExitStack() as stack:
        stack.push(worker.__exit__)
        yield worker


def refused_with(worker: ScriptedWorker) -> int | None:
    """The status with which a worker is refused; None when it is let in."""
    try:
        worker.enter()
    except InvalidStatus as refused:
        return refused.response.status_code
    return None


def test_a_worker_with_its_one_right_does_the_steps(controller: Controller) -> None:
    access, namespace = controller.access, controller.namespace
    token = worker_token(access, namespace)
    with connected(ScriptedWorker(controller.url, "broker.reserve", token=token)) as worker:
        access.create(JOBS.format(namespace), an_operation("create-shop"))
        call = worker.next_call()
        worker.done(call, '"gear-17"')
        worker.until_recorded(call.ref)

        assert ends(access, namespace, "create-shop")["status"]["phase"] == "Succeeded"
    for path in ("/workers", "/jobs", JOBS.format(namespace)):
        assert controller.ask("GET", path, token=token).status == 403


def test_a_result_outlives_the_leader_that_asked_for_it(
    controller: Controller, tmp_path: Path
) -> None:
    """One that follows sends workers away; once it leads, the result counts there, once."""
    access, namespace = controller.access, controller.namespace
    token = worker_token(access, namespace)
    first = ScriptedWorker(controller.url, "broker.reserve", token=token)
    with Controller(access, tmp_path, namespace=namespace) as second:
        with connected(first):
            lost = ScriptedWorker(second.url, "broker.reserve", token=token)
            while (code := refused_with(lost)) == 403:
                select.select([], [], [], 0.1)
            assert code == 503
            access.create(JOBS.format(namespace), an_operation("create-shop"))
            call = first.next_call()
            controller.kill()
            with pytest.raises(ConnectionClosed):
                first.hear()
        back = ScriptedWorker(second.url, "broker.reserve", token=token)
        back.hello = replace(first.hello, held=(call.ref,))
        with connected(back):
            back.done(call, '"gear-17"')
            back.until_recorded(call.ref)
            job = ends(access, namespace, "create-shop")
        assert job["status"]["phase"] == "Succeeded"
        assert job["status"]["execution"]["attempts"] == 1
