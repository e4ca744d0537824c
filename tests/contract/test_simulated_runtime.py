"""The simulated machine keeps the runtime contract, or the simulation proves nothing."""

from __future__ import annotations

from pathlib import Path
from random import Random

from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.testing.runtime_contract import RuntimeContract, Scene
from interlock.testing.simulation.workshop import SimWorkShop


class TestSimulatedRuntime(RuntimeContract):
    """Scenes are played in simulated time."""

    def play(self, scene: Scene, place: Path) -> None:
        loop = SimLoop(Random(0))

        async def played() -> None:
            await scene(SimWorkShop(loop))

        try:
            loop.run(played())
        finally:
            loop.close()
