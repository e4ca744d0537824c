"""The worlds with workers: operations whose steps are functions, done by whoever gets lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from interlock.control.reconciler import Change as CacheChange
from interlock.control.runtime import Runtime
from interlock.errors import FencedError
from interlock.resources.job import Job
from interlock.resources.work_types import WORKERS
from interlock.runtimes.router import Router
from interlock.runtimes.workers.terms import WorkerTerms
from interlock.store.watching import Change
from support.simulation.faults import FaultRates
from support.simulation.judge import BrokenPromiseError, UnfinishedError
from support.simulation.operation_world import OperationWorld
from support.simulation.script import (
    Act,
    CutWorker,
    DrainWorker,
    ForgeStatus,
    HangWorker,
    KillWorker,
    PausePlane,
    Step,
    with_forgeries,
)
from support.simulation.worker_lines import Server
from support.simulation.worker_promises import WORKER_PROMISES, WorkerJudge, WorkerPromise
from support.simulation.worker_script import in_workers, with_losses
from support.simulation.workers import (
    LEASE_S,
    TOUCH_EVERY_S,
    Crowd,
    WorkerRates,
    draw_worker_rates,
)
from support.simulation.world import Plane, RivalWorld

#: What is promised where one leads.
_OF_ONE_LEADER = frozenset({"Settles", "TargetsApart", "OrdersAreDone"})


class WorkerPlane(Plane):
    """A control plane that workers reach."""

    _world: WorkerOperationWorld

    def __init__(self, world: WorkerOperationWorld, number: int, life: int) -> None:
        super().__init__(world, number, life)
        self.terms = WorkerTerms(self.clock, lease_s=LEASE_S)

    def observe(self, change: CacheChange) -> None:
        """What the leader before recorded last may be heard of after this one began."""
        if isinstance(change.after, Job):
            self.terms.heard(change.after)

    async def connect(self, term: int) -> Runtime:
        """Reach the machine, and be there for workers, in the name of a term."""
        processes = await self.processes(term)
        workers = self.terms.lead(partial(self._check, term), self.plane.cache(Job))
        self._world.worker_judge.watch(workers)
        return Router(
            {"processes": processes, WORKERS: workers},
            own="processes",
            check=self.plane.fence.check,
        )

    def _check(self, term: int) -> None:
        self.plane.fence.check()
        if self.plane.fence.term != term:
            raise FencedError(f"term {term} is over")

    def disconnect(self) -> None:
        """The process is gone, and those it was connected to notice."""
        super().disconnect()
        self._world.crowd.lose_server(self.name)

    @property
    def server(self) -> Server:
        """As workers reach it."""
        return Server(self.name, self.process, self.terms)


class WorkerOperationWorld(OperationWorld):
    """Operations by workers."""

    name = "WorkerOperationWorld"
    planes: list[Plane]
    #: What it is judged by about workers.
    worker_promises: tuple[type[WorkerPromise], ...] = WORKER_PROMISES

    def __init__(
        self,
        seed: int,
        script: tuple[Step, ...] | None = None,
        rates: FaultRates | None = None,
        worker_rates: WorkerRates | None = None,
    ) -> None:
        super().__init__(seed, script, rates)
        luck = Random(f"{seed}:workers")
        drawn = draw_worker_rates(luck)
        self.script = in_workers(self.script, luck)
        if script is None:
            # Without what is forged, as it was drawn at first: the rest of each seed stays.
            forged = tuple(step for step in self.script if isinstance(step.act, ForgeStatus))
            kept = tuple(step for step in self.script if step not in forged)
            losses = with_losses(kept, luck)
            self.script = tuple(sorted((*losses, *forged), key=lambda step: step.at))
            self.script = with_forgeries(self.script, Random(f"{seed}:forgeries"))
        self.crowd.rates = worker_rates or (drawn if rates is None else WorkerRates())
        # A dispatcher that slept itself gives those who were not heard of meanwhile their time.
        pauses = [step.act.seconds for step in self.script if isinstance(step.act, PausePlane)]
        self.crowd.longest_silence_s = LEASE_S + TOUCH_EVERY_S + sum(pauses)
        self.crowd.has_rivals = self.rivals

    def _lay_ground(self) -> None:
        super()._lay_ground()
        luck = Random(f"{self.seed}:crowd")
        crowd = Crowd(self.loop, luck, self.history, self.weather, WorkerRates())
        self.crowd = crowd
        self.worker_judge = WorkerJudge(
            self.truth, self.judge, crowd, self.loop, self.worker_promises
        )
        crowd.judge = self.worker_judge
        crowd.servers = self._servers
        usual = [promise(self.truth) for promise in self.promises]
        self.judge.promises = (*usual, *self.worker_judge.promises)

    def _servers(self) -> tuple[Server, ...]:
        return tuple(plane.server for plane in self.planes if isinstance(plane, WorkerPlane))

    def _plane(self, number: int, life: int) -> Plane:
        return WorkerPlane(self, number, life)

    def _begin(self) -> None:
        super()._begin()
        self.crowd.begin(Random(f"{self.seed}:many").choice((1, 2, 4)))

    def committed(self, change: Change) -> None:
        """A write was committed; what it cuts off does not count any more."""
        self.worker_judge.committed(change)
        super().committed(change)

    def _shake(self, act: Act) -> bool:
        match act:
            case KillWorker(number):
                self.crowd.kill(number)
            case HangWorker(number, seconds):
                self.crowd.hang(number, seconds)
            case CutWorker(number):
                self.crowd.cut(number)
            case DrainWorker(number):
                self.crowd.drain(number)
            case _:
                return super()._shake(act)
        return True

    def _heal(self) -> None:
        super()._heal()
        self.crowd.heal()

    def _calls(self) -> int:
        return super()._calls() + self.crowd.calls


class RivalWorkerOperationWorld(WorkerOperationWorld, RivalWorld):
    """The same, with two control planes that both believe they lead, each with workers.

    Of two that lead it is promised that they do no harm. That all comes to an end is promised of
    one: each of two may cut off again and again what it does not hear of from the other's workers.
    """

    name = "RivalWorkerOperationWorld"

    def _rest(self, check: Callable[[], None]) -> None:
        try:
            super()._rest(check)
        except BrokenPromiseError as broken:
            is_unfinished = isinstance(broken, UnfinishedError)
            if not is_unfinished and broken.promise not in _OF_ONE_LEADER:
                raise
            self._end_rivalry()
            super()._rest(check)

    def _end_rivalry(self) -> None:
        """Have one of the two gone, until somebody starts it again."""
        plane = self.planes[-1]
        self.history.note(plane.name, "is gone: one that leads is enough")
        self.loop.kill(plane.process)
        plane.disconnect()
