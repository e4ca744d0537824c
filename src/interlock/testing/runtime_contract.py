"""What every runtime promises, as one suite; backends give it a stage to play on.

A backend's test class inherits `RuntimeContract` and says in `play` how a scene is run: on a real
machine with an event loop, or in a simulated world without one. Scenes know work by what it does,
never by its command.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from msgspec import Struct

from interlock.control.runtime import Runtime, TaskStop
from interlock.errors import FencedError
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport, is_ready

SIGKILL = 9
SIGTERM = 15
#: Longer than any test may take: a stop that waits for it has not worked.
FOREVER_S = 100_000.0


class Exits(Struct, frozen=True):
    """Work that ends by itself with an exit code."""

    code: int = 0


class RunsOn(Struct, frozen=True):
    """Work that runs until a signal ends it."""


class ExitsWhenTold(Struct, frozen=True):
    """Work that runs until the test calls `WorkShop.let_go`, then exits with a code."""

    code: int = 0


class ReadyWhenTold(Struct, frozen=True):
    """Work that runs until a signal ends it, with a probe that says what the test says last.

    Until the test calls `WorkShop.make_ready` for the first time it is not ready.
    """


class IgnoresSigterm(Struct, frozen=True):
    """Work that only SIGKILL ends."""


class LeavesChild(Struct, frozen=True):
    """Work that exits, and leaves a child in a session of its own that runs on."""

    code: int = 0


class CannotStart(Struct, frozen=True):
    """Work whose program does not exist."""


Work = Exits | RunsOn | ExitsWhenTold | ReadyWhenTold | IgnoresSigterm | LeavesChild | CannotStart
Told = Mapping[TaskId, TaskReport]


class WorkShop(Protocol):
    """A machine with a runtime on it, and a way to see what really happens there."""

    @property
    def runtime(self) -> Runtime:
        """The runtime of the present leader."""
        ...

    def order(self, work: Work, *, job: str = "job", index: int = 0, attempt: int = 1) -> TaskOrder:
        """An order for some work."""
        ...

    async def until(self, true: Callable[[Told], bool]) -> Told:
        """Wait until the reports are so; time passes meanwhile."""
        ...

    async def until_begun(self, task: TaskId) -> None:
        """Wait until the work itself runs, ready for signals."""
        ...

    def let_go(self, task: TaskId) -> None:
        """Tell work that `ExitsWhenTold` to exit."""
        ...

    def make_ready(self, task: TaskId, ready: bool) -> None:
        """Have work that is `ReadyWhenTold` be ready, or not any more."""
        ...

    def starts(self, task: TaskId) -> int:
        """How often the work of an attempt was begun, as the work itself counts."""
        ...

    def alive(self) -> int:
        """How many processes of any attempt live on the machine, children included."""
        ...

    async def crash(self) -> None:
        """The leader is gone without a word; `runtime` is then that of the next one."""
        ...

    async def usurp(self) -> Runtime:
        """A newer leader takes over while the old one lives; returns the old one's runtime."""
        ...


Scene = Callable[[WorkShop], Awaitable[None]]


def is_over(*tasks: TaskId) -> Callable[[Told], bool]:
    """Whether all these attempts are over, one way or another."""
    return lambda told: all(
        task in told and told[task].state not in (ReportState.ACCEPTED, ReportState.RUNNING)
        for task in tasks
    )


def stop_of(order: TaskOrder, grace_s: float) -> TaskStop:
    """The stop of what was ordered."""
    return TaskStop(order.id, grace_s, runtime=order.runtime)


class RuntimeContract:
    """Inherit it, implement `play`, and pytest collects the promises."""

    def play(self, scene: Scene, place: Path) -> None:
        """Run a scene on a fresh machine, and leave nothing of it behind."""
        raise NotImplementedError

    def code_of(self, report: TaskReport) -> int | None:
        """With which exit code an attempt ended, in the words of this runtime."""
        return report.exit_code

    def signal_of(self, report: TaskReport) -> int | None:
        """Which signal ended an attempt, in the words of this runtime."""
        return report.signal

    @pytest.mark.parametrize("code", [0, 1, 42, 255])
    def test_the_exit_code_is_told(self, code: int, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(Exits(code))
            await shop.runtime.launch([order])
            report = (await shop.until(is_over(order.id)))[order.id]
            assert report.state is ReportState.ENDED
            assert (self.code_of(report), report.signal) == (code, None)
            assert (report.namespace, report.job) == (order.namespace, order.job)
            assert not report.stopped
            assert report.started_at is not None
            assert report.ended_at is not None

        self.play(scene, tmp_path)

    def test_a_repeated_launch_starts_nothing(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(Exits(3))
            await shop.runtime.launch([order, order])
            await shop.runtime.launch([order])
            await shop.until(is_over(order.id))
            await shop.runtime.launch([order])
            other = shop.order(Exits(), index=1)
            await shop.runtime.launch([other])
            await shop.until(is_over(other.id))
            assert shop.starts(order.id) == 1

        self.play(scene, tmp_path)

    def test_what_was_launched_is_known_at_once(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            orders = [shop.order(RunsOn(), index=index) for index in range(5)]
            await shop.runtime.launch(orders)
            known = {report.id for report in await shop.runtime.reports()}
            assert known == {order.id for order in orders}

        self.play(scene, tmp_path)

    def test_one_that_cannot_start_harms_no_other(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            bad = shop.order(CannotStart(), index=0)
            good = shop.order(Exits(), index=1)
            await shop.runtime.launch([bad, good])
            told = await shop.until(is_over(bad.id, good.id))
            assert told[bad.id].state is ReportState.NOT_STARTED
            assert told[bad.id].message
            assert told[good.id].state is ReportState.ENDED

        self.play(scene, tmp_path)

    def test_listeners_hear_of_the_end(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            heard: dict[TaskId, TaskReport] = {}
            shop.runtime.subscribe(lambda reports: heard.update({r.id: r for r in reports}))
            order = shop.order(Exits(7))
            await shop.runtime.launch([order])
            await shop.until(lambda _: is_over(order.id)(heard))
            assert self.code_of(heard[order.id]) == 7

        self.play(scene, tmp_path)

    def test_what_runs_is_ready_unless_it_is_said_not_to_be(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(RunsOn())
            await shop.runtime.launch([order])
            told = await shop.until(lambda told: order.id in told and is_ready(told[order.id]))
            assert told[order.id].state is ReportState.RUNNING

        self.play(scene, tmp_path)

    def test_what_has_a_probe_is_ready_when_that_says_so(self, tmp_path: Path) -> None:
        """It runs meanwhile, and its leaders come and go."""

        async def scene(shop: WorkShop) -> None:
            order = shop.order(ReadyWhenTold())

            def turns(ready: bool) -> Callable[[Told], bool]:
                return lambda told: order.id in told and told[order.id].ready is ready

            await shop.runtime.launch([order])
            await shop.until_begun(order.id)
            report = (await shop.until(turns(False)))[order.id]
            assert not is_ready(report)
            for ready in (True, False, True):
                shop.make_ready(order.id, ready)
                report = (await shop.until(turns(ready)))[order.id]
                assert report.state is ReportState.RUNNING
                assert is_ready(report) is ready
                await shop.crash()
                assert is_ready((await shop.until(turns(ready)))[order.id]) is ready
            await shop.runtime.stop([stop_of(order, FOREVER_S)])
            await shop.until(is_over(order.id))
            assert shop.alive() == 0

        self.play(scene, tmp_path)

    def test_a_stop_ends_what_runs(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(RunsOn())
            await shop.runtime.launch([order])
            await shop.until_begun(order.id)
            await shop.runtime.stop([stop_of(order, FOREVER_S)])
            report = (await shop.until(is_over(order.id)))[order.id]
            assert (report.state, self.signal_of(report)) == (ReportState.ENDED, SIGTERM)
            assert report.stopped
            assert shop.alive() == 0

        self.play(scene, tmp_path)

    def test_what_ignores_a_stop_is_killed_after_the_grace(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(IgnoresSigterm())
            await shop.runtime.launch([order])
            await shop.until_begun(order.id)
            await shop.runtime.stop([stop_of(order, 0.2)])
            report = (await shop.until(is_over(order.id)))[order.id]
            assert (report.state, self.signal_of(report)) == (ReportState.ENDED, SIGKILL)
            assert shop.alive() == 0

        self.play(scene, tmp_path)

    @pytest.mark.parametrize("graces", [(FOREVER_S, 0.0), (0.2, FOREVER_S)])
    def test_a_second_stop_shortens_and_never_lengthens(
        self, graces: tuple[float, float], tmp_path: Path
    ) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(IgnoresSigterm())
            await shop.runtime.launch([order])
            await shop.until_begun(order.id)
            for grace_s in graces:
                await shop.runtime.stop([stop_of(order, grace_s)])
            report = (await shop.until(is_over(order.id)))[order.id]
            assert self.signal_of(report) == SIGKILL

        self.play(scene, tmp_path)

    def test_a_stop_before_the_launch_forbids_the_start(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(Exits())
            await shop.runtime.stop([stop_of(order, 1.0)])
            await shop.runtime.launch([order])
            other = shop.order(Exits(), index=1)
            await shop.runtime.launch([other])
            told = await shop.until(is_over(order.id, other.id))
            assert told[order.id].state is ReportState.NOT_STARTED
            assert shop.starts(order.id) == 0

        self.play(scene, tmp_path)

    def test_a_stop_of_what_is_over_changes_nothing(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(Exits(5))
            await shop.runtime.launch([order])
            before = (await shop.until(is_over(order.id)))[order.id]
            await shop.runtime.stop([stop_of(order, 0.0)])
            assert {r.id: r for r in await shop.runtime.reports()}[order.id] == before

        self.play(scene, tmp_path)

    def test_only_what_is_over_is_forgotten(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            over, running = shop.order(Exits()), shop.order(RunsOn(), index=1)
            await shop.runtime.launch([over, running])
            await shop.until(is_over(over.id))
            await shop.runtime.forget([over.id, running.id, TaskId("nobody", 0, 1)])
            assert [r.id for r in await shop.runtime.reports()] == [running.id]

        self.play(scene, tmp_path)

    def test_what_was_forgotten_never_starts_again(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(Exits(), attempt=2)
            await shop.runtime.launch([order])
            await shop.until(is_over(order.id))
            await shop.runtime.forget([order.id])
            await shop.runtime.launch([order])
            later = shop.order(Exits(), attempt=3)
            await shop.runtime.launch([later])
            await shop.until(is_over(later.id))
            assert shop.starts(order.id) == 1
            assert shop.starts(later.id) == 1

        self.play(scene, tmp_path)

    def test_an_attempt_is_over_with_its_last_child(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            order = shop.order(LeavesChild(3))
            await shop.runtime.launch([order])
            await shop.until_begun(order.id)
            assert (await shop.until(lambda told: order.id in told))[order.id].state in (
                ReportState.ACCEPTED,
                ReportState.RUNNING,
            )
            await shop.runtime.stop([stop_of(order, FOREVER_S)])
            report = (await shop.until(is_over(order.id)))[order.id]
            assert report.state is ReportState.ENDED
            assert shop.alive() == 0

        self.play(scene, tmp_path)

    def test_work_outlives_its_leader(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            waits = [shop.order(ExitsWhenTold(10 + n), index=n) for n in range(4)]
            await shop.runtime.launch(waits)
            for order in waits:
                await shop.until_begun(order.id)
            shop.let_go(waits[0].id)
            await shop.crash()
            for order in waits[1:]:
                shop.let_go(order.id)
            told = await shop.until(is_over(*(order.id for order in waits)))
            assert [self.code_of(told[order.id]) for order in waits] == [10, 11, 12, 13]
            await shop.runtime.launch(waits)
            assert [shop.starts(order.id) for order in waits] == [1, 1, 1, 1]

        self.play(scene, tmp_path)

    def test_an_old_leader_is_fenced(self, tmp_path: Path) -> None:
        async def scene(shop: WorkShop) -> None:
            running = shop.order(ExitsWhenTold(0))
            await shop.runtime.launch([running])
            await shop.until_begun(running.id)
            old = await shop.usurp()
            stray = shop.order(Exits(), index=1)
            with pytest.raises(FencedError):
                await old.launch([stray])
            with pytest.raises(FencedError):
                await old.stop([stop_of(running, 0.0)])
            shop.let_go(running.id)
            report = (await shop.until(is_over(running.id)))[running.id]
            assert self.code_of(report) == 0
            assert shop.starts(stray.id) == 0

        self.play(scene, tmp_path)
