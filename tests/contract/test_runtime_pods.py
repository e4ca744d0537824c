"""Pods of a real control plane keep every promise of a runtime."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.errors import FencedError
from interlock.resources.tasks import ReportState, TaskReport
from interlock.testing.runtime_contract import Exits, RuntimeContract, Scene, WorkShop, is_over
from support.cluster_store import install
from support.kube import Access, find, shared
from support.kube.binaries import HELP
from support.kube.pod_workshop import PodShop


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """The control plane that all tests of the run share, with our kinds installed."""
    programs = find()
    if programs is None:
        pytest.skip(f"there is no Kubernetes control plane here: {HELP}")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Each test process has its own folder within the run's.
        base = base.parent
    with shared(programs.folder, base / "kube") as access:
        install(access)
        yield access


class TestPodRuntime(RuntimeContract):
    @pytest.fixture(autouse=True)
    def _place(self, access: Access) -> None:
        self.access = access

    def play(self, scene: Scene, place: Path) -> None:
        PodShop.play(scene, self.access)

    def signal_of(self, report: TaskReport) -> int | None:
        """Kubelets tell a signal as an exit code, as shells do."""
        return report.exit_code - 128 if report.exit_code is not None else None

    @pytest.mark.skip("a pod is over with its last process: kubelets see to that, not the runtime")
    def test_an_attempt_is_over_with_its_last_child(self, tmp_path: Path) -> None:
        raise NotImplementedError

    def test_what_an_old_leader_creates_late_never_runs_by_itself(self, tmp_path: Path) -> None:
        """The lease runs out after the create was sent: nothing lets the pod run."""

        async def scene(shop: WorkShop) -> None:
            assert isinstance(shop, PodShop)
            order = shop.order(Exits())
            fence = shop.fence
            # The pod is seen as soon as it is there, and before the answer allows the next write.
            shop.runtime.subscribe(lambda _: fence.shut("the lease ran out"))
            with pytest.raises(FencedError):
                await shop.runtime.launch([order])
            await shop.crash()

            (report,) = await shop.runtime.reports()

            assert report.id == order.id
            assert report.state is ReportState.ACCEPTED
            (pod,) = shop.access.read(shop.pods)["items"]
            assert pod["spec"]["schedulingGates"]
            await shop.runtime.launch([order])
            await shop.until(is_over(order.id))
            assert shop.starts(order.id) == 1

        self.play(scene, tmp_path)
