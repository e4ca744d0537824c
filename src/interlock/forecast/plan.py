"""Plans: what a proposed change makes different, in fields, at once, and in the days to come.

Both sides of a change are worked out with the same functions, on what is stored around it. Nothing
is written anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import Any

from msgspec import Struct

from interlock.findings import child
from interlock.forecast.trial import AtOnce, at_once
from interlock.forecast.upcoming import (
    CLOSES,
    RUN,
    SKIP,
    START,
    STOP,
    Coming,
    Definitions,
    Effort,
    Upcoming,
    UpcomingAction,
    coming_of,
)
from interlock.reporting.parameters import PLAN_DAYS
from interlock.resources.controlled_job import ControlledJob, Override, OverrideAction
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.modes import Mode
from interlock.resources.transitions import has_ended
from interlock.schedules.calendars import calendars_named_by
from interlock.timing.local_time import day_at, short_name, start_of_day, told_time
from interlock.timing.zones import Zone, find_zone

#: What `apply` notes of itself, in the way of kubectl: no person wrote it.
_RECORD = "kubectl.kubernetes.io/last-applied-configuration"
#: So many runs of a day are told one by one.
_TOLD = 4
#: So many days are compared unless another number is asked for, and at most.
DAYS, MOST_DAYS = 7, PLAN_DAYS
#: So many due times of one thing are looked at; a day of more is told by its number up to there.
MOST = 20_000


class Field(Struct, frozen=True):
    """A field that is different; None where it is not there."""

    path: str
    old: Any
    new: Any


class Verdict(StrEnum):
    """What a change makes of an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    #: It stays as it is, and names a calendar that would change.
    AFFECTED = "affected"


class Day(Struct, frozen=True, kw_only=True):
    """One day to come, without the change and with it."""

    day: date
    before: tuple[Coming, ...]
    after: tuple[Coming, ...]
    #: What is different in words; empty when nothing is.
    told: str
    #: Exceptions that hold on that day.
    overrides: tuple[Override, ...]
    zone: Zone


def different_fields(old: Any, new: Any, path: str = "") -> Iterator[Field]:
    """Every field that is different, down to the smallest."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            yield from different_fields(old.get(name), new.get(name), child(path, name))
    elif isinstance(old, list) and isinstance(new, list):
        for at in range(max(len(old), len(new))):
            first = old[at] if at < len(old) else None
            second = new[at] if at < len(new) else None
            yield from different_fields(first, second, child(path, at))
    elif old != new:
        yield Field(path, old, new)


class Change(Struct, frozen=True):
    """One thing before and after; None where there is none."""

    before: Resource | None
    after: Resource

    @property
    def zone(self) -> Zone:
        """The wall on which the days are read."""
        spec: Any = getattr(self.after, "spec", None)
        if isinstance(self.after, ControlledJob):
            return find_zone(spec.timezone.name, spec.timezone.offset)
        schedules = getattr(spec, "schedules", ())
        return find_zone(schedules[0].timezone if schedules else "UTC")


class Proposal(Struct, frozen=True, kw_only=True):
    """One object as it is and as it would be."""

    verdict: Verdict
    fields: tuple[Field, ...]
    change: Change

    @property
    def key(self) -> Key:
        """Which object."""
        return self.change.after.key

    @property
    def word(self) -> str:
        """The object as people type it."""
        return f"{self.key.kind.lower()}/{self.key.name}"

    @property
    def is_changed(self) -> bool:
        """Whether it would not be as it is."""
        return self.verdict in (Verdict.CREATED, Verdict.CONFIGURED)


def written(plain: dict[str, Any]) -> dict[str, Any]:
    """What a person wrote of an object, with the fields of the spec at the top."""
    metadata = plain["metadata"]
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != _RECORD}
    kept = {"labels": metadata.get("labels"), "annotations": annotations}
    kept = {name: value for name, value in kept.items() if value}
    return {**(plain.get("spec") or {}), **({"metadata": kept} if kept else {})}


class Surroundings(Struct, frozen=True, kw_only=True):
    """What is stored around a change, in the namespaces of it."""

    calendars: tuple[Resource, ...] = ()
    #: Those who may name a calendar that would change; needed only when one would.
    schedules: tuple[Resource, ...] = ()
    jobs: tuple[Resource, ...] = ()
    locks: tuple[Resource, ...] = ()

    def affected(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """The proposals, and the schedules that name a calendar that would change."""
        calendars = {
            (one.key.namespace, one.key.name)
            for one in proposals
            if one.key.kind == "Calendar" and one.verdict is not Verdict.UNCHANGED
        }
        known = {one.key for one in proposals}
        others = [
            Proposal(verdict=Verdict.AFFECTED, fields=(), change=Change(one, one))
            for one in self.schedules
            if one.key not in known
            and any((one.metadata.namespace, name) in calendars for name in calendars_named_by(one))
        ]
        return [*proposals, *others]

    def definitions(
        self, proposals: Sequence[Proposal], effort: Effort, *, changed: bool
    ) -> Definitions:
        """The schedules without the change, or with it."""
        made = Definitions(effort)
        proposed = {one.key for one in proposals}
        for calendar in self.calendars:
            if not changed or calendar.key not in proposed:
                made.add(calendar)
        for one in proposals:
            side = one.change.after if changed else one.change.before
            if side is not None:
                made.add(side)
        return made

    def stored(self, proposals: Sequence[Proposal]) -> list[Resource]:
        """Everything that the decisions about a change may depend on, as it is stored."""
        before = [one.change.before for one in proposals if one.change.before is not None]
        keys = {one.key for one in before}
        owners = {one.metadata.uid for one in before}
        around = [one for one in (*self.calendars, *self.locks) if one.key not in keys]
        jobs = [
            one
            for one in self.jobs
            if isinstance(one, Job)
            and one.key not in keys
            and (not has_ended(one) or any(o.uid in owners for o in one.metadata.owner_references))
        ]
        return [*before, *around, *jobs]


class Planned(Struct, frozen=True, kw_only=True):
    """What becomes of one object: at once, and in the days to come."""

    proposal: Proposal
    jobs: tuple[AtOnce, ...]
    days: tuple[Day, ...]

    def data(self) -> PlannedChange:
        """For programs."""
        proposal = self.proposal
        return PlannedChange(
            resource=proposal.word,
            namespace=proposal.key.namespace,
            change=proposal.verdict,
            fields=proposal.fields,
            now=tuple(PlannedJob(j.job, j.action, j.reason) for j in self.jobs),
            days=tuple(_day_data(day) for day in self.days),
        )


def tried(
    proposals: Sequence[Proposal],
    around: Surroundings,
    now: datetime,
    mode: Mode,
    *,
    most_steps: int | None = None,
) -> list[AtOnce]:
    """What some proposals would do at once, found out on a copy of what is stored.

    Raises:
        SpinningError: More steps are needed than there may be.
    """
    changed = [one.change.after for one in proposals if one.is_changed]
    return at_once(around.stored(proposals), changed, now, mode, most_steps=most_steps)


def planned(
    proposals: Sequence[Proposal],
    around: Surroundings,
    jobs: Sequence[AtOnce],
    now: datetime,
    *,
    days: int = DAYS,
    effort: Effort | None = None,
) -> list[Planned]:
    """What would become of each of some proposals: of its Jobs at once, and in days to come.

    Raises:
        TooMuchError: More than the effort would have to be looked at.
    """
    effort = effort or Effort()
    old = around.definitions(proposals, effort, changed=False)
    new = around.definitions(proposals, effort, changed=True)
    return [
        Planned(
            proposal=one,
            jobs=tuple(_jobs_of(one, jobs)),
            days=tuple(coming_days(one.change, old, new, now, min(days, MOST_DAYS))),
        )
        for one in proposals
    ]


def _jobs_of(proposal: Proposal, jobs: Iterable[AtOnce]) -> Iterator[AtOnce]:
    owner = (proposal.key.kind, proposal.key.name)
    place = proposal.key.namespace
    return (one for one in jobs if one.owner == owner and one.namespace == place)


def coming_days(
    change: Change, old: Definitions, new: Definitions, now: datetime, count: int
) -> Iterator[Day]:
    """The days to come, today first, without the change and with it."""
    zone = change.zone
    today = day_at(now, zone)
    end = start_of_day(today + timedelta(days=count), zone)
    # What was is what it was, whatever the change says: a plan is about what is to come.
    before = _by_day(old, change.before, zone, now, end)
    after = _by_day(new, change.after, zone, now, end)
    if ends_now := _ends_now(change, old, new, now):
        after.setdefault(today, []).insert(0, ends_now)
    for ahead in range(count):
        day = today + timedelta(days=ahead)
        was, will = tuple(before.get(day, ())), tuple(after.get(day, ()))
        yield Day(
            day=day,
            before=was,
            after=will,
            told=_told(was, will, now),
            overrides=_overrides_on(change.after, day, zone, now),
            zone=zone,
        )


def _ends_now(change: Change, old: Definitions, new: Definitions, now: datetime) -> Coming | None:
    """The end of a window that is open and would not be any more."""
    if not isinstance(change.before, ControlledJob) or not isinstance(change.after, ControlledJob):
        return None
    before, _ = old.timetable(change.before)
    after, _ = new.timetable(change.after)
    if before is None or after is None or not before.state_at(now).is_inside:
        return None
    standing = after.state_at(now)
    if standing.is_inside:
        return None
    return coming_of(change.after, change.zone, now, STOP, standing.held or CLOSES)


def _by_day(
    definitions: Definitions, one: Resource | None, zone: Zone, begin: datetime, end: datetime
) -> dict[date, list[Coming]]:
    found: dict[date, list[Coming]] = {}
    stream = definitions.of(one, begin) if one is not None else iter(())
    for number, each in enumerate(takewhile(lambda each: each.at < end, stream)):
        if number >= MOST:
            break
        found.setdefault(day_at(each.at, zone), []).append(each)
    return found


# In words


def _told(was: tuple[Coming, ...], will: tuple[Coming, ...], now: datetime) -> str:
    if [_kept(one) for one in was] == [_kept(one) for one in will]:
        return ""
    if any(one.action == RUN for one in (*was, *will)):
        return _runs_told(was, will)
    return _windows_told(was, will, now)


def _kept(one: Coming) -> tuple[datetime, str, str]:
    """What makes one thing to come different from another; how a line is written does not."""
    return one.at, one.action, "" if one.action == RUN else one.reason


def _runs_told(was: tuple[Coming, ...], will: tuple[Coming, ...]) -> str:
    parts = []
    before, after = ([one for one in each if one.action == RUN] for each in (was, will))
    if [one.at for one in before] != [one.at for one in after]:
        parts.append(f"{_runs(after)} instead of {_runs(before).removeprefix('runs ')}")
    known = {one.at for one in was if one.action == SKIP}
    parts += [
        f"skips {told_time(one.at, one.zone)} ({one.reason})"
        for one in will
        if one.action == SKIP and one.at not in known
    ][:_TOLD]
    return "; ".join(parts) or "skips change"


def _runs(runs: list[Coming]) -> str:
    if not runs:
        return "no run"
    times = [told_time(one.at, one.zone, named=False) for one in runs]
    name = short_name(runs[0].zone, runs[0].at)
    if len(runs) <= _TOLD:
        return f"runs {', '.join(times)} {name}"
    return f"runs {len(runs)} times from {times[0]} to {times[-1]} {name}"


def _windows_told(was: tuple[Coming, ...], will: tuple[Coming, ...], now: datetime) -> str:
    parts = []
    for word, action in (("starts", START), ("ends", STOP)):
        old, new = (_times(each, action, now) for each in (was, will))
        if old != new:
            parts.append(_instead(word, new, old))
    known = {(one.at, one.reason) for one in was if one.action == SKIP}
    parts += [
        f"does not start at {told_time(one.at, one.zone)} ({one.reason})"
        for one in will
        if one.action == SKIP and (one.at, one.reason) not in known
    ]
    due = {one.at for one in will}
    parts += [
        f"has no start at {told_time(one.at, one.zone)} any more, which was left out"
        for one in was
        if one.action == SKIP and one.at not in due
    ]
    return "; ".join(parts) or "changes"


def _times(found: tuple[Coming, ...], action: UpcomingAction, now: datetime) -> list[str]:
    return [
        told_time(one.at, one.zone, named=False) if one.at > now else "now"
        for one in found
        if one.action == action
    ]


def _instead(word: str, new: list[str], old: list[str]) -> str:
    if not new:
        return f"no longer {word} at {' and '.join(old)}"
    if not old:
        return f"{word} {' and '.join(new)}"
    return f"{word} {' and '.join(new)} instead of {' and '.join(old)}"


def _overrides_on(one: Resource, day: date, zone: Zone, now: datetime) -> tuple[Override, ...]:
    if not isinstance(one, ControlledJob):
        return ()
    first, last = start_of_day(day, zone), start_of_day(day + timedelta(days=1), zone)
    begin = max(first, now)
    return tuple(each for each in one.spec.overrides if each.begin < last and each.until > begin)


# For programs


class PlannedJob(Struct, frozen=True):
    """What would become of a Job at once."""

    job: str
    action: str
    reason: str


class PlannedOverride(Struct, frozen=True):
    """An exception that holds on a day."""

    action: OverrideAction
    until: datetime
    by: str


class PlannedDay(Struct, frozen=True, kw_only=True):
    """A day to come without the change, and with it."""

    day: date
    changed: bool
    told: str
    before: tuple[Upcoming, ...]
    after: tuple[Upcoming, ...]
    overrides: tuple[PlannedOverride, ...]


class PlannedChange(Struct, frozen=True, kw_only=True):
    """What would become of one object."""

    resource: str
    namespace: str
    change: Verdict
    fields: tuple[Field, ...]
    now: tuple[PlannedJob, ...]
    days: tuple[PlannedDay, ...]


class Plan(Struct, frozen=True, omit_defaults=True):
    """What would become of everything that a change concerns."""

    items: tuple[PlannedChange, ...]
    #: What could not be found out.
    problems: tuple[str, ...] = ()


def _day_data(day: Day) -> PlannedDay:
    return PlannedDay(
        day=day.day,
        changed=bool(day.told),
        told=day.told or "unchanged",
        before=tuple(one.data() for one in day.before),
        after=tuple(one.data() for one in day.after),
        overrides=tuple(PlannedOverride(one.action, one.until, one.by) for one in day.overrides),
    )
