"""A world whose store is put back: people make backups, and restore them while tasks run."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from interlock.forecast.rehearsal.simulated_machine import Life, Machine
from interlock.resources.metadata import Resource
from interlock.resources.tasks import ReportState, TaskId
from interlock.store.contract import Event, EventType, Now
from interlock.store.identities import SeededIdentities
from interlock.store.sqlite import restoring
from interlock.store.state import State
from interlock.store.watching import Change
from support.simulation.faults import FaultRates
from support.simulation.judge import Judge, Promise
from support.simulation.promises import NeverTwice, Settles, StatusBounded, TokensRise
from support.simulation.script import (
    PLANES,
    BackUpStore,
    LoseKeeper,
    PutBackStore,
    Step,
)
from support.simulation.truth import Truth
from support.simulation.world import WatchedStore, World


class PutBackable(WatchedStore):
    """The store with backups of itself. A restore knows the backup's versions, and the clock."""

    def __init__(self, now: Now, identities: SeededIdentities, world: World) -> None:
        super().__init__(now, identities, world)
        self.is_restored = False
        self._backup: tuple[Resource, ...] = ()

    def back_up(self) -> None:
        """Keep what is stored now."""
        self._backup = tuple(self._shelves.all())

    def put_back(self) -> Sequence[Resource]:
        """Go back to the backup, with versions as a restore gives them."""
        known = max((resource.version for resource in self._backup), default=0)
        version = restoring.version_after(known, self._now())
        kept = tuple(restoring.renumbered(self._backup, version))
        self._shelves = State()
        for resource in kept:
            version = resource.version
            event = Event(EventType.ADDED, resource, version)
            self._shelves.apply((Change(resource.key, None, event, version),))
        self._last_version = version
        self._hub.remember((), floor=version, version=version)
        self.is_restored = True
        return kept

    async def settled(self) -> None:
        """Nothing is left of what the store knew before."""
        self.is_restored = False


class StartsOnce(Promise):
    """No attempt starts twice, also when the store has forgotten that it did."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._started: dict[TaskId, None] = {}

    def starts(self, life: Life) -> None:
        """This one was never started before."""
        if life.order.id in self._started:
            raise self.broken(f"{life.order.name} starts for the second time", life.order.job)
        self._started[life.order.id] = None


#: What holds across a restore. What was written since the backup is lost, and nothing is promised
#: of it.
RESTORE_PROMISES: tuple[type[Promise], ...] = (
    StartsOnce,
    NeverTwice,
    TokensRise,
    StatusBounded,
    Settles,
)


class RestoreWorld(World):
    """One seed's world with backups and restores.

    The keeper is not lost here: what it lost track of is written off by whoever restores.
    """

    name = "RestoreWorld"
    store: PutBackable

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        self.restored = self.store
        if script is None:
            self.script = _with_restores(self.script, Random(f"{seed}:restores"))

    def _store(self, now: Now, identities: SeededIdentities, world: World) -> PutBackable:
        return PutBackable(now, identities, world)

    def _lay_ground(self) -> None:
        self.judge = Judge(self.truth, [promise(self.truth) for promise in RESTORE_PROMISES])
        self.machine = Machine(self.loop, Random(f"{self.seed}:machine"), self.history, self.epoch)
        self.machine.started.append(self.judge.started)
        self.machine.ended.append(self.judge.ended)
        self.machine.stopped.append(self.judge.stopped)

    def _step(self, step: Step) -> None:
        match step.act:
            case BackUpStore():
                self.history.note("store", "is backed up")
                self.store.back_up()
            case PutBackStore():
                for number in range(PLANES):
                    self.crash(number, "for a restore")
                self.history.note("store", "is put back")
                self.truth.put_back(self.store.put_back(), self.machine.records)
            case _:
                super()._step(step)

    def _check_ground(self) -> None:
        for task, record in self.machine.records.items():
            if record.state is ReportState.UNKNOWN:
                # Nobody saw it end, and the store may not even know that it began.
                self.truth.written_off[task] = None
        super()._check_ground()


def _with_restores(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    end = script[-1].at if script else 60.0
    more: list[Step] = []
    for _ in range(random.choice((1, 2, 3))):
        first, second = sorted((random.uniform(0.0, end), random.uniform(0.0, end)))
        more += (Step(first, BackUpStore()), Step(second, PutBackStore()))
    kept = (step for step in script if not isinstance(step.act, LoseKeeper))
    return tuple(sorted((*kept, *more), key=lambda step: step.at))
