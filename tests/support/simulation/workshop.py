"""The simulated machine as a stage for the runtime contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from interlock.control.runtime import Runtime
from interlock.forecast.rehearsal.simulated_loop import SimLoop, SimProcess
from interlock.forecast.rehearsal.simulated_machine import Machine
from interlock.resources.tasks import TaskId, TaskOrder, task_name
from interlock.resources.work import ProcessWork
from interlock.testing.builders import T0
from interlock.testing.runtime_contract import (
    CannotStart,
    Exits,
    ExitsWhenTold,
    IgnoresSigterm,
    LeavesChild,
    ReadyWhenTold,
    RunsOn,
    Told,
    Work,
)
from support.simulation.faults import CALM, FaultyRuntime, Weather, Wire
from support.simulation.history import History

_FOREVER = "1000000000"


class SimWorkShop:
    """A simulated machine, its present leader, and what really happens there."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.machine = Machine(loop, Random(1), History(loop), T0)
        self._starts: dict[TaskId, int] = {}
        self.machine.started.append(lambda life: self._count(life.order.id))
        self._leaders: list[SimProcess] = []
        self._runtime = self._connect()

    @property
    def runtime(self) -> Runtime:
        """The runtime of the present leader."""
        return self._runtime

    def order(self, work: Work, *, job: str = "job", index: int = 0, attempt: int = 1) -> TaskOrder:
        """An order for some work."""
        return TaskOrder(
            job_uid=f"uid-{job}",
            index=index,
            attempt=attempt,
            name=task_name(job, index, attempt),
            namespace="default",
            job=job,
            work=ProcessWork(command=("work", *_words(work))),
        )

    async def until(self, true: Callable[[Told], bool]) -> Told:
        """Wait until the reports are so."""
        while True:
            told = {report.id: report for report in await self._runtime.reports()}
            if true(told):
                return told
            await asyncio.sleep(0.05)

    async def until_begun(self, task: TaskId) -> None:
        """Wait until the work runs."""
        while not self._starts.get(task):
            await asyncio.sleep(0.05)

    def let_go(self, task: TaskId) -> None:
        """Have work exit."""
        self.machine.finish(task)

    def make_ready(self, task: TaskId, ready: bool) -> None:
        """Have the probe of work say so."""
        self.machine.turn(task, ready)

    def starts(self, task: TaskId) -> int:
        """How often the work of an attempt was begun."""
        return self._starts.get(task, 0)

    def alive(self) -> int:
        """How many processes live."""
        return len(self.machine.lives)

    async def crash(self) -> None:
        """The leader is killed, and another one connects."""
        self._loop.kill(self._leaders[-1])
        self._runtime = self._connect()

    async def usurp(self) -> Runtime:
        """A newer leader takes over while the old one lives."""
        old = self._runtime
        self._runtime = self._connect()
        await self._runtime.hello()
        return old

    def _connect(self) -> FaultyRuntime:
        leader = self._loop.start_process(f"leader-{len(self._leaders)}")
        self._leaders.append(leader)
        weather = Weather(CALM)
        # The scene is played by the world, so answers have to reach it there.
        world, machine = self._loop.world, self.machine.process
        wire = Wire(self._loop, world, machine, weather, Random(2), _no_crash, in_order=True)
        return FaultyRuntime(self.machine, wire, self._loop, len(self._leaders))

    def _count(self, task: TaskId) -> None:
        self._starts[task] = self._starts.get(task, 0) + 1


def _no_crash(why: str) -> None:
    raise AssertionError(f"nobody crashes here: {why}")


def _words(work: Work) -> tuple[str, ...]:
    match work:
        case Exits(code):
            return ("0", f"exits={code}")
        case RunsOn():
            return (_FOREVER,)
        case ReadyWhenTold():
            return (_FOREVER, "ready=never")
        case ExitsWhenTold(code) | LeavesChild(code):
            return (_FOREVER, f"exits={code}")
        case IgnoresSigterm():
            return (_FOREVER, "deaf")
        case CannotStart():
            return ("broken",)
