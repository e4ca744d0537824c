"""Reads a scenario: everything that is wrong with it is told at once, with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.findings import child, nearest, shortened
from interlock.forecast.rehearsal import targets
from interlock.forecast.rehearsal.expecting import Expectations
from interlock.forecast.rehearsal.ground import Ground, ReadFile
from interlock.forecast.rehearsal.scenario import EventSpec, ScenarioSpec
from interlock.forecast.rehearsal.script import (
    Act,
    Apply,
    Crash,
    Delete,
    Failover,
    Outage,
    Patch,
    Restart,
    Script,
    Step,
    Turn,
    Verb,
)
from interlock.forecast.rehearsal.work_rules import check_rules
from interlock.resources.codec import from_builtins
from interlock.resources.describe.shapes import fields_of
from interlock.resources.door.reading import Reader
from interlock.resources.door.validation import read_resource
from interlock.resources.metadata import Key, Resource

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
    "ready",
    "unready",
    "killWorker",
    "hangWorker",
    "sweep",
)
#: Orders that say everything by being there: `crash:`, `crash: true` and `crash: {}` are the same.
_BARE: dict[str, Any] = {
    "crash": True,
    "restart": True,
    "failover": True,
    "killWorker": {},
    "sweep": {},
}


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
    return _Checker(Ground(spec, data, read_file)).script()


def _with_bare_words(data: object) -> object:
    """The data with orders and moments that stand without a value told apart from missing ones."""
    if not isinstance(data, Mapping):
        return data
    filled = dict(data)
    for name, words in (("events", _BARE), ("expect", {"end": True})):
        found = data.get(name)
        if isinstance(found, list):
            filled[name] = [_filled(one, words) for one in found]
    return filled


def _filled(entry: object, words: Mapping[str, Any]) -> object:
    if not isinstance(entry, Mapping):
        return entry
    return {
        name: words[name] if name in words and value in (None, True, {}) else value
        for name, value in entry.items()
    }


class _Checker:
    """Makes a script of a scenario, and notes what is wrong on the way."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._spec = ground.spec

    def script(self) -> Script:
        """The script.

        Raises:
            ScenarioError: Something is wrong.
        """
        ground, spec = self._ground, self._spec
        objects = tuple(self._objects())
        check_rules(ground, objects)
        steps = [step for at, one in enumerate(spec.events) if (step := self._step(at, one))]
        expected = Expectations(ground).read()
        if ground.problems:
            raise ScenarioError(tuple(ground.problems))
        assert ground.start is not None
        assert ground.end is not None
        return Script(
            start=ground.start,
            end=ground.end,
            title=spec.title,
            settings=spec.settings,
            zone=ground.zone,
            objects=objects,
            work=spec.work,
            steps=tuple(sorted(steps, key=lambda step: step.at)),
            expected=expected,
        )

    # Objects

    def _objects(self) -> Iterator[Resource]:
        first: dict[Key, str] = {}
        for at, entry in enumerate(self._spec.objects):
            path = f"objects[{at}]"
            for manifest, place in self._manifests(entry, path):
                resource = self._resource(manifest, place)
                if resource is None:
                    continue
                before = first.get(resource.key)
                if before is not None:
                    told = f"is defined twice, and first at {before}"
                    self._ground.wrong(f"{place}.metadata.name", told, resource.metadata.name)
                    continue
                first[resource.key] = place
                yield resource

    def _manifests(self, entry: object, path: str) -> Iterator[tuple[dict[str, Any], str]]:
        if not isinstance(entry, dict):
            self._ground.wrong(path, "expected a manifest, or {file: PATH}", entry)
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
            self._ground.wrong(path, "expected the path of a file", name)
            return []
        try:
            return self._ground.read_file(name)
        except (OSError, ValueError) as error:
            self._ground.wrong(path, str(error), name)
            return []

    def _resource(self, manifest: dict[str, Any], path: str) -> Resource | None:
        try:
            resource, _ = read_resource(targets.with_version(manifest))
        except InvalidError as error:
            self._ground.problems += [
                Problem(_below(path, one.path), one.message, one.found) for one in error.problems
            ]
            return None
        except BadRequestError as error:
            self._ground.wrong(path, str(error))
            return None
        if not resource.metadata.name:
            self._ground.wrong(f"{path}.metadata.name", "is required")
            return None
        return targets.placed(resource, self._spec.settings.namespace)

    # Events

    def _step(self, at: int, event: EventSpec) -> Step | None:
        path = f"events[{at}]"
        given = self._ground.data["events"][at]
        orders = [name for name in ORDERS if name in given and given[name] is not False]
        if len(orders) != 1:
            found = f"found {' and '.join(orders)}" if orders else "found none of them"
            self._ground.wrong(path, f"expected exactly one of {', '.join(ORDERS)}; {found}")
            return None
        moment = self._ground.within(event.at, f"{path}.at")
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
                key = self._ground.target(event.delete, path, named=True)
                return Delete(key.key) if key else None
            case "verb":
                if not event.verb:
                    self._ground.wrong(
                        path, "expected the words after interlock, as a list", event.verb
                    )
                    return None
                return Verb(event.verb)
        if event.patch is not None:
            key = self._ground.target(event.patch.object, f"{path}.object", named=True)
            return Patch(key.key, event.patch.merge) if key else None
        if event.outage is not None:
            return Outage(event.outage.lasts.total_seconds())
        if event.finish is not None and not 0 <= event.finish.exit <= 255:
            self._ground.wrong(
                f"{path}.exit", "expected an exit code from 0 to 255", event.finish.exit
            )
        if event.hang_worker is not None and event.hang_worker.lasts <= timedelta():
            self._ground.wrong(f"{path}.for", "expected a time longer than 0s")
        turned = event.ready or event.unready
        if turned is not None:
            return Turn(turned.job, turned.task, event.ready is not None)
        about_workers = event.kill_worker or event.hang_worker
        return event.finish or event.lose or about_workers or event.sweep

    def _apply(self, given: object, path: str) -> Apply | None:
        entries = given if isinstance(given, list | tuple) else [given]
        found: list[dict[str, Any]] = []
        before = len(self._ground.problems)
        for at, entry in enumerate(entries):
            place = f"{path}[{at}]" if isinstance(given, list | tuple) else path
            found += [manifest for manifest, _ in self._manifests(entry, place)]
        return Apply(tuple(found)) if len(self._ground.problems) == before else None


def _below(path: str, inner: str) -> str:
    return f"{path}{inner}" if inner.startswith("[") else f"{path}.{inner}" if inner else path
