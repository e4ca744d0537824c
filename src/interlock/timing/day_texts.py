"""Reading the days of a calendar as people write them; `calendars` lists the forms."""

from __future__ import annotations

import re
from datetime import date

from interlock.timing.calendars import DaySet
from interlock.timing.day_sets import Dates, EasterDay, WeekdayOfMonth, Weekdays, Yearly
from interlock.timing.fields import DAY_OF_WEEK, MONTH, Field, read_field
from interlock.timing.flaws import Flaws, unreadable

_DATE = re.compile(r"(?:([0-9]{4})-)?([0-9]{2})-([0-9]{2})")
_NTH = re.compile(r"(1st|2nd|3rd|4th|5th|last) +(\S+) +of +(\S+)", re.IGNORECASE)
_EASTER = re.compile(r"easter(?: *([+-]) *([0-9]{1,3}))?", re.IGNORECASE)
_LEAP_YEAR = 2000

EXPECTED = (
    "expected a day such as 2026-12-25, 12-25, 2026-12-24..2027-01-01, SAT,SUN, "
    '"4th THU of NOV", "last MON of MAY" or easter+1'
)


def read_days(text: str) -> DaySet:
    """Read one entry of a calendar.

    Raises:
        UnreadableError: The text names no days.
    """
    text = text.strip()
    if len(text) > 200:
        raise unreadable("day", text, EXPECTED)
    if match := _EASTER.fullmatch(text):
        after = int((match[1] or "+") + (match[2] or "0"))
        if abs(after) > 200:
            raise unreadable("day", text, "expected at most 200 days before or after Easter")
        return EasterDay(after)
    if match := _NTH.fullmatch(text):
        return _weekday_of_month(text, match)
    if text[:1].isdigit():
        return _dates(text)
    if re.fullmatch(r"[A-Za-z,-]+", text):
        return Weekdays(read_weekdays(text))
    raise unreadable("day", text, EXPECTED)


def read_weekdays(text: str) -> int:
    """Read weekdays (MON-FRI, SAT,SUN, FRI-MON, *) to bits, Sunday lowest.

    Raises:
        UnreadableError: The text names no weekdays.
    """
    return _values(DAY_OF_WEEK, text, 0, text)


def _values(field: Field, text: str, place: int, whole: str) -> int:
    flaws = Flaws("days" if field is DAY_OF_WEEK else "month", whole)
    if re.search(r"[^0-9A-Za-z*,-]", text) or not text.isascii():
        flaws.add(place, text, f'expected a {field.name}, a range or a list, such as "MON-FRI"')
        flaws.raise_if_any()
    reading = read_field(field, text, place, "", flaws)
    if reading.rules or reading.draws:
        flaws.add(place, text, f"expected a plain {field.name}")
    flaws.raise_if_any()
    return reading.values


def _weekday_of_month(text: str, match: re.Match[str]) -> DaySet:
    weekdays = _values(DAY_OF_WEEK, match[2], match.start(2), text)
    if weekdays & (weekdays - 1):
        raise unreadable("day", text, "expected one weekday", place=match.start(2))
    months = _values(MONTH, match[3], match.start(3), text)
    nth = -1 if match[1].lower() == "last" else int(match[1][0])
    return WeekdayOfMonth(weekdays.bit_length() - 1, nth, months)


def _dates(text: str) -> DaySet:
    first, dots, last = text.partition("..")
    begin = _date(text, first, 0)
    end = _date(text, last, len(first) + 2) if dots else begin
    if (begin[0] is None) != (end[0] is None):
        raise unreadable("day", text, "expected a year in both dates or in none")
    if begin[0] is None or end[0] is None:
        return Yearly(begin[1:], end[1:])
    span = Dates(date(begin[0], *begin[1:]), date(end[0], *end[1:]))
    if span.first > span.last:
        raise unreadable("day", text, "expected the first date before the last")
    return span


def _date(text: str, part: str, place: int) -> tuple[int | None, int, int]:
    match = _DATE.fullmatch(part.strip())
    if not match:
        raise unreadable("day", text, EXPECTED, place=place)
    year, month, day = int(match[1]) if match[1] else None, int(match[2]), int(match[3])
    try:
        date(_LEAP_YEAR if year is None else year, month, day)
    except ValueError:
        message = "expected a date that there is; a year has 12 months of 28 to 31 days"
        raise unreadable("day", text, message, place=place) from None
    return year, month, day
