"""Pods of others that a Queue lets run keep the runtime contract: they are claimed, not created."""

from __future__ import annotations

from pathlib import Path
from random import Random

from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.pods import naming
from interlock.resources.adopted import QUEUE_LABEL, AdoptedKind, AdoptedObject
from interlock.resources.tasks import TaskOrder, TaskReport
from interlock.resources.work import AdoptedWork, PodWork
from interlock.testing.runtime_contract import CannotStart, RuntimeContract, Scene, Work
from support.simulation.pod_workshop import SimPodShop


class AdoptingShop(SimPodShop):
    """Its orders are about pods that are there already, labelled and gated."""

    def order(self, work: Work, *, job: str = "job", index: int = 0, attempt: int = 1) -> TaskOrder:
        ours = super().order(work, job=job, index=index, attempt=attempt)
        assert isinstance(ours.work, PodWork)
        name = f"theirs-{ours.name}"
        found = [pod for pod in self.cluster.api.all("Pod") if pod["metadata"]["name"] == name]
        uid = found[0]["metadata"]["uid"] if found else "there is none"
        if not found and not isinstance(work, CannotStart):
            metadata = ours.work.template.metadata
            made = self.cluster.api.create(
                "Pod",
                ours.namespace,
                {
                    "metadata": {
                        "name": name,
                        "labels": {**metadata.labels, QUEUE_LABEL: "team"},
                        "annotations": dict(metadata.annotations),
                    },
                    "spec": {
                        **ours.work.template.spec,
                        "restartPolicy": "Never",
                        "terminationGracePeriodSeconds": 30,
                        "schedulingGates": [{"name": naming.GATE}],
                    },
                },
            )
            uid = made["metadata"]["uid"]
        object = AdoptedObject(kind=AdoptedKind.POD, name=name, uid=uid)
        return replace(ours, work=AdoptedWork(object=object, queue="team"))


class TestSimulatedAdoptedPods(RuntimeContract):
    """Scenes are played in simulated time."""

    def play(self, scene: Scene, place: Path) -> None:
        loop = SimLoop(Random(0))

        async def played() -> None:
            await scene(AdoptingShop(loop))

        try:
            loop.run(played())
        finally:
            loop.close()

    def signal_of(self, report: TaskReport) -> int | None:
        """Kubelets tell a signal as an exit code, as shells do."""
        return report.exit_code - 128 if report.exit_code is not None else None
