"""Whether expectations hold, and what was found where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from interlock.forecast.rehearsal.lines import Line, written
from interlock.forecast.rehearsal.paths import find
from interlock.forecast.rehearsal.scenario import Bounds
from interlock.forecast.rehearsal.script import CountCheck, Expected, StatesCheck, ValueCheck
from interlock.forecast.rehearsal.traces import first_difference, in_short
from interlock.forecast.rehearsal.world import World
from interlock.resources.codec import encode
from interlock.resources.metadata import Key, Resource

#: So many lines are shown of those that were counted.
_SHOWN = 3


class Difference(Struct, frozen=True, kw_only=True):
    """Something that is not as it was expected."""

    #: Where in the file it is expected.
    path: str
    at: datetime
    #: The expectation as it was written.
    told: str
    expected: Any
    found: Any
    #: What else helps.
    detail: str = ""

    def data(self) -> dict[str, Any]:
        """The difference for programs."""
        return {
            "path": self.path,
            "at": written(self.at),
            "expectation": self.told,
            "expected": self.expected,
            "found": self.found,
            "detail": self.detail,
        }


class Checks:
    """The expectations of a scenario, looked at as time goes by."""

    def __init__(self, expected: Sequence[Expected], world: World) -> None:
        self._world = world
        self._order = {one.path: at for at, one in enumerate(expected)}
        self._values = [one for one in expected if isinstance(one.check, ValueCheck)]
        self._counts = [one for one in expected if isinstance(one.check, CountCheck)]
        self._states = [one for one in expected if isinstance(one.check, StatesCheck)]
        self._broken: dict[str, Difference] = {}

    @property
    def moments(self) -> list[datetime]:
        """When somebody has to look, whatever happens."""
        return [one.since for one in self._values]

    @property
    def lasting(self) -> bool:
        """Whether some expectation lasts, and so must be looked at whenever something happened."""
        return any(one.until is not None for one in self._values)

    def look(self) -> None:
        """Look at all that must be so now. Each is told once, when it is first not so."""
        now = self._world.now()
        for one in self._values:
            is_due = now == one.since or (one.until is not None and one.since <= now < one.until)
            if is_due and one.path not in self._broken:
                self._look_at(one)

    def differences(self) -> list[Difference]:
        """All that was not so, in the order of the file."""
        for one in self._counts:
            self._count(one)
        for one in self._states:
            self._compare(one)
        return sorted(self._broken.values(), key=lambda each: self._order[each.path])

    def _look_at(self, one: Expected) -> None:
        check = one.check
        assert isinstance(check, ValueCheck)
        found, is_there = self._found(check)
        if found == check.value and type(found) is type(check.value):
            return
        wanted = check.object
        detail = "" if is_there else f"there is no {wanted.kind} {wanted.name}"
        self._tell(one, check.value, found, detail)

    def _found(self, check: ValueCheck) -> tuple[Any, bool]:
        wanted = check.object
        if wanted.name:
            held = self._world.get(Key(wanted.kind, wanted.namespace, wanted.name))
            if check.steps is None:
                return held is not None, True
            return (find(check.steps, _plain(held)), True) if held else (None, False)
        items = [_plain(one) for one in self._world.all_of(wanted.kind, wanted.namespace)]
        if check.steps is None:
            return bool(items), True
        return find(check.steps, {"items": items}), True

    def _count(self, one: Expected) -> None:
        check = one.check
        assert isinstance(check, CountCheck)
        found = [line for line in self._lines_for(one) if line.fits(check.match)]
        bounds = check.bounds
        if bounds.at_least <= len(found) <= (bounds.at_most or 0):
            return
        if bounds.at_most is None and len(found) >= bounds.at_least:
            return
        self._tell(one, _in_words(bounds), len(found), _shown(found))

    def _compare(self, one: Expected) -> None:
        check = one.check
        assert isinstance(check, StatesCheck)
        wanted = check.object
        found = tuple(
            line.detail
            for line in self._lines_for(one)
            if (line.kind, line.namespace, line.name, line.event)
            == (wanted.kind, wanted.namespace, wanted.name, "State")
        )
        if found != check.states:
            detail = first_difference(check.states, found)
            self._tell(one, in_short(check.states), in_short(found), detail)

    def _lines_for(self, one: Expected) -> Iterator[Line]:
        assert one.until is not None
        return (line for line in self._world.lines if one.since <= line.at < one.until)

    def _tell(self, one: Expected, expected: Any, found: Any, detail: str) -> None:
        self._broken[one.path] = Difference(
            path=one.path,
            at=self._world.now(),
            told=one.told,
            expected=expected,
            found=found,
            detail=detail,
        )


def _in_words(bounds: Bounds) -> Any:
    if bounds.at_most == bounds.at_least:
        return bounds.at_least
    most = "" if bounds.at_most is None else f" and at most {bounds.at_most}"
    return f"at least {bounds.at_least}{most}"


def _shown(lines: list[Line]) -> str:
    told = [f"{written(line.at)} {line.name} {line.event}" for line in lines[:_SHOWN]]
    rest = len(lines) - len(told)
    return "; ".join([*told, *([f"and {rest} more"] if rest > 0 else [])])


def _plain(resource: Resource) -> Any:
    """The object as its JSON says it."""
    return msgspec.json.decode(encode(resource))
