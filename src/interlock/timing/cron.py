"""Reading cron lines: from the text a person writes to the wall times it means.

    minute hour day-of-month month day-of-week
    second minute hour day-of-month month day-of-week year

Six fields are read only with a format that says whether the sixth is a second in front or a
year behind, because programs disagree and a wrong guess would run at a wrong time in silence.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from itertools import product
from operator import and_, or_

from msgspec import Struct

from interlock.findings import did_you_mean, shortened
from interlock.timing.days import days_by_shape
from interlock.timing.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    YEAR,
    Field,
    Reading,
    read_field,
)
from interlock.timing.flaws import Flaw, Flaws, NeverDueError, UnreadableError, unreadable
from interlock.timing.months import SHAPES, YEARS, shapes_of
from interlock.timing.walls import Line

#: No sensible line is longer; what is longer is refused before it is looked at.
MAX_LENGTH = 500

_FIVE = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
_SEVEN = (SECOND, *_FIVE, YEAR)


class CronFormat(StrEnum):
    """How a line of six fields is meant."""

    #: The first field is the second.
    SECONDS_FIRST = "SecondsFirst"
    #: The last field is the year.
    YEAR_LAST = "YearLast"


_SIX = {CronFormat.SECONDS_FIRST: (SECOND, *_FIVE), CronFormat.YEAR_LAST: (*_FIVE, YEAR)}

_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class _Word(Struct, frozen=True):
    text: str
    place: int


@lru_cache(maxsize=4096)
def read_cron(text: str, identity: str, format: CronFormat | None = None) -> Line:
    """Read a cron line; `identity` (namespace/name) decides where each `H` falls.

    A line that can be read for one identity can be read for every other.

    Raises:
        UnreadableError: The text is no cron line.
        NeverDueError: It is one that can never be due.
    """
    if len(text) > MAX_LENGTH:
        raise unreadable("cron line", text, f"expected at most {MAX_LENGTH} characters")
    words = [_Word(match[0], match.start()) for match in re.finditer(r"\S+", text)]
    words = _unfolded(text, words)
    fields = _fields(text, words, identity, format)
    return _line(text, words, fields, identity)


def _unfolded(text: str, words: list[_Word]) -> list[_Word]:
    """The words of a line, with a shorthand such as @daily replaced by what it stands for."""
    if not words:
        raise unreadable("cron line", text, 'expected five fields, such as "0 2 * * *"')
    first = words[0]
    if re.match(r"(?:CRON_)?TZ=", first.text, re.IGNORECASE):
        zone = first.text.partition("=")[2]
        message = f'name the zone beside the line instead: timezone: "{zone}"'
        raise unreadable("cron line", text, message, place=first.place)
    if not first.text.startswith("@"):
        return words
    if len(words) == 1 and (plain := _SHORTHANDS.get(first.text.lower())):
        return [_Word(word, first.place) for word in plain.split()]
    raise unreadable("cron line", text, _instead(words), place=first.place)


def _instead(words: list[_Word]) -> str:
    name = words[0].text.lower()
    if name == "@reboot":
        return "there is no reboot to wait for: create a Job to run something once, now"
    if name == "@every":
        return f"write the times it runs at instead{_every(words)}"
    if name in _SHORTHANDS:
        return f"expected nothing after {name}"
    near = did_you_mean(name, _SHORTHANDS)
    return f"expected one of {', '.join(_SHORTHANDS)}{near}"


def _every(words: list[_Word]) -> str:
    match = re.fullmatch(r"([0-9]{1,2})([mh])(?:0s)?", words[1].text) if len(words) == 2 else None
    if not match or int(match[1]) < 1:
        return ', such as "*/5 * * * *" for every five minutes'
    count, size = int(match[1]), 60 if match[2] == "m" else 24
    if count > size or size % count:
        return f"; {match[0]} does not divide a {'hour' if size == 60 else 'day'} evenly"
    line = f"*/{count} * * * *" if size == 60 else f"0 */{count} * * *"
    return f': "{line}"'


def _fields(
    text: str, words: list[_Word], identity: str, format: CronFormat | None
) -> tuple[Field, ...]:
    match len(words):
        case 5:
            return _FIVE
        case 7:
            return _SEVEN
        case 6 if format:
            return _SIX[format]
        case 6:
            raise unreadable("cron line", text, _two_ways(text, words, identity))
    expected = f"expected 5 fields ({_listed(_FIVE)}), or 7 with a second before and a year after"
    place = words[7].place if len(words) > 7 else 0
    raise unreadable("cron line", text, f"found {len(words)} fields, {expected}", place=place)


def _two_ways(text: str, words: list[_Word], identity: str) -> str:
    readings = []
    possible = []
    for format, fields in _SIX.items():
        pairs = zip(fields, words, strict=True)
        told = ", ".join(f"{field.name} {word.text}" for field, word in pairs)
        readings.append(f"{format} reads it as {told}")
        try:
            read_cron(text, identity, format)
            possible.append(format)
        except UnreadableError:
            continue
    only = f"; only {possible[0]} makes sense of it" if len(possible) == 1 else ""
    return f"six fields need a format that says which they are: {'; '.join(readings)}{only}"


def _listed(fields: tuple[Field, ...]) -> str:
    return " ".join(field.name for field in fields)


def _line(text: str, words: list[_Word], fields: tuple[Field, ...], identity: str) -> Line:
    flaws = Flaws("cron line", text)
    read: dict[str, Reading] = {
        SECOND.name: Reading(fixed=1),
        YEAR.name: Reading(fixed=YEAR.every, is_wild=True),
    }
    for field, word in zip(fields, words, strict=True):
        read[field.name] = read_field(field, word.text, word.place, identity, flaws)
    flaws.raise_if_any()
    if _never(read):
        place = next(w.place for f, w in zip(fields, words, strict=True) if f is DAY_OF_MONTH)
        raise NeverDueError("cron line", text, [Flaw(place + 1, shortened(text[place:]), _NEVER)])
    minute, hour = read[MINUTE.name], read[HOUR.name]
    return Line(
        text=text,
        seconds=read[SECOND.name].values,
        minutes=minute.values,
        hours=hour.values,
        days=_days(read, read[DAY_OF_MONTH.name].values),
        months=_months(read[MONTH.name].values, read[YEAR.name].values),
        is_interval=minute.is_interval or hour.is_interval,
    )


_NEVER = (
    "expected a day that comes in some of the months and years, whatever an H draws; "
    "this line would never be due"
)


def _days(read: dict[str, Reading], days: int) -> tuple[int, ...]:
    """For each shape of a month the days; with both day fields restricted, one is enough."""
    day, weekday = read[DAY_OF_MONTH.name], read[DAY_OF_WEEK.name]
    by_month, by_week = days_by_shape(days, day.rules, weekday.values, weekday.rules)
    join = and_ if day.is_wild or weekday.is_wild else or_
    return tuple(map(join, by_month, by_week))


@lru_cache(maxsize=1024)
def _months(months: int, years: int) -> int:
    return sum(months << 12 * year for year in range(YEARS) if years >> year & 1)


def _never(read: dict[str, Reading]) -> bool:
    """Whether the line is never due, for this name or for another one.

    A day that no month has is the only way: a weekday comes in every month.
    """
    wanted = [
        {shape for shape, days in enumerate(_days(read, days)) if days}
        for days in read[DAY_OF_MONTH.name].possible
    ]
    if all(len(shapes) == SHAPES for shapes in wanted):
        return False
    choices = product(read[MONTH.name].possible, read[YEAR.name].possible)
    for months, years in choices:
        shapes = shapes_of(_months(months, years))
        if any(shapes.isdisjoint(shapes_wanted) for shapes_wanted in wanted):
            return True
    return False
