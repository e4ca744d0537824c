"""A router over two runtimes keeps the runtime contract for the work of either, and what only
several runtimes can promise: what one of them does is no matter of the other's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from interlock.control.runtime import (
    OrderDeniedError,
    PartOfReportsError,
    Runtime,
    RuntimeUnavailableError,
    TaskStop,
)
from interlock.errors import FencedError, UnavailableError
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.resources.metadata import Order
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport
from interlock.runtimes.router import Router
from interlock.testing.runtime_contract import (
    FOREVER_S,
    Exits,
    RunsOn,
    RuntimeContract,
    Scene,
    Told,
    Work,
    is_over,
    stop_of,
)
from support.simulation.workshop import SimWorkShop

OTHER = "others"


class TwoShops:
    """Two simulated machines behind one router; orders are for one of them unless told."""

    def __init__(self, loop: SimLoop, runtime: str) -> None:
        self.shops = {"": SimWorkShop(loop), OTHER: SimWorkShop(loop)}
        self._runtime = runtime
        self.fenced = ""
        self._router = self._route()

    @property
    def runtime(self) -> Runtime:
        return self._router

    def order(
        self,
        work: Work,
        *,
        job: str = "job",
        index: int = 0,
        attempt: int = 1,
        runtime: str | None = None,
    ) -> TaskOrder:
        name = self._runtime if runtime is None else runtime
        order = self.shops[""].order(work, job=job, index=index, attempt=attempt)
        return replace(order, runtime=name)

    async def until(self, true: Callable[[Told], bool]) -> Told:
        while True:
            told = {report.id: report for report in await self._router.reports()}
            if true(told):
                return told
            await asyncio.sleep(0.05)

    async def until_begun(self, task: TaskId) -> None:
        while not self.starts(task):
            await asyncio.sleep(0.05)

    def let_go(self, task: TaskId) -> None:
        self.shops[self._runtime].let_go(task)

    def make_ready(self, task: TaskId, ready: bool) -> None:
        self.shops[self._runtime].make_ready(task, ready)

    def starts(self, task: TaskId) -> int:
        return sum(shop.starts(task) for shop in self.shops.values())

    def alive(self) -> int:
        return sum(shop.alive() for shop in self.shops.values())

    async def crash(self) -> None:
        for shop in self.shops.values():
            await shop.crash()
        self._router = self._route()

    async def usurp(self) -> Runtime:
        old = self._router
        for shop in self.shops.values():
            await shop.usurp()
        self._router = self._route()
        return old

    def _route(self) -> Router:
        runtimes = {"machine": self.shops[""].runtime, OTHER: self.shops[OTHER].runtime}
        return Router(runtimes, own="machine", check=self._check)

    def _check(self) -> None:
        if self.fenced:
            raise FencedError(self.fenced)


def played(runtime: str, scene: Callable[[TwoShops], Awaitable[None]]) -> None:
    loop = SimLoop(Random(0))

    async def run() -> None:
        await scene(TwoShops(loop, runtime))

    try:
        loop.run(run())
    finally:
        loop.close()


class TestOwnRuntime(RuntimeContract):
    """Work that names no runtime."""

    def play(self, scene: Scene, place: Path) -> None:
        del place
        played("", scene)


class TestOtherRuntime(RuntimeContract):
    """Work that names one."""

    def play(self, scene: Scene, place: Path) -> None:
        del place
        played(OTHER, scene)


def test_orders_go_where_they_belong_and_reports_say_whence() -> None:
    async def scene(shop: TwoShops) -> None:
        here, there = shop.order(Exits(1)), shop.order(Exits(2), index=1, runtime=OTHER)
        heard: dict[TaskId, TaskReport] = {}
        shop.runtime.subscribe(lambda told: heard.update({each.id: each for each in told}))

        await shop.runtime.launch([here, there])
        told = await shop.until(is_over(here.id, there.id))

        assert [shop.shops[name].starts(here.id) for name in ("", OTHER)] == [1, 0]
        assert [shop.shops[name].starts(there.id) for name in ("", OTHER)] == [0, 1]
        for known in (told, heard):
            assert (known[here.id].exit_code, known[here.id].runtime) == (1, "")
            assert (known[there.id].exit_code, known[there.id].runtime) == (2, OTHER)

    played("", scene)


def test_a_runtime_that_is_down_stops_no_order_of_another() -> None:
    async def scene(shop: TwoShops) -> None:
        shop.shops[OTHER].machine.reachable = False
        here, there = shop.order(Exits(1)), shop.order(Exits(), index=1, runtime=OTHER)

        with pytest.raises(RuntimeUnavailableError, match="others: ") as down:
            await shop.runtime.launch([there, here])

        assert down.value.runtime == OTHER
        await shop.until_begun(here.id)
        with pytest.raises(RuntimeUnavailableError):
            await shop.runtime.stop([stop_of(there, 0.0), stop_of(here, 0.0)])
        assert shop.starts(there.id) == 0

    played("", scene)


@pytest.mark.parametrize(("down", "silent"), [(OTHER, OTHER), ("", "")])
def test_what_the_others_know_is_told_while_one_is_down(down: str, silent: str) -> None:
    async def scene(shop: TwoShops) -> None:
        orders = {
            name: shop.order(RunsOn(), job=name or "own", runtime=name) for name in ("", OTHER)
        }
        await shop.runtime.launch(list(orders.values()))
        shop.shops[down].machine.reachable = False

        with pytest.raises(PartOfReportsError) as part:
            await shop.runtime.reports()

        assert part.value.silent == {silent}
        left = orders["" if down else OTHER]
        assert [(report.id, report.runtime) for report in part.value.reports] == [
            (left.id, left.runtime)
        ]
        shop.shops["" if down else OTHER].machine.reachable = False
        with pytest.raises(UnavailableError) as none:
            await shop.runtime.reports()
        assert not isinstance(none.value, PartOfReportsError)

    played("", scene)


def test_what_is_for_an_unknown_runtime_is_denied_with_words() -> None:
    async def scene(shop: TwoShops) -> None:
        good, lost = shop.order(RunsOn()), shop.order(RunsOn(), index=1, runtime="robots")

        with pytest.raises(OrderDeniedError) as launch:
            await shop.runtime.launch([lost, good])
        await shop.until_begun(good.id)
        with pytest.raises(OrderDeniedError) as stop:
            await shop.runtime.stop([stop_of(lost, FOREVER_S), stop_of(good, FOREVER_S)])

        await shop.until(is_over(good.id))
        assert (launch.value.order, stop.value.order) == (Order.LAUNCH, Order.STOP)
        for denied in (launch.value, stop.value):
            assert str(denied) == 'there is no runtime "robots" here, only: machine, others'

    played("", scene)


def test_orders_of_two_jobs_are_denied_apart() -> None:
    """Orders of one turn go out together, and still a denial harms one Job only."""

    async def scene(shop: TwoShops) -> None:
        good = shop.order(Exits(), job="good")
        lost = shop.order(Exits(), job="lost", runtime="robots")

        answers = await asyncio.gather(
            shop.runtime.launch([lost]), shop.runtime.launch([good]), return_exceptions=True
        )

        assert isinstance(answers[0], OrderDeniedError)
        assert answers[1] is None
        await shop.until(is_over(good.id))

    played("", scene)


def test_a_stray_that_another_leader_left_is_stopped_and_forgotten_where_it_is() -> None:
    async def scene(shop: TwoShops) -> None:
        stray = shop.order(RunsOn(), runtime=OTHER)
        await shop.runtime.launch([stray])
        await shop.until_begun(stray.id)
        await shop.crash()
        report = (await shop.until(lambda told: stray.id in told))[stray.id]

        await shop.runtime.stop([TaskStop(report.id, 1.0, runtime=report.runtime)])
        over = (await shop.until(is_over(stray.id)))[stray.id]
        await shop.runtime.forget([stray.id])

        assert (over.state, over.stopped) == (ReportState.ENDED, True)
        assert await shop.runtime.reports() == []

    played("", scene)


def test_one_that_was_fenced_is_told_whatever_the_others_say() -> None:
    async def scene(shop: TwoShops) -> None:
        old = shop.runtime
        await shop.shops[OTHER].usurp()

        with pytest.raises(FencedError):
            await old.reports()
        with pytest.raises(FencedError):
            await old.launch([shop.order(Exits()), shop.order(Exits(), index=1, runtime=OTHER)])

    played("", scene)


def test_what_was_gathered_goes_out_only_while_the_gate_is_open() -> None:
    async def scene(shop: TwoShops) -> None:
        order = shop.order(Exits())
        going_out = asyncio.ensure_future(shop.runtime.launch([order]))
        await asyncio.sleep(0)
        shop.fenced = "another one leads"

        with pytest.raises(FencedError, match="another one leads"):
            await going_out

        assert await shop.runtime.reports() == []

    played("", scene)
