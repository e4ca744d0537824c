"""The worlds there are."""

from __future__ import annotations

from interlock.testing.simulation.eviction_world import (
    EvictionPodWorld,
    EvictionScheduleWorld,
    EvictionWorld,
    RivalEvictionPodWorld,
    RivalEvictionScheduleWorld,
    RivalEvictionWorld,
)
from interlock.testing.simulation.pod_world import PodWorld, RivalPodWorld
from interlock.testing.simulation.restore_world import RestoreWorld
from interlock.testing.simulation.schedule_world import RivalScheduleWorld, ScheduleWorld
from interlock.testing.simulation.world import RivalWorld, World

#: By name.
WORLDS: dict[str, type[World]] = {
    world.name: world
    for world in (
        World,
        RivalWorld,
        RestoreWorld,
        PodWorld,
        RivalPodWorld,
        ScheduleWorld,
        RivalScheduleWorld,
        EvictionWorld,
        RivalEvictionWorld,
        EvictionPodWorld,
        RivalEvictionPodWorld,
        EvictionScheduleWorld,
        RivalEvictionScheduleWorld,
    )
}
