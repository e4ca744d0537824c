"""Worlds with Queues: a quota that is fought for, and people who change what it allows."""

from __future__ import annotations

from random import Random

from support.simulation.faults import FaultRates
from support.simulation.judge import BrokenPromiseError
from support.simulation.line_promises import LINE_PROMISES
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.queue_people import MachinePeople, QueuePeople
from support.simulation.queue_promises import QUEUE_PROMISES
from support.simulation.queue_script import (
    for_all_queues,
    with_cohorts,
    with_default_queue,
    with_gates,
    with_preemption,
    with_queues,
    with_shares,
    without_gates,
)
from support.simulation.ready_promises import RoomKept
from support.simulation.script import Step
from support.simulation.world import LONGEST_JUMP_S, SETTLE_PIECE_S, RivalWorld, World

#: It is waited for so many pieces of time until nothing happens by itself any more.
_PIECES = 12


class RestsFirst(World):
    """Comes to rest once trouble is over, before people give everybody room."""

    def _settle(self) -> None:
        self._end_trouble()
        if self._comes_to_rest():
            try:
                self.judge.rests()
            except BrokenPromiseError:
                # A clock that was wrong may have put something off by as much as it was wrong.
                self.loop.run_until(self.loop.time() + LONGEST_JUMP_S)
                if self._comes_to_rest():
                    self.judge.rests()
        super()._settle()

    def _comes_to_rest(self) -> bool:
        """Wait until nothing happens; False where Jobs are tried again and again."""
        for _ in range(_PIECES):
            before = self.truth.activity + self._calls()
            self.loop.run_until(self.loop.time() + SETTLE_PIECE_S)
            if self.truth.activity + self._calls() == before:
                return True
        return False


class _Queues(RestsFirst):
    """Has most Jobs of a world stand in Queues."""

    who = QueuePeople
    promises = (*QUEUE_PROMISES, *LINE_PROMISES)

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            self.script = with_queues(self.script, Random(f"{seed}:queues"))


class QueueWorld(_Queues):
    """Jobs, locks and Queues on one machine."""

    name = "QueueWorld"


class RivalQueueWorld(_Queues, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalQueueWorld"


class QueuePodWorld(_Queues, PodWorld):
    """Jobs, locks and Queues on a cluster."""

    name = "QueuePodWorld"


class RivalQueuePodWorld(_Queues, RivalPodWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalQueuePodWorld"


class _Machine(_Queues):
    """Has most Jobs of these worlds ask the default Queue, which comes and goes."""

    who = MachinePeople

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is not None:
            return
        luck = Random(f"{seed}:machine")
        self.script = with_default_queue(self.script, luck)
        if luck.random() < 0.4:
            self.script = with_preemption(self.script, luck)
        if luck.random() < 0.3:
            self.script = with_gates(self.script, luck)


class MachineWorld(_Machine):
    """Jobs that name no Queue, and the default one."""

    name = "MachineWorld"


class RivalMachineWorld(_Machine, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalMachineWorld"


class _Preempts(_Queues):
    """Has some Jobs of these worlds make room for others."""

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            self.script = with_preemption(self.script, Random(f"{seed}:preemption"))


class PreemptionWorld(_Preempts):
    """Jobs that make room for others, on one machine."""

    name = "PreemptionWorld"


class RivalPreemptionWorld(_Preempts, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalPreemptionWorld"


class _Cohorts(_Queues):
    """Has the Queues of these worlds lend each other what they do not use."""

    promises = (*_Queues.promises, RoomKept)

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            luck = Random(f"{seed}:cohorts")
            self.script = with_cohorts(self.script, luck)
            if luck.random() < 0.3:
                self.script = with_gates(self.script, luck)


class CohortWorld(_Cohorts):
    """Queues that lend each other what they do not use, and move, on one machine."""

    name = "CohortWorld"


class RivalCohortWorld(_Cohorts, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalCohortWorld"


class _Shares(_Queues):
    """Has two Queues of these worlds share what both have, and nobody put back for anybody."""

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            self.script = with_shares(self.script, Random(f"{seed}:shares"))


class FairWorld(_Shares):
    """Queues that share by weight, or in turn, on one machine."""

    name = "FairWorld"


class RivalFairWorld(_Shares, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalFairWorld"


class _Gates(_Preempts):
    """Has Jobs of these worlds be ready in time, where there is not always room for all."""

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            luck = Random(f"{seed}:gates")
            self.script = with_gates(self.script, luck)
            self.most_tasks = luck.choice((2, 3, 1000))
            self._say_for_all(Random(f"{seed}:system"))

    def _say_for_all(self, luck: Random) -> None:
        """Draw what holds for all Queues; then some Queues say nothing themselves."""
        self.wait_for_pods_ready = self.truth.wait_for_pods_ready = for_all_queues(luck)
        if self.wait_for_pods_ready is not None:
            self.script = without_gates(self.script, luck)


class GateWorld(_Gates):
    """Jobs that need all their tasks at once, on one machine."""

    name = "GateWorld"


class RivalGateWorld(_Gates, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalGateWorld"
