"""Which slots a TestBed has: its nodes, their order and their room, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.actions import CreateResource, DeleteResource, RecordStatus
from interlock.resources.metadata import Key
from interlock.resources.test_bed import (
    Place,
    TestBed,
    TestBedSlots,
    TestBedSlotsStatus,
    TestBedStatus,
)
from interlock.resources.values.amounts import Amount
from interlock.slots.beds.decide import decide_bed, taken_by
from interlock.slots.beds.view import BedView, NodeView
from interlock.testing.builders import T0
from support.slot_desk import a_bed, a_record, a_slot_holder

KEY = Key("TestBed", "default", "bed")
EMPTY = a_record()


def looked(
    bed: TestBed | None, *nodes: NodeView, record: TestBedSlots | None = EMPTY
) -> tuple[TestBedSlotsStatus | None, TestBedStatus | None]:
    """What is written down of the record and of the bed."""
    decision = decide_bed(BedView(key=KEY, bed=bed, record=record, nodes=nodes), T0)
    slots = status = None
    for action in decision.actions:
        assert isinstance(action, RecordStatus)
        if isinstance(action.status, TestBedSlotsStatus):
            slots = action.status
        else:
            assert isinstance(action.status, TestBedStatus)
            status = action.status
    return slots, status


def a_place(node: str, id: int, slots: int) -> Place:
    return Place(node=node, id=id, slots=slots)


def node(name: str, label: str | None = None, *, cpu: int = 0, taken: int = 0) -> NodeView:
    labels = {} if label is None else {"bed": label}
    return NodeView(name=name, labels=labels, has={"cpu": cpu}, taken={"cpu": taken})


def test_without_a_label_every_node_is_in_the_order_of_names() -> None:
    slots, status = looked(a_bed(), node("b"), node("a"))

    assert slots is not None
    assert slots.places == (a_place("a", 0, 2), a_place("b", 1, 2))
    assert status == TestBedStatus(observed_generation=1, nodes=2, slots=4)


def test_the_label_says_which_nodes_and_in_which_order() -> None:
    slots, _ = looked(a_bed(node_label="bed"), node("a", "7"), node("b", "0"), node("c"))

    assert slots is not None
    assert slots.places == (a_place("b", 0, 2), a_place("a", 7, 2))


def test_two_nodes_of_one_number_have_their_own_slots() -> None:
    slots, _ = looked(a_bed(node_label="bed"), node("b", "1"), node("a", "1"))

    assert slots is not None
    assert slots.places == (a_place("a", 1, 2), a_place("b", 1, 2))


@pytest.mark.parametrize("label", ["", "x", "-1", "1.5", "٣", str(1 << 31)])
def test_a_label_that_is_no_number_is_told_of_and_costs_nobody_else(label: str) -> None:
    slots, status = looked(a_bed(node_label="bed"), node("bad", label), node("good", "0"))

    assert slots is not None
    assert slots.places == (a_place("good", 0, 2),)
    assert status is not None
    (problem,) = status.problems
    assert problem.node == "bad"
    assert repr(label) in problem.message


@pytest.mark.parametrize(
    ("cpu", "taken", "is_large_enough"),
    [
        pytest.param(2000, 0, True, id="to the last bit"),
        pytest.param(1999, 0, False, id="too small"),
        pytest.param(3000, 1000, True, id="beside another bed"),
        pytest.param(2999, 1000, False, id="not beside another bed"),
    ],
)
def test_a_node_without_room_for_all_its_slots_has_none(
    cpu: int, taken: int, is_large_enough: bool
) -> None:
    bed = a_bed(resources_per_slot={"cpu": Amount.read(1)})
    slots, status = looked(bed, node("small", cpu=cpu, taken=taken), node("large", cpu=9000))

    assert slots is not None
    assert ("small" in {place.node for place in slots.places}) is is_large_enough
    assert status is not None
    assert [one.node for one in status.problems] == ([] if is_large_enough else ["small"])


def test_a_resource_that_no_node_tells_of_is_one_it_has_nothing_of() -> None:
    bed = a_bed(resources_per_slot={"gpu": Amount.read(1)})
    _, status = looked(bed, node("plain", cpu=9000))

    assert status is not None
    assert status.problems[0].message == "2 slots need 2 of gpu: it has 0"


def test_a_new_bed_gets_a_record() -> None:
    decision = decide_bed(BedView(key=KEY, bed=a_bed(), record=None), T0)

    created = [one for one in decision.actions if isinstance(one, CreateResource)]
    assert [one.resource.key for one in created] == [Key("TestBedSlots", "default", "bed")]


def test_what_is_as_it_should_be_is_left_alone() -> None:
    places = (a_place("a", 0, 2),)
    bed = replace(a_bed(), status=TestBedStatus(observed_generation=1, nodes=1, slots=2))

    decision = decide_bed(
        BedView(key=KEY, bed=bed, record=a_record(places), nodes=(node("a"),)), T0
    )

    assert not decision.actions


def test_who_is_in_a_slot_that_went_is_not_touched() -> None:
    holder = a_slot_holder("job", "gone/0")
    record = a_record((a_place("gone", 0, 2),), holder)

    slots, _ = looked(a_bed(), node("a"), record=record)

    assert slots is not None
    assert slots.holders == (holder,)
    assert slots.places == (a_place("a", 0, 2),)


@pytest.mark.parametrize("held", [(), ("a/0",)])
def test_a_record_without_bed_offers_nothing_and_goes_when_nobody_is_in_it(
    held: tuple[str, ...],
) -> None:
    holders = (a_slot_holder("job", *held),) if held else ()
    full = a_record((a_place("a", 0, 2),), *holders)

    slots, _ = looked(None, record=full)
    assert slots is not None
    assert (slots.places, slots.holders) == ((), holders)

    decision = decide_bed(BedView(key=KEY, record=a_record((), *holders)), T0)
    assert [type(one) for one in decision.actions] == ([] if held else [DeleteResource])


def test_a_bed_takes_of_its_nodes_what_all_its_slots_come_to() -> None:
    bed = a_bed(resources_per_slot={"cpu": Amount.read("500m")})
    record = a_record((a_place("a", 0, 2), a_place("b", 1, 3)))

    assert taken_by(bed, record) == {"a": {"cpu": 1000}, "b": {"cpu": 1500}}
    assert taken_by(bed, None) == {}


def test_a_bed_that_is_going_offers_nothing() -> None:
    bed: Any = a_bed()
    going = replace(bed, metadata=replace(bed.metadata, deletion_timestamp=T0))

    slots, status = looked(going, node("a"), record=a_record((a_place("a", 0, 2),)))

    assert slots is not None
    assert slots.places == ()
    assert status is None
