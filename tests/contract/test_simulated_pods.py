"""Pods of the simulated cluster keep the runtime contract, as those of a real one do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from interlock.errors import ConflictError
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.pods.manifest import arm_pod, pod_of
from interlock.kube.pods.models import Pod
from interlock.resources.tasks import TaskReport
from interlock.testing.builders import T0
from interlock.testing.runtime_contract import Exits, RuntimeContract, Scene, WorkShop, is_over
from support.simulation.kube_api import Body, SimApi, gates_of, place_of
from support.simulation.pod_workshop import SimPodShop
from support.simulation.script import Denial


class TestSimulatedPods(RuntimeContract):
    """Scenes are played in simulated time."""

    def play(self, scene: Scene, place: Path) -> None:
        loop = SimLoop(Random(0))

        async def played() -> None:
            await scene(SimPodShop(loop))

        try:
            loop.run(played())
        finally:
            loop.close()

    def test_an_arming_that_arrives_late_lets_no_other_pod_run(self, tmp_path: Path) -> None:
        """The pod it was meant for is gone, and another one has its name."""

        async def scene(shop: WorkShop) -> None:
            assert isinstance(shop, SimPodShop)
            api, order = shop.cluster.api, shop.order(Exits())
            first = api.create("Pod", order.namespace, pod_of(order))
            late = arm_pod(msgspec.convert(first, Pod), T0)
            _remove(api, first)
            second = api.create("Pod", order.namespace, pod_of(order))

            with pytest.raises(ConflictError):
                api.patch("Pod", place_of(second), late)

            assert gates_of(api.get("Pod", place_of(second)))

        self.play(scene, tmp_path)

    def test_a_pod_of_an_earlier_job_is_not_taken_for_this_one(self, tmp_path: Path) -> None:
        """It was created late, for a Job of the same name that is gone."""

        async def scene(shop: WorkShop) -> None:
            assert isinstance(shop, SimPodShop)
            order = shop.order(Exits(3))
            earlier = replace(order, job_uid="uid-of-an-earlier-job")
            shop.cluster.api.create("Pod", order.namespace, pod_of(earlier))

            await shop.runtime.launch([order])

            report = (await shop.until(is_over(order.id)))[order.id]
            assert report.exit_code == 3
            assert (shop.starts(earlier.id), shop.starts(order.id)) == (0, 1)

        self.play(scene, tmp_path)

    def test_what_is_created_after_the_end_goes_when_that_is_forgotten(
        self, tmp_path: Path
    ) -> None:
        """The pod that ended was let go and nobody was told; then a late create takes its name."""

        async def scene(shop: WorkShop) -> None:
            assert isinstance(shop, SimPodShop)
            api, order = shop.cluster.api, shop.order(Exits())
            await shop.runtime.launch([order])
            await shop.until(is_over(order.id))
            _remove(api, api.get("Pod", (order.namespace, order.name)))
            api.create("Pod", order.namespace, pod_of(order))
            await asyncio.sleep(60)

            await shop.runtime.forget([order.id])

            await asyncio.sleep(60)
            assert api.all("Pod") == []
            assert shop.starts(order.id) == 1

        self.play(scene, tmp_path)

    def test_what_may_not_be_removed_now_goes_once_it_may(self, tmp_path: Path) -> None:
        """It was created late and holds a gate; its removal was refused, and never tried again."""

        async def scene(shop: WorkShop) -> None:
            assert isinstance(shop, SimPodShop)
            cluster, order = shop.cluster, shop.order(Exits())
            await shop.runtime.launch([order])
            await shop.until(is_over(order.id))
            _remove(cluster.api, cluster.api.get("Pod", (order.namespace, order.name)))
            cluster.api.create("Pod", order.namespace, pod_of(order))
            await asyncio.sleep(60)
            cluster.deny(Denial.NO_DELETE, 200.0)

            await shop.runtime.forget([order.id])

            await asyncio.sleep(600)
            assert cluster.api.all("Pod") == []

        self.play(scene, tmp_path)

    def test_what_may_not_be_let_go_now_is_let_go_once_it_may(self, tmp_path: Path) -> None:
        """Others are not kept waiting by it."""

        async def scene(shop: WorkShop) -> None:
            assert isinstance(shop, SimPodShop)
            cluster = shop.cluster
            first, second = (shop.order(Exits(), index=index) for index in range(2))
            await shop.runtime.launch([first, second])
            await shop.until(lambda told: all(is_over(one.id)(told) for one in (first, second)))
            cluster.deny(Denial.NO_PATCH, 200.0)
            await shop.runtime.forget([first.id])
            await asyncio.sleep(150)
            assert _held(cluster.api) == [first.name, second.name]
            await asyncio.sleep(51)

            await shop.runtime.forget([second.id])

            assert second.name not in _held(cluster.api)
            await asyncio.sleep(600)
            assert _held(cluster.api) == []
            assert list(await shop.runtime.reports()) == []

        self.play(scene, tmp_path)

    def signal_of(self, report: TaskReport) -> int | None:
        """Kubelets tell a signal as an exit code, as shells do."""
        return report.exit_code - 128 if report.exit_code is not None else None


def _held(api: SimApi) -> list[str]:
    """The names of the pods that something holds."""
    return [place_of(pod)[1] for pod in api.all("Pod") if pod["metadata"].get("finalizers")]


def _remove(api: SimApi, pod: Body) -> None:
    """Have a pod gone at once, whatever holds it."""
    api.delete("Pod", place_of(pod), grace_s=0)
    api.patch("Pod", place_of(pod), {"metadata": {"finalizers": []}})
