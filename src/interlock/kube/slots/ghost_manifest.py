"""Ghosts as manifests: pods that do nothing, take as much as a slot, and make way for anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from interlock.kube.slots import naming
from interlock.kube.slots.ghosts import written_size
from interlock.kube.slots.naming import Bed, Slot, ghost_name
from interlock.resources.metadata import API_VERSION
from interlock.resources.values.amounts import format_milli

PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
#: What Kubernetes lets nobody ask for without a limit that is the same.
_NATIVE = ("cpu", "memory", "ephemeral-storage")


class GhostSettings(Struct, frozen=True, kw_only=True):
    """What a person chooses about ghosts."""

    image: str = PAUSE_IMAGE
    scheduler: str = naming.SCHEDULER
    priority_class: str = naming.GHOST_PRIORITY


def ghost_manifest(
    bed: Bed, bed_uid: str, slot: Slot, size: Mapping[str, int], settings: GhostSettings
) -> dict[str, Any]:
    """The ghost of a slot.

    The scheduler places it, on the one node where it belongs: with `spec.nodeName` nobody would ask
    whether there is room.
    """
    owner = {
        "apiVersion": API_VERSION,
        "kind": "TestBed",
        "name": bed.name,
        "uid": bed_uid,
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": ghost_name(bed.name, slot),
            "namespace": bed.namespace,
            "labels": {naming.GHOST_OF: bed.name},
            "annotations": {
                naming.GHOST_SLOT: str(slot),
                naming.GHOST_SIZE: written_size(size),
            },
            "ownerReferences": [owner],
        },
        "spec": _spec(slot, size, settings),
    }


def _spec(slot: Slot, size: Mapping[str, int], settings: GhostSettings) -> dict[str, Any]:
    there = {"key": "metadata.name", "operator": "In", "values": [slot.node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [there]}]}
    return {
        "schedulerName": settings.scheduler,
        "priorityClassName": settings.priority_class,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        # It holds room on a node that is kept for some, is cordoned, or is silent for a while.
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(size, settings)],
    }


def _container(size: Mapping[str, int], settings: GhostSettings) -> dict[str, Any]:
    requests = {name: format_milli(amount) for name, amount in size.items() if amount}
    limits = {name: amount for name, amount in requests.items() if name not in _NATIVE}
    return {
        "name": "ghost",
        "image": settings.image,
        "resources": {"requests": requests, **({"limits": limits} if limits else {})},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
