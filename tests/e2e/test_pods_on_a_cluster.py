"""What becomes of pods on a real control plane, in fair weather and foul."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from pod_scenes import HASTY, a_lone_node, is_in, play

from interlock.control.clock import pause
from interlock.control.runtime import OrderDeniedError, TaskStop
from interlock.errors import ConflictError
from interlock.kube.pods import naming
from interlock.kube.pods.launching import NameTakenError
from interlock.kube.pods.logs import NoLogError, PodLogs
from interlock.kube.pods.manifest import arm_pod
from interlock.resources.tasks import ReportState, TaskOrder
from interlock.resources.values.durations import Duration
from interlock.testing.runtime_contract import CannotStart, Exits, RunsOn, is_over
from support.cluster_store import install
from support.kube import Access
from support.kube.cluster import POD_LOG
from support.kube.pod_workshop import PodShop
from support.kube.pods import NODE_NOT_READY, Play, a_pod


@pytest.fixture
def cluster(cluster: Access) -> Access:
    """The shared control plane, with our kinds: pods belong to Jobs."""
    install(cluster)
    return cluster


def test_a_pod_is_made_as_ordered(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(RunsOn(), grace=Duration(seconds=2.5))
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)

        made = cluster.read(f"{shop.pods}/{order.name}")

        assert "schedulingGates" not in made["spec"]
        assert made["spec"]["restartPolicy"] == "Never"
        assert made["spec"]["terminationGracePeriodSeconds"] == 3
        assert {"name": "INTERLOCK_TASK", "value": order.name} in made["spec"]["containers"][0][
            "env"
        ]
        assert made["metadata"]["finalizers"] == [naming.FINALIZER]
        assert made["metadata"]["ownerReferences"][0]["uid"] == order.job_uid

    play(cluster, namespace, scene)


def test_a_pod_that_was_created_and_not_armed_is_adopted(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(Exits(7))
        await shop.runtime.launch([shop.order(RunsOn(), index=1)])
        fence = shop.fence
        shop.runtime.subscribe(lambda _: fence.shut("crashed"))
        with pytest.raises(Exception, match="crashed"):
            await shop.runtime.launch([order])
        uid = cluster.read(f"{shop.pods}/{order.name}")["metadata"]["uid"]
        await shop.crash()

        await shop.runtime.launch([order])

        told = await shop.until(is_over(order.id))
        assert told[order.id].exit_code == 7
        assert cluster.read(f"{shop.pods}/{order.name}")["metadata"]["uid"] == uid

    play(cluster, namespace, scene)


def test_a_patch_for_another_uid_changes_nothing(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        cluster.create(shop.pods, a_pod("pod", schedulingGates=[{"name": naming.GATE}]))
        objects = shop.witness.pods.objects
        found = await objects.get(namespace, "pod")
        gone = replace(found, metadata=replace(found.metadata, uid="gone"))

        with pytest.raises(ConflictError):
            await objects.patch(namespace, "pod", arm_pod(gone, shop.clock.now()))

        assert (await objects.get(namespace, "pod")).is_waiting

    play(cluster, namespace, scene)


def test_a_pod_of_somebody_else_is_left_alone(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(Exits())
        cluster.create(shop.pods, a_pod(order.name))
        good = shop.order(Exits(), index=1)

        await shop.runtime.launch([order, good])

        told = await shop.until(is_over(order.id, good.id))
        assert told[order.id].state is ReportState.NOT_STARTED
        assert f"{namespace}/{order.name}" in told[order.id].message
        assert told[good.id].state is ReportState.ENDED
        assert "deletionTimestamp" not in cluster.read(f"{shop.pods}/{order.name}")["metadata"]

    play(cluster, namespace, scene)


def test_a_quota_that_is_used_up_denies_a_launch_in_the_servers_words(
    cluster: Access, namespace: str
) -> None:
    async def scene(shop: PodShop) -> None:
        quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
        cluster.create(quotas, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
        cluster.wait_for(f"{quotas}/none", lambda found: "hard" in found.get("status", {}))
        order, bad = shop.order(Exits(3)), shop.order(CannotStart(), index=1)

        with pytest.raises(OrderDeniedError, match="exceeded quota: none, requested: pods=1"):
            await shop.runtime.launch([order, bad])

        # What is wrong in itself is told as such; the other one is as if it had not been ordered.
        told = await shop.until(is_over(bad.id))
        assert list(told) == [bad.id]
        cluster.remove(f"{quotas}/none")
        await launched(shop, order)
        assert (await shop.until(is_over(order.id)))[order.id].exit_code == 3

    play(cluster, namespace, scene)


async def launched(shop: PodShop, order: TaskOrder) -> None:
    """Give an order until it is not denied any more: the server hears of a quota by watch."""
    while True:
        try:
            await shop.runtime.launch([order])
            return
        except OrderDeniedError:
            await pause(shop.clock, 0.1)


def test_a_namespace_that_is_not_there_is_told(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        shop.uid_of("job")
        shop.namespace, here = "there-is-no-such-namespace", shop.namespace
        order = shop.order(Exits())
        shop.namespace = here

        await shop.runtime.launch([order])

        report = (await shop.until(is_over(order.id)))[order.id]
        assert report.state is ReportState.NOT_STARTED
        assert "there-is-no-such-namespace" in report.message

    play(cluster, namespace, scene)


def test_what_is_refused_can_be_forgotten(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(CannotStart())
        await shop.runtime.launch([order])
        await shop.until(is_over(order.id))

        await shop.runtime.forget([order.id])

        assert not await shop.runtime.reports()

    play(cluster, namespace, scene)


def test_what_was_forgotten_stays_so_for_the_next_leader(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order, later = shop.order(Exits()), shop.order(Exits(), index=1)
        await shop.runtime.launch([order, later])
        await shop.until(is_over(order.id, later.id))
        await shop.runtime.forget([order.id])

        await shop.crash()

        assert [report.id for report in await shop.runtime.reports()] == [later.id]
        assert cluster.read(f"{shop.pods}/{order.name}")["status"]["phase"] == "Succeeded"

    play(cluster, namespace, scene)


def test_a_pod_runs_until_it_says_that_it_ended(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(RunsOn(), played={Play.NEVER_STOPS: "true"})
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)

        await shop.runtime.stop([TaskStop(order.id, 1.0)])

        told = await shop.until(lambda told: told[order.id].stopped)
        assert told[order.id].state is ReportState.RUNNING
        await shop.crash()
        (report,) = await shop.runtime.reports()
        assert (report.state, report.stopped) == (ReportState.RUNNING, True)
        cluster.change(
            f"{shop.pods}/{order.name}", {"metadata": {"annotations": {Play.NEVER_STOPS: None}}}
        )
        told = await shop.until(is_in(order.id, ReportState.ENDED))
        assert told[order.id].exit_code == 143

    play(cluster, namespace, scene)


def test_a_lost_node_keeps_its_pod_until_force_is_due(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        with a_lone_node(cluster, f"lone-{namespace}") as there:
            order = shop.order(
                RunsOn(),
                played={Play.NEVER_STOPS: "true"},
                spec=there,
                force_delete_after=Duration(seconds=1),
            )
            await shop.runtime.launch([order])
            await shop.until_begun(order.id)
            await shop.runtime.stop([TaskStop(order.id, 1.0)])
            told = await shop.until(is_in(order.id, ReportState.UNKNOWN))
            assert f"lone-{namespace}" in told[order.id].message
            # As long as the node says that it is well, force would be a lie.
            assert "deletionTimestamp" in cluster.read(f"{shop.pods}/{order.name}")["metadata"]

            cluster.change(
                f"/api/v1/nodes/lone-{namespace}",
                {"metadata": {"labels": {NODE_NOT_READY: "true"}}},
            )

            report = (await shop.until(is_in(order.id, ReportState.ENDED)))[order.id]
            assert (report.stopped, report.exit_code) == (True, None)
            assert "by force" in report.message
            # It is held until somebody has recorded that.
            await shop.crash()
            assert [told.state for told in await shop.runtime.reports()] == [ReportState.ENDED]
            await shop.runtime.forget([order.id])
            cluster.wait_until_gone(f"{shop.pods}/{order.name}")

    play(cluster, namespace, scene, HASTY)


def test_a_pod_that_vanishes_while_it_runs_is_unknown(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(RunsOn())
        await shop.runtime.launch([order])
        await shop.until(is_in(order.id, ReportState.RUNNING))
        pod = f"{shop.pods}/{order.name}"

        cluster.change(pod, {"metadata": {"finalizers": None}})
        cluster.remove(pod, gracePeriodSeconds=0)

        await shop.until(is_in(order.id, ReportState.UNKNOWN))
        await shop.runtime.launch([order])
        cluster.wait_until_gone(pod)

    play(cluster, namespace, scene)


def test_a_pod_that_waits_says_why(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        nowhere = shop.order(RunsOn(), spec={"nodeSelector": {"no": "such-node"}})
        no_image = shop.order(RunsOn(), index=1, played={Play.NEVER_STARTS: "ImagePullBackOff"})
        gated = shop.order(RunsOn(), index=2, spec={"schedulingGates": [{"name": "example.com/x"}]})
        await shop.runtime.launch([nowhere, no_image, gated])

        reasons = {
            nowhere.id: "Unschedulable",
            no_image.id: "ImagePullBackOff",
            gated.id: "example.com/x",
        }
        told = await shop.until(
            lambda told: all(words in told[task].message for task, words in reasons.items())
        )
        assert {one.state for one in told.values()} == {ReportState.ACCEPTED}
        await shop.runtime.stop([TaskStop(order.id, 1.0) for order in (nowhere, no_image, gated)])
        told = await shop.until(is_over(nowhere.id, gated.id))
        assert told[nowhere.id].state is ReportState.NOT_STARTED
        assert told[gated.id].state is ReportState.NOT_STARTED

    play(cluster, namespace, scene)


def test_the_pod_of_an_earlier_job_makes_room(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        jobs = f"/apis/interlock.dev/v1alpha1/namespaces/{namespace}/jobs"
        old = shop.order(RunsOn())
        await shop.runtime.launch([old])
        await shop.until_begun(old.id)
        cluster.remove(f"{jobs}/job", propagationPolicy="Orphan")
        cluster.wait_until_gone(f"{jobs}/job")
        shop.forget_job("job")
        new = shop.order(Exits(4))
        assert new.name == old.name

        with pytest.raises(NameTakenError):
            await shop.runtime.launch([new])
        await shop.runtime.stop([TaskStop(old.id, 1.0)])
        await shop.until(is_over(old.id))
        await shop.runtime.launch([new])

        assert (await shop.until(is_over(new.id)))[new.id].exit_code == 4

    play(cluster, namespace, scene)


@pytest.mark.parametrize("follow", [False, True])
def test_the_log_of_an_attempt_is_read_from_its_node(
    follow: bool, cluster: Access, namespace: str
) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(Exits())
        await shop.runtime.launch([order])
        seen = shop.witness.pods
        await shop.until(lambda _: any(pod.is_over for pod in seen.of_job(order.job_uid)))
        logs = PodLogs(seen, shop.client)
        assert logs.newest_attempt(order.job_uid, 0) == 1

        parts = [
            part
            async for part in logs.read(order.job_uid, 0, 1, since=None, tail=None, follow=follow)
        ]

        assert b"".join(parts).decode() == POD_LOG

    play(cluster, namespace, scene)


def test_a_log_that_cannot_be_had_is_explained(cluster: Access, namespace: str) -> None:
    async def scene(shop: PodShop) -> None:
        order = shop.order(RunsOn(), spec={"nodeSelector": {"no": "such-node"}})
        await shop.runtime.launch([order])
        logs = PodLogs(shop.witness.pods, shop.client)
        await shop.until(lambda _: logs.newest_attempt(order.job_uid, 0) == 1)

        for attempt, words in ((1, "on no node"), (2, "there is no pod of attempt 3")):
            with pytest.raises(NoLogError, match=words):
                async for _ in logs.read(
                    order.job_uid, 0, attempt, since=None, tail=3, follow=False
                ):
                    pass

    play(cluster, namespace, scene)
