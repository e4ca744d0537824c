"""Worlds with Queues: a quota that is fought for, and people who change what it allows."""

from __future__ import annotations

from random import Random

from support.simulation.faults import FaultRates
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.queue_people import MachinePeople, QueuePeople
from support.simulation.queue_promises import QUEUE_PROMISES
from support.simulation.queue_script import (
    with_cohorts,
    with_default_queue,
    with_gates,
    with_preemption,
    with_queues,
)
from support.simulation.script import Step
from support.simulation.world import RivalWorld, World


class _Queues(World):
    """Has most Jobs of a world stand in Queues."""

    who = QueuePeople
    promises = QUEUE_PROMISES

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


class GateWorld(_Gates):
    """Jobs that need all their tasks at once, on one machine."""

    name = "GateWorld"


class RivalGateWorld(_Gates, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalGateWorld"
