"""One event of an iCalendar file: which days it says it has."""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from msgspec import Struct

from interlock.findings import shortened
from interlock.timing.flaws import UnreadableError
from interlock.timing.icalendar_lines import Finding, Property, RawEvent
from interlock.timing.months import DAY, date_of, day_of
from interlock.timing.recurrences import FIRST_YEAR, Recurrence
from interlock.timing.zones import Zone, find_zone

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_LAST_YEAR = 2200
#: Days that one occurrence may take.
_MAX_LENGTH = 366

#: Properties of an event that say nothing about its days.
_HARMLESS = re.compile(
    "ATTACH|ATTENDEE|CATEGORIES|CLASS|COLOR|COMMENT|CONFERENCE|CONTACT|CREATED|DESCRIPTION|DTSTAMP"
    "|GEO|IMAGE|LAST-MODIFIED|LOCATION|NAME|ORGANIZER|PRIORITY|RELATED-TO|REQUEST-STATUS|RESOURCES"
    "|SEQUENCE|STATUS|STRUCTURED-DATA|STYLED-DESCRIPTION|SUMMARY|TRANSP|UID|URL|X-.*"
)
_ONCE = frozenset({"DTSTART", "DTEND", "DURATION", "RRULE", "RECURRENCE-ID"})
_OFTEN = frozenset({"EXDATE", "RDATE"})
_RULE_PARTS = re.compile("FREQ|INTERVAL|COUNT|UNTIL|BYMONTH|BYMONTHDAY|BYDAY|WKST")
_MOMENT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z?))?")


class Moment(NamedTuple):
    """A day, or a time of a day in some zone."""

    day: date
    #: None for a whole day; else the seconds after midnight.
    second: int | None
    #: The zone of a time: UTC, a name, or empty for any.
    zone: str

    @property
    def is_midnight(self) -> bool:
        """Whether a day starts there; midnight of UTC is another hour elsewhere."""
        return self.second is None or (self.second == 0 and self.zone != "UTC")


class Event(Struct, frozen=True, kw_only=True):
    """An event that takes whole days, or one day of such an event that is moved or cancelled."""

    line: int
    #: What it calls itself; empty when it does not.
    summary: str
    uid: str = ""
    #: A revision of an event has a higher one than what it replaces.
    sequence: int = 0
    stamp: str = ""
    is_cancelled: bool = False
    start: Moment
    #: Days that each occurrence takes.
    length: int = 1
    recurrence: Recurrence | None = None
    added: tuple[date, ...] = ()
    excluded: tuple[date, ...] = ()
    #: The day of the event with the same UID that this stands for.
    instance: Moment | None = None
    #: Where the instance is told.
    instance_line: int = 0
    #: Whether it stands for all later days of that event too.
    is_range: bool = False
    properties: tuple[Property, ...] = ()


class FlawedError(Exception):
    """An event cannot be read: it is left out, and told."""

    def __init__(self, given: Property, message: str) -> None:
        super().__init__(message)
        self.given = given
        self.message = message


class Unread(NamedTuple):
    """What is wrong with an event, and what is known of it all the same."""

    finding: Finding
    #: The day that it would have moved is not where it was; None when no such day is known.
    instead: Event | None


def read_event(raw: RawEvent) -> Event | Unread:
    """Read an event."""
    try:
        return _read(raw)
    except FlawedError as flaw:
        finding = Finding(flaw.given.line, flaw.given.shown, flaw.message, raw.summary)
        return Unread(finding, _without_days(raw))


def day_in(moment: Moment, start: Moment) -> date:
    """The day that a moment lies in, where an event that starts at `start` takes place.

    Nothing is known of the zone of a whole day, nor of names that only the file explains; the
    moment's own day counts then.
    """
    if moment.second is None or start.second is None or moment.zone == start.zone:
        return moment.day
    here, there = _zone(start.zone), _zone(moment.zone)
    if here is None or there is None:
        return moment.day
    at = there.first_at(day_of(moment.day) * DAY + moment.second)
    return date_of(here.wall_at(at) // DAY)


def _zone(name: str) -> Zone | None:
    if not name:
        return None
    try:
        return find_zone(name)
    except UnreadableError:
        return None


def _read(raw: RawEvent) -> Event:
    if _first(raw, "STATUS").upper() == "CANCELLED":
        # It has no days, whatever else it says.
        return _cancelled(raw)
    given, often = _sorted(raw)
    instance = _instance(given)
    if instance is not None:
        for name in ("RRULE", "RDATE", "EXDATE"):
            extra = given.get(name) or next((one for one in often if one.name == name), None)
            if extra is not None:
                raise FlawedError(extra, f"expected no {name} beside a RECURRENCE-ID")
    start = _start(raw, given)
    return Event(
        line=raw.line,
        summary=raw.summary,
        uid=_first(raw, "UID"),
        sequence=_sequence(raw),
        stamp=_first(raw, "DTSTAMP"),
        start=start,
        length=_length(given, start),
        recurrence=_recurrence(given["RRULE"], start) if "RRULE" in given else None,
        added=_days("RDATE", often, start),
        excluded=_days("EXDATE", often, start),
        instance=instance,
        instance_line=given["RECURRENCE-ID"].line if instance else 0,
        is_range=instance is not None and "RANGE" in given["RECURRENCE-ID"].parameters,
        properties=tuple(raw.properties),
    )


def _cancelled(raw: RawEvent) -> Event:
    """An event without days: all that matters is what it stands for."""
    given = {one.name: one for one in raw.properties if one.name == "RECURRENCE-ID"}
    instance = _instance(given)
    return Event(
        line=raw.line,
        summary=raw.summary,
        uid=_first(raw, "UID"),
        sequence=_sequence(raw),
        stamp=_first(raw, "DTSTAMP"),
        is_cancelled=True,
        start=instance or Moment(date_of(0), None, ""),
        instance=instance,
        instance_line=given["RECURRENCE-ID"].line if instance else 0,
        is_range=instance is not None and "RANGE" in given["RECURRENCE-ID"].parameters,
        properties=tuple(given.values()),
    )


def _first(raw: RawEvent, name: str) -> str:
    """The value of the first property of a name; empty when there is none."""
    return next((one.value for one in raw.properties if one.name == name), "")


def _sequence(raw: RawEvent) -> int:
    told = _first(raw, "SEQUENCE")
    return int(told) if re.fullmatch(r"[0-9]{1,10}", told) else 0


def _sorted(raw: RawEvent) -> tuple[dict[str, Property], list[Property]]:
    """The properties that an event has once, by name, and those that it may have often."""
    given: dict[str, Property] = {}
    often: list[Property] = []
    for each in raw.properties:
        if each.name in _OFTEN:
            often.append(each)
        elif each.name not in _ONCE:
            if not _HARMLESS.fullmatch(each.name):
                raise FlawedError(each, f"{each.name} is not known")
        elif given.setdefault(each.name, each) is not each:
            raise FlawedError(each, f"expected one {each.name}")
    return given, often


def _without_days(raw: RawEvent) -> Event | None:
    """What stands for a day of another event and cannot be read: that day, cancelled."""
    try:
        event = _cancelled(raw)
    except FlawedError:
        return None
    return event if event.instance is not None and event.uid else None


def _instance(given: dict[str, Property]) -> Moment | None:
    told = given.get("RECURRENCE-ID")
    if told is None:
        return None
    if told.parameters.get("RANGE", "THISANDFUTURE").upper() != "THISANDFUTURE":
        raise FlawedError(told, "expected no RANGE, or RANGE=THISANDFUTURE")
    return _moment(told, told.value)


def _start(raw: RawEvent, given: dict[str, Property]) -> Moment:
    if "DTSTART" not in given:
        first = Property(raw.line, "BEGIN", {}, "VEVENT", "BEGIN:VEVENT")
        raise FlawedError(first, "expected a DTSTART")
    start = _moment(given["DTSTART"], given["DTSTART"].value)
    if not start.is_midnight:
        raise FlawedError(given["DTSTART"], _whole_day("DTSTART", start))
    return start


def _length(given: dict[str, Property], start: Moment) -> int:
    """How many days each occurrence takes."""
    if "DTEND" in given:
        return _length_to(given["DTEND"], start)
    if "DURATION" in given:
        match = re.fullmatch(
            r"\+?P(?=.)(?:([0-9]{1,3})D|([0-9]{1,2})W)?(?:T([0-9]{1,4})H)?", given["DURATION"].value
        )
        hours = int(match[3] or 0) if match else 1
        if not match or hours % 24:
            raise FlawedError(given["DURATION"], "expected whole days, such as P1D")
        length = int(match[1] or 0) + 7 * int(match[2] or 0) + hours // 24
        if length > _MAX_LENGTH:
            raise FlawedError(given["DURATION"], "expected a year at most")
    else:
        length = 1 if start.second is None else 0
    if length == 0 and start.second is not None:
        raise FlawedError(given["DTSTART"], _whole_day("DTSTART", start))
    return max(length, 1)


def _length_to(given: Property, start: Moment) -> int:
    end = _moment(given, given.value)
    length = (end.day - start.day).days
    same = (end.second is None) == (start.second is None) and end.zone == start.zone
    if not end.is_midnight or not same or (start.second is not None and length == 0):
        raise FlawedError(given, _whole_day("DTEND", end))
    if not 0 <= length <= _MAX_LENGTH:
        raise FlawedError(given, "expected an end at most a year after the start")
    return max(length, 1)


def _whole_day(name: str, found: Moment) -> str:
    utc = "; midnight of UTC is another hour elsewhere" if found[1:] == (0, "UTC") else ""
    return f"expected a whole day, such as {name};VALUE=DATE:20261225{utc}"


def _moment(given: Property, text: str) -> Moment:
    match = _MOMENT.fullmatch(text.strip())
    if not match:
        message = f"expected a day, such as {given.name};VALUE=DATE:20261225"
        raise FlawedError(given, message)
    try:
        day = date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        raise FlawedError(given, "expected a date that there is") from None
    if not FIRST_YEAR <= day.year <= _LAST_YEAR:
        message = f"expected a year from {FIRST_YEAR} to {_LAST_YEAR}"
        raise FlawedError(given, message)
    if match[4] is None:
        return Moment(day, None, "")
    second = int(match[4]) * 3600 + int(match[5]) * 60 + int(match[6])
    return Moment(day, second, "UTC" if match[7] else given.parameters.get("TZID", ""))


def _days(name: str, often: list[Property], start: Moment) -> tuple[date, ...]:
    """The days that all properties of a name list."""
    return tuple(
        _listed_day(given, part, start)
        for given in often
        if given.name == name
        for part in given.value.split(",")
    )


def _listed_day(given: Property, text: str, start: Moment) -> date:
    moment = _moment(given, text)
    if moment.is_midnight:
        return moment.day
    known = start.second is not None and _zone(start.zone) is not None
    if not known or not _is_midnight_in(moment, start):
        raise FlawedError(given, _whole_day(given.name, moment))
    return day_in(moment, start)


def _is_midnight_in(moment: Moment, start: Moment) -> bool:
    here, there = _zone(start.zone), _zone(moment.zone)
    if here is None or there is None or moment.second is None:
        return False
    at = there.first_at(day_of(moment.day) * DAY + moment.second)
    return here.wall_at(at) % DAY == 0


def _recurrence(given: Property, start: Moment) -> Recurrence:
    parts: dict[str, str] = {}
    for part in given.value.upper().rstrip(";").split(";"):
        key, _, value = part.partition("=")
        if key in parts or not _RULE_PARTS.fullmatch(key):
            raise FlawedError(given, f"{shortened(key)} is not known or told twice")
        parts[key] = value
    try:
        return _rule(parts, start)
    except (ValueError, KeyError):
        message = (
            "expected a rule of days, weeks, months or years, "
            "such as FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"
        )
        raise FlawedError(given, message) from None


def _rule(parts: dict[str, str], start: Moment) -> Recurrence:
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
    return Recurrence(
        frequency=frequency,
        interval=_number(parts.get("INTERVAL", "1"), 1, 10**9),
        count=_number(parts["COUNT"], 1, 10**10) if "COUNT" in parts else None,
        until=_until(parts["UNTIL"], start) if "UNTIL" in parts else None,
        months=_numbers(parts.get("BYMONTH"), 1, 12),
        month_days=_numbers(parts.get("BYMONTHDAY"), -31, 31),
        weekdays=weekdays,
        week_start=_WEEKDAYS.index(parts.get("WKST", "MO")),
    )


def _until(text: str, start: Moment) -> date:
    """The last day that a rule may have."""
    day = date(int(text[:4]), int(text[4:6]), int(text[6:8]))
    match = _MOMENT.fullmatch(text)
    if match is None or match[4] is None:
        return day
    second = int(match[4]) * 3600 + int(match[5]) * 60 + int(match[6])
    return day_in(Moment(day, second, "UTC" if match[7] else start.zone), start)


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
    if not re.fullmatch(r"[+-]?[0-9]{1,11}", text) or not low <= int(text) <= high:
        raise ValueError(text)
    return int(text)
