"""A control plane of one's own can be hurt, comes back, and leaves nothing behind."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.testing.serving import PATIENCE_S
from support.kube import VERSIONS, Cluster, shared
from support.kube.access import Document
from support.kube.cluster import NODES, node_is_schedulable
from support.kube.pods import NODE_NOT_READY, Play, a_pod

#: Has a cluster until it is killed, and tells the processes it is made of.
OWNER = """
import sys
from pathlib import Path
from support.kube import VERSIONS, Cluster
cluster = Cluster(Path(sys.argv[1]), Path(sys.argv[2])).start()
cluster.pause("etcd")
print(*(cluster.component(name).pid for name in VERSIONS), flush=True)
sys.stdin.read()
"""
#: Uses the shared cluster of a folder until it is killed.
USER = """
import sys
from pathlib import Path
from support.kube import shared
with shared(Path(sys.argv[1]), Path(sys.argv[2])):
    print("in", flush=True)
    sys.stdin.read()
"""


def run_a_pod(cluster: Cluster) -> None:
    """See a pod scheduled, started and ended: every program has done its part."""
    with cluster.namespace() as namespace:
        pods = f"/api/v1/namespaces/{namespace}/pods"
        cluster.access.create(pods, a_pod("pod", {Play.RUNS_FOR: "100ms"}))
        cluster.access.wait_for(
            f"{pods}/pod", lambda pod: bool(pod) and pod["status"]["phase"] == "Succeeded"
        )


def test_what_is_stored_survives_a_restart_of_the_api_server(own_cluster: Cluster) -> None:
    with own_cluster.namespace() as namespace:
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        made = own_cluster.access.create(maps, {"metadata": {"name": "kept"}})

        own_cluster.restart_api_server()

        assert own_cluster.access.read(f"{maps}/kept")["metadata"] == made["metadata"]
    run_a_pod(own_cluster)


@pytest.mark.parametrize("name", VERSIONS)
def test_a_killed_program_comes_back(own_cluster: Cluster, name: str) -> None:
    own_cluster.kill(name)
    assert not own_cluster.component(name).running

    own_cluster.start_component(name)

    run_a_pod(own_cluster)


@pytest.mark.parametrize("name", VERSIONS)
def test_a_paused_program_goes_on(own_cluster: Cluster, name: str) -> None:
    own_cluster.pause(name)
    own_cluster.resume(name)

    run_a_pod(own_cluster)


def test_a_node_gets_unready_and_ready(own_cluster: Cluster) -> None:
    node = f"/api/v1/nodes/{NODES[0]}"
    own_cluster.access.change(node, {"metadata": {"labels": {NODE_NOT_READY: "true"}}})
    own_cluster.access.wait_for(node, _is_tainted)

    own_cluster.access.change(node, {"metadata": {"labels": {NODE_NOT_READY: None}}})

    own_cluster.access.wait_for(node, node_is_schedulable)


def _is_tainted(node: Document) -> bool:
    return any(taint["key"].endswith("not-ready") for taint in node["spec"].get("taints", ()))


def test_nothing_is_left_of_a_cluster_whose_owner_is_killed(
    kube_programs: Path, tmp_path: Path
) -> None:
    with _running(OWNER, kube_programs, tmp_path) as owner:
        assert owner.stdout is not None
        handles = [os.pidfd_open(int(pid)) for pid in owner.stdout.readline().split()]
        assert len(handles) == len(VERSIONS)
        owner.kill()

        for handle in handles:
            _wait_for_end(handle)


def test_a_shared_cluster_ends_with_its_last_user(kube_programs: Path, tmp_path: Path) -> None:
    with _running(USER, kube_programs, tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "in\n"
        with shared(kube_programs, tmp_path) as access:
            # The one who started it is gone, and was asked nothing.
            first.kill()
            first.wait(PATIENCE_S)
            assert access.read("/readyz") == {"message": "ok"}

    # The last to leave has seen it end: nobody is there, or another cluster that we do not trust.
    with pytest.raises(OSError):
        access.read("/readyz")


def _running(program: str, programs: Path, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(programs), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _wait_for_end(handle: int) -> None:
    try:
        ended, _, _ = select.select([handle], [], [], PATIENCE_S)
        assert ended
    finally:
        os.close(handle)
