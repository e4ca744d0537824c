"""Models of batch Jobs and pods of others: what a Queue has to know of them."""

from __future__ import annotations

from typing import Any

from msgspec import field

from interlock.kube.pods.models import (
    BatchJob,
    BatchJobSpec,
    KubeObject,
    Named,
    ObjectMetadata,
    PodStatus,
    _Read,
)
from interlock.kube.pods.naming import GATE
from interlock.kube.pods.objects import Sort


class Owner(_Read):
    """What an object is a part of."""

    kind: str = ""
    api_version: str = ""
    controller: bool = False


class ForeignMetadata(ObjectMetadata):
    """Which object, and of whom."""

    owner_references: tuple[Owner, ...] = ()


class ForeignPodSpec(_Read):
    """What a pod takes, and where it is."""

    node_name: str = ""
    scheduling_gates: tuple[Named, ...] = ()
    priority: int | None = None
    termination_grace_period_seconds: int | None = None
    containers: list[Any] = field(default_factory=list)
    init_containers: list[Any] = field(default_factory=list)
    overhead: dict[str, Any] = field(default_factory=dict)


class ForeignPod(KubeObject):
    """A pod of somebody else."""

    metadata: ForeignMetadata
    spec: ForeignPodSpec = ForeignPodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_waiting(self) -> bool:
        """Whether our gate holds it back from the scheduler."""
        return any(gate.name == GATE for gate in self.spec.scheduling_gates)

    @property
    def is_over(self) -> bool:
        """Whether its phase is final."""
        return self.status.phase in ("Succeeded", "Failed")


class PodTemplate(_Read):
    """What the pods of a batch Job are made of."""

    spec: ForeignPodSpec = ForeignPodSpec()


class ForeignJobSpec(BatchJobSpec):
    """How many pods, and what each of them takes."""

    template: PodTemplate = PodTemplate()


class ForeignJob(BatchJob):
    """A batch Job of somebody else."""

    metadata: ForeignMetadata
    spec: ForeignJobSpec = ForeignJobSpec()


Foreign = ForeignJob | ForeignPod

FOREIGN_JOBS: Sort[ForeignJob] = Sort("Job", "batch", "v1", "jobs", ForeignJob)
FOREIGN_PODS: Sort[ForeignPod] = Sort("Pod", "", "v1", "pods", ForeignPod)


def is_part_of_another(metadata: ForeignMetadata) -> bool:
    """Whether a pod is that of a batch Job, which is what is queued, or of one of our Jobs."""
    labels = metadata.labels
    return bool(labels.controller_uid) or any(
        owner.controller and owner.kind == "Job" for owner in metadata.owner_references
    )
