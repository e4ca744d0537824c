"""The days of stored Calendars, read once for each version of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from interlock.resources.calendar import Calendar as CalendarResource
from interlock.resources.controlled_job import ControlledJob, EventSpec, WindowSpec
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key, Resource
from interlock.resources.schedule import ScheduleSpec
from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.day_texts import read_days
from interlock.timing.flaws import UnreadableError
from interlock.timing.icalendar import read_icalendar

#: So many calendars are kept ready; others are read again when they are needed.
KEPT = 256


#: Finds a stored calendar by its key: what a cache of them gives, or what a file defines.
Lookup = Callable[[Key], CalendarResource | None]


class FoundCalendar(Struct, frozen=True, eq=False):
    """What there is under the name of a calendar."""

    #: None when it does not exist or cannot be read.
    calendar: Calendar | None
    #: Moves whenever anything about the calendar changes; empty while there is none.
    version: str
    #: Why there is no calendar; empty when there is one.
    problem: str = ""


class Calendars:
    """Finds calendars by name."""

    def __init__(self, stored: Lookup) -> None:
        self._stored = stored
        self._read: OrderedDict[tuple[str, str], FoundCalendar] = OrderedDict()

    def version(self, namespace: str, name: str) -> str:
        """What tells one state of a calendar from another; cheap to ask for."""
        stored = self._stored(Key("Calendar", namespace, name))
        return _version(stored) if stored is not None else ""

    def find(self, namespace: str, name: str) -> FoundCalendar:
        """The calendar of a name, or why there is none."""
        stored = self._stored(Key("Calendar", namespace, name))
        if stored is None:
            return FoundCalendar(None, "", f"calendar {name} does not exist")
        key = (namespace + "/" + name, _version(stored))
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = read_calendar(stored)
            if len(self._read) > KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return found


def calendars_named_by(resource: Resource) -> tuple[str, ...]:
    """The calendars that a schedule names, each once."""
    parts: tuple[ScheduleSpec | WindowSpec | EventSpec, ...] = ()
    if isinstance(resource, JobConfig):
        parts = resource.spec.schedules
    elif isinstance(resource, ControlledJob):
        parts = (*resource.spec.windows, *resource.spec.events)
    return tuple(dict.fromkeys(name for part in parts for name in (*part.exclude, *part.only)))


def read_calendar(stored: CalendarResource) -> FoundCalendar:
    """Read the days of a stored calendar.

    A calendar with a day that cannot be read is as good as none: a holiday that is left out in
    silence would be a run on a holiday.
    """
    name, spec = stored.metadata.name, stored.spec
    entries: list[NamedDays] = []
    for at, day in enumerate(spec.days):
        try:
            entries.append(NamedDays(read_days(day.day), day.name or day.day))
        except UnreadableError as error:
            problem = f"calendar {name} cannot be read: spec.days[{at}]: {error}"
            return FoundCalendar(None, _version(stored), problem)
    if spec.icalendar:
        reading = read_icalendar(name, spec.icalendar)
        if reading.flaws:
            problem = f"calendar {name} cannot be read: spec.icalendar: {reading.flaws[0]}"
            return FoundCalendar(None, _version(stored), problem)
        entries.extend(reading.calendar.entries)
    return FoundCalendar(Calendar(name, entries), _version(stored))


def _version(stored: CalendarResource) -> str:
    return f"{stored.metadata.uid}@{stored.metadata.resource_version}"
