"""The simulated machine keeps the runtime contract, or the simulation proves nothing."""

from __future__ import annotations

from pathlib import Path
from random import Random

from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.resources.tasks import is_ready, progress_of, returned_of
from interlock.testing.runtime_contract import ExitsWhenTold, RuntimeContract, Scene, is_over
from support.simulation.workshop import SimWorkShop


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


def test_what_a_task_says_of_itself_is_told() -> None:
    loop = SimLoop(Random(0))
    news = {"progress": progress_of(40, "half of it"), "ready": False}
    returned = returned_of(b'{"rows": 7}')

    async def played() -> None:
        shop = SimWorkShop(loop)
        order = shop.order(ExitsWhenTold())
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        shop.machine.say(order.id, **news)
        report = (await shop.until(lambda told: order.id in told))[order.id]
        assert (report.progress, report.ready) == (news["progress"], False)
        assert not is_ready(report)

        shop.machine.say(order.id, returned=returned)
        shop.let_go(order.id)
        report = (await shop.until(is_over(order.id)))[order.id]
        assert (report.exit_code, report.returned) == (0, returned)

    try:
        loop.run(played())
    finally:
        loop.close()
