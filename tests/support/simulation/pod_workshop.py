"""The simulated cluster as a stage for the runtime contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from interlock.control.write_fence import WriteFence
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.pods.informers import Informers
from interlock.kube.pods.models import BatchJob, Node, Pod, T
from interlock.kube.pods.runtime import PodRuntime
from interlock.resources.tasks import TaskId, TaskOrder, task_name
from interlock.resources.values.durations import Duration
from interlock.resources.work import PodWork
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
from support.simulation.cluster import Cluster
from support.simulation.faults import CALM, Weather, Wire
from support.simulation.faulty_objects import FaultyObjects, Lateness
from support.simulation.history import History
from support.simulation.pod_script import pod_of

_FOREVER = "1000000000"


class SimPodShop:
    """A simulated cluster, its present leader, and what really happens there."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.cluster = Cluster(loop, Random(1), History(loop), T0)
        self._clock = SimClock(loop, loop.world, T0)
        self._starts: dict[TaskId, int] = {}
        self.cluster.hooks.started.append(lambda life: self._count(life.order.id))
        self.cluster.hooks.ended.append(lambda life: self._lives.pop(life.order.id))
        self._lives: dict[TaskId, None] = {}
        self._leaders: list[tuple[PodRuntime, WriteFence, asyncio.Task[None]]] = []
        self._lead()

    @property
    def runtime(self) -> PodRuntime:
        """The runtime of the present leader."""
        return self._leaders[-1][0]

    @property
    def fence(self) -> WriteFence:
        """The fence of the present leader."""
        return self._leaders[-1][1]

    def order(self, work: Work, *, job: str = "job", index: int = 0, attempt: int = 1) -> TaskOrder:
        """An order for some work."""
        return TaskOrder(
            job_uid=f"uid-{job}",
            index=index,
            attempt=attempt,
            name=task_name(job, index, attempt),
            namespace="default",
            job=job,
            work=PodWork(template=pod_of("work", *_words(work))),
            grace=Duration(seconds=30),
        )

    async def until(self, true: Callable[[Told], bool]) -> Told:
        """Wait until the reports are so."""
        while True:
            told = {report.id: report for report in await self.runtime.reports()}
            if true(told):
                return told
            await asyncio.sleep(0.05)

    async def until_begun(self, task: TaskId) -> None:
        """Wait until the work runs."""
        while not self._starts.get(task):
            await asyncio.sleep(0.05)

    def let_go(self, task: TaskId) -> None:
        """Have work exit."""
        found = self.cluster.box_of(task)
        assert found is not None, f"{task} never ran"
        node, box = found
        node.finish(box)

    def make_ready(self, task: TaskId, ready: bool) -> None:
        """Have the kubelet of work say so."""
        found = self.cluster.box_of(task)
        assert found is not None, f"{task} never ran"
        node, box = found
        node.turn(box, ready)

    def starts(self, task: TaskId) -> int:
        """How often the work of an attempt was begun."""
        return self._starts.get(task, 0)

    def alive(self) -> int:
        """How many containers run."""
        return len(self._lives)

    async def crash(self) -> None:
        """The leader is killed, and another one comes."""
        runtime, _, seeing = self._leaders[-1]
        runtime.abandon()
        seeing.cancel()
        self._lead()

    async def usurp(self) -> PodRuntime:
        """A newer leader takes over; the old one's lease has run out."""
        old, fence, _ = self._leaders[-1]
        fence.shut("the lease ran out")
        self._lead()
        return old

    def _lead(self) -> None:
        sight = Informers(
            self._objects("Pod", Pod),
            self._objects("Job", BatchJob),
            self._objects("Node", Node),
            self._clock,
            Random(3),
        )
        fence = WriteFence(self._clock)
        fence.open(len(self._leaders) + 1)
        runtime = sight.lead(fence.check)
        self._leaders.append((runtime, fence, self._loop.create_task(sight.run())))

    def _objects(self, kind: str, type: type[T]) -> FaultyObjects[T]:
        # The scene is played by the world, so answers have to reach it there.
        world, cluster = self._loop.world, self.cluster
        wire = Wire(self._loop, world, cluster.process, Weather(CALM), Random(2), _no_crash)
        return FaultyObjects(cluster, kind, type, wire, self._loop, Lateness())

    def _count(self, task: TaskId) -> None:
        self._starts[task] = self._starts.get(task, 0) + 1
        self._lives[task] = None


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
