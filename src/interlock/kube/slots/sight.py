"""The index of slots: of each TestBed its ghosts and who holds its slots; what nodes are left with.

It follows the informer of pods and is never counted up: what a pod brought in goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from interlock.kube.pods.informer import Seen
from interlock.kube.slots.holds import ghost_slot, hold_of, reservation_of
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Bed, Slot

K = TypeVar("K")

_NO_PODS: Mapping[str, SlotPod] = {}


class BedSight:
    """The pods of one TestBed; to be read, and asked in one go."""

    def __init__(self) -> None:
        self.ghosts: dict[Slot, SlotPod] = {}
        #: By slot and uid, though by `holds` there is never more than one of a slot.
        self.holders: dict[Slot, dict[str, SlotPod]] = {}
        #: Ghosts by the uid of the pod that they are reserved for, and by their own.
        self.reserved: dict[str, dict[str, SlotPod]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of it."""
        return not (self.ghosts or self.holders or self.reserved)

    def holders_of(self, slot: Slot) -> Mapping[str, SlotPod]:
        """Who was told a slot, and still has it."""
        return self.holders.get(slot, _NO_PODS)

    def reserved_for(self, uid: str) -> Mapping[str, SlotPod]:
        """The ghosts that are reserved for a pod."""
        return self.reserved.get(uid, _NO_PODS)


class Sight:
    """All TestBeds, and what the pods on each node take."""

    def __init__(self) -> None:
        self.beds: dict[Bed, BedSight] = {}
        self.by_uid: dict[str, SlotPod] = {}
        #: By node and resource, in thousandths.
        self.taken: dict[str, dict[str, int]] = {}

    def bed(self, bed: Bed) -> BedSight:
        """What is known of a TestBed."""
        return self.beds.get(bed) or BedSight()

    def observe(self, changes: Sequence[Seen[SlotPod]]) -> None:
        """Take in what happened to pods."""
        for change in changes:
            if change.before is not None:
                self._forget(change.before)
            if change.after is not None:
                self._know(change.after)

    def beds_of(self, pod: SlotPod) -> Iterator[Bed]:
        """The TestBeds that a pod has to do with."""
        found = ghost_slot(pod)
        if found is not None:
            yield found[0]
        hold = hold_of(pod)
        if hold is not None:
            yield hold.bed
        asked = pod.metadata.annotations.test_bed
        if asked:
            yield Bed(pod.metadata.namespace, asked)

    def _know(self, pod: SlotPod) -> None:
        self.by_uid[pod.uid] = pod
        self._count(pod, 1)
        found = ghost_slot(pod)
        if found is not None:
            bed = self.beds.setdefault(found[0], BedSight())
            bed.ghosts[found[1]] = pod
            reservation = reservation_of(pod)
            if reservation is not None:
                bed.reserved.setdefault(reservation.pod, {})[pod.uid] = pod
        hold = hold_of(pod)
        if hold is not None:
            bed = self.beds.setdefault(hold.bed, BedSight())
            bed.holders.setdefault(hold.slot, {})[pod.uid] = pod

    def _forget(self, pod: SlotPod) -> None:
        self.by_uid.pop(pod.uid, None)
        self._count(pod, -1)
        found = ghost_slot(pod)
        if found is not None:
            bed = self.beds[found[0]]
            bed.ghosts.pop(found[1], None)
            reservation = reservation_of(pod)
            if reservation is not None:
                _take_out(bed.reserved, reservation.pod, pod.uid)
            self._tidy(found[0])
        hold = hold_of(pod)
        if hold is not None:
            _take_out(self.beds[hold.bed].holders, hold.slot, pod.uid)
            self._tidy(hold.bed)

    def _tidy(self, bed: Bed) -> None:
        if self.beds[bed].is_empty:
            del self.beds[bed]

    def _count(self, pod: SlotPod, sign: int) -> None:
        """Count what a pod takes of its node; one that is over takes nothing."""
        node = pod.spec.node_name
        if not node or pod.is_over:
            return
        taken = self.taken.setdefault(node, {})
        for name, amount in pod.requests.items():
            left = taken.get(name, 0) + sign * amount
            if left:
                taken[name] = left
            else:
                taken.pop(name, None)
        if not taken:
            del self.taken[node]


def _take_out(held: dict[K, dict[str, SlotPod]], key: K, uid: str) -> None:
    held[key].pop(uid, None)
    if not held[key]:
        del held[key]
