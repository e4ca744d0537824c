"""A scenario that was read: every moment known, every object checked."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from msgspec import Struct

from interlock.forecast.rehearsal.scenario import (
    Bounds,
    FinishSpec,
    HangWorkerSpec,
    KillWorkerSpec,
    LineMatch,
    LoseSpec,
    Settings,
    SweepSpec,
    WorkRule,
)
from interlock.resources.metadata import Key, Resource
from interlock.timing.zones import Zone


class Apply(Struct, frozen=True):
    """Make what is stored what manifests say."""

    manifests: tuple[dict[str, Any], ...]


class Delete(Struct, frozen=True):
    """Delete an object."""

    key: Key


class Patch(Struct, frozen=True):
    """Change part of an object."""

    key: Key
    merge: dict[str, Any]


class Verb(Struct, frozen=True):
    """Run a verb of the command line."""

    words: tuple[str, ...]


class Crash(Struct, frozen=True):
    """Kill the control plane."""


class Restart(Struct, frozen=True):
    """Start the control plane; one that runs is stopped first."""


class Outage(Struct, frozen=True):
    """Kill the control plane, and start it again later."""

    seconds: float


class Turn(Struct, frozen=True):
    """Have running tasks be ready, or not."""

    job: str
    task: int | None
    ready: bool


class Failover(Struct, frozen=True):
    """Kill the leader, and have another take over once the lease has run out."""


Act = (
    Apply
    | Delete
    | Patch
    | Verb
    | Crash
    | Restart
    | Outage
    | Failover
    | FinishSpec
    | LoseSpec
    | Turn
    | KillWorkerSpec
    | HangWorkerSpec
    | SweepSpec
)


class Step(Struct, frozen=True, kw_only=True):
    """An act at a moment."""

    at: datetime
    act: Act
    #: Whether it is expected to be refused.
    fails: bool
    #: Where in the file it stands.
    path: str


class Wanted(Struct, frozen=True, kw_only=True):
    """Which objects an expectation is about."""

    kind: str
    namespace: str
    #: Empty for all of the kind.
    name: str


class ValueCheck(Struct, frozen=True, kw_only=True):
    """A value of an object, or that the object is there."""

    object: Wanted
    #: None asks whether the object is there.
    steps: tuple[re.Match[str], ...] | None
    value: Any


class CountCheck(Struct, frozen=True, kw_only=True):
    """A number of lines of the history."""

    match: LineMatch
    bounds: Bounds


class StatesCheck(Struct, frozen=True, kw_only=True):
    """The states that an operation went through."""

    object: Wanted
    states: tuple[str, ...]


class Expected(Struct, frozen=True, kw_only=True):
    """Something that must be so at a moment, or from one moment until, but not at, another."""

    since: datetime
    #: None for one moment only.
    until: datetime | None
    check: ValueCheck | CountCheck | StatesCheck
    #: Where in the file it stands, and what it says there.
    path: str
    told: str


class Script(Struct, frozen=True, kw_only=True):
    """A whole scenario, ready to be played."""

    start: datetime
    end: datetime
    title: str
    settings: Settings
    zone: Zone
    objects: tuple[Resource, ...]
    work: tuple[WorkRule, ...]
    steps: tuple[Step, ...]
    expected: tuple[Expected, ...]
