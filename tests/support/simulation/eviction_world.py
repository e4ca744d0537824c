"""The worlds in which people put Jobs back, whatever else goes on there.

They are worlds of their own, so that a seed of the others, which may have a name, keeps its sense.
"""

from __future__ import annotations

from random import Random

from support.simulation.faults import FaultRates
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.schedule_world import RivalScheduleWorld, ScheduleWorld
from support.simulation.script import Step, with_requeues
from support.simulation.world import RivalWorld, World


class _PutsBack(World):
    """Adds orders to put Jobs back to the script of a world."""

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            self.script = with_requeues(self.script, Random(f"{seed}:requeues"))


class EvictionWorld(_PutsBack):
    """Jobs and locks on one machine."""

    name = "EvictionWorld"


class RivalEvictionWorld(_PutsBack, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalEvictionWorld"


class EvictionPodWorld(_PutsBack, PodWorld):
    """Jobs and locks on a cluster."""

    name = "EvictionPodWorld"


class RivalEvictionPodWorld(_PutsBack, RivalPodWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalEvictionPodWorld"


class EvictionScheduleWorld(_PutsBack, ScheduleWorld):
    """Jobs of schedules."""

    name = "EvictionScheduleWorld"


class RivalEvictionScheduleWorld(_PutsBack, RivalScheduleWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalEvictionScheduleWorld"
