"""Upcoming due times, starts and stops: what the schedules room will see, in order.

Everything is worked out lazily: who asks for a few of many configs pays for those few and for the
first of each other one. Who answers strangers bounds the work with an `Effort`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.errors import BadRequestError
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key, Resource
from interlock.resources.transitions import has_ended, is_admitted
from interlock.schedules.calendars import Calendars
from interlock.schedules.configs.due_times import Planned, Timing, next_due
from interlock.schedules.configs.reading import Timings, digest_of, skips_between
from interlock.schedules.controlled.plan import Timetable, calendars_named, timetable_of
from interlock.timing.flaws import UnreadableError
from interlock.timing.local_time import day_at, told_time
from interlock.timing.plans import Action, Turn
from interlock.timing.zones import Zone, find_zone

CLOSES = "the window closes"
SUSPENDED = "suspended: nothing starts until it is resumed"
#: A search that passes over so many starts and stops of one object in a row is given up.
MOST_IN_VAIN = 10_000


#: What a start or stop of a window costs, in due times of a cron line.
A_TURN = 10


class UpcomingAction(StrEnum):
    """What will happen."""

    #: A due time of a JobConfig: a Job is made.
    RUN = "run"
    #: A window opens, or a Job may start.
    START = "start"
    #: What runs is told to stop.
    STOP = "stop"
    #: Something is due and will not happen.
    SKIP = "skip"


RUN, START = UpcomingAction.RUN, UpcomingAction.START
STOP, SKIP = UpcomingAction.STOP, UpcomingAction.SKIP


class Upcoming(Struct, frozen=True, kw_only=True):
    """One thing that will happen, or will not although it is due; for programs."""

    at: datetime
    kind: str
    namespace: str
    name: str
    action: UpcomingAction
    reason: str


class UpcomingPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What will happen next, in order."""

    items: tuple[Upcoming, ...]
    #: What of the definitions cannot be read, or was given up.
    problems: tuple[str, ...] = ()
    #: Why nothing is to come of the one object that was asked for; empty when something is.
    nothing: str = ""


class TooMuchError(BadRequestError):
    """More would have to be worked out than whoever asked may have worked out."""


class Effort:
    """How many due times, starts and stops may be looked at in all; None is no limit."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._left = most

    def spend(self, looks: int = 1) -> None:
        """Look at one more; a start or stop of a window costs as much as some due times.

        Raises:
            TooMuchError: There were too many already.
        """
        if self._left is None:
            return
        if self._left <= 0:
            told = f"more than {self._most} due times, starts and stops would have to be looked at"
            raise TooMuchError(f"{told}: ask for one object or namespace, or for less time")
        self._left -= looks


class Coming(Struct, frozen=True, kw_only=True):
    """One thing that will happen, or will not although it is due."""

    at: datetime
    kind: str
    namespace: str
    name: str
    action: UpcomingAction
    reason: str = ""
    #: The wall on which the schedule hangs.
    zone: Zone

    def data(self) -> Upcoming:
        """For programs."""
        return Upcoming(
            at=self.at,
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            action=self.action,
            reason=self.reason,
        )


class Definitions:
    """What schedules there are, and the calendars that they name."""

    def __init__(self, effort: Effort | None = None) -> None:
        self.effort = effort or Effort()
        self.configs: dict[tuple[str, str], JobConfig] = {}
        self.controlled: dict[tuple[str, str], ControlledJob] = {}
        self.jobs: dict[tuple[str, str], Job] = {}
        self._stored: dict[Key, Calendar] = {}
        self.calendars = Calendars(self._stored.get)
        self._timings = Timings(self.calendars)
        #: Those of whom nothing was found for too long.
        self._given_up: set[Key] = set()
        self._timetables: dict[Key, tuple[Timetable | None, str]] = {}

    def add(self, resource: Resource) -> None:
        """Take in an object; those that have no part in this are passed over."""
        place = (resource.metadata.namespace, resource.metadata.name)
        match resource:
            case JobConfig():
                self.configs[place] = resource
            case ControlledJob():
                self.controlled[place] = resource
            case Job():
                self.jobs[place] = resource
            case Calendar():
                self._stored[resource.key] = resource

    def show_only(self, keys: Iterable[Key]) -> None:
        """Forget all schedules but these; calendars stay, for whoever names them."""
        wanted = {(key.kind, key.namespace, key.name) for key in keys}
        held: tuple[dict[tuple[str, str], Any], ...] = (self.configs, self.controlled, self.jobs)
        for objects in held:
            for place, one in tuple(objects.items()):
                if (one.kind, *place) not in wanted:
                    del objects[place]

    def all(self) -> Iterator[Resource]:
        """Everything that something may be due for."""
        yield from self.configs.values()
        yield from self.controlled.values()
        yield from self.jobs.values()

    def coming(self, after: datetime, *, brief: bool = False) -> Iterator[Coming]:
        """All that comes after a moment, in order; in brief, what is suspended is told once."""
        return heapq.merge(*(self._stream(one, after, brief) for one in self.all()), key=_order)

    def _stream(self, resource: Resource, after: datetime, brief: bool) -> Iterator[Coming]:
        found = self.of(resource, after)
        is_suspended = isinstance(resource, ControlledJob | JobConfig) and resource.spec.suspend
        if not brief or not is_suspended:
            return found
        # Whatever else would keep it from starting then.
        return (replace(first, reason=SUSPENDED) for first in islice(found, 1))

    def of(self, resource: Resource, after: datetime) -> Iterator[Coming]:
        """What comes of one thing, in order."""
        match resource:
            case JobConfig():
                return self.of_config(resource, after)
            case ControlledJob():
                return self.of_controlled(resource, after)
            case Job():
                return self.of_job(resource, after)
        return iter(())

    def of_config(self, config: JobConfig, after: datetime) -> Iterator[Coming]:
        """The due times of a config; where one schedule runs and another skips, it is a run."""
        known = _written_down(config, after)
        if known is not None:
            # Most of many configs are asked for their first due time only.
            yield known
            after = known.at
        timing = self._timings.of(config)
        streams = [self._of_planned(config, planned, after) for planned in timing.planned]
        last: datetime | None = None
        for each in heapq.merge(*streams, key=_order):
            if each.at != last:
                yield each
            last = each.at

    def _of_planned(self, config: JobConfig, planned: Planned, after: datetime) -> Iterator[Coming]:
        alone = Timing(planned=(planned,), digest="")
        zone = planned.schedule.zone
        lines = ", ".join(line.text for line in planned.schedule.lines)
        while (due := next_due(alone, after)) is not None:
            self.effort.spend()
            if due.reason is None:
                yield coming_of(config, zone, due.at, RUN, f"cron {lines}")
            else:
                yield coming_of(config, zone, due.at, SKIP, due.message)
            after = due.at

    def of_controlled(self, controlled: ControlledJob, after: datetime) -> Iterator[Coming]:
        """The starts and stops of a ControlledJob; stops of what does not run are left out."""
        table, missing = self.timetable(controlled)
        if table is None:
            return
        first_stop = table.closes_after(after) if missing else None
        in_vain = 0
        for turn in table.upcoming(after):
            self.effort.spend(A_TURN)
            told = _of_turn(controlled, table, turn, missing, first_stop)
            if told is not None:
                in_vain = 0
                yield told
                continue
            # Stops that find nothing running may come every second for centuries.
            in_vain += 1
            if in_vain >= MOST_IN_VAIN:
                self._given_up.add(controlled.key)
                return

    def timetable(self, controlled: ControlledJob) -> tuple[Timetable | None, str]:
        """The plan with its exceptions, and why nothing starts by it; None when it is no plan."""
        known = self._timetables.get(controlled.key)
        if known is None:
            known = self._timetables[controlled.key] = self._timetable(controlled)
        return known

    def _timetable(self, controlled: ControlledJob) -> tuple[Timetable | None, str]:
        namespace = controlled.metadata.namespace
        found = {
            name: self.calendars.find(namespace, name) for name in calendars_named(controlled.spec)
        }
        calendars = {name: one.calendar for name, one in found.items() if one.calendar is not None}
        missing = next((one.problem for one in found.values() if one.calendar is None), "")
        try:
            return timetable_of(controlled, calendars), missing
        except UnreadableError as error:
            return None, str(error)

    def of_job(self, job: Job, after: datetime) -> Iterator[Coming]:
        """The start of a Job that waits for its time."""
        start = job.spec.start_after
        if start is not None and start > after and not has_ended(job) and not is_admitted(job):
            yield coming_of(job, find_zone("UTC"), start, START, "spec.startAfter")

    def troubles(self) -> Iterator[str]:
        """What of the definitions cannot be read."""
        for config in self.configs.values():
            for problem in self._timings.of(config).unreadable:
                yield f"jobconfig/{config.metadata.name}: {problem}"
        for controlled in self.controlled.values():
            table, problem = self.timetable(controlled)
            if table is None:
                yield f"controlledjob/{controlled.metadata.name}: {problem}"
            elif controlled.key in self._given_up:
                told = f"its next {MOST_IN_VAIN} stops find nothing running; no more were looked at"
                yield f"controlledjob/{controlled.metadata.name}: {told}"

    def zones(self) -> set[str]:
        """The zones that the schedules hang in."""
        schedules = (one for config in self.configs.values() for one in config.spec.schedules)
        return {one.timezone for one in schedules} | {
            one.spec.timezone.name for one in self.controlled.values()
        }


def bounded(coming: Iterator[Coming], end: datetime | None, limit: int | None) -> Iterator[Coming]:
    """What comes up to a moment, and no more than so many; None is no bound."""
    if end is not None:
        coming = takewhile(lambda each: each.at <= end, coming)
    return islice(coming, limit)


def next_page(
    definitions: Definitions, after: datetime, end: datetime | None, limit: int
) -> UpcomingPage:
    """What comes of everything that is defined, for programs.

    Raises:
        TooMuchError: More than the effort would have to be looked at.
    """
    found = bounded(definitions.coming(after), end, limit)
    items = tuple(each.data() for each in found)
    defined = list(islice(definitions.all(), 2))
    nothing = why_nothing(defined[0]) if not items and end is None and len(defined) == 1 else ""
    return UpcomingPage(items=items, problems=tuple(definitions.troubles()), nothing=nothing)


def why_nothing(resource: Resource) -> str:
    """Why nothing of one thing is to come."""
    match resource:
        case JobConfig(spec=spec) if spec.suspend:
            return "it is suspended"
        case JobConfig(spec=spec) if not spec.schedules:
            return "it has no schedule: it is run on demand"
        case JobConfig(spec=spec) if all(one.disabled for one in spec.schedules):
            return "its schedules are disabled"
        case ControlledJob(spec=spec) if not spec.windows and not spec.events:
            return "it has no windows: it is started by hand"
        case Job():
            return "it waits for no time of its own; `interlock why` tells what it waits for"
    return "its schedule has no time to come"


def _written_down(config: JobConfig, after: datetime) -> Coming | None:
    """The first due time after a moment, if the room wrote it down and it still holds."""
    spec, status = config.spec, config.status
    first, counted = status.next_schedule, status.books.accounted_to
    if first is None or counted is None or not counted <= after < first or spec.suspend:
        return None
    if len(spec.schedules) != 1 or spec.schedules[0].exclude or spec.schedules[0].only:
        return None  # A closed day before it would be told as a skip.
    if skips_between(config, after, first):
        return None
    if digest_of(config) != status.books.schedule_hash:
        return None
    lines = ", ".join(spec.schedules[0].cron)
    zone = find_zone(spec.schedules[0].timezone)
    return coming_of(config, zone, first, RUN, f"cron {lines}")


def _of_turn(
    controlled: ControlledJob,
    table: Timetable,
    turn: Turn,
    missing: str,
    first_stop: datetime | None,
) -> Coming | None:
    """What a start or stop of the plan comes to; None for a stop of what does not run."""
    if turn.action is Action.STOP:
        before = table.state_at(turn.at - timedelta(microseconds=1))
        if turn.skipped is not None:
            reason = f"it does not stop: {turn.skipped}"
            stays = coming_of(controlled, table.zone, turn.at, SKIP, reason)
            return stays if before.is_inside else None
        # While a calendar is missing nothing starts: only what runs is stopped.
        is_idle = bool(missing) and (not controlled.status.active or turn.at != first_stop)
        if is_idle or not (before.is_inside or not table.has_starts):
            return None
        reason = table.state_at(turn.at).held or CLOSES
        return coming_of(controlled, table.zone, turn.at, STOP, reason)
    if turn.skipped is not None or missing:
        return coming_of(controlled, table.zone, turn.at, SKIP, turn.skipped or missing)
    until = until_text(table.closes_after(turn.at), table.zone, turn.at)
    return coming_of(controlled, table.zone, turn.at, START, until)


def coming_of(
    of: Resource, zone: Zone, at: datetime, action: UpcomingAction, reason: str
) -> Coming:
    """One thing that will happen to an object."""
    metadata = of.metadata
    return Coming(
        at=at,
        kind=of.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        action=action,
        reason=reason,
        zone=zone,
    )


def _order(each: Coming) -> tuple[datetime, str, str, str, bool]:
    is_stop = each.action == STOP
    return each.at, each.namespace, each.kind, each.name, each.action == SKIP or not is_stop


def until_text(stop: datetime | None, zone: Zone, start: datetime) -> str:
    """Until when something runs that starts."""
    if stop is None:
        return "without an end"
    day = day_at(stop, zone)
    shown = "" if day == day_at(start, zone) else f"{day:%a} {day.day} "
    return f"until {shown}{told_time(stop, zone, named=False)}"
