"""Holds: which pod has which slot, and why no slot ever has two.

A slot that nobody is in has a *ghost*, a pod of a name that follows from the slot. It is
*reserved* for a pod by one compare-and-set on the ghost, which names the pod's uid and its *epoch*
and puts a finalizer on the ghost. Then the pod is *told*: one compare-and-set on the pod records
the slot and the ghost. Only then is the finalizer taken away, and the scheduler answered. Whoever
is told a slot, is alive and is not placed on another node *holds* it. Why at no time two pods hold
one slot, with any number of extenders and keepers, each on however old a view, each of which may
be killed anywhere:

1. A pod is told only while its epoch is that of the reservation, it was told nothing in that
   epoch, and it is on no node and not over; all of it as of the version that is written to.
2. A reservation is given up, and the finalizer with it, only once the pod was told, or on a fact
   that cannot become untrue: the pod is gone, over or placed, its epoch has passed the
   reservation's, or it was told another slot in that epoch. Each of these contradicts 1. So when a
   pod is told, the ghost is still there and still reserved for it, however late that comes.
3. What a pod was told is taken back only by raising its epoch, which is a compare-and-set on a pod
   that is on no node.
4. Names are unique, so another ghost of the same slot is made after the first is gone, and by 2
   after whoever was to be told by it was told.
5. A ghost is reserved only by those whose view has heard of it from a list or the watch. These tell
   of all pods in the order in which they changed, so such a view has every pod that was told by an
   earlier ghost of that slot; and where one of those still holds the slot, nothing is reserved. Nor
   is a ghost that is reserved already: it keeps that for as long as its pod holds the slot.

So when a reservation is made, nobody holds the slot, and until it is given up nobody but its pod
can be told it. None of this rests on a clock: a reservation that is not used for long is taken back
by 3, and that is safe at any time.

What a person does by hand is not held against it: to take finalizers off, or to rewrite the record
in a pod's annotation. A copy of a pod is told nothing: the record names the pod's uid.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct

from interlock.kube.slots import naming
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Bed, Slot, ghost_name, read_slot
from interlock.resources.metadata import API_VERSION, Moment

T = TypeVar("T")


class Reservation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom a ghost's slot is reserved for, as the ghost says."""

    pod: str
    name: str
    epoch: int
    at: Moment


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a pod was told, as the pod says."""

    #: The pod's own uid: a copy of the pod was told nothing.
    pod: str
    epoch: int = 0
    bed: str = ""
    #: Empty when what it was told was taken back.
    slot: str = ""
    #: The uid of the ghost by which it was told.
    ghost: str = ""
    at: Moment | None = None


class Hold(Struct, frozen=True):
    """A slot that a pod was told."""

    bed: Bed
    slot: Slot
    ghost: str
    at: Moment


_RESERVATION = msgspec.json.Decoder(Reservation)
_RECORD = msgspec.json.Decoder(Record)


@lru_cache(maxsize=1 << 15)
def _reservation(text: str) -> Reservation | None:
    return _read(_RESERVATION, text)


@lru_cache(maxsize=1 << 15)
def _record(text: str) -> Record | None:
    return _read(_RECORD, text)


def _read(decoder: msgspec.json.Decoder[T], text: str) -> T | None:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def written(thing: Reservation | Record) -> str:
    """A reservation or record as an annotation has it."""
    return msgspec.json.encode(thing).decode()


def ghost_slot(pod: SlotPod) -> tuple[Bed, Slot] | None:
    """The slot that a ghost holds room for; None for a pod that is no ghost of ours."""
    bed = pod.metadata.labels.ghost_of
    slot = read_slot(pod.metadata.annotations.ghost_slot) if bed else None
    if slot is None or pod.metadata.name != ghost_name(bed, slot):
        return None
    is_ours = any(
        owner.kind == "TestBed" and owner.api_version == API_VERSION and owner.name == bed
        for owner in pod.metadata.owner_references
    )
    return (Bed(pod.metadata.namespace, bed), slot) if is_ours else None


def reservation_of(ghost: SlotPod) -> Reservation | None:
    """Whom a ghost is reserved for."""
    text = ghost.metadata.annotations.reserved
    return _reservation(text) if text else None


def is_pinned(ghost: SlotPod) -> bool:
    """Whether a ghost stays until its pod was told."""
    return naming.FINALIZER in ghost.metadata.finalizers


def record_of(pod: SlotPod) -> Record:
    """What a pod was told so far; what makes no sense, or was told another pod, is nothing."""
    text = pod.metadata.annotations.hold
    read = _record(text) if text else None
    return read if read is not None and read.pod == pod.uid else Record(pod=pod.uid)


def hold_of(pod: SlotPod) -> Hold | None:
    """The slot that a pod holds; None for one that holds none, or no more."""
    record = record_of(pod)
    slot = read_slot(record.slot) if record.slot else None
    if slot is None or record.at is None or pod.is_over:
        return None
    if pod.spec.node_name not in ("", slot.node):
        return None
    return Hold(Bed(pod.metadata.namespace, record.bed), slot, record.ghost, record.at)


def may_be_told(pod: SlotPod, reservation: Reservation) -> bool:
    """Whether a pod can be told what is reserved for it."""
    record = record_of(pod)
    return (
        pod.uid == reservation.pod
        and record.epoch == reservation.epoch
        and not record.slot
        and not pod.spec.node_name
        and not pod.is_over
    )


def is_void(ghost: SlotPod, reservation: Reservation, pod: SlotPod | None) -> bool:
    """Whether a pod cannot be told by this ghost any more, and was not.

    That there is no pod must be certain: one that has not been heard of yet is one.
    """
    if pod is None or pod.uid != reservation.pod:
        return True
    if may_be_told(pod, reservation):
        return False
    hold = hold_of(pod)
    return hold is None or hold.ghost != ghost.uid
