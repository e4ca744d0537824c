"""The worlds of slots can fail: each of these rules, forgotten, is noticed in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace
from mutation import Seam

from interlock.kube.slots.ghosts import Ghosts, TakeBack
from support.simulation.ghost_world import World

MOST_WORLDS = 120


class Planted(NamedTuple):
    """A rule that is forgotten, where, how, and what is noticed."""

    rule: str
    seam: Seam
    bug: Callable[[Any], Any]
    noticed: str
    #: A world that is known to notice, tried first.
    seen_in: int = 0


def _without_pins(really: Any) -> Any:
    def changed(thing: Any, annotations: Any, **more: Any) -> Any:
        more.pop("finalizers", None)
        return really(thing, annotations, **more)

    return changed


def _unguarded(_: Any) -> Any:
    return lambda thing: {"uid": thing.metadata.uid}


def _without(kind: Any) -> Callable[[Any], Any]:
    def bug(really: Any) -> Any:
        def decide(view: Any, now: Any) -> Ghosts:
            found: Ghosts = really(view, now)
            kept = tuple(one for one in found.actions if not isinstance(one, kind))
            return replace(found, actions=kept)

        return decide

    return bug


HELD_TWICE = " and "
BUGS = [
    Planted(
        "A ghost stays until its pod was told.",
        Seam("interlock.kube.slots.extender", "_changed"),
        _without_pins,
        HELD_TWICE,
        seen_in=40,
    ),
    Planted(
        "A reservation, and what is told, is written to what was read.",
        Seam("interlock.kube.slots.extender", "exactly"),
        _unguarded,
        HELD_TWICE,
    ),
    Planted(
        "A slot that somebody was told is not reserved for another.",
        Seam("interlock.kube.slots.sight", "BedSight.holders_of"),
        lambda _: lambda _self, _slot: {},
        HELD_TWICE,
    ),
    Planted(
        "A ghost that is reserved is nobody else's.",
        Seam("interlock.kube.slots.assignment", "is_free"),
        lambda _: lambda bed, slot: slot in bed.ghosts,
        HELD_TWICE,
    ),
    Planted(
        "What is taken back raises the pod's epoch.",
        Seam("interlock.kube.slots.ghosts", "_next_epoch"),
        lambda really: lambda pod: replace(really(pod), epoch=0),
        "is kept",
    ),
    Planted(
        "A reservation is given up only when nothing can come of it.",
        Seam("interlock.kube.slots.ghosts", "is_void"),
        lambda _: lambda *_: True,
        HELD_TWICE,
    ),
    Planted(
        "What a pod does not come to is taken back.",
        Seam("interlock.kube.slots.keeper", "decide"),
        _without(TakeBack),
        "is kept",
    ),
    Planted(
        "A pod that was told a slot keeps to it.",
        Seam("interlock.kube.slots.assignment", "hold_of"),
        lambda _: lambda _pod: None,
        "waits",
        seen_in=6,
    ),
]


@pytest.mark.parametrize("planted", BUGS, ids=[each.rule for each in BUGS])
def test_a_rule_that_is_forgotten_is_noticed(planted: Planted) -> None:
    noticed: list[str] = []
    with in_place(planted):
        for seed in dict.fromkeys((planted.seen_in, *range(MOST_WORLDS))):
            broken = World(seed).run()
            noticed += broken
            if any(planted.noticed in what for what in broken):
                return
    pytest.fail(f"{planted.rule} Nobody noticed; noticed was {noticed}")


@contextmanager
def in_place(planted: Planted) -> Iterator[None]:
    """Have a bug in the product for a while."""
    instead = planted.bug(planted.seam.find()[2])
    with pytest.MonkeyPatch.context() as patch:
        for holder, name in tuple(planted.seam.places()):
            patch.setattr(holder, name, instead)
        yield
