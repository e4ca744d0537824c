"""Slots on a cluster: the ghosts of TestBeds, and the scheduler extender, beside the rooms.

Pods are followed on every replica, and every replica answers schedulers; ghosts are made and
removed by the one that leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from random import Random

from interlock.control.caches import Caches
from interlock.control.clock import Clock
from interlock.control.reconciler import Change
from interlock.kube.client.api_client import Client
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.objects import KubernetesObjects
from interlock.kube.slots.app import ExtenderApp
from interlock.kube.slots.extender import Extender
from interlock.kube.slots.ghost_manifest import GhostSettings
from interlock.kube.slots.keeper import GONE, BedFacts, Keeper
from interlock.kube.slots.models import SLOT_PODS, SlotPod
from interlock.kube.slots.naming import Bed
from interlock.kube.slots.sight import Sight
from interlock.resources.cluster import Node
from interlock.resources.metadata import Key
from interlock.resources.test_bed import TestBed, TestBedSlots, held_slots
from interlock.resources.values.amounts import Amount

#: A list is taken in at once: between two parts of it pods would be known that are younger than
#: others that are not. See `kube/slots/holds.py`.
_WHOLE = 1 << 30


class ClusterSlots:
    """What a controller does about slots."""

    def __init__(
        self,
        client: Client,
        leaders: Client,
        caches: Callable[[], Caches | None],
        clock: Clock,
        luck: Random,
        leads: Callable[[], bool],
        settings: GhostSettings,
    ) -> None:
        """Follow slots; `caches` are None until they hold everything, and `leaders` are fenced."""
        self._caches = caches
        objects = KubernetesObjects(client, SLOT_PODS, clock, luck)
        self._pods: Informer[SlotPod] = Informer(objects, clock, luck, part=_WHOLE, selector="")
        sight = Sight()
        self._pods.subscribe(sight.observe)
        self.app = ExtenderApp(Extender(self._pods, sight, clock, granted=self._granted))
        writes = KubernetesObjects(leaders, SLOT_PODS, clock, luck)
        self._keeper = Keeper(self._pods, sight, writes, self._facts, clock, luck, leads, settings)

    async def run(self) -> None:
        """Follow and act until cancelled."""
        await asyncio.gather(self._pods.run(), self._keeper.act())

    def begin(self) -> None:
        """Look at all there is: this process leads from now on."""
        self._keeper.wake((*self._beds(), *self._keeper.known()))

    def observe(self, change: Change) -> None:
        """Take in what the ghosts of a TestBed depend on."""
        seen = change.after or change.before
        if isinstance(seen, TestBed | TestBedSlots):
            self._keeper.wake((Bed(seen.metadata.namespace, seen.metadata.name),))
        elif isinstance(seen, Node) and _room(change.before) != _room(change.after):
            self._keeper.wake(self._beds())

    def _beds(self) -> tuple[Bed, ...]:
        caches = self._caches()
        beds = caches.of(TestBed) if caches is not None else ()
        return tuple(Bed(bed.metadata.namespace, bed.metadata.name) for bed in beds)

    def _facts(self, bed: Bed) -> BedFacts | None:
        caches = self._caches()
        key = Key("TestBed", bed.namespace, bed.name)
        if caches is None or key in caches.of(TestBed).unreadable:
            return None
        found, record = caches.of(TestBed).get(key), _record(caches, bed)
        if found is None:
            return GONE
        if record is None:
            return None
        places = {place.node: place.slots for place in record.status.places}
        nodes = caches.of(Node)
        return BedFacts(
            uid=found.metadata.uid,
            wanted={} if found.is_going else places,
            size={name: one.milli for name, one in found.spec.resources_per_slot.items()},
            allocatable={name: _room(nodes.get(Key("Node", "", name))) for name in places},
        )

    def _granted(self, bed: Bed) -> Set[str]:
        caches = self._caches()
        record = _record(caches, bed) if caches is not None else None
        return {slot for slot, _ in held_slots(record)} if record is not None else frozenset()


def _record(caches: Caches, bed: Bed) -> TestBedSlots | None:
    return caches.of(TestBedSlots).get(Key("TestBedSlots", bed.namespace, bed.name))


def _room(node: object) -> dict[str, int]:
    """What a node has, in thousandths; what cannot be read is nothing to count on."""
    found: dict[str, int] = {}
    for name, text in node.status.allocatable.items() if isinstance(node, Node) else ():
        try:
            found[name] = Amount.read(text).milli
        except ValueError:
            continue
    return found
