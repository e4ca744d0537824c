"""The controller while its cluster is not ready, away, or does not let it in."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.modes.cli.main import main
from support.cluster_store import install
from support.kube import Cluster, User
from support.kube.controllers import Controller

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
JOB = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "spec": {"noop": {}}}


def see_a_job_succeed(cluster: Cluster, name: str) -> None:
    """See the controller work."""
    cluster.access.create(JOBS, JOB | {"metadata": {"name": name}})
    cluster.access.wait_for(
        f"{JOBS}/{name}", lambda job: job.get("status", {}).get("phase") == "Succeeded"
    )


def test_the_command_line_says_what_is_not_installed(
    own_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = str(own_cluster.access.kubeconfig())

    assert main(["get", "jobs", "--kubeconfig", kubeconfig]) == 4

    told = capsys.readouterr().err
    assert "does not know Interlock's kinds" in told
    assert "interlock manifests --only crds" in told


def test_kinds_that_are_not_installed_are_waited_for(own_cluster: Cluster, tmp_path: Path) -> None:
    controller = Controller(own_cluster.access, tmp_path, namespace="default")
    try:
        controller.start().wait_for_log("interlock manifests --only crds")
        assert controller.ask("GET", "/livez").status == 200
        ready = controller.ask("GET", "/readyz")
        assert ready.status == 503
        assert "interlock manifests --only crds" in ready.body["message"]

        install(own_cluster.access)

        controller.wait_until_ready()
        see_a_job_succeed(own_cluster, "first")
    finally:
        controller.close()


def test_an_api_server_that_is_away_is_waited_for(own_cluster: Cluster, tmp_path: Path) -> None:
    install(own_cluster.access)
    own_cluster.stop_component("kube-apiserver")
    controller = Controller(own_cluster.access, tmp_path, namespace="default")
    try:
        controller.start().wait_for_log("waiting: .*does not answer")
        assert controller.ask("GET", "/livez").status == 200
        assert controller.ask("GET", "/readyz").status == 503

        own_cluster.start_component("kube-apiserver")

        controller.wait_until_ready()
        see_a_job_succeed(own_cluster, "second")
    finally:
        controller.close()


def test_a_leader_outlives_its_api_server(own_cluster: Cluster, tmp_path: Path) -> None:
    install(own_cluster.access)
    with Controller(own_cluster.access, tmp_path, namespace="default") as controller:
        controller.wait_until_leading()

        own_cluster.kill("kube-apiserver")
        controller.wait_for_log("leading no more")
        assert controller.ask("GET", "/livez").status == 200
        own_cluster.start_component("kube-apiserver")

        see_a_job_succeed(own_cluster, "third")


def test_who_may_not_read_jobs_cannot_be_a_controller(own_cluster: Cluster, tmp_path: Path) -> None:
    install(own_cluster.access)
    controller = Controller(own_cluster.access, tmp_path, user=User.NOBODY)
    try:
        assert controller.start().wait() == 1
        assert "interlock manifests --only rbac" in controller.log
    finally:
        controller.close()
