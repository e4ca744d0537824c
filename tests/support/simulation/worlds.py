"""The worlds there are."""

from __future__ import annotations

from support.simulation.adopted_world import AdoptedWorld, RivalAdoptedWorld
from support.simulation.eviction_world import (
    EvictionPodWorld,
    EvictionScheduleWorld,
    EvictionWorld,
    RivalEvictionPodWorld,
    RivalEvictionScheduleWorld,
    RivalEvictionWorld,
)
from support.simulation.operation_world import (
    OperationPodWorld,
    OperationWorld,
    RivalOperationPodWorld,
    RivalOperationWorld,
)
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.queue_world import (
    CohortWorld,
    FairWorld,
    GateWorld,
    MachineWorld,
    PreemptionWorld,
    QueuePodWorld,
    QueueWorld,
    RivalCohortWorld,
    RivalFairWorld,
    RivalGateWorld,
    RivalMachineWorld,
    RivalPreemptionWorld,
    RivalQueuePodWorld,
    RivalQueueWorld,
)
from support.simulation.ready_world import ReadyWorld, RivalReadyWorld
from support.simulation.request_world import RequestWorld, RivalRequestWorld
from support.simulation.restore_world import RestoreWorld
from support.simulation.schedule_world import RivalScheduleWorld, ScheduleWorld
from support.simulation.slot_world import RivalSlotWorld, SlotWorld
from support.simulation.worker_world import RivalWorkerOperationWorld, WorkerOperationWorld
from support.simulation.world import RivalWorld, World

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
        OperationWorld,
        RivalOperationWorld,
        OperationPodWorld,
        RivalOperationPodWorld,
        QueueWorld,
        RivalQueueWorld,
        QueuePodWorld,
        RivalQueuePodWorld,
        PreemptionWorld,
        RivalPreemptionWorld,
        GateWorld,
        RivalGateWorld,
        CohortWorld,
        RivalCohortWorld,
        FairWorld,
        RivalFairWorld,
        ReadyWorld,
        RivalReadyWorld,
        MachineWorld,
        RivalMachineWorld,
        AdoptedWorld,
        RivalAdoptedWorld,
        SlotWorld,
        RivalSlotWorld,
        WorkerOperationWorld,
        RivalWorkerOperationWorld,
        RequestWorld,
        RivalRequestWorld,
    )
}
