"""The months from 1970 to 2099 as numbers: the ground that every search walks on.

A day is a number of days after 1970-01-01, a month a number of months after January 1970. The
days of a month are the bits of a number, the first day lowest. What a month looks like depends
on two things only, its first weekday and its length: that pair is its shape, one of 28.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

#: Seconds of a day.
DAY = 86_400
FIRST_YEAR = 1970
LAST_YEAR = 2099
YEARS = LAST_YEAR - FIRST_YEAR + 1
MONTHS = YEARS * 12
#: How many shapes a month can have.
SHAPES = 28

#: Which days of a month, the month given by its number.
Days = Callable[[int], int]

_EPOCH = date(FIRST_YEAR, 1, 1).toordinal()


def shape_of(first_weekday: int, length: int) -> int:
    """The number of a shape; weekdays count from Sunday as 0."""
    return first_weekday * 4 + length - 28


def weekday_of(day: int) -> int:
    """The weekday of a day, Sunday being 0."""
    return (day + 4) % 7


def day_of(given: date) -> int:
    """The number of a date."""
    return given.toordinal() - _EPOCH


def date_of(day: int) -> date:
    """The date of a day's number."""
    return date.fromordinal(day + _EPOCH)


def month_of(given: date) -> int:
    """The number of the month that a date lies in; outside 1970 to 2099 there is no such month."""
    return (given.year - FIRST_YEAR) * 12 + given.month - 1


def year_and_month(month: int) -> tuple[int, int]:
    """A month's number as people write it: the year, and 1 to 12."""
    return FIRST_YEAR + month // 12, month % 12 + 1


def nth_weekday(shape: int, weekday: int, nth: int) -> int:
    """The day of a month that is its nth such weekday, or last for -1, as a bit; 0 if none."""
    first = (weekday - shape // 4) % 7
    length = shape % 4 + 28
    day = first + 7 * (nth - 1) if nth > 0 else first + 7 * ((length - 1 - first) // 7 + nth + 1)
    return 1 << day if 0 <= day < length else 0


def every_weekday(shape: int, weekdays: int) -> int:
    """All days of a month that fall on one of the weekdays (bits, Sunday lowest)."""
    first = shape // 4
    week = (weekdays >> first | weekdays << (7 - first)) & 0x7F
    return week * _EVERY_SEVENTH & all_days(shape)


def all_days(shape: int) -> int:
    """Every day of a month of that shape."""
    return (1 << (shape % 4 + 28)) - 1


_EVERY_SEVENTH = sum(1 << 7 * week for week in range(5))

#: The first day of each month, and the day after the last month.
STARTS: tuple[int, ...] = (
    *(day_of(date(*year_and_month(month), 1)) for month in range(MONTHS)),
    day_of(date(LAST_YEAR + 1, 1, 1)),
)
#: The shape of each month.
SHAPE: tuple[int, ...] = tuple(
    shape_of(weekday_of(STARTS[month]), STARTS[month + 1] - STARTS[month])
    for month in range(MONTHS)
)


def shapes_of(months: int) -> set[int]:
    """The shapes of some months, which are given as bits."""
    shapes = set()
    while months:
        month = months.bit_length() - 1
        shapes.add(SHAPE[month])
        months ^= 1 << month
    return shapes


#: The last second that any wall clock here can show.
LAST_WALL = STARTS[-1] * DAY - 1
