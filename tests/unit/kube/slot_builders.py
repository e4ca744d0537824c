"""Pods and ghosts for tests of slots, as an API server writes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from interlock.kube.pods.informer import Seen
from interlock.kube.slots import naming
from interlock.kube.slots.holds import Record, Reservation, written
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Slot, ghost_name, read_slot
from interlock.kube.slots.sight import BedSight, Sight

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
BED = naming.Bed("default", "bed")


def the_slot(text: str) -> Slot:
    """A slot as it is written."""
    slot = read_slot(text)
    assert slot is not None, text
    return slot


def _pod(name: str, uid: str, *, cpu: str, node: str, phase: str, **metadata: Any) -> SlotPod:
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "resourceVersion": "7",
            **metadata,
        },
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": phase},
    }
    return msgspec.convert(document, SlotPod)


def a_tenant(
    uid: str = "p1",
    *,
    slots: str = "",
    bed: str = "bed",
    told: str = "",
    by: str = "g",
    epoch: int = 0,
    whose: str | None = None,
    cpu: str = "1",
    node: str = "",
    phase: str = "Pending",
    at: datetime = NOW,
) -> SlotPod:
    """A pod that asks for a slot; `told` is the one that it was told, by a ghost of that uid."""
    annotations = {naming.TEST_BED: bed, naming.SLOTS: slots}
    if told or epoch:
        record = Record(
            pod=uid if whose is None else whose,
            epoch=epoch,
            bed=bed,
            slot=told,
            ghost=by if told else "",
            at=at if told else None,
        )
        annotations[naming.HOLD] = written(record)
    return _pod(uid, uid, cpu=cpu, node=node, phase=phase, annotations=annotations)


def a_ghost(
    slot: str = "n0/0",
    *,
    bed: str = "bed",
    reserved: str = "",
    epoch: int = 0,
    pinned: bool | None = None,
    node: str | None = None,
    cpu: str = "1",
    phase: str = "Running",
    uid: str = "",
    at: datetime = NOW,
    **metadata: Any,
) -> SlotPod:
    """The ghost of a slot; its uid is `g-SLOT`."""
    place = the_slot(slot)
    annotations = {naming.GHOST_SLOT: slot, naming.GHOST_SIZE: f"cpu={cpu}"}
    if reserved:
        reservation = Reservation(pod=reserved, name=reserved, epoch=epoch, at=at)
        annotations[naming.RESERVED] = written(reservation)
    owner = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "TestBed",
        "name": bed,
        "uid": "bed-uid",
        "controller": True,
    }
    given = {
        "labels": {naming.GHOST_OF: bed},
        "annotations": annotations,
        "ownerReferences": [owner],
        "finalizers": [naming.FINALIZER] if (bool(reserved) if pinned is None else pinned) else [],
        **metadata,
    }
    return _pod(
        ghost_name(bed, place),
        uid or f"g-{slot}",
        cpu=cpu,
        node=place.node if node is None else node,
        phase=phase,
        **given,
    )


def a_stranger(name: str = "s", *, cpu: str = "1", node: str = "n0", **more: Any) -> SlotPod:
    """A pod that has nothing to do with slots."""
    return _pod(name, name, cpu=cpu, node=node, phase=more.pop("phase", "Running"), **more)


def a_sight(pods: Iterable[SlotPod]) -> Sight:
    """What is known of these pods."""
    sight = Sight()
    sight.observe([Seen(None, pod) for pod in pods])
    return sight


def a_bed(*pods: SlotPod) -> BedSight:
    """What is known of the bed when these pods are there."""
    return a_sight(pods).bed(BED)
