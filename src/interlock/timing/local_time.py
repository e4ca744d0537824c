"""Local time in words: moments as the clock on the wall of a schedule shows them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from interlock.timing.due import moment_of, seconds_of, wall_of
from interlock.timing.zones import Zone

_DAY = timedelta(days=1)
#: So many days ahead, the weekday and the day of the month say which day is meant.
_NEAR = timedelta(days=300)
#: A moment in a text, with the word before it that a day makes superfluous.
_WRITTEN = re.compile(r"\b(?:at )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")


def wall_time(moment: datetime, zone: Zone) -> datetime:
    """What the clock on the wall shows, as a time without a zone."""
    return wall_of(zone.wall_at(seconds_of(moment)))


def day_at(moment: datetime, zone: Zone) -> date:
    """The day on the wall."""
    return wall_time(moment, zone).date()


def start_of_day(day: date, zone: Zone) -> datetime:
    """The first moment of a day on the wall."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return moment_of(zone.first_at(seconds_of(midnight)))


def told_at(moment: datetime, zone: Zone, now: datetime) -> str:
    """A moment for people: "today 17:30 EST", "tomorrow 09:00 EST", "Fri 27 Nov 19:00 GMT"."""
    return f"{told_day(day_at(moment, zone), day_at(now, zone))} {told_time(moment, zone)}"


def told_in(text: str, zone: Zone, now: datetime) -> str:
    """A text with the moments in it as the wall shows them: texts are stored with those of UTC."""
    return _WRITTEN.sub(lambda found: _told_again(found, zone, now), text)


def _told_again(found: re.Match[str], zone: Zone, now: datetime) -> str:
    try:
        return told_at(datetime.fromisoformat(found[1]), zone, now)
    except (ValueError, OverflowError):
        return found[0]


def told_time(moment: datetime, zone: Zone, *, named: bool = True) -> str:
    """The time on the wall, with the zone's short name: "17:30 EST"."""
    wall = wall_time(moment, zone)
    shown = f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"
    return f"{shown} {short_name(zone, moment)}" if named else shown


def told_day(day: date, today: date) -> str:
    """A day for people, as short as it can be said."""
    if day == today:
        return "today"
    if day == today + _DAY:
        return "tomorrow"
    year = "" if abs(day - today) < _NEAR else f" {day.year}"
    return f"{day:%a} {day.day} {day:%b}{year}"


def short_name(zone: Zone, moment: datetime) -> str:
    """What people call the zone at a moment: GMT in winter, BST in summer; else its own name."""
    known = _standard(zone.name)
    told = moment.astimezone(known).tzname() if known else ""
    return told if told and told.isalpha() else zone.name


@lru_cache(maxsize=1024)
def _standard(name: str) -> ZoneInfo | None:
    """The standard library's zone; None for one that has only an offset."""
    try:
        with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
            return ZoneInfo.from_file(data, name)
    except (OSError, ValueError):
        return None
