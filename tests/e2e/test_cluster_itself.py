"""The control plane of the tests is a real one, and its fake pods do what they are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from support.kube import VERSIONS, Access, User
from support.kube.access import Document
from support.kube.cluster import NODES, POD_LOG, node_is_ready
from support.kube.pods import Play, a_batch_job, a_pod


def has_phase(phase: str) -> Callable[[Document], bool]:
    return lambda pod: bool(pod) and pod["status"]["phase"] == phase


def has_condition(type: str, status: str = "True") -> Callable[[Document], bool]:
    def holds(found: Document) -> bool:
        conditions = found.get("status", {}).get("conditions", ())
        return any(one["type"] == type and one["status"] == status for one in conditions)

    return holds


def container(pod: Document) -> Document:
    """The state of the pod's only container."""
    (status,) = pod["status"]["containerStatuses"]
    state: Document = status["state"]
    return state


@pytest.fixture
def pods(namespace: str) -> str:
    """Where the test's pods are."""
    return f"/api/v1/namespaces/{namespace}/pods"


def start(cluster: Access, pods: str, played: dict[Play, str] | None = None) -> str:
    """Create a pod that the scheduler has to place; returns its path."""
    cluster.create(pods, a_pod("pod", played))
    return f"{pods}/pod"


def test_it_is_the_pinned_version(cluster: Access) -> None:
    told = cluster.read("/version")

    assert told["gitVersion"].startswith("v" + VERSIONS["kube-apiserver"].rpartition(".")[0])


def test_its_nodes_are_ready(cluster: Access) -> None:
    for name in NODES:
        cluster.wait_for(f"/api/v1/nodes/{name}", node_is_ready)


def test_a_pod_runs_until_it_is_deleted(cluster: Access, pods: str) -> None:
    pod = start(cluster, pods)

    running = cluster.wait_for(pod, has_phase("Running"))

    assert running["spec"]["nodeName"] in NODES
    assert has_condition("Ready")(running)
    assert has_condition("PodScheduled")(running)
    assert running["status"]["podIP"]
    cluster.remove(pod)
    cluster.wait_until_gone(pod)


def test_a_pod_completes_after_its_time(cluster: Access, pods: str) -> None:
    pod = start(cluster, pods, {Play.RUNS_FOR: "3s"})

    ended = container(cluster.wait_for(pod, has_phase("Succeeded")))["terminated"]

    assert ended["exitCode"] == 0
    # The moments are whole seconds, and two clocks were read.
    took = datetime.fromisoformat(ended["finishedAt"]) - datetime.fromisoformat(ended["startedAt"])
    assert took >= timedelta(seconds=2)


def test_a_pod_fails_with_its_code(cluster: Access, pods: str) -> None:
    pod = start(cluster, pods, {Play.EXIT_CODE: "17"})

    failed = cluster.wait_for(pod, has_phase("Failed"))

    assert container(failed)["terminated"]["exitCode"] == 17


def test_a_pod_that_cannot_start_stays_pending(cluster: Access, pods: str) -> None:
    pod = start(cluster, pods, {Play.NEVER_STARTS: "ImagePullBackOff"})

    waiting = cluster.wait_for(
        pod, lambda found: bool(found) and "containerStatuses" in found["status"]
    )

    assert waiting["status"]["phase"] == "Pending"
    assert container(waiting)["waiting"]["reason"] == "ImagePullBackOff"


def test_a_pod_that_is_never_ready_runs(cluster: Access, pods: str) -> None:
    pod = start(cluster, pods, {Play.NEVER_READY: "true"})

    running = cluster.wait_for(pod, has_phase("Running"))

    assert has_condition("Ready", "False")(running)


@pytest.mark.parametrize(
    ("played", "code"),
    [
        pytest.param({}, 143, id="at once"),
        pytest.param({Play.STOPS_AFTER: "2s"}, 143, id="slowly"),
        pytest.param({Play.IGNORES_STOP: "true"}, 137, id="only when killed"),
    ],
)
def test_a_deleted_pod_tells_how_it_ended(
    cluster: Access, pods: str, played: dict[Play, str], code: int
) -> None:
    held = a_pod("pod", played, terminationGracePeriodSeconds=1)
    held["metadata"]["finalizers"] = ["interlock.dev/tests"]
    cluster.create(pods, held)
    cluster.wait_for(f"{pods}/pod", has_phase("Running"))

    cluster.remove(f"{pods}/pod")

    ended = cluster.wait_for(f"{pods}/pod", has_phase("Failed"))
    assert "deletionTimestamp" in ended["metadata"]
    assert container(ended)["terminated"]["exitCode"] == code
    cluster.change(f"{pods}/pod", {"metadata": {"finalizers": None}})
    cluster.wait_until_gone(f"{pods}/pod")


def test_a_pod_that_never_stops_needs_force(cluster: Access, pods: str) -> None:
    pod = start(cluster, pods, {Play.NEVER_STOPS: "true"})
    cluster.wait_for(pod, has_phase("Running"))
    cluster.remove(pod, gracePeriodSeconds=1)
    assert "deletionTimestamp" in cluster.read(pod)["metadata"]

    cluster.remove(pod, gracePeriodSeconds=0)

    cluster.wait_until_gone(pod)


def test_a_batch_job_completes(cluster: Access, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    cluster.create(jobs, a_batch_job("job", {Play.RUNS_FOR: "1s"}, completions=3, parallelism=2))

    complete = cluster.wait_for(f"{jobs}/job", has_condition("Complete"))

    assert complete["status"]["succeeded"] == 3


def test_a_batch_job_fails(cluster: Access, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    cluster.create(jobs, a_batch_job("job", {Play.EXIT_CODE: "3"}, backoffLimit=0))

    failed = cluster.wait_for(f"{jobs}/job", has_condition("Failed"))

    assert failed["status"]["failed"] == 1


def test_the_log_of_a_pod_can_be_read(cluster: Access, pods: str) -> None:
    pod = start(cluster, pods)
    cluster.wait_for(pod, has_phase("Running"))

    told = cluster.ask("GET", f"{pod}/log")

    assert (told.status, told.body) == (200, {"message": POD_LOG})


@pytest.mark.parametrize(
    ("user", "list_code", "create_code"),
    [
        pytest.param(User.ADMIN, 200, 201, id="admin"),
        pytest.param(User.EDITOR, 200, 201, id="editor"),
        pytest.param(User.VIEWER, 200, 403, id="viewer"),
        pytest.param(User.CONTROLLER, 403, 403, id="controller"),
        pytest.param(User.NOBODY, 403, 403, id="nobody"),
    ],
)
def test_a_user_may_do_what_they_may(
    cluster: Access, pods: str, user: User, list_code: int, create_code: int
) -> None:
    assert cluster.ask("GET", pods, user=user).status == list_code
    assert cluster.ask("POST", pods, a_pod("pod"), user=user).status == create_code
