"""Which slots a TestBed has: as many on each of its nodes as it says, where there is room for them.

A node that cannot be used is told of, and takes nothing from the others. The record keeps what was
granted, whatever becomes of node or bed: who is in a slot that went is not touched, and nobody else
gets it. Only a record that names nobody is removed, and only when its bed is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from interlock.resources.actions import (
    Action,
    CreateResource,
    Decision,
    DeleteResource,
    RecordStatus,
)
from interlock.resources.metadata import Metadata
from interlock.resources.test_bed import (
    MAX_NODE_ID,
    NodeProblem,
    Place,
    TestBed,
    TestBedSlots,
    TestBedSlotsSpec,
    TestBedSpec,
    TestBedStatus,
)
from interlock.resources.values.amounts import format_milli
from interlock.slots.beds.view import BedView, NodeView

#: So many nodes that cannot be used are told of.
_PROBLEMS_TOLD = 20


def decide_bed(view: BedView, now: datetime) -> Decision:  # noqa: ARG001  As every decision.
    """Write down which slots there are, for those who are granted them and for people."""
    bed, record = view.bed, view.record
    if bed is None or bed.is_going:
        return _without_bed(record)
    places, problems = _places(bed, view.nodes)
    status = TestBedStatus(
        observed_generation=bed.metadata.generation,
        nodes=len(places),
        slots=sum(place.slots for place in places),
        problems=problems[:_PROBLEMS_TOLD],
        trouble=bed.status.trouble,
    )
    actions: list[Action] = []
    if record is None:
        actions.append(CreateResource(_new_record(bed)))
    elif record.status.places != places and not record.is_going:
        actions.append(RecordStatus(record, replace(record.status, places=places)))
    if status != bed.status:
        actions.append(RecordStatus(bed, status))
    reason = f"{status.slots} slots on {status.nodes} nodes" if actions else ""
    return Decision(tuple(actions), reason=reason)


def _without_bed(record: TestBedSlots | None) -> Decision:
    """Offer no more slots, and remove the record once nobody is in one."""
    if record is None or record.is_going:
        return Decision()
    if record.status.places:
        status = replace(record.status, places=())
        return Decision((RecordStatus(record, status),), reason="its bed is gone: no more slots")
    if record.status.holders:
        return Decision()
    return Decision((DeleteResource(record),), reason="its bed is gone, and nobody is in a slot")


def _new_record(bed: TestBed) -> TestBedSlots:
    name = bed.metadata.name
    metadata = Metadata(name=name, namespace=bed.metadata.namespace)
    return TestBedSlots(metadata=metadata, spec=TestBedSlotsSpec(test_bed=name))


def _places(
    bed: TestBed, nodes: tuple[NodeView, ...]
) -> tuple[tuple[Place, ...], tuple[NodeProblem, ...]]:
    """The nodes of a bed in their order, and what keeps others from being among them."""
    places: list[Place] = []
    problems: list[NodeProblem] = []
    for rank, node in enumerate(sorted(nodes, key=lambda node: node.name)):
        id, problem = _id_of(bed.spec, node, rank)
        if id is None and not problem:
            continue
        problem = problem or _lack(bed.spec, node)
        if problem:
            problems.append(NodeProblem(node=node.name, message=problem))
        elif id is not None:
            places.append(Place(node=node.name, id=id, slots=bed.spec.slots_per_node))
    return tuple(sorted(places, key=lambda place: (place.id, place.node))), tuple(problems)


def _id_of(spec: TestBedSpec, node: NodeView, rank: int) -> tuple[int | None, str]:
    """The number of a node in a bed, or why it has none; neither for one that is not the bed's."""
    if spec.node_label is None:
        return rank, ""
    label = node.labels.get(spec.node_label)
    if label is None:
        return None, ""
    if not (label.isascii() and label.isdigit()) or int(label) > MAX_NODE_ID:
        expected = f"expected a whole number from 0 to {MAX_NODE_ID}"
        return None, f"its label {spec.node_label} is {label!r}: {expected}"
    return int(label), ""


def _lack(spec: TestBedSpec, node: NodeView) -> str:
    """What a node has too little of for all of its slots; empty where it has enough."""
    for name, each in spec.resources_per_slot.items():
        needed = each.milli * spec.slots_per_node
        left = node.has.get(name, 0) - node.taken.get(name, 0)
        if needed > left:
            others = node.taken.get(name, 0)
            beside = f", {format_milli(others)} of which are other beds'" if others else ""
            return (
                f"{spec.slots_per_node} slots need {format_milli(needed)} of {name}:"
                f" it has {format_milli(node.has.get(name, 0))}{beside}"
            )
    return ""


def taken_by(bed: TestBed, record: TestBedSlots | None) -> Mapping[str, Mapping[str, int]]:
    """What a bed takes of each node that it has slots on, in thousandths."""
    places = record.status.places if record is not None else ()
    return {
        place.node: {
            name: amount.milli * place.slots for name, amount in bed.spec.resources_per_slot.items()
        }
        for place in places
    }
