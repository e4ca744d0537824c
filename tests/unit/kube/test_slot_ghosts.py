"""Which ghosts a bed has: one in every slot that nobody is in, where there is room for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from slot_builders import BED, NOW, a_bed, a_ghost, a_sight, a_stranger, a_tenant, the_slot

from interlock.kube.slots.assignment import Settle
from interlock.kube.slots.ghosts import (
    COMES_WITHIN,
    REPLACED_AFTER,
    Action,
    GhostView,
    GiveUp,
    MakeGhost,
    RemoveGhost,
    SlotState,
    TakeBack,
    decide,
    slots_of,
)
from interlock.kube.slots.models import SlotPod

LATE = NOW + COMES_WITHIN
ROOM = {"cpu": 10_000, "pods": 100_000}


def a_view(
    *pods: SlotPod,
    wanted: Mapping[str, int] | None = None,
    size: Mapping[str, int] | None = None,
    allocatable: Mapping[str, Mapping[str, int]] | None = None,
) -> GhostView:
    """A bed with one slot of one processor on one large node, if nothing else is said."""
    sight = a_sight(pods)
    wanted = {"n0": 1} if wanted is None else wanted
    return GhostView(
        bed=BED,
        wanted=wanted,
        size={"cpu": 1000} if size is None else size,
        sight=sight.bed(BED),
        pods=sight.by_uid,
        allocatable=dict.fromkeys(wanted, ROOM) if allocatable is None else allocatable,
        taken=sight.taken,
    )


def told_of(action: Action) -> str:
    match action:
        case MakeGhost(slot):
            return f"make {slot}"
        case RemoveGhost(ghost, why):
            return f"remove {ghost.uid}: {why}"
        case GiveUp(ghost, why):
            return f"give up {ghost.uid}: {why}"
        case Settle(ghost):
            return f"settle {ghost.uid}"
        case TakeBack(pod, record):
            return f"take back {pod.uid}: {record.epoch} {record.slot}".rstrip()


def done(view: GhostView, now: datetime = NOW) -> list[str]:
    return [told_of(action) for action in decide(view, now).actions]


GOING: dict[str, Any] = {"deletionTimestamp": "2026-01-05T12:00:00Z"}
OLD: dict[str, Any] = {"creationTimestamp": (NOW - REPLACED_AFTER).isoformat()}
YOUNG: dict[str, Any] = {"creationTimestamp": NOW.isoformat()}
TOLD = a_tenant(told="n0/0", by="g-n0/0")
THERE = a_tenant(told="n0/0", by="g-n0/0", node="n0")
SLOTS: list[tuple[str, tuple[SlotPod, ...], list[str]]] = [
    ("nothing there", (), ["make n0/0"]),
    ("a ghost", (a_ghost(),), []),
    ("a ghost that is not placed yet", (a_ghost(node=""),), []),
    ("a ghost that is going", (a_ghost(**GOING),), []),
    ("a ghost that ended", (a_ghost(phase="Failed", **OLD),), ["remove g-n0/0: it ended"]),
    ("a ghost that ended at once", (a_ghost(phase="Failed", **YOUNG),), []),
    ("a tenant", (THERE,), []),
    ("a tenant that is over", (a_tenant(told="n0/0", node="n0", phase="Failed"),), ["make n0/0"]),
    ("a tenant that is elsewhere", (a_tenant(told="n0/0", node="n1"),), ["make n0/0"]),
    ("a tenant on its way", (TOLD,), []),
    ("a stranger", (a_stranger(),), ["make n0/0"]),
    (
        "a ghost beside its tenant",
        (a_ghost(reserved="p1", pinned=False), THERE),
        ["remove g-n0/0: p1 is in its slot"],
    ),
    (
        "a ghost that is held beside its tenant",
        (a_ghost(reserved="p1"), THERE),
        ["settle g-n0/0"],
    ),
    (
        "a ghost beside another's tenant",
        (a_ghost(uid="g2"), THERE),
        ["remove g2: somebody is in its slot"],
    ),
    (
        "a ghost where somebody was told another",
        (a_ghost(uid="g2"), TOLD),
        ["remove g2: somebody is in its slot"],
    ),
    ("reserved", (a_ghost(reserved="p1"), a_tenant()), []),
    ("reserved and told", (a_ghost(reserved="p1", pinned=False), TOLD), []),
    ("reserved, told and held", (a_ghost(reserved="p1"), TOLD), ["settle g-n0/0"]),
    ("reserved for nobody", (a_ghost(reserved="p1"),), ["give up g-n0/0: p1 does not come"]),
    (
        "reserved for one that is elsewhere",
        (a_ghost(reserved="p1"), a_tenant(node="n1")),
        ["give up g-n0/0: p1 does not come"],
    ),
    (
        "reserved for one that was told another slot",
        (a_ghost(reserved="p1"), a_tenant(told="n1/0", by="g-n1/0")),
        ["give up g-n0/0: p1 does not come"],
    ),
    (
        "reserved in an epoch that has passed",
        (a_ghost(reserved="p1"), a_tenant(epoch=1)),
        ["give up g-n0/0: p1 does not come"],
    ),
    (
        "reserved for a tenant that is over",
        (a_ghost(reserved="p1", pinned=False), a_tenant(told="n0/0", by="g-n0/0", phase="Failed")),
        ["give up g-n0/0: p1 does not come"],
    ),
    ("reserved and going", (a_ghost(reserved="p1", **GOING), a_tenant()), []),
    ("held for nobody", (a_ghost(pinned=True),), ["give up g-n0/0: it is reserved for nobody"]),
    (
        "a slot too many",
        (a_ghost(), a_ghost("n0/1")),
        ["remove g-n0/1: there should be no such slot"],
    ),
    (
        "a slot too many that is reserved",
        (a_ghost(), a_ghost("n0/1", reserved="p1"), a_tenant()),
        [],
    ),
    ("a slot too many with a tenant", (a_ghost(), a_tenant(told="n0/1", node="n0")), []),
    (
        "a ghost of another size",
        (a_ghost(cpu="2"),),
        ["remove g-n0/0: its slot has another size now"],
    ),
    ("one that is reserved", (a_ghost(cpu="2", reserved="p1"), a_tenant()), []),
    ("one that is going", (a_ghost(cpu="2", **GOING),), []),
    ("a ghost that went astray", (a_ghost(node="n1"),), ["remove g-n0/0: it is on n1"]),
]


@pytest.mark.parametrize(
    ("pods", "expected"), [row[1:] for row in SLOTS], ids=[r[0] for r in SLOTS]
)
def test_what_is_done_about_a_slot(pods: tuple[SlotPod, ...], expected: list[str]) -> None:
    assert done(a_view(*pods)) == expected


def test_a_bed_that_is_gone_takes_its_ghosts_along_and_nobody_else() -> None:
    pods = (a_ghost(), a_ghost("n0/1", reserved="p1"), a_tenant("p1"), a_tenant("p2", told="n1/0"))
    assert done(a_view(*pods, wanted={})) == ["remove g-n0/0: there should be no such slot"]


WAITS: list[tuple[str, tuple[SlotPod, ...], str]] = [
    ("told", (TOLD,), "take back p1: 1"),
    ("reserved", (a_ghost(reserved="p1"), a_tenant()), "take back p1: 1"),
    (
        "reserved again",
        (a_ghost(reserved="p1", epoch=4), a_tenant(epoch=4)),
        "take back p1: 5",
    ),
]


@pytest.mark.parametrize(
    ("pods", "expected"), [row[1:] for row in WAITS], ids=[r[0] for r in WAITS]
)
def test_what_a_pod_does_not_come_to_is_taken_back_in_time(
    pods: tuple[SlotPod, ...], expected: str
) -> None:
    view = a_view(*pods)
    early = decide(view, LATE - timedelta(microseconds=1))
    assert early.actions == ()
    assert early.wake_at == LATE
    assert done(view, LATE) == [expected]


def test_a_tenant_that_is_there_is_never_late() -> None:
    assert decide(a_view(THERE), LATE).actions == ()
    assert decide(a_view(THERE), NOW).wake_at is None


def test_a_ghost_that_ended_at_once_is_looked_at_again() -> None:
    assert decide(a_view(a_ghost(phase="Failed", **YOUNG)), NOW).wake_at == NOW + REPLACED_AFTER


CPU = "cpu: 1 are needed, 0 are left"
ROOMS: list[tuple[str, tuple[SlotPod, ...], Mapping[str, int], list[str], str]] = [
    ("enough", (), {"cpu": 2000, "pods": 2000}, ["make n0/0", "make n0/1"], ""),
    (
        "for one",
        (),
        {"cpu": 1999, "pods": 9000},
        ["make n0/0"],
        "1: cpu: 1 are needed, 999m are left",
    ),
    (
        "too few pods",
        (),
        {"cpu": 9000, "pods": 1000},
        ["make n0/0"],
        "1: pods: 1 are needed, 0 are left",
    ),
    ("for none", (), {}, [], "0, 1: cpu: 1 are needed, 0 are left"),
    ("beside a stranger", (a_stranger(),), {"cpu": 2000, "pods": 9000}, ["make n0/0"], f"1: {CPU}"),
    (
        "a stranger that is over takes nothing",
        (a_stranger(phase="Succeeded"),),
        {"cpu": 2000, "pods": 2000},
        ["make n0/0", "make n0/1"],
        "",
    ),
    (
        "a stranger elsewhere takes nothing",
        (a_stranger(node="n1"),),
        {"cpu": 2000, "pods": 2000},
        ["make n0/0", "make n0/1"],
        "",
    ),
    (
        "another bed's ghost is one too",
        (a_ghost(bed="other"),),
        {"cpu": 2000, "pods": 9000},
        ["make n0/0"],
        f"1: {CPU}",
    ),
    ("beside its own ghost", (a_ghost(),), {"cpu": 2000, "pods": 2000}, ["make n0/1"], ""),
    (
        "placed or not",
        (a_ghost(node=""),),
        {"cpu": 1999, "pods": 9000},
        [],
        "1: cpu: 1 are needed, 999m are left",
    ),
    ("beside a tenant", (THERE,), {"cpu": 2000, "pods": 2000}, ["make n0/1"], ""),
    ("beside one on its way", (TOLD,), {"cpu": 1000, "pods": 9000}, [], f"1: {CPU}"),
    (
        "what a stranger took is not asked back",
        (a_ghost(), a_stranger(), a_stranger("s2")),
        {"cpu": 2000, "pods": 9000},
        [],
        f"1: {CPU}",
    ),
]


@pytest.mark.parametrize(
    ("pods", "allocatable", "expected", "problem"),
    [row[1:] for row in ROOMS],
    ids=[row[0] for row in ROOMS],
)
def test_ghosts_are_made_where_there_is_room(
    pods: tuple[SlotPod, ...], allocatable: Mapping[str, int], expected: list[str], problem: str
) -> None:
    view = a_view(*pods, wanted={"n0": 2}, allocatable={"n0": allocatable})
    found = decide(view, NOW)
    assert [told_of(action) for action in found.actions] == expected
    told = [one.message.removeprefix("no room for ") for one in found.problems]
    assert [text.split(" ", 1)[1] for text in told] == ([problem] if problem else [])


def test_a_node_that_is_too_small_is_told_of_and_takes_nothing_from_others() -> None:
    view = a_view(
        a_ghost("n1/0"),
        a_tenant(told="n1/1", node="n1"),
        wanted={"n0": 2, "n1": 2, "n2": 1},
        allocatable={"n0": {"cpu": 500, "pods": 9000}, "n1": {}, "n2": ROOM},
    )
    found = decide(view, NOW)
    assert [told_of(action) for action in found.actions] == ["make n2/0"]
    assert [problem.node for problem in found.problems] == ["n0"]


STATES: list[tuple[str, tuple[SlotPod, ...], SlotState]] = [
    ("nothing", (), SlotState.MISSING),
    ("a ghost", (a_ghost(),), SlotState.FREE),
    ("not placed", (a_ghost(node=""),), SlotState.MISSING),
    ("going", (a_ghost(**GOING),), SlotState.MISSING),
    ("over", (a_ghost(phase="Failed"),), SlotState.MISSING),
    ("reserved", (a_ghost(reserved="p1"), a_tenant()), SlotState.RESERVED),
    ("told", (TOLD,), SlotState.RESERVED),
    ("told beside a ghost", (TOLD, a_ghost(reserved="p1")), SlotState.RESERVED),
    ("there", (THERE,), SlotState.OCCUPIED),
    ("there beside a ghost", (THERE, a_ghost(reserved="p1")), SlotState.OCCUPIED),
    ("over there", (a_tenant(told="n0/0", node="n0", phase="Failed"), a_ghost()), SlotState.FREE),
]


@pytest.mark.parametrize(
    ("pods", "expected"), [row[1:] for row in STATES], ids=[r[0] for r in STATES]
)
def test_what_a_slot_is(pods: tuple[SlotPod, ...], expected: SlotState) -> None:
    assert slots_of(a_view(*pods)) == {the_slot("n0/0"): expected}


def test_slots_that_somebody_has_are_there_whatever_the_bed_says() -> None:
    view = a_view(THERE, a_ghost("n1/0", reserved="p2"), a_ghost("n2/0"), wanted={})
    assert [(str(slot), state) for slot, state in slots_of(view).items()] == [
        ("n0/0", SlotState.OCCUPIED),
        ("n1/0", SlotState.RESERVED),
    ]


def test_nothing_is_known_of_a_bed_without_pods() -> None:
    assert a_bed().is_empty
