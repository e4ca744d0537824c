"""The reconciler of slots: what wakes the room, and how it looks at TestBeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision
from interlock.resources.cluster import Node
from interlock.resources.metadata import Key, Resource
from interlock.resources.test_bed import TestBed, TestBedSlots
from interlock.resources.values.amounts import Amount
from interlock.slots.beds.decide import decide_bed, taken_by
from interlock.slots.beds.view import BedView, NodeView


class SlotsReconciler:
    """Looks at TestBeds: which slots they have on which nodes."""

    room = "slots"

    def __init__(
        self, beds: Cache[TestBed], records: Cache[TestBedSlots], nodes: Cache[Node]
    ) -> None:
        self._beds = beds
        self._records = records
        self._nodes = nodes

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake the beds that a change of a node, of a record or of themselves concerns."""
        resource = change.after or change.before
        if isinstance(resource, TestBed):
            # What an older bed takes of a node, a younger one has not.
            return (*(bed.key for bed in self._beds), resource.key)
        if isinstance(resource, TestBedSlots):
            return self._of_record(resource, change)
        if isinstance(resource, Node) and _matters(change.before) != _matters(change.after):
            return tuple(bed.key for bed in self._beds)
        return ()

    def _of_record(self, record: TestBedSlots, change: Change) -> tuple[Key, ...]:
        before, after = change.before, change.after
        own = Key("TestBed", record.metadata.namespace, record.metadata.name)
        was, now = (
            one.status.places if isinstance(one, TestBedSlots) else None for one in (before, after)
        )
        if was != now:
            return (own, *(bed.key for bed in self._beds if bed.key != own))
        is_left = after is not None and not record.status.holders
        return (own,) if is_left and self._beds.get(own) is None else ()

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about a TestBed."""
        if key in self._beds.unreadable:
            # It is there, and what it was granted to stays so until it can be read again.
            return Decision()
        bed = self._beds.get(key)
        record = self._records.get(Key("TestBedSlots", key.namespace, key.name))
        older = tuple(self._older(bed)) if bed is not None else ()
        nodes = tuple(_view_of(node, older) for node in self._nodes) if bed is not None else ()
        return decide_bed(BedView(key=key, bed=bed, record=record, nodes=nodes), now)

    def _older(self, bed: TestBed) -> Iterator[Mapping[str, Mapping[str, int]]]:
        """What the beds that were there before it take of the nodes."""
        for other in self._beds:
            if _age(other) < _age(bed):
                record = self._records.get(
                    Key("TestBedSlots", other.metadata.namespace, other.metadata.name)
                )
                yield taken_by(other, record)


def _age(bed: TestBed) -> tuple[object, ...]:
    """What orders beds by age, the same wherever they are kept."""
    metadata = bed.metadata
    return (str(metadata.creation_timestamp or ""), metadata.namespace, metadata.name)


def _view_of(node: Node, older: Iterable[Mapping[str, Mapping[str, int]]]) -> NodeView:
    taken: dict[str, int] = {}
    for bed in older:
        for name, amount in bed.get(node.metadata.name, {}).items():
            taken[name] = taken.get(name, 0) + amount
    has = {name: _milli(text) for name, text in node.status.allocatable.items()}
    return NodeView(name=node.metadata.name, labels=node.metadata.labels, has=has, taken=taken)


def _milli(text: str) -> int:
    """An amount as a node says it; what cannot be read is nothing to count on."""
    try:
        return Amount.read(text).milli
    except ValueError:
        return 0


def _matters(node: Resource | None) -> object:
    """All of a node that slots depend on: its heartbeats are no news."""
    if not isinstance(node, Node):
        return None
    return node.metadata.labels, node.status.allocatable
