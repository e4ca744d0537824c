"""Assignment: what is to be done next so that a pod gets a slot, and which one it gets.

A pod that holds a slot keeps it, and one that a slot is reserved for is told that one: so every
extender that is asked about a pod, at whatever time and however often, comes to the same slot. Only
then a free slot is chosen: of those that the pod may have, on a node that the scheduler offers, the
first in order. Why that is safe is at the head of `holds`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from datetime import datetime

from msgspec import Struct

from interlock.kube.slots.holds import (
    Hold,
    Record,
    Reservation,
    hold_of,
    is_pinned,
    may_be_told,
    record_of,
    reservation_of,
)
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import SLOTS, TEST_BED, Bed, Slot, read_slot
from interlock.kube.slots.sight import BedSight

_NONE: frozenset[str] = frozenset()


class Reserve(Struct, frozen=True):
    """Reserve a ghost for a pod."""

    ghost: SlotPod
    reservation: Reservation


class Tell(Struct, frozen=True):
    """Tell a pod the slot that is reserved for it."""

    pod: SlotPod
    record: Record


class Settle(Struct, frozen=True):
    """Let go of a ghost: its pod was told."""

    ghost: SlotPod


class Seated(Struct, frozen=True):
    """A pod has a slot."""

    slot: Slot
    #: What holds the room for it, as long as it is there.
    ghost: SlotPod | None


class Refused(Struct, frozen=True):
    """A pod gets no slot now."""

    why: str


Step = Reserve | Tell | Settle | Seated | Refused


def asks(pod: SlotPod) -> bool:
    """Whether a pod asks for a slot."""
    return bool(pod.metadata.annotations.test_bed) and not pod.metadata.labels.ghost_of


def next_step(
    bed: BedSight,
    pod: SlotPod,
    nodes: Collection[str],
    now: datetime,
    *,
    victims: Set[str] = _NONE,
    others: Set[str] = _NONE,
    granted: Set[str] = _NONE,
) -> Step:
    """What is to be done next for a pod that asks.

    What the pod was told comes first, then what is reserved for it, then what is free on the nodes.
    Of free slots those come first whose ghost is among the `victims` that the scheduler has named:
    it is sure to know them. Ghosts that `others` are busy with are left to them, and slots that
    were `granted` to Jobs are left to pods that name them.
    """
    hold = hold_of(pod)
    if hold is not None:
        return _kept(bed, hold)
    if pod.spec.node_name or pod.is_over:
        return Refused("it is placed already, or over")
    for _, ghost in sorted(bed.reserved_for(pod.uid).items()):
        reservation = reservation_of(ghost)
        if reservation is not None and may_be_told(pod, reservation):
            return Tell(pod, _record(pod, ghost, now))
    wanted = _wanted(pod)
    if isinstance(wanted, Refused):
        return wanted
    slots: Iterable[Slot] = wanted or (slot for slot in bed.ghosts if str(slot) not in granted)
    offered = nodes if isinstance(nodes, Set) else frozenset(nodes)
    free = sorted(
        (slot for slot in slots if slot.node in offered and _is_free(bed, slot, others)),
        key=lambda slot: (bed.ghosts[slot].uid not in victims, slot),
    )
    requests, epoch = pod.requests, record_of(pod).epoch
    for ghost in (bed.ghosts[slot] for slot in free):
        if _fits(requests, ghost):
            reservation = Reservation(pod=pod.uid, name=pod.metadata.name, epoch=epoch, at=now)
            return Reserve(ghost, reservation)
    return Refused(_why(bed, pod, wanted, too_small=bool(free)))


def _kept(bed: BedSight, hold: Hold) -> Step:
    ghost = bed.ghosts.get(hold.slot)
    if ghost is not None and ghost.uid == hold.ghost and is_pinned(ghost):
        return Settle(ghost)
    return Seated(hold.slot, None if ghost is None or ghost.is_going or ghost.is_over else ghost)


def _record(pod: SlotPod, ghost: SlotPod, now: datetime) -> Record:
    annotations = ghost.metadata.annotations
    return Record(
        pod=pod.uid,
        epoch=record_of(pod).epoch,
        bed=ghost.metadata.labels.ghost_of,
        slot=annotations.ghost_slot,
        ghost=ghost.uid,
        at=now,
    )


def _wanted(pod: SlotPod) -> tuple[Slot, ...] | Refused | None:
    """The slots that a pod may have; None where any will do."""
    text = pod.metadata.annotations.slots
    if not text.strip():
        return None
    found = []
    for part in text.split(","):
        slot = read_slot(part.strip())
        if slot is None:
            return Refused(
                f"its annotation {SLOTS} has {part.strip()[:60]!r}: expected NODE/NUMBER"
            )
        found.append(slot)
    return tuple(sorted(set(found)))


def is_free(bed: BedSight, slot: Slot) -> bool:
    """Whether there is room for somebody in a slot, and nobody has it."""
    ghost = bed.ghosts.get(slot)
    return (
        ghost is not None
        and ghost.spec.node_name == slot.node
        and not ghost.is_going
        and not ghost.is_over
        and not ghost.metadata.annotations.reserved
        and not bed.holders_of(slot)
    )


def _is_free(bed: BedSight, slot: Slot, others: Set[str]) -> bool:
    return is_free(bed, slot) and bed.ghosts[slot].uid not in others


def _fits(requests: dict[str, int], ghost: SlotPod) -> bool:
    room = ghost.requests
    return all(amount <= room.get(name, 0) for name, amount in requests.items())


def _why(bed: BedSight, pod: SlotPod, wanted: tuple[Slot, ...] | None, *, too_small: bool) -> str:
    name = Bed(pod.metadata.namespace, pod.metadata.annotations.test_bed)
    if not bed.ghosts and not bed.holders:
        return f"there are no slots of TestBed {name} (annotation {TEST_BED})"
    if too_small:
        return f"it requests more than a slot of TestBed {name} has"
    if wanted is None:
        return f"no slot of TestBed {name} is free here"
    return f"none of its slots of TestBed {name} is free here"
