"""Placing: which free slots which Jobs of a plan get now, as the plan's own arithmetic says."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from interlock.resources.scheduling import PlanMode

#: The slots that Jobs get, by their names.
Placed = dict[str, tuple[str, ...]]


def place_queue(queue: Sequence[str], free: Sequence[str], most: int) -> Placed:
    """Pair the entries of a queue with the free slots, in their order.

    A Job gets the slots of its own entries, all of them or none. The first that does not fit ends
    it: nobody overtakes. `most` is how many slots there are in all: where entries of others stand
    between those of the first Job, so that its last one is further back than there are slots, it
    could wait for ever; it gets the first ones, as if its entries stood together.
    """
    placed: Placed = {}
    for name in dict.fromkeys(queue):
        at = [place for place, entry in enumerate(queue) if entry == name]
        if at[-1] < len(free):
            placed[name] = tuple(free[place] for place in at)
        elif not placed and at[-1] >= most and len(at) <= len(free):
            return {name: tuple(free[: len(at)])}
        else:
            break
    return placed


def place_named(
    jobs: Sequence[tuple[str, tuple[str, ...]]], free: AbstractSet[str], mode: PlanMode
) -> Placed:
    """Give Jobs the slots that are named for them, where these are free.

    Strictly, the slots of all Jobs before must be free as well, and the first that must wait ends
    it; relaxed, later Jobs overtake.
    """
    placed: Placed = {}
    given: set[str] = set()
    for name, slots in jobs:
        if given.isdisjoint(slots) and free >= set(slots):
            placed[name] = slots
            given.update(slots)
        elif mode is PlanMode.STRICT:
            break
    return placed
