"""What becomes of batch Jobs on a real control plane: over only when none of their pods lives."""

from __future__ import annotations

from typing import Any

import pytest
from pod_scenes import HASTY, is_in, play

from interlock.control.runtime import TaskStop
from interlock.errors import FencedError
from interlock.kube.pods import naming
from interlock.kube.pods.logs import PodLogs
from interlock.resources.tasks import ReportState
from interlock.testing.runtime_contract import is_over
from support.cluster_store import install
from support.kube import Access
from support.kube.cluster import POD_LOG
from support.kube.pod_workshop import PodShop
from support.kube.pods import Play


@pytest.fixture
def cluster(cluster: Access) -> Access:
    """The shared control plane, with our kinds: batch Jobs belong to Jobs."""
    install(cluster)
    return cluster


@pytest.mark.parametrize(
    ("played", "spec", "code", "words"),
    [
        pytest.param({Play.RUNS_FOR: "1s"}, {"completions": 2}, 0, "", id="complete"),
        pytest.param(
            {Play.EXIT_CODE: "3"}, {"backoffLimit": 0}, 1, "BackoffLimitExceeded", id="failed"
        ),
        pytest.param(
            {Play.EXIT_CODE: "3"}, {"backoffLimit": 1}, 1, "BackoffLimitExceeded", id="twice"
        ),
        pytest.param({}, {"activeDeadlineSeconds": 1}, 1, "DeadlineExceeded", id="too long"),
    ],
)
def test_the_end_of_a_batch_job_is_told(
    played: dict[Play, str],
    spec: dict[str, Any],
    code: int,
    words: str,
    cluster: Access,
    namespace: str,
) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.batch_order(played, **spec)
        await shop.runtime.launch([order])

        report = (await shop.until(is_over(order.id)))[order.id]

        assert (report.state, report.exit_code) == (ReportState.ENDED, code)
        assert words in report.message
        assert not report.stopped
        assert shop.alive() == 0
        await shop.runtime.forget([order.id])
        assert not await shop.runtime.reports()
        await shop.crash()
        assert not await shop.runtime.reports()

    play(cluster, namespace, scene)


def test_a_batch_job_fails_only_when_its_pods_are_gone(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.batch_order({Play.NEVER_STOPS: "true"}, activeDeadlineSeconds=1)
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        path = f"{shop.batch_jobs}/{order.name}"
        # Its controller gives it up, and asks its pod to go.
        cluster.wait_for(path, lambda found: _has(found, "FailureTarget", "Failed"))

        (report,) = await shop.runtime.reports()

        assert report.state is ReportState.RUNNING
        (pod,) = cluster.read(shop.pods)["items"]
        cluster.change(
            f"{shop.pods}/{pod['metadata']['name']}",
            {"metadata": {"annotations": {Play.NEVER_STOPS: None}}},
        )
        told = await shop.until(is_over(order.id))
        assert (told[order.id].state, told[order.id].exit_code) == (ReportState.ENDED, 1)

    play(cluster, namespace, scene)


def test_a_batch_job_that_is_stopped_ends_with_its_pods(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.batch_order({}, parallelism=2, completions=2)
        await shop.runtime.launch([order])
        await shop.until(lambda _: shop.starts(order.id) == 2)

        await shop.runtime.stop([TaskStop(order.id, 1.0)])

        # On a busy machine its pods are out of reach for a while, to such a hasty one.
        report = (await shop.until(is_in(order.id, ReportState.ENDED)))[order.id]
        assert report.stopped
        assert report.exit_code is None
        assert shop.alive() == 0
        await shop.crash()
        await shop.runtime.launch([order])
        await shop.until(is_over(order.id))
        assert cluster.read(f"{shop.batch_jobs}/{order.name}")["spec"]["suspend"] is True

    play(cluster, namespace, scene, HASTY)


def test_a_batch_job_that_was_not_armed_is_adopted(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.batch_order({Play.RUNS_FOR: "100ms"})
        fence = shop.fence
        shop.runtime.subscribe(lambda _: fence.shut("crashed"))
        with pytest.raises(FencedError):
            await shop.runtime.launch([order])
        await shop.crash()
        (report,) = await shop.runtime.reports()
        assert report.state is ReportState.ACCEPTED

        await shop.runtime.launch([order])

        told = await shop.until(is_over(order.id))
        assert told[order.id].exit_code == 0

    play(cluster, namespace, scene)


def test_a_batch_job_that_is_stopped_before_it_is_armed_never_runs(
    cluster: Access, namespace: str
) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.batch_order({})
        fence = shop.fence
        shop.runtime.subscribe(lambda _: fence.shut("crashed"))
        with pytest.raises(FencedError):
            await shop.runtime.launch([order])
        await shop.crash()

        await shop.runtime.stop([TaskStop(order.id, 1.0)])
        await shop.runtime.launch([order])

        told = await shop.until(is_over(order.id))
        assert told[order.id].state is ReportState.NOT_STARTED
        found = cluster.read(f"{shop.batch_jobs}/{order.name}")
        assert naming.ARMED_AT not in found["metadata"]["annotations"]
        assert shop.starts(order.id) == 0

    play(cluster, namespace, scene)


def test_a_batch_job_that_somebody_deletes_ends_with_its_pods(
    cluster: Access, namespace: str
) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.batch_order({})
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)

        cluster.remove(f"{shop.batch_jobs}/{order.name}")

        report = (await shop.until(is_in(order.id, ReportState.ENDED)))[order.id]
        assert report.stopped
        assert shop.alive() == 0
        await shop.runtime.forget([order.id])
        cluster.wait_until_gone(f"{shop.batch_jobs}/{order.name}")

    play(cluster, namespace, scene, HASTY)


def test_the_log_of_a_batch_job_is_that_of_its_newest_pod(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.batch_order({})
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        logs = PodLogs(shop.witness.pods, shop.client)
        await shop.until(lambda _: logs.newest_attempt(order.job_uid, 0) == 1)

        asked = logs.read(order.job_uid, 0, 1, since=None, tail=10, follow=True)

        assert (await anext(aiter(asked))).decode() == POD_LOG

    play(cluster, namespace, scene)


def _has(job: dict[str, Any], *types: str) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(one["type"] in types and one["status"] == "True" for one in conditions)
