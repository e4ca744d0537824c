"""Ghosts: which placeholder pods a TestBed should have, and what is done about those it has.

A slot that nobody is in has a ghost of the bed's size; one with a tenant has none. What is changed
of a bed (its size, its nodes, how many slots) reaches a slot once nobody is in it and it is
reserved for nobody; nobody is ever put out of a slot. Names of ghosts follow from slots, so an old
ghost is gone before a new one comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from interlock.kube.slots.assignment import Settle, is_free
from interlock.kube.slots.holds import (
    Record,
    hold_of,
    is_pinned,
    is_void,
    may_be_told,
    record_of,
    reservation_of,
)
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Bed, Slot
from interlock.kube.slots.sight import BedSight
from interlock.resources.values.amounts import format_milli

#: A slot that was reserved, or told, and that its pod has not come to by then is given up.
COMES_WITHIN = timedelta(minutes=5)
#: A ghost that ended is followed by another not before that: one may end again at once.
REPLACED_AFTER = timedelta(seconds=10)


class SlotState(StrEnum):
    """What a slot is, as its pods say."""

    #: A ghost holds room for whoever comes.
    FREE = "Free"
    #: It is somebody's who has not come yet.
    RESERVED = "Reserved"
    #: Somebody is in it.
    OCCUPIED = "Occupied"
    #: Nobody is in it, and no room is held.
    MISSING = "Missing"


class GhostView(Struct, frozen=True, kw_only=True):
    """One TestBed, its pods, and the nodes that it has slots on."""

    bed: Bed
    #: How many slots each node should have; empty for a bed that is gone.
    wanted: Mapping[str, int]
    #: What a slot holds of each resource, in thousandths.
    size: Mapping[str, int]
    sight: BedSight
    #: The pods that ghosts are reserved for, by uid; who is missing is gone.
    pods: Mapping[str, SlotPod]
    #: What nodes have, and what all pods that are placed there take; in thousandths.
    allocatable: Mapping[str, Mapping[str, int]] = {}
    taken: Mapping[str, Mapping[str, int]] = {}


class MakeGhost(Struct, frozen=True):
    """Hold the room of a slot."""

    slot: Slot


class RemoveGhost(Struct, frozen=True):
    """Hold the room of a slot no more."""

    ghost: SlotPod
    why: str


class GiveUp(Struct, frozen=True):
    """Give up a reservation that nothing can come of any more."""

    ghost: SlotPod
    why: str


class TakeBack(Struct, frozen=True):
    """Take back what a pod was told, or may be told: it did not come."""

    pod: SlotPod
    record: Record


Action = MakeGhost | RemoveGhost | GiveUp | TakeBack | Settle


class Problem(Struct, frozen=True, order=True):
    """Why a node has fewer slots than it should."""

    node: str
    message: str


class Ghosts(Struct, frozen=True, kw_only=True):
    """What is to be done, what is wrong, and when to look again."""

    actions: tuple[Action, ...] = ()
    problems: tuple[Problem, ...] = ()
    wake_at: datetime | None = None


def decide(view: GhostView, now: datetime) -> Ghosts:
    """Have a ghost in every slot that should be there and that nobody is in, and no other.

    Reservations come first: whatever is wrong with a slot, it stays somebody's for as long as he
    may come. Then ghosts that are not to be there, and what is missing last.
    """
    actions: list[Action] = []
    due: list[datetime] = []
    for slot, ghost in sorted(view.sight.ghosts.items()):
        action, at = _about(view, slot, ghost, now)
        actions += [action] if action is not None else []
        due += [at] if at is not None else []
    for pod in _on_their_way(view):
        hold = hold_of(pod)
        assert hold is not None, "who has a slot was told it"
        if now >= hold.at + COMES_WITHIN:
            actions.append(TakeBack(pod, _next_epoch(pod)))
        else:
            due.append(hold.at + COMES_WITHIN)
    made, problems = _missing(view)
    actions += made
    return Ghosts(actions=tuple(actions), problems=problems, wake_at=min(due, default=None))


def _about(
    view: GhostView, slot: Slot, ghost: SlotPod, now: datetime
) -> tuple[Action | None, datetime | None]:
    """What is done about a ghost, and when to look at it again."""
    reservation = reservation_of(ghost)
    if reservation is None:
        if is_pinned(ghost) or ghost.metadata.annotations.reserved:
            return GiveUp(ghost, "it is reserved for nobody"), None
        return _unreserved(view, slot, ghost, now)
    pod = view.pods.get(reservation.pod)
    if is_void(ghost, reservation, pod):
        return GiveUp(ghost, f"{reservation.name} does not come"), None
    assert pod is not None, "a reservation for nobody is void"
    if may_be_told(pod, reservation):
        late_at = reservation.at + COMES_WITHIN
        return (TakeBack(pod, _next_epoch(pod)), None) if now >= late_at else (None, late_at)
    if is_pinned(ghost):
        return Settle(ghost), None
    if pod.spec.node_name and not ghost.is_going:
        return RemoveGhost(ghost, f"{reservation.name} is in its slot"), None
    return None, None


def _unreserved(
    view: GhostView, slot: Slot, ghost: SlotPod, now: datetime
) -> tuple[Action | None, datetime | None]:
    if ghost.is_going:
        return None, None
    if ghost.is_over:
        made_at = ghost.metadata.creation_timestamp
        again_at = made_at + REPLACED_AFTER if made_at is not None else now
        return (RemoveGhost(ghost, "it ended"), None) if now >= again_at else (None, again_at)
    why = _why_not(view, slot, ghost)
    return (RemoveGhost(ghost, why) if why else None), None


def _why_not(view: GhostView, slot: Slot, ghost: SlotPod) -> str:
    """Why there should be no such ghost; empty where it should be there."""
    if view.sight.holders_of(slot):
        return "somebody is in its slot"
    if slot.number >= view.wanted.get(slot.node, 0):
        return "there should be no such slot"
    if ghost.spec.node_name not in ("", slot.node):
        return f"it is on {ghost.spec.node_name}"
    # Not what it requests: others may have added to that, such as a namespace's defaults.
    is_same = ghost.metadata.annotations.ghost_size == written_size(view.size)
    return "" if is_same else "its slot has another size now"


def _on_their_way(view: GhostView) -> Iterator[SlotPod]:
    """Pods that were told a slot, and are on no node."""
    for _, holders in sorted(view.sight.holders.items()):
        yield from (pod for _, pod in sorted(holders.items()) if not pod.spec.node_name)


def _next_epoch(pod: SlotPod) -> Record:
    return Record(pod=pod.uid, epoch=record_of(pod).epoch + 1)


# What is missing


def _missing(view: GhostView) -> tuple[list[Action], tuple[Problem, ...]]:
    """Ghosts for slots that have none, where there is room, and the nodes where there is not."""
    made: list[Action] = []
    problems: list[Problem] = []
    expected = _expected(view)
    for node, count in sorted(view.wanted.items()):
        slots = [slot for slot in (Slot(n, node) for n in range(count)) if _lacks(view, slot)]
        if not slots:
            continue
        left, without = _room(view, node, expected.get(node, ())), []
        for slot in slots:
            short = _short(left, view.size)
            if short:
                without.append((slot, short))
            else:
                made.append(MakeGhost(slot))
                _take(left, view.size)
        if without:
            problems.append(Problem(node, _told(without)))
    return made, tuple(problems)


def _lacks(view: GhostView, slot: Slot) -> bool:
    return slot not in view.sight.ghosts and not view.sight.holders_of(slot)


def _expected(view: GhostView) -> Mapping[str, Sequence[Mapping[str, int]]]:
    """By node, what is on its way there: ghosts that are not placed, and pods without a ghost."""
    found: dict[str, list[Mapping[str, int]]] = {}
    for slot, ghost in view.sight.ghosts.items():
        if not ghost.spec.node_name and not ghost.is_over:
            found.setdefault(slot.node, []).append(ghost.requests)
    for slot, holders in view.sight.holders.items():
        if slot not in view.sight.ghosts:
            coming = [view.size for pod in holders.values() if not pod.spec.node_name]
            found.setdefault(slot.node, []).extend(coming)
    return found


def _room(view: GhostView, node: str, expected: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """What a node has for ghosts that are to be made, beside who is there and who is to come."""
    left = dict(view.allocatable.get(node, {}))
    for name, amount in view.taken.get(node, {}).items():
        left[name] = left.get(name, 0) - amount
    for amounts in expected:
        _take(left, amounts)
    return left


def _take(left: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in _with_pod(amounts).items():
        left[name] = left.get(name, 0) - amount


def written_size(size: Mapping[str, int]) -> str:
    """The size of a slot as its ghost has it."""
    return ",".join(f"{name}={format_milli(size[name])}" for name in sorted(size))


def _with_pod(amounts: Mapping[str, int]) -> dict[str, int]:
    """What a ghost of this size requests; itself is one of the node's `pods`."""
    return {**{name: amount for name, amount in amounts.items() if amount}, "pods": 1000}


def _short(left: Mapping[str, int], size: Mapping[str, int]) -> str:
    """What there is too little of for one more slot; empty where there is enough."""
    for name, amount in _with_pod(size).items():
        there = max(left.get(name, 0), 0)
        if amount > there:
            return f"{name}: {format_milli(amount)} are needed, {format_milli(there)} are left"
    return ""


def _told(without: list[tuple[Slot, str]]) -> str:
    numbers = ", ".join(str(slot.number) for slot, _ in without)
    slots = "slot" if len(without) == 1 else "slots"
    return f"no room for {slots} {numbers}: {without[0][1]}"


# What the slots are


def state_of(sight: BedSight, slot: Slot) -> SlotState:
    """What a slot is: occupied before reserved before free, and missing if it is none of these."""
    holders = sight.holders_of(slot).values()
    if any(pod.spec.node_name for pod in holders):
        return SlotState.OCCUPIED
    ghost = sight.ghosts.get(slot)
    if holders or (ghost is not None and reservation_of(ghost) is not None):
        return SlotState.RESERVED
    return SlotState.FREE if is_free(sight, slot) else SlotState.MISSING


def slots_of(view: GhostView) -> dict[Slot, SlotState]:
    """Every slot that should be there, or in which somebody is, with what it is."""
    wanted = {Slot(n, node) for node, count in view.wanted.items() for n in range(count)}
    kept = {slot for slot, ghost in view.sight.ghosts.items() if reservation_of(ghost) is not None}
    return {
        slot: state_of(view.sight, slot)
        for slot in sorted(wanted | view.sight.holders.keys() | kept)
    }
