"""When lines of other programs are due, by their own documented rules, day by day.

Nothing here uses the engine or the import. Every field is a dial: a hand goes round it one value
at a time, and a value is meant when the hand stops there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_SUNDAY_FIRST = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_MONDAY_FIRST = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


class Program(NamedTuple):
    """How a program lays out a line and numbers its weekdays."""

    fields: str
    #: The name of each weekday's number.
    weekdays: dict[int, str]
    #: The numbers that a * in the weekdays goes through.
    week: tuple[int, int]
    #: Whether a day must fit both fields of days; one of them is a ? otherwise.
    needs_both: bool


_FROM_ONE = {at + 1: name for at, name in enumerate(_SUNDAY_FIRST)}
_FROM_ZERO = {0: "SUN", **{at + 1: name for at, name in enumerate(_MONDAY_FIRST)}}
PROGRAMS = {
    "quartz": Program("smhdMwy", _FROM_ONE, (1, 7), needs_both=False),
    "aws": Program("mhdMwy", _FROM_ONE, (1, 7), needs_both=False),
    "spring": Program("smhdMw", _FROM_ZERO, (1, 7), needs_both=True),
    "jenkins": Program("mhdMw", _FROM_ZERO, (0, 6), needs_both=True),
}
_DIALS = {"s": (0, 59), "m": (0, 59), "h": (0, 23), "d": (1, 31), "M": (1, 12), "y": (1970, 2199)}


def due_by_program(program: str, line: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """The moments at which a line is due, in UTC."""
    rules = PROGRAMS[program]
    if program == "aws":
        line = line.removeprefix("cron(").removesuffix(")")
    given = dict(zip(rules.fields, line.upper().split(), strict=False))
    given = {"s": "0", "y": "*", **given}
    times = [
        timedelta(hours=hour, minutes=minute, seconds=second)
        for hour in sorted(_meant(given["h"], "h", rules))
        for minute in sorted(_meant(given["m"], "m", rules))
        for second in sorted(_meant(given["s"], "s", rules))
    ]
    day = start.date()
    while day <= end.date():
        if _is_day(given, day, rules):
            midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
            yield from (midnight + time for time in times if start <= midnight + time < end)
        day += timedelta(days=1)


def _is_day(given: dict[str, str], day: date, rules: Program) -> bool:
    if day.month not in _meant(given["M"], "M", rules):
        return False
    if day.year not in _meant(given["y"], "y", rules):
        return False
    by_month = any(_is_month_day(part, day, rules) for part in given["d"].split(","))
    by_week = any(_is_weekday(part, day, rules) for part in given["w"].split(","))
    if rules.needs_both:
        return by_month and by_week
    return by_week if given["d"] == "?" else by_month


def _is_month_day(part: str, day: date, rules: Program) -> bool:
    last = (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    if match := re.fullmatch(r"L(?:-(\d+))?(W?)", part):
        wanted = last - timedelta(days=int(match[1] or 0))
        return day == (_nearest_workday(wanted, last) if match[2] else wanted)
    if match := re.fullmatch(r"(\d+)W", part):
        return int(match[1]) <= last.day and day == _nearest_workday(
            day.replace(day=int(match[1])), last
        )
    return day.day in _meant(part, "d", rules)


def _nearest_workday(day: date, last: date) -> date:
    if day.isoweekday() == 6:
        return day + timedelta(days=2 if day.day == 1 else -1)
    if day.isoweekday() == 7:
        return day + timedelta(days=-2 if day == last else 1)
    return day


def _is_weekday(part: str, day: date, rules: Program) -> bool:
    name = _MONDAY_FIRST[day.weekday()]
    if match := re.fullmatch(r"([0-9A-Z]+)#(\d)", part):
        return name == _name(match[1], rules) and (day.day + 6) // 7 == int(match[2])
    if part == "L":
        return name == "SAT"
    if (match := re.fullmatch(r"([0-9]|[A-Z]{3})L", part)) and part[-1] == "L":
        return name == _name(match[1], rules) and (day + timedelta(days=7)).month != day.month
    return name in {rules.weekdays[number] for number in _meant(part, "w", rules)}


def _name(word: str, rules: Program) -> str:
    return rules.weekdays[int(word)] if word.isdigit() else word


def _number(word: str, dial: str, rules: Program) -> int:
    if word.isdigit():
        return int(word)
    if dial == "M":
        return _MONTHS.index(word) + 1
    return max(number for number, name in rules.weekdays.items() if name == word)


def _meant(field: str, dial: str, rules: Program) -> set[int]:
    low, high = rules.week if dial == "w" else _DIALS[dial]
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?", ""):
            first, last = low, high
        else:
            begin, dash, finish = span.partition("-")
            first = _number(begin, dial, rules)
            last = _number(finish, dial, rules) if dash else high if step else first
            if dial == "w" and rules is PROGRAMS["spring"] and dash and first == 7:
                # To Spring a range begins with Sunday as 0.
                first = 0
        found |= _turned(first, last, int(step or 1), low, high)
    return found


def _turned(first: int, last: int, step: int, low: int, high: int) -> set[int]:
    """Where the hand stops on its way from the first value to the last, past the end if need be."""
    found, at, moved = set(), first, 0
    while True:
        if moved % step == 0:
            found.add(at)
        if at == last:
            return found
        at = low if at == high and last < first else at + 1
        moved += 1
