"""Which slot a pod gets, and what is done next so that it gets it."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from slot_builders import BED, NOW, a_bed, a_ghost, a_sight, a_stranger, a_tenant, the_slot

from interlock.kube.pods.informer import Seen
from interlock.kube.slots import naming
from interlock.kube.slots.assignment import (
    Refused,
    Reserve,
    Seated,
    Settle,
    Step,
    Tell,
    asks,
    is_free,
    next_step,
)
from interlock.kube.slots.holds import (
    ghost_slot,
    hold_of,
    is_void,
    may_be_told,
    record_of,
    reservation_of,
)
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import ghost_name, read_slot
from interlock.resources.naming import MAX_LABEL

NODES = ("n0", "n1")
P = a_tenant("p1")


def told_of(step: Step) -> str:
    """A step in a word, with what it is about."""
    match step:
        case Reserve(ghost):
            return f"reserve {ghost.metadata.annotations.ghost_slot}"
        case Tell(_, record):
            return f"tell {record.slot} by {record.ghost}"
        case Settle(ghost):
            return f"settle {ghost.metadata.annotations.ghost_slot}"
        case Seated(slot, ghost):
            return f"seated {slot} {'beside' if ghost else 'alone'}"
        case Refused(why):
            return f"refused: {why}"


STEPS: list[tuple[str, SlotPod, tuple[SlotPod, ...], str]] = [
    ("the first in order", P, (a_ghost("n1/0"), a_ghost("n0/1")), "reserve n1/0"),
    ("one it may have", a_tenant(slots="n0/1,n1/3"), (a_ghost(), a_ghost("n0/1")), "reserve n0/1"),
    (
        "one that is free",
        P,
        (a_ghost("n0/0", reserved="p2"), a_ghost("n1/0"), a_tenant("p2")),
        "reserve n1/0",
    ),
    (
        "what is reserved for it",
        P,
        (a_ghost(), a_ghost("n1/5", reserved="p1")),
        "tell n1/5 by g-n1/5",
    ),
    (
        "what is reserved for it wherever that is",
        P,
        (a_ghost(), a_ghost("n9/0", reserved="p1")),
        "tell n9/0 by g-n9/0",
    ),
    (
        "the same of two every time",
        P,
        (a_ghost("n1/0", reserved="p1"), a_ghost("n0/0", reserved="p1")),
        "tell n0/0 by g-n0/0",
    ),
    (
        "not what was reserved in an earlier epoch",
        a_tenant(epoch=1),
        (a_ghost("n0/0", reserved="p1"), a_ghost("n1/0")),
        "reserve n1/0",
    ),
    (
        "its ghost is let go of first",
        a_tenant(told="n0/0", by="g-n0/0"),
        (a_ghost("n0/0", reserved="p1"),),
        "settle n0/0",
    ),
    (
        "beside its ghost",
        a_tenant(told="n0/0", by="g-n0/0"),
        (a_ghost("n0/0", reserved="p1", pinned=False),),
        "seated n0/0 beside",
    ),
    ("its ghost has gone", a_tenant(told="n0/0"), (a_ghost("n1/0"),), "seated n0/0 alone"),
    (
        "its ghost is going",
        a_tenant(told="n0/0", by="g-n0/0"),
        (a_ghost("n0/0", pinned=False, deletionTimestamp="2026-01-05T12:00:00Z"),),
        "seated n0/0 alone",
    ),
    (
        "another ghost is in its slot",
        a_tenant(told="n0/0"),
        (a_ghost("n0/0", reserved="p9"),),
        "seated n0/0 beside",
    ),
    (
        "a copy of a pod was told nothing",
        a_tenant(told="n0/0", whose="p0"),
        (a_ghost("n1/0"),),
        "reserve n1/0",
    ),
    (
        "nothing where somebody is told",
        P,
        (a_ghost("n0/0"), a_tenant("p2", told="n0/0")),
        "refused: no slot of TestBed default/bed is free here",
    ),
    (
        "but where whoever was told is over",
        P,
        (a_ghost("n0/0"), a_tenant("p2", told="n0/0", node="n0", phase="Succeeded")),
        "reserve n0/0",
    ),
    (
        "or placed elsewhere",
        P,
        (a_ghost("n0/0"), a_tenant("p2", told="n0/0", node="n1")),
        "reserve n0/0",
    ),
    (
        "no ghost that is not placed",
        P,
        (a_ghost(node=""),),
        "refused: no slot of TestBed default/bed is free here",
    ),
    (
        "none that is over",
        P,
        (a_ghost(phase="Failed"),),
        "refused: no slot of TestBed default/bed is free here",
    ),
    (
        "none that is going",
        P,
        (a_ghost(deletionTimestamp="2026-01-05T12:00:00Z"),),
        "refused: no slot of TestBed default/bed is free here",
    ),
    (
        "no other node",
        P,
        (a_ghost("n2/0"),),
        "refused: no slot of TestBed default/bed is free here",
    ),
    (
        "not another bed's",
        P,
        (a_ghost(bed="other"),),
        "refused: there are no slots of TestBed default/bed (annotation interlock.dev/test-bed)",
    ),
    (
        "not what others have",
        a_tenant(slots="n0/1"),
        (a_ghost(),),
        "refused: none of its slots of TestBed default/bed is free here",
    ),
    (
        "not what is too small",
        a_tenant(cpu="1001m"),
        (a_ghost(),),
        "refused: it requests more than a slot of TestBed default/bed has",
    ),
    (
        "nonsense",
        a_tenant(slots="n0/0, n0"),
        (a_ghost(),),
        "refused: its annotation interlock.dev/slots has 'n0': expected NODE/NUMBER",
    ),
    ("placed already", a_tenant(node="n0"), (a_ghost(),), "refused: it is placed already, or over"),
]


@pytest.mark.parametrize(
    ("pod", "others", "expected"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS]
)
def test_a_pod_gets(pod: SlotPod, others: tuple[SlotPod, ...], expected: str) -> None:
    assert told_of(next_step(a_bed(pod, *others), pod, NODES, NOW)) == expected


def test_of_free_slots_those_come_first_that_the_scheduler_has_named() -> None:
    bed = a_bed(a_ghost("n0/0"), a_ghost("n1/3"))
    assert told_of(next_step(bed, P, NODES, NOW, victims={"g-n1/3"})) == "reserve n1/3"


def test_ghosts_that_others_are_busy_with_are_left_to_them() -> None:
    bed = a_bed(a_ghost("n0/0"), a_ghost("n1/3"))
    assert told_of(next_step(bed, P, NODES, NOW, others={"g-n0/0"})) == "reserve n1/3"


def test_a_slot_that_a_job_was_granted_is_for_pods_that_name_it() -> None:
    bed = a_bed(a_ghost("n0/0"), a_ghost("n1/3"))
    assert told_of(next_step(bed, P, NODES, NOW, granted={"n0/0"})) == "reserve n1/3"
    named = a_tenant(slots="n0/0")
    assert told_of(next_step(bed, named, NODES, NOW, granted={"n0/0"})) == "reserve n0/0"


def test_a_reservation_names_the_pod_its_epoch_and_the_moment() -> None:
    pod = a_tenant("p1", epoch=3)
    step = next_step(a_bed(a_ghost()), pod, NODES, NOW)
    assert isinstance(step, Reserve)
    reservation = step.reservation
    assert (reservation.pod, reservation.epoch, reservation.at) == ("p1", 3, NOW)
    assert may_be_told(pod, reservation)


RESERVED = a_ghost("n0/0", reserved="p1", epoch=1)
VOIDS: list[tuple[str, SlotPod | None, bool]] = [
    ("it can be told", a_tenant(epoch=1), False),
    ("it was told", a_tenant(epoch=1, told="n0/0", by="g-n0/0"), False),
    ("it was told and is there", a_tenant(epoch=1, told="n0/0", by="g-n0/0", node="n0"), False),
    ("it is gone", None, True),
    ("another has its name", a_tenant("p2", epoch=1), True),
    ("its epoch has passed", a_tenant(epoch=2), True),
    ("it was told another slot", a_tenant(epoch=1, told="n1/0", by="g-n1/0"), True),
    ("it was told this slot by another ghost", a_tenant(epoch=1, told="n0/0", by="g"), True),
    ("it is over", a_tenant(epoch=1, phase="Failed"), True),
    ("it was told and is over", a_tenant(epoch=1, told="n0/0", by="g-n0/0", phase="Failed"), True),
    ("it is elsewhere", a_tenant(epoch=1, node="n1"), True),
    ("it was told and is elsewhere", a_tenant(epoch=1, told="n0/0", by="g-n0/0", node="n1"), True),
]


@pytest.mark.parametrize(
    ("pod", "expected"), [row[1:] for row in VOIDS], ids=[row[0] for row in VOIDS]
)
def test_a_reservation_is_void_when_its_pod_cannot_be_told_any_more(
    pod: SlotPod | None, expected: bool
) -> None:
    reservation = reservation_of(RESERVED)
    assert reservation is not None
    assert is_void(RESERVED, reservation, pod) is expected


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"pod": 3}', '{"pod": "p1", "slot": "n0/0", "more": 1}', "\ud800"]
)
def test_a_record_that_makes_no_sense_says_nothing(text: str) -> None:
    annotations = msgspec.structs.replace(P.metadata.annotations, hold=text, reserved=text)
    pod = msgspec.structs.replace(
        P, metadata=msgspec.structs.replace(P.metadata, annotations=annotations)
    )
    assert hold_of(pod) is None
    assert record_of(pod).epoch == 0
    assert reservation_of(pod) is None


def test_what_only_looks_like_a_ghost_is_none() -> None:
    ghost = a_ghost()
    assert ghost_slot(ghost) == (BED, the_slot("n0/0"))
    assert ghost_slot(a_ghost(ownerReferences=[])) is None
    assert ghost_slot(a_stranger("ghost", labels={naming.GHOST_OF: "bed"})) is None
    renamed = msgspec.structs.replace(ghost.metadata, name="ghost-bed-n0-0")
    assert ghost_slot(msgspec.structs.replace(ghost, metadata=renamed)) is None


def test_a_ghost_never_asks_for_a_slot() -> None:
    ghost = a_ghost(annotations={naming.TEST_BED: "bed", naming.GHOST_SLOT: "n0/0"})
    assert not asks(ghost)
    assert asks(P)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("n/0", True),
        ("node-0.example.com/999", True),
        ("n/1000", False),
        ("n/01", False),
        ("n/-1", False),
        ("n/", False),
        ("/1", False),
        ("N/1", False),
        ("n/1/2", False),
        ("n", False),
        ("n/1\n", False),
        ("a" * 255 + "/1", True),
        ("a" * 256 + "/1", False),
    ],
)
def test_slots_as_they_are_written(text: str, is_one: bool) -> None:
    slot = read_slot(text)
    assert (slot is not None) is is_one
    assert slot is None or str(slot) == text


def test_ghosts_have_names_of_their_own_however_long_those_of_beds_and_nodes_are() -> None:
    beds = ("a", "a-b", "a" * 63)
    slots = [the_slot(f"{node}/{n}") for node in ("b", "b-c", "b.c", "n" * 253) for n in (0, 999)]
    names = {ghost_name(bed, slot) for bed in beds for slot in slots}
    assert len(names) == len(beds) * len(slots)
    assert all(len(name) <= MAX_LABEL and read_slot(f"{name}/0") for name in names)


def test_what_is_known_of_pods_goes_with_them() -> None:
    pods = [a_ghost(reserved="p1"), a_tenant("p1"), a_tenant("p2", told="n0/1", node="n0")]
    sight = a_sight([*pods, a_stranger(cpu="500m")])
    assert sight.taken["n0"] == {"cpu": 2500, "pods": 3000}
    for pod in pods:
        sight.observe([Seen(pod, None)])
    assert BED not in sight.beds
    assert sight.taken == {"n0": {"cpu": 500, "pods": 1000}}


def test_a_free_slot_has_a_ghost_and_nobody_else() -> None:
    slot = the_slot("n0/0")
    assert is_free(a_bed(a_ghost()), slot)
    assert not is_free(a_bed(a_ghost(), a_tenant(told="n0/0", at=NOW - timedelta(days=1))), slot)
