"""Reads a scenario: everything that is wrong with it is told at once, with its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from interlock.resources.codec import from_builtins
from interlock.resources.durations import parse_duration
from interlock.resources.errors import BadRequestError, InvalidError, Problem
from interlock.resources.metadata import Resource
from interlock.resources.reading import Reader
from interlock.resources.shapes import fields_of
from interlock.resources.suggestions import child, nearest, shortened
from interlock.resources.timing.flaws import UnreadableError
from interlock.resources.timing.zones import Zone, find_zone
from interlock.resources.validation import read_resource
from interlock.testing.rehearsal import targets
from interlock.testing.rehearsal.paths import read_path
from interlock.testing.rehearsal.scenario import (
    FOREVER,
    Bounds,
    EventSpec,
    ExpectSpec,
    LineMatch,
    ScenarioSpec,
    Settings,
    WorkRule,
)
from interlock.testing.rehearsal.script import (
    Act,
    Apply,
    CountCheck,
    Crash,
    Delete,
    Expected,
    Failover,
    Outage,
    Patch,
    Restart,
    Script,
    Step,
    ValueCheck,
    Verb,
)
from interlock.testing.rehearsal.times import read_moment

#: The orders that an event can be, in the words of the file.
ORDERS = (
    "apply",
    "delete",
    "patch",
    "verb",
    "crash",
    "restart",
    "outage",
    "failover",
    "finish",
    "lose",
)
#: Orders that say everything by being there: `crash:`, `crash: true` and `crash: {}` are the same.
_BARE = ("crash", "restart", "failover")

#: Reads the manifests of a file that a scenario names.
ReadFile = Callable[[str], list[dict[str, Any]]]


class ScenarioError(Exception):
    """A scenario that cannot be played: everything that is wrong with it."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class _Shape(Reader):
    """Checks the fields and their types."""

    def __init__(self) -> None:
        super().__init__("Job")

    def read_as(self, data: object, cls: type[Struct]) -> Any:
        """The data without nulls."""
        return self._struct(data, cls, "")

    def _meant(self, path: str, name: object, cls: type[Struct]) -> str:
        near = nearest(shortened(str(name)), fields_of(cls))
        if near is not None:
            return f"; did you mean {child(path, near)}?"
        return f"; there are {', '.join(fields_of(cls))}"


def read_scenario(data: object, read_file: ReadFile) -> Script:
    """Read a scenario from plain data.

    Raises:
        ScenarioError: It cannot be played.
    """
    shape = _Shape()
    made = shape.read_as(_with_bare_words(data), ScenarioSpec)
    problems = (*shape.extras.problems, *shape.problems.problems)
    if problems:
        raise ScenarioError(problems)
    assert isinstance(data, Mapping)
    try:
        spec: ScenarioSpec = from_builtins(made, ScenarioSpec)
    except (msgspec.ValidationError, ValueError) as error:
        message, _, place = str(error).partition(" - at `$.")
        raise ScenarioError((Problem(place.rstrip("`"), message),)) from error
    return _Checker(spec, data, read_file).script()


def _with_bare_words(data: object) -> object:
    """The data with orders and moments that stand without a value told apart from missing ones."""
    if not isinstance(data, Mapping):
        return data
    filled = dict(data)
    for name, words in (("events", _BARE), ("expect", ("end",))):
        found = data.get(name)
        if isinstance(found, list):
            filled[name] = [_filled(one, words) for one in found]
    return filled


def _filled(entry: object, words: tuple[str, ...]) -> object:
    if not isinstance(entry, Mapping):
        return entry
    return {
        name: True if name in words and value in (None, {}) else value
        for name, value in entry.items()
    }


class _Checker:
    """Makes a script of a scenario, and notes what is wrong on the way."""

    def __init__(self, spec: ScenarioSpec, data: Mapping[str, Any], read_file: ReadFile) -> None:
        self._spec = spec
        self._data = data
        self._read_file = read_file
        self._problems: list[Problem] = []
        self._zone = self._read_zone(spec.settings)
        self._start = self._moment(spec.start, "start")
        self._end = self._moment(spec.end, "end", self._start)

    def script(self) -> Script:
        """The script.

        Raises:
            ScenarioError: Something is wrong.
        """
        objects = tuple(self._objects())
        for at, rule in enumerate(self._spec.work):
            self._check_work(rule, f"work[{at}]")
        self._check_times()
        steps = [step for at, one in enumerate(self._spec.events) if (step := self._step(at, one))]
        wanted = [
            each for at, one in enumerate(self._spec.expect) for each in self._expected(at, one)
        ]
        if self._problems:
            raise ScenarioError(tuple(self._problems))
        assert self._start is not None
        assert self._end is not None
        return Script(
            start=self._start,
            end=self._end,
            title=self._spec.title,
            settings=self._spec.settings,
            zone=self._zone,
            objects=objects,
            work=self._spec.work,
            steps=tuple(sorted(steps, key=lambda step: step.at)),
            expected=tuple(wanted),
        )

    # Moments

    def _read_zone(self, settings: Settings) -> Zone:
        try:
            return find_zone(settings.timezone)
        except UnreadableError as error:
            self._wrong("settings.timezone", error.flaws[0].message, settings.timezone)
            return find_zone("UTC")

    def _moment(self, text: str, path: str, start: datetime | None = None) -> datetime | None:
        try:
            return read_moment(text, self._zone, start)
        except (ValueError, OverflowError) as error:
            self._wrong(path, str(error), text)
            return None

    def _check_times(self) -> None:
        if self._spec.settings.max_tasks < 1:
            self._wrong("settings.maxTasks", "expected at least 1", self._spec.settings.max_tasks)
        if self._start and self._end and self._end <= self._start:
            self._wrong("end", "expected a moment after the start", self._spec.end)

    def _within(self, text: str, path: str) -> datetime | None:
        moment = self._moment(text, path, self._start)
        if moment and self._start and self._end and not self._start <= moment <= self._end:
            self._wrong(path, f"expected a moment up to the end, {self._spec.end}", text)
            return None
        return moment

    # Objects

    def _objects(self) -> Iterator[Resource]:
        for at, entry in enumerate(self._spec.objects):
            path = f"objects[{at}]"
            for manifest, place in self._manifests(entry, path):
                resource = self._resource(manifest, place)
                if resource is not None:
                    yield resource

    def _manifests(self, entry: object, path: str) -> Iterator[tuple[dict[str, Any], str]]:
        if not isinstance(entry, dict):
            self._wrong(path, "expected a manifest, or {file: PATH}", entry)
        elif entry.keys() == {"file"}:
            for manifest in self._in_file(entry["file"], f"{path}.file"):
                yield manifest, f"{path}.file"
        elif entry.get("kind") == "List" and isinstance(entry.get("items"), list):
            for at, item in enumerate(entry["items"]):
                yield from self._manifests(item, f"{path}.items[{at}]")
        else:
            yield entry, path

    def _in_file(self, name: object, path: str) -> list[dict[str, Any]]:
        if not isinstance(name, str):
            self._wrong(path, "expected the path of a file", name)
            return []
        try:
            return self._read_file(name)
        except (OSError, ValueError) as error:
            self._wrong(path, str(error), name)
            return []

    def _resource(self, manifest: dict[str, Any], path: str) -> Resource | None:
        try:
            resource, _ = read_resource(targets.with_version(manifest))
        except InvalidError as error:
            self._problems += [
                Problem(_below(path, one.path), one.message, one.found) for one in error.problems
            ]
            return None
        except BadRequestError as error:
            self._wrong(path, str(error))
            return None
        if not resource.metadata.name:
            self._wrong(f"{path}.metadata.name", "is required")
            return None
        return targets.placed(resource, self._spec.settings.namespace)

    def _check_work(self, rule: WorkRule, path: str) -> None:
        if rule.lasts is not None and rule.lasts != FOREVER:
            try:
                parse_duration(rule.lasts)
            except ValueError as error:
                self._wrong(f"{path}.lasts", f"{error}, or {FOREVER}", rule.lasts)
        if not 0 <= rule.exit <= 255:
            self._wrong(f"{path}.exit", "expected an exit code from 0 to 255", rule.exit)

    # Events

    def _step(self, at: int, event: EventSpec) -> Step | None:
        path = f"events[{at}]"
        given = self._data["events"][at]
        orders = [name for name in ORDERS if name in given and given[name] is not False]
        if len(orders) != 1:
            found = f"found {' and '.join(orders)}" if orders else "found none of them"
            self._wrong(path, f"expected exactly one of {', '.join(ORDERS)}; {found}")
            return None
        moment = self._within(event.at, f"{path}.at")
        act = self._act(orders[0], event, f"{path}.{orders[0]}")
        if moment is None or act is None:
            return None
        return Step(at=moment, act=act, fails=event.fails, path=f"{path}.{orders[0]}")

    def _act(self, order: str, event: EventSpec, path: str) -> Act | None:
        bare: dict[str, Act] = {"crash": Crash(), "restart": Restart(), "failover": Failover()}
        if order in bare:
            return bare[order]
        match order:
            case "apply":
                return self._apply(event.apply, path)
            case "delete":
                key = self._target(event.delete, path, named=True)
                return Delete(key.key) if key else None
            case "verb":
                if not event.verb:
                    self._wrong(path, "expected the words after interlock, as a list", event.verb)
                    return None
                return Verb(event.verb)
        if event.patch is not None:
            key = self._target(event.patch.object, f"{path}.object", named=True)
            return Patch(key.key, event.patch.merge) if key else None
        if event.outage is not None:
            return Outage(event.outage.lasts.total_seconds())
        if event.finish is not None and not 0 <= event.finish.exit <= 255:
            self._wrong(f"{path}.exit", "expected an exit code from 0 to 255", event.finish.exit)
        return event.finish or event.lose

    def _apply(self, given: object, path: str) -> Apply | None:
        entries = given if isinstance(given, list | tuple) else [given]
        found: list[dict[str, Any]] = []
        before = len(self._problems)
        for at, entry in enumerate(entries):
            place = f"{path}[{at}]" if isinstance(given, list | tuple) else path
            found += [manifest for manifest, _ in self._manifests(entry, place)]
        return Apply(tuple(found)) if len(self._problems) == before else None

    def _target(self, given: object, path: str, *, named: bool = False) -> targets.Target | None:
        try:
            target = targets.read_target(given, self._spec.settings.namespace)
        except ValueError as error:
            self._wrong(path, str(error), given)
            return None
        if named and not target.name:
            self._wrong(path, "expected kind/name", given)
            return None
        return target

    # Expectations

    def _expected(self, at: int, expect: ExpectSpec) -> Iterator[Expected]:
        path = f"expect[{at}]"
        given = self._data["expect"][at]
        span = self._span(expect, given, path)
        check = self._check(expect, given, path)
        if span is None or check is None:
            return
        since, until = span
        if isinstance(check, CountCheck) and until is None:
            # A number of lines up to a moment is one of all lines from the start.
            assert self._start is not None
            since, until = self._start, since + timedelta(microseconds=1)
        told = json.dumps(given, ensure_ascii=False, default=str)
        yield Expected(since=since, until=until, check=check, path=path, told=told)

    def _span(
        self, expect: ExpectSpec, given: Mapping[str, Any], path: str
    ) -> tuple[datetime, datetime | None] | None:
        moments = [name for name in ("at", "between", "end") if name in given]
        if len(moments) != 1 or expect.end is False:
            found = " and ".join(moments) or "none of them"
            self._wrong(path, f"expected exactly one of at, between, end; found {found}")
            return None
        if expect.at is not None:
            moment = self._within(expect.at, f"{path}.at")
            return (moment, None) if moment else None
        if expect.between is None:
            return (self._end, None) if self._end else None
        return self._between(expect.between, f"{path}.between")

    def _between(
        self, texts: tuple[str, ...], path: str
    ) -> tuple[datetime, datetime | None] | None:
        if len(texts) != 2:
            self._wrong(path, "expected two moments, as [FROM, TO]", list(texts))
            return None
        first, last = (self._within(text, f"{path}[{at}]") for at, text in enumerate(texts))
        if first and last and last <= first:
            self._wrong(f"{path}[1]", "expected a moment after the first one", texts[1])
            return None
        return (first, last) if first and last else None

    def _check(
        self, expect: ExpectSpec, given: Mapping[str, Any], path: str
    ) -> ValueCheck | CountCheck | None:
        if "count" in given or "match" in given:
            return self._count(expect, given, path)
        if expect.object is None:
            self._wrong(path, "expected an object with a path and a value, or a match with a count")
            return None
        target = self._target(expect.object, f"{path}.object")
        if "exists" in given:
            return ValueCheck(object=target.wanted, steps=None, value=expect.exists) if target else None  # fmt: skip  # noqa: E501
        if expect.path is None or "value" not in given:
            missing = "path" if expect.path is None else "value"
            self._wrong(f"{path}.{missing}", "is required, unless `exists` says all")
            return None
        try:
            steps = read_path(expect.path)
        except ValueError as error:
            self._wrong(f"{path}.path", str(error), expect.path)
            return None
        if target is None:
            return None
        return ValueCheck(object=target.wanted, steps=steps, value=given["value"])

    def _count(self, expect: ExpectSpec, given: Mapping[str, Any], path: str) -> CountCheck | None:
        bounds = _bounds(expect.count)
        if bounds is None:
            expected = "expected a number of lines, or {atLeast: N, atMost: N}"
            self._wrong(f"{path}.count", expected, expect.count)
        elif "object" in given or "path" in given or "value" in given:
            self._wrong(path, "expected either an object with a path, or a match with a count")
        else:
            return CountCheck(match=expect.match or LineMatch(), bounds=bounds)
        return None

    def _wrong(self, path: str, message: str, found: object = None) -> None:
        self._problems.append(Problem(path, message, found))


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


def _below(path: str, inner: str) -> str:
    return f"{path}{inner}" if inner.startswith("[") else f"{path}.{inner}" if inner else path
