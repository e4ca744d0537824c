"""Reading an iCalendar file (.ics) as a calendar: its whole-day events are the days.

What the file says and this cannot do is told, with its line: a holiday that is left out in
silence would be a run on a holiday.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from msgspec import Struct

from interlock.resources.suggestions import MAX_TOLD, shortened
from interlock.resources.timing.calendars import Calendar, NamedDays
from interlock.resources.timing.day_sets import listed
from interlock.resources.timing.flaws import Flaw
from interlock.resources.timing.recurrences import Recurrence, days_of, work_of

#: How many days may be looked at for one file; its events after that are left out.
MAX_DAYS = 100_000

_LINE = re.compile(r'([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:,]*)(?:,[^";:]*)?)*):(.*)')
_PARAMETER = re.compile(r';([A-Za-z0-9-]+)=("[^"]*"|[^";:]*)')
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")

#: Properties of an event that say nothing about its days.
_HARMLESS = re.compile(
    "ATTACH|ATTENDEE|CATEGORIES|CLASS|COLOR|COMMENT|CONTACT|CREATED|DESCRIPTION|DTSTAMP|GEO|IMAGE"
    "|LAST-MODIFIED|LOCATION|ORGANIZER|PRIORITY|RELATED-TO|RESOURCES|SEQUENCE|STATUS|TRANSP|UID"
    "|URL|X-.*"
)
_KNOWN = frozenset({"DTSTART", "DTEND", "DURATION", "RRULE", "SUMMARY"})
_COMPONENTS = re.compile("VCALENDAR|VEVENT|VALARM|VTIMEZONE|STANDARD|DAYLIGHT|X-.*")
_RULE_PARTS = re.compile("FREQ|INTERVAL|COUNT|UNTIL|BYMONTH|BYMONTHDAY|BYDAY|WKST")


class Reading(Struct, frozen=True):
    """The calendar of a file, and what of the file is not in it; places are line numbers."""

    calendar: Calendar
    flaws: tuple[Flaw, ...]


class _Property(Struct, frozen=True):
    line: int
    name: str
    parameters: dict[str, str]
    value: str


class _FlawedError(Exception):
    """An event cannot be read; it is left out, and told."""

    def __init__(self, given: _Property, message: str) -> None:
        super().__init__(message)
        self.given = given
        self.message = message


def read_icalendar(name: str, text: str) -> Reading:
    """Read the whole-day events of a file; whatever cannot be read is told in `flaws`."""
    entries: list[NamedDays] = []
    flaws: list[Flaw] = []
    budget = _Budget(MAX_DAYS)
    for event in _events(text, flaws):
        try:
            days = _days(event, budget)
        except _FlawedError as flaw:
            flaws.append(_flaw(flaw.given, flaw.message))
            continue
        if days:
            entries.append(NamedDays(listed(days), _summary(event)))
    return Reading(Calendar(name, entries), tuple(flaws[:MAX_TOLD]))


class _Budget:
    """How many days may still be looked at, so that no file keeps its reader busy for long."""

    def __init__(self, left: int) -> None:
        self._left = left

    def take(self, count: int, given: _Property) -> None:
        if count > self._left:
            raise _FlawedError(given, "the file has too many days; the event is left out")
        self._left -= count


def _flaw(given: _Property, message: str) -> Flaw:
    return Flaw(given.line, shortened(f"{given.name}:{given.value}"), message)


def _events(text: str, flaws: list[Flaw]) -> Iterator[list[_Property]]:
    """The events of a file, each as the properties between its BEGIN and END."""
    inside: list[_Property] = []
    event: list[_Property] = []
    for given in _properties(text, flaws):
        if not inside and (given.name, given.value.upper()) != ("BEGIN", "VCALENDAR"):
            flaws.append(_flaw(given, "expected BEGIN:VCALENDAR before it"))
            return
        if given.name == "BEGIN":
            inside.append(given)
            if not _COMPONENTS.fullmatch(given.value.upper()):
                flaws.append(_flaw(given, "is not known; it is left out"))
            event = [given] if given.value.upper() == "VEVENT" else event
        elif given.name == "END":
            ended = inside.pop()
            if ended.value.upper() != given.value.upper():
                flaws.append(_flaw(given, f"expected the end of {ended.value} first"))
                return
            if ended.value.upper() == "VEVENT":
                yield event
        elif inside[-1].value.upper() == "VEVENT":
            event.append(given)
    flaws.extend(_flaw(given, "expected its END") for given in inside)


def _properties(text: str, flaws: list[Flaw]) -> Iterator[_Property]:
    for number, line in _unfolded(text):
        match = _LINE.fullmatch(line)
        if match:
            parameters = {
                key.upper(): value.strip('"') for key, value in _PARAMETER.findall(match[2])
            }
            yield _Property(number, match[1].upper(), parameters, match[3].strip())
        elif line.strip():
            flaws.append(Flaw(number, shortened(line), "expected NAME:VALUE"))


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a file; a line that starts with a blank goes on where the one before ended."""
    current: list[str] = []
    begun = 1
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if line[:1] in (" ", "\t") and current:
            current.append(line[1:])
            continue
        if current:
            yield begun, "".join(current)
        current, begun = [line], number
    yield begun, "".join(current)


def _summary(event: list[_Property]) -> str:
    text = next((given.value for given in event if given.name == "SUMMARY"), "")
    plain = re.sub(r"\\(.)", lambda match: " " if match[1] in "nN" else match[1], text)
    return shortened(plain.strip()) or "a day without a name"


def _days(event: list[_Property], budget: _Budget) -> set[date]:
    """The days of an event.

    Raises:
        _FlawedError: The event says something that this cannot do.
    """
    given: dict[str, _Property] = {}
    excluded: set[date] = set()
    for each in event[1:]:
        if each.name == "STATUS" and each.value.upper() == "CANCELLED":
            return set()
        if each.name == "EXDATE":
            excluded |= {_date(each, part) for part in each.value.split(",")}
        elif each.name not in _KNOWN:
            if not _HARMLESS.fullmatch(each.name):
                raise _FlawedError(each, f"{each.name} is not known; the event is left out")
        elif given.setdefault(each.name, each) is not each:
            raise _FlawedError(each, f"expected one {each.name}; the event is left out")
    if "DTSTART" not in given:
        raise _FlawedError(event[0], "expected a DTSTART; the event is left out")
    start = _date(given["DTSTART"], given["DTSTART"].value)
    length = _length(given, start)
    starts = {start}
    if rule := given.get("RRULE"):
        recurrence = _recurrence(rule)
        budget.take(work_of(recurrence, start), rule)
        starts = set(days_of(recurrence, start))
    starts -= excluded
    budget.take(len(starts) * length, given["DTSTART"])
    return {day + timedelta(days=number) for day in starts for number in range(length)}


def _length(given: dict[str, _Property], start: date) -> int:
    """How many days each occurrence takes."""
    if "DTEND" in given:
        length = (_date(given["DTEND"], given["DTEND"].value) - start).days
        if not 0 <= length <= 366:
            raise _FlawedError(given["DTEND"], "expected an end at most a year after the start")
        return max(length, 1)
    if "DURATION" in given:
        match = re.fullmatch(r"\+?P(?:([0-9]{1,3})D|([0-9]{1,2})W)", given["DURATION"].value)
        if not match:
            raise _FlawedError(given["DURATION"], "expected whole days, such as P1D")
        return max(int(match[1] or 0) + 7 * int(match[2] or 0), 1)
    return 1


def _date(given: _Property, text: str) -> date:
    match = re.fullmatch(r"([0-9]{4})([0-9]{2})([0-9]{2})", text.strip())
    if not match:
        message = f"expected a whole day, such as {given.name};VALUE=DATE:20261225; it is left out"
        raise _FlawedError(given, message)
    try:
        day = date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        raise _FlawedError(given, "expected a date that there is; it is left out") from None
    if not 1900 <= day.year <= 2200:
        raise _FlawedError(given, "expected a year from 1900 to 2200; it is left out")
    return day


def _recurrence(given: _Property) -> Recurrence:
    parts: dict[str, str] = {}
    for part in given.value.upper().split(";"):
        key, _, value = part.partition("=")
        if key in parts or not _RULE_PARTS.fullmatch(key):
            raise _FlawedError(
                given, f"{shortened(key)} is not known or told twice; it is left out"
            )
        parts[key] = value
    try:
        return _rule(parts)
    except (ValueError, KeyError):
        message = "expected a rule such as FREQ=YEARLY;BYMONTH=11;BYDAY=4TH; it is left out"
        raise _FlawedError(given, message) from None


def _rule(parts: dict[str, str]) -> Recurrence:
    """The rule that the parts tell.

    Raises:
        ValueError: A part makes no sense.
        KeyError: There is no FREQ.
    """
    frequency = parts["FREQ"]
    weekdays = tuple(map(_weekday, parts["BYDAY"].split(","))) if "BYDAY" in parts else ()
    if frequency not in _FREQUENCIES or ("COUNT" in parts and "UNTIL" in parts):
        raise ValueError(frequency)
    if any(nth for nth, _ in weekdays) and frequency not in ("MONTHLY", "YEARLY"):
        raise ValueError(frequency)
    if "BYMONTHDAY" in parts and frequency == "WEEKLY":
        raise ValueError(frequency)
    until = parts.get("UNTIL", "")[:8]
    return Recurrence(
        frequency=frequency,
        interval=_number(parts.get("INTERVAL", "1"), 1, 1000),
        count=_number(parts["COUNT"], 1, MAX_DAYS) if "COUNT" in parts else None,
        until=date(int(until[:4]), int(until[4:6]), int(until[6:8])) if until else None,
        months=_numbers(parts.get("BYMONTH"), 1, 12),
        month_days=_numbers(parts.get("BYMONTHDAY"), -31, 31),
        weekdays=weekdays,
        week_start=_WEEKDAYS.index(parts.get("WKST", "MO")),
    )


def _weekday(text: str) -> tuple[int, int]:
    number = text[:-2]
    nth = _number(number, -53, 53) if number else 0
    if number and nth == 0:
        raise ValueError(text)
    return nth, _WEEKDAYS.index(text[-2:])


def _numbers(text: str | None, low: int, high: int) -> tuple[int, ...]:
    if text is None:
        return ()
    numbers = tuple(_number(part, low, high) for part in text.split(","))
    if 0 in numbers:
        raise ValueError(text)
    return numbers


def _number(text: str, low: int, high: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,6}", text) or not low <= int(text) <= high:
        raise ValueError(text)
    return int(text)
