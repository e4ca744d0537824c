"""Two kinds that the product does not know: all that one writes to add a kind.

A Bell is in a namespace and says exactly one of two things; a Tower is outside of namespaces, and
counts the Bells that hang in it. The nouns with their rules, the checks, the room and the entries
are here, each under its own heading; everything else derives from the entries.

As a program this module is `interlock` with these kinds: `python toy_kinds.py up --data DIR`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from typing import Annotated, ClassVar

from interlock.control.cache import Cache
from interlock.control.reconciler import Change, Reconciler
from interlock.findings import Findings
from interlock.plane import ROOMS, Room, Site
from interlock.resources.actions import Decision, RecordStatus
from interlock.resources.checks.validator import check_rules
from interlock.resources.describe.columns import AGE, NAME, plain_column
from interlock.resources.describe.schedule_columns import Pointer
from interlock.resources.kinds import KINDS, Kind, Moves, register
from interlock.resources.metadata import Key, Noun, Resource, Status
from interlock.resources.rules import DnsLabel, ExactlyOne, Items, Limit, NounRule

# The nouns, with their rules


class BellSpec(Noun):
    """What a bell is to sound like, and how often."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("tone", "melody"),)

    #: The tower it hangs in.
    tower: Annotated[str, DnsLabel(63)]
    #: One tone.
    tone: str | None = None
    #: Tones, one after the other.
    melody: Annotated[tuple[str, ...] | None, Items(1, 8, "tones")] = None
    #: How often it rings.
    rings: Annotated[int, Limit(1, 12)] = 1


class BellState(StrEnum):
    """How far a bell is."""

    #: Its tower is not there.
    WAITING = "Waiting"
    #: It has rung.
    RUNG = "Rung"


class BellStatus(Status):
    """How a bell goes. Written by the belfry alone."""

    state: BellState = BellState.WAITING
    rung: int = 0


class Bell(Resource, tag="Bell", kw_only=True):
    """A bell, which rings once its tower is there."""

    spec: BellSpec
    status: BellStatus = BellStatus()


class TowerSpec(Noun):
    """How a tower is built."""

    #: In metres.
    height: Annotated[int, Limit(1, 100)]


class TowerStatus(Status):
    """What hangs in a tower. Written by the belfry alone."""

    #: How many bells, of all namespaces.
    bells: int = 0


class Tower(Resource, tag="Tower", kw_only=True):
    """A tower, for the bells of all namespaces."""

    spec: TowerSpec
    status: TowerStatus = TowerStatus()


# The checks


def check_bell(bell: Bell, to: Findings) -> None:
    check_rules("spec", bell.spec, to)
    for at, tone in enumerate(bell.spec.melody or ()):
        if tone == "silence":
            to.add(f"spec.melody[{at}]", "a bell cannot be silent", tone)


def check_bell_change(old: Bell, new: Bell, to: Findings) -> None:
    if old.spec.tower != new.spec.tower:
        to.add("spec.tower", "may not change", new.spec.tower)


def check_tower(tower: Tower, to: Findings) -> None:
    check_rules("spec", tower.spec, to)


# The room


def decide_bell(bell: Bell, has_tower: bool) -> Decision:
    """Ring a bell that has a tower as often as it is to."""
    if not has_tower:
        return Decision()
    status = BellStatus(state=BellState.RUNG, rung=bell.spec.rings, trouble=bell.status.trouble)
    if status == bell.status:
        return Decision()
    return Decision((RecordStatus(bell, status),), reason="its tower is there")


def decide_tower(tower: Tower, bells: int) -> Decision:
    """Count the bells of a tower."""
    status = TowerStatus(bells=bells, trouble=tower.status.trouble)
    if status == tower.status:
        return Decision()
    return Decision((RecordStatus(tower, status),), reason="bells came or went")


class Belfry:
    """Looks at Bells and Towers."""

    room = "belfry"

    def __init__(self, bells: Cache[Bell], towers: Cache[Tower]) -> None:
        self._bells = bells
        self._towers = towers

    def wakes(self, change: Change) -> Iterable[Key]:
        """A Bell and its Tower, or a Tower and its Bells."""
        changed = change.after or change.before
        if isinstance(changed, Bell):
            return (changed.key, _tower_of(changed))
        if isinstance(changed, Tower):
            return (changed.key, *(bell.key for bell in self._in(changed)))
        return ()

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about a Bell or a Tower."""
        bell, tower = self._bells.get(key), self._towers.get(key)
        if bell is not None:
            return decide_bell(bell, self._towers.get(_tower_of(bell)) is not None)
        if tower is not None:
            return decide_tower(tower, sum(1 for _ in self._in(tower)))
        return Decision()

    def _in(self, tower: Tower) -> Iterator[Bell]:
        return self._bells.by(BY_TOWER, tower.metadata.name)


BY_TOWER = "tower"


def _tower_of(bell: Bell) -> Key:
    return Key("Tower", "", bell.spec.tower)


def _by_tower(bell: Bell) -> Iterable[str]:
    return (bell.spec.tower,)


def _belfry(site: Site) -> Reconciler:
    return Belfry(site.caches.of(Bell), site.caches.of(Tower))


BELFRY = Room(name="belfry", make=_belfry, indexes={Bell: {BY_TOWER: _by_tower}})

# The entries


def _state(bell: Bell) -> str:
    return bell.status.state.value


def _tower(bell: Bell) -> str:
    return bell.spec.tower


def _bells(tower: Tower) -> int:
    return tower.status.bells


BELLS = Kind(
    type=Bell,
    plural="bells",
    short_names=("bl",),
    categories=("interlock",),
    check=check_bell,
    check_change=check_bell_change,
    columns=(
        NAME,
        plain_column("State", _state, "How far it is.", Pointer(".status.state")),
        AGE,
        plain_column("Tower", _tower, "Where it hangs.", Pointer(".spec.tower"), wide=True),
    ),
    selectable=(".spec.tower", ".status.state"),
    moves=Moves.COPIED,
)
TOWERS = Kind(
    type=Tower,
    plural="towers",
    categories=("interlock",),
    namespaced=False,
    check=check_tower,
    columns=(
        NAME,
        plain_column(
            "Bells", _bells, "How many bells it has.", Pointer(".status.bells"), type="integer"
        ),
        AGE,
    ),
    moves=Moves.COPIED,
)
TOYS = (BELLS, TOWERS)


def add() -> None:
    """Make the kinds and their room known, for as long as this process lasts."""
    for kind in TOYS:
        register(kind)
    ROOMS.append(BELFRY)


@contextmanager
def added() -> Iterator[None]:
    """Make the kinds and their room known, for a while."""
    add()
    _forget_documents()
    try:
        yield
    finally:
        ROOMS.remove(BELFRY)
        for kind in TOYS:
            del KINDS[kind.name]
        _forget_documents()


#: Where documents that are made of all kinds are kept.
_DOCUMENTS = ("interlock.api.discovery", "interlock.api.documents", "interlock.api.openapi")


def _forget_documents() -> None:
    """Have everything made anew that is made of all kinds and kept while a server runs."""
    for name, module in sys.modules.copy().items():
        if name in _DOCUMENTS:
            for each in tuple(vars(module).values()):
                if hasattr(each, "cache_clear"):
                    each.cache_clear()


if __name__ == "__main__":
    # The kinds are of this module by its own name, in every process.
    import_module("support.toy_kinds").add()
    from interlock.modes.cli.main import run

    sys.exit(run())
