"""Reads what a scenario expects: when, of what, and what must be so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from interlock.forecast.rehearsal.ground import Ground
from interlock.forecast.rehearsal.paths import read_path
from interlock.forecast.rehearsal.scenario import Bounds, ExpectSpec, LineMatch
from interlock.forecast.rehearsal.script import CountCheck, Expected, StatesCheck, ValueCheck
from interlock.forecast.rehearsal.traces import read_trace
from interlock.resources.codec import from_builtins

_EXPECTED = "expected an object with a path and a value or with states, or a match with a count"
_Check = ValueCheck | CountCheck | StatesCheck


class Expectations:
    """The expectations of a scenario."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def read(self) -> tuple[Expected, ...]:
        """Read all; what is wrong is noted."""
        return tuple(
            each
            for at, one in enumerate(self._ground.spec.expect)
            for each in self._expected(at, one)
        )

    def _expected(self, at: int, expect: ExpectSpec) -> Iterator[Expected]:
        path = f"expect[{at}]"
        given = self._ground.data["expect"][at]
        span = self._span(expect, given, path)
        check = self._check(expect, given, path)
        if span is None or check is None:
            return
        since, until = span
        if not isinstance(check, ValueCheck) and until is None:
            # What the history says up to a moment is what it says from the start on.
            assert self._ground.start is not None
            since, until = self._ground.start, since + timedelta(microseconds=1)
        told = json.dumps(given, ensure_ascii=False, default=str)
        yield Expected(since=since, until=until, check=check, path=path, told=told)

    def _span(
        self, expect: ExpectSpec, given: Mapping[str, Any], path: str
    ) -> tuple[datetime, datetime | None] | None:
        moments = [name for name in ("at", "between", "end") if name in given]
        if len(moments) != 1 or expect.end is False:
            found = " and ".join(moments) or "none of them"
            self._ground.wrong(path, f"expected exactly one of at, between, end; found {found}")
            return None
        if expect.at is not None:
            moment = self._ground.within(expect.at, f"{path}.at")
            return (moment, None) if moment else None
        if expect.between is None:
            return (self._ground.end, None) if self._ground.end else None
        return self._between(expect.between, f"{path}.between")

    def _between(
        self, texts: tuple[str, ...], path: str
    ) -> tuple[datetime, datetime | None] | None:
        if len(texts) != 2:
            self._ground.wrong(path, "expected two moments, as [FROM, TO]", list(texts))
            return None
        first, last = (self._ground.within(text, f"{path}[{at}]") for at, text in enumerate(texts))
        if first and last and last <= first:
            self._ground.wrong(f"{path}[1]", "expected a moment after the first one", texts[1])
            return None
        return (first, last) if first and last else None

    def _check(self, expect: ExpectSpec, given: Mapping[str, Any], path: str) -> _Check | None:
        if "count" in given or "match" in given:
            return self._count(expect, given, path)
        if expect.object is None:
            self._ground.wrong(path, _EXPECTED)
            return None
        if "states" in given:
            return self._states(expect, given, path)
        target = self._ground.target(expect.object, f"{path}.object")
        if "exists" in given:
            if target is None:
                return None
            return ValueCheck(object=target.wanted, steps=None, value=expect.exists)
        if expect.path is None or "value" not in given:
            missing = "path" if expect.path is None else "value"
            self._ground.wrong(f"{path}.{missing}", "is required, unless `exists` says all")
            return None
        try:
            steps = read_path(expect.path)
        except ValueError as error:
            self._ground.wrong(f"{path}.path", str(error), expect.path)
            return None
        if target is None:
            return None
        return ValueCheck(object=target.wanted, steps=steps, value=given["value"])

    def _states(
        self, expect: ExpectSpec, given: Mapping[str, Any], path: str
    ) -> StatesCheck | None:
        more = [name for name in ("path", "value", "exists") if name in given]
        if more:
            self._ground.wrong(f"{path}.{more[0]}", "means nothing beside states")
            return None
        target = self._ground.target(expect.object, f"{path}.object", named=True)
        if target is not None and target.kind.name != "Job":
            self._ground.wrong(f"{path}.object", "only Jobs have states: expected job/NAME")
            return None
        try:
            states = read_trace(expect.states)
        except ValueError as error:
            self._ground.wrong(f"{path}.states", str(error), expect.states)
            return None
        return StatesCheck(object=target.wanted, states=states) if target is not None else None

    def _count(self, expect: ExpectSpec, given: Mapping[str, Any], path: str) -> CountCheck | None:
        bounds = _bounds(expect.count)
        if bounds is None:
            expected = "expected a number of lines, or {atLeast: N, atMost: N}"
            self._ground.wrong(f"{path}.count", expected, expect.count)
        elif "object" in given or "path" in given or "value" in given:
            self._ground.wrong(path, _EXPECTED)
        else:
            return CountCheck(match=expect.match or LineMatch(), bounds=bounds)
        return None


def _bounds(count: object) -> Bounds | None:
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        return Bounds(at_least=count, at_most=count)
    if not isinstance(count, dict) or not count:
        return None
    try:
        bounds: Bounds = from_builtins(count, Bounds)
    except msgspec.ValidationError:
        return None
    return bounds
