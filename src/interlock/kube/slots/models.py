"""Models of pods and nodes: what slots depend on of them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from interlock.kube.pods.models import (
    Annotations,
    KubeObject,
    Labels,
    ObjectMetadata,
    _Read,
)
from interlock.kube.pods.objects import Sort
from interlock.kube.slots import naming
from interlock.resources.pod_requests import requests_of_spec


class SlotLabels(Labels):
    """The labels that are looked at."""

    ghost_of: str = field(name=naming.GHOST_OF, default="")


class SlotAnnotations(Annotations):
    """The annotations that are looked at."""

    test_bed: str = field(name=naming.TEST_BED, default="")
    slots: str = field(name=naming.SLOTS, default="")
    hold: str = field(name=naming.HOLD, default="")
    ghost_slot: str = field(name=naming.GHOST_SLOT, default="")
    ghost_size: str = field(name=naming.GHOST_SIZE, default="")
    reserved: str = field(name=naming.RESERVED, default="")


class Owner(_Read):
    """Whose part an object is."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    controller: bool = False


class SlotMetadata(ObjectMetadata):
    """Which object, and of whom."""

    labels: SlotLabels = SlotLabels()
    annotations: SlotAnnotations = SlotAnnotations()
    owner_references: tuple[Owner, ...] = ()


class Resources(_Read):
    """What a container, or a pod as a whole, asks for."""

    requests: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)


class SlotContainer(_Read):
    """A container, as far as it takes room."""

    resources: Resources = Resources()
    restart_policy: str = ""


class SlotPodSpec(_Read):
    """What a pod takes, and where it is."""

    node_name: str = ""
    containers: list[SlotContainer] = field(default_factory=list)
    init_containers: list[SlotContainer] = field(default_factory=list)
    overhead: dict[str, Any] = field(default_factory=dict)
    resources: Resources = Resources()


class SlotPodStatus(_Read):
    """Whether a pod is over."""

    phase: str = "Pending"


class SlotPod(KubeObject):
    """A pod: a ghost, one that asks for a slot, or any other, which takes room."""

    metadata: SlotMetadata
    spec: SlotPodSpec = SlotPodSpec()
    status: SlotPodStatus = SlotPodStatus()

    @property
    def is_over(self) -> bool:
        """Whether its phase is final."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def uid(self) -> str:
        """It, and no other of its name."""
        return self.metadata.uid

    @property
    def requests(self) -> dict[str, int]:
        """What the scheduler counts for it, in thousandths; itself is one of `pods`."""
        return {**requests_of_spec(msgspec.to_builtins(self.spec)), "pods": 1000}


SLOT_PODS: Sort[SlotPod] = Sort("Pod", "", "v1", "pods", SlotPod)
