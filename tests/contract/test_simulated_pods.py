"""Pods of the simulated cluster keep the runtime contract, as those of a real one do."""

from __future__ import annotations

from pathlib import Path
from random import Random

from interlock.resources.tasks import TaskReport
from interlock.testing.runtime_contract import RuntimeContract, Scene
from interlock.testing.simulation.loop import SimLoop
from interlock.testing.simulation.pod_workshop import SimPodShop


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

    def signal_of(self, report: TaskReport) -> int | None:
        """Kubelets tell a signal as an exit code, as shells do."""
        return report.exit_code - 128 if report.exit_code is not None else None
