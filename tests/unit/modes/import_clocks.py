"""What other systems do when clocks change, by their own documented rules, minute by minute.

Nothing here uses the engine: lines are matched field by field against what a clock shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from interlock.importing.drafts import Draft, Wishes
from interlock.resources.calendar import Calendar as CalendarObject
from interlock.resources.door.validation import read_resource
from interlock.resources.job_config import JobConfig
from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.cron import read_cron
from interlock.timing.day_texts import read_days
from interlock.timing.due import Schedule, upcoming
from interlock.timing.zones import find_zone

_MINUTE = timedelta(minutes=1)
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def imported(
    take: Callable[[Draft, bytes], None], source: str, **wishes: Any
) -> tuple[list[dict[str, Any]], Draft]:
    """What a source becomes."""
    draft = Draft(Wishes(file=wishes.pop("file", "source"), **wishes))
    take(draft, source.encode())
    return draft.objects, draft


def due_times(
    made: dict[str, Any],
    start: datetime,
    end: datetime,
    calendars: list[dict[str, Any]] | None = None,
) -> list[datetime]:
    """When an imported JobConfig is due, by the engine."""
    config, _ = read_resource(made)
    assert isinstance(config, JobConfig)
    known = {one["metadata"]["name"]: _calendar(one) for one in calendars or ()}
    identity = f"{config.metadata.namespace or 'default'}/{config.metadata.name}"
    schedules = [
        Schedule(
            [read_cron(line, identity, spec.format) for line in spec.cron],
            find_zone(spec.timezone),
            on_gap=spec.on_gap,
            on_repeat=spec.on_repeat,
            only=[known[name] for name in spec.only],
        )
        for spec in config.spec.schedules
    ]
    found: list[datetime] = []
    for due in upcoming(schedules, start - timedelta(seconds=1)):
        if due.at >= end:
            break
        if due.skipped is None:
            found.append(due.at)
    return found


def _calendar(made: dict[str, Any]) -> Calendar:
    found, _ = read_resource(made)
    assert isinstance(found, CalendarObject)
    days = [NamedDays(read_days(one.day), one.name) for one in found.spec.days]
    return Calendar(found.metadata.name, days)


def by_the_wall(line: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """Kubernetes and Furiko: due whenever the clock shows it, and only then."""
    place, moment, found = ZoneInfo(zone), start, []
    while moment < end:
        if _fits(line, moment.astimezone(place).replace(tzinfo=None), vixie=False):
            found.append(moment)
        moment += _MINUTE
    return found


def by_vixie_cron(line: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """Vixie cron: a virtual clock that follows the wall, as its cron(8) and its main loop say.

    Up to three hours forward: wildcard lines go by the new time, others run for each minute that
    was skipped. Up to three hours back: wildcard lines go by the new time, others wait until the
    wall is again where it was.
    """
    place = ZoneInfo(zone)
    is_wild = any(field.startswith("*") for field in line.split()[:2])
    found: list[datetime] = []
    virtual = _wall(start - _MINUTE, place)
    for moment in _minutes(start, end):
        wall = _wall(moment, place)
        ahead = (wall - virtual) // _MINUTE
        if ahead > 0:
            passed = [virtual + _MINUTE * (count + 1) for count in range(ahead)]
            virtual = wall
            times = [wall] if is_wild else passed
        else:
            times = [wall] if is_wild else []
        if any(_fits(line, time, vixie=True) for time in times):
            found.append(moment)
    return found


def by_vixie_cron_on_the_hour(line: str, start: datetime, end: datetime) -> list[datetime]:
    """Vixie cron in UTC, for a line that is due on the hour: many days in little time."""
    hours = int((end - start) / timedelta(hours=1))
    moments = [start + timedelta(hours=hour) for hour in range(hours)]
    return [one for one in moments if _fits(line, one.replace(tzinfo=None), vixie=True)]


def _minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += _MINUTE


def _wall(moment: datetime, place: ZoneInfo) -> datetime:
    return moment.astimezone(place).replace(tzinfo=None)


def _fits(line: str, wall: datetime, *, vixie: bool) -> bool:
    minute, hour, day, month, weekday = line.split()
    if not (
        _holds(minute, wall.minute, 0, 59)
        and _holds(hour, wall.hour, 0, 23)
        and _holds(month, wall.month, 1, 12)
    ):
        return False
    day_fits = _holds(day, wall.day, 1, 31)
    week_fits = _holds(weekday, wall.isoweekday() % 7, 0, 6)
    free = [field[0] == "*" if vixie else field == "*" for field in (day, weekday)]
    return (day_fits and week_fits) if any(free) else (day_fits or week_fits)


def _holds(field: str, value: int, low: int, high: int) -> bool:
    return any(_part_holds(part, value, low, high) for part in field.split(","))


def _part_holds(part: str, value: int, low: int, high: int) -> bool:
    span, _, step = part.partition("/")
    if span == "*":
        first, last = low, high
    else:
        begin, dash, finish = span.partition("-")
        first = _number(begin)
        last = _number(finish) if dash else high if step else first
    return first <= value <= last and (value - first) % int(step or 1) == 0


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _DAYS.index(word.upper())


def utc(text: str) -> datetime:
    """A moment, written as a date and a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


#: Days around changes of clocks: an hour at night, half an hour, at midnight.
CHANGES = [
    ("America/New_York", utc("2026-03-07"), utc("2026-03-10")),
    ("America/New_York", utc("2026-10-31"), utc("2026-11-03")),
    ("Europe/London", utc("2026-03-28"), utc("2026-03-31")),
    ("Europe/London", utc("2026-10-24"), utc("2026-10-27")),
    ("Australia/Lord_Howe", utc("2026-10-02"), utc("2026-10-06")),
    ("Australia/Lord_Howe", utc("2026-04-03"), utc("2026-04-07")),
    ("America/Santiago", utc("2026-09-04"), utc("2026-09-08")),
    ("America/Santiago", utc("2026-04-03"), utc("2026-04-06")),
]
