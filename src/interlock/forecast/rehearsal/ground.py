"""What every part of a scenario is read against: its moments, its zone, what is wrong so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from interlock.errors import Problem
from interlock.findings import child
from interlock.forecast.rehearsal import targets
from interlock.forecast.rehearsal.scenario import ScenarioSpec, Settings
from interlock.forecast.rehearsal.times import read_moment
from interlock.resources.job import MAX_RESOURCES, RESOURCE_NAMES
from interlock.timing.flaws import UnreadableError
from interlock.timing.zones import Zone, find_zone

#: Reads the manifests of a file that a scenario names.
ReadFile = Callable[[str], list[dict[str, Any]]]

#: More workers than that do not tell anybody more.
MAX_WORKERS = 10_000
#: Nor do more nodes.
MAX_NODES = 1_000


class Ground:
    """A scenario whose fields have the right types, and what else is wrong with it."""

    def __init__(self, spec: ScenarioSpec, data: Mapping[str, Any], read_file: ReadFile) -> None:
        self.spec = spec
        #: As it was written: tells a field that is null from one that is missing.
        self.data = data
        self.read_file = read_file
        self.problems: list[Problem] = []
        self.zone = self._read_zone(spec.settings)
        self.start = self.moment(spec.start, "start")
        self.end = self.moment(spec.end, "end", self.start)
        self._check()

    def wrong(self, path: str, message: str, found: object = None) -> None:
        """Note one problem."""
        self.problems.append(Problem(path, message, found))

    def moment(self, text: str, path: str, start: datetime | None = None) -> datetime | None:
        """Read a moment."""
        try:
            return read_moment(text, self.zone, start)
        except (ValueError, OverflowError) as error:
            self.wrong(path, str(error), text)
            return None

    def within(self, text: str, path: str) -> datetime | None:
        """Read a moment from the start to the end."""
        moment = self.moment(text, path, self.start)
        if moment and self.start and self.end and not self.start <= moment <= self.end:
            bound = f"from the start, {self.spec.start}"
            if moment > self.end:
                bound = f"up to the end, {self.spec.end}"
            self.wrong(path, f"expected a moment {bound}", text)
            return None
        return moment

    def target(self, given: object, path: str, *, named: bool = False) -> targets.Target | None:
        """Read which object is meant; with `named`, not all of a kind."""
        try:
            target = targets.read_target(given, self.spec.settings.namespace)
        except ValueError as error:
            self.wrong(path, str(error), given)
            return None
        if named and not target.name:
            self.wrong(path, "expected kind/name", given)
            return None
        return target

    def _read_zone(self, settings: Settings) -> Zone:
        try:
            return find_zone(settings.timezone)
        except UnreadableError as error:
            self.wrong("settings.timezone", error.flaws[0].message, settings.timezone)
            return find_zone("UTC")

    def _check(self) -> None:
        if self.spec.settings.max_tasks < 1:
            self.wrong("settings.maxTasks", "expected at least 1", self.spec.settings.max_tasks)
        if not 0 <= self.spec.settings.workers <= MAX_WORKERS:
            most = f"expected a number from 0 to {MAX_WORKERS}"
            self.wrong("settings.workers", most, self.spec.settings.workers)
        self._check_capacity(self.spec.settings)
        if self.start and self.end and self.end <= self.start:
            self.wrong("end", "expected a moment after the start", self.spec.end)

    def _check_capacity(self, settings: Settings) -> None:
        if settings.capacity is not None and settings.nodes:
            self.wrong("settings.nodes", "expected capacity or nodes, found both")
        if len(settings.nodes) > MAX_NODES:
            most = f"expected at most {MAX_NODES} nodes"
            self.wrong("settings.nodes", most, f"{len(settings.nodes)} nodes")
        places = [(f"settings.nodes[{at}]", one) for at, one in enumerate(settings.nodes)]
        if settings.capacity is not None:
            places.append(("settings.capacity", settings.capacity))
        for path, amounts in places:
            if not 1 <= len(amounts) <= MAX_RESOURCES:
                found = f"{len(amounts)} resources"
                self.wrong(path, f"expected 1 to {MAX_RESOURCES} resources", found)
            for name in amounts:
                if not RESOURCE_NAMES.match(name):
                    self.wrong(child(path, name), RESOURCE_NAMES.expected, name)
