"""The worlds with operations: steps on targets, beside Jobs of all sorts."""

from __future__ import annotations

from random import Random

from support.simulation.faults import FaultRates
from support.simulation.operation_people import OperationPeople
from support.simulation.operation_promises import OPERATION_PROMISES
from support.simulation.operation_script import with_operations
from support.simulation.pod_script import in_pods
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.promises import PROMISES
from support.simulation.script import Step
from support.simulation.world import RivalWorld, World


class _Operates(World):
    """Adds operations to the script of a world, and people who see to them."""

    promises = (*PROMISES, *OPERATION_PROMISES)
    who = OperationPeople
    people: OperationPeople
    #: What is stuck is seen to one after another, and more than once.
    settle_pieces = 200

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            self.script = with_operations(self.script, Random(f"{seed}:operations"))

    def _settle(self) -> None:
        """What is stuck stays so until a person sees to it, and holds up nobody else."""
        self._end_trouble()
        self._rest(self.judge.rests)
        self.people.is_called = True
        super()._settle()


class OperationWorld(_Operates):
    """Operations on one machine."""

    name = "OperationWorld"


class RivalOperationWorld(_Operates, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalOperationWorld"


class OperationPodWorld(_Operates, PodWorld):
    """Operations on a cluster: each step is a pod."""

    name = "OperationPodWorld"

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        self.script = in_pods(self.script, Random(f"{seed}:operation pods"))
        # Steps follow one another, so nobody can say how many pods are made after a stop.
        self.truth.made_after_stop = None


class RivalOperationPodWorld(OperationPodWorld, RivalPodWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalOperationPodWorld"
