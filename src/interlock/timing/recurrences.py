"""Repeating days as iCalendar files tell them: the RRULE of RFC 5545, for whole days.

Days are the bits of one number, 1 January 1900 lowest. A rule is a few such numbers laid over each
other, so that it takes no longer to find all of its days than some of them, however often it
repeats: no rule of any file needs to be cut short.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from datetime import date
from functools import lru_cache

from msgspec import Struct

from interlock.timing.months import LAST_YEAR

FIRST_YEAR = 1900
_FIRST = date(FIRST_YEAR, 1, 1).toordinal()
#: How many days there are to choose from.
SIZE = date(LAST_YEAR, 12, 31).toordinal() - _FIRST + 1
_EVERY = (1 << SIZE) - 1
_MONTHS = (LAST_YEAR - FIRST_YEAR + 1) * 12


class Recurrence(Struct, frozen=True, kw_only=True):
    """Which days repeat. Weekdays count from Monday as 0, as dates do."""

    #: DAILY, WEEKLY, MONTHLY or YEARLY.
    frequency: str
    interval: int = 1
    count: int | None = None
    until: date | None = None
    months: tuple[int, ...] = ()
    #: Days of a month; negative ones count from its end.
    month_days: tuple[int, ...] = ()
    #: Which one (0 for every one, negative from the end), and the weekday.
    weekdays: tuple[tuple[int, int], ...] = ()
    #: The day that a week starts on.
    week_start: int = 0


def place_of(day: date) -> int:
    """The bit that stands for a day; it is no bit of ours outside 1900 to 2099."""
    return day.toordinal() - _FIRST


def date_at(place: int) -> date:
    """The day that a bit stands for."""
    return date.fromordinal(place + _FIRST)


def bit_of(day: date) -> int:
    """The bit of a day; none outside 1900 to 2099."""
    place = place_of(day)
    return 1 << place if 0 <= place < SIZE else 0


def bits_of(days: Iterable[date]) -> int:
    """The bits of some days; those outside 1900 to 2099 are left out."""
    return _bits_at(map(place_of, days))


def from_place(bits: int, place: int) -> int:
    """Those of the days that are at a place or after it."""
    return bits >> place << place if place > 0 else bits


def before_place(bits: int, place: int) -> int:
    """Those of the days that are before a place."""
    return bits & ((1 << place) - 1) if place > 0 else 0


def moved_by(bits: int, days: int) -> int:
    """All days so many days later, or earlier."""
    return (bits << days) & _EVERY if days >= 0 else bits >> -days


def lasting(bits: int, length: int) -> int:
    """The days, and those after each of them, `length` in all."""
    covered = 1
    while covered < length:
        step = min(covered, length - covered)
        bits |= bits << step
        covered += step
    return bits & _EVERY


def days_of(recurrence: Recurrence, start: date) -> int:
    """All days of a recurrence from its start on, up to its end or that of 2099."""
    bits = from_place(_fitting(recurrence, start), place_of(start))
    if recurrence.until is not None:
        bits = before_place(bits, place_of(recurrence.until) + 1)
    return bits if recurrence.count is None else _first(bits, recurrence.count)


def _first(bits: int, count: int) -> int:
    """The first so many of the days."""
    if bits.bit_count() <= count:
        return bits
    low, high = 0, bits.bit_length()
    while low < high:
        middle = (low + high) // 2
        if before_place(bits, middle).bit_count() < count:
            low = middle + 1
        else:
            high = middle
    return before_place(bits, low)


def _fitting(recurrence: Recurrence, start: date) -> int:
    """The days that fit, before the start too, and without an end."""
    match recurrence.frequency:
        case "DAILY":
            return _comb(recurrence.interval, place_of(start)) & _allowed(recurrence)
        case "WEEKLY":
            # Months narrow weeks; days of a month have no meaning there.
            weekdays = _weekdays(recurrence) if recurrence.weekdays else _weekday(start.weekday())
            return _weeks(recurrence, start) & weekdays & _in_months(recurrence)
        case "MONTHLY":
            periods = _every_month(
                recurrence.interval, _month_number(start) % recurrence.interval
            ) & _in_months(recurrence)
            return periods & _in_month(recurrence, start)
        case _:
            return _years(recurrence.interval, start.year % recurrence.interval) & _in_year(
                recurrence, start
            )


def _allowed(recurrence: Recurrence) -> int:
    """The days that pass every limit that is given."""
    bits = _in_months(recurrence)
    if recurrence.month_days:
        bits &= _month_days(recurrence)
    return bits & _weekdays(recurrence) if recurrence.weekdays else bits


def _in_month(recurrence: Recurrence, start: date) -> int:
    """The days of any month that a rule of months means."""
    bits = _EVERY
    if recurrence.month_days:
        bits &= _month_days(recurrence)
    elif not recurrence.weekdays:
        return _month_day(start.day)
    if recurrence.weekdays:
        bits &= _union(_nth_of_month(nth, day) for nth, day in recurrence.weekdays)
    return bits


def _in_year(recurrence: Recurrence, start: date) -> int:
    """The days of any year that a rule of years means."""
    if recurrence.months:
        return _in_months(recurrence) & _in_month(recurrence, start)
    if not recurrence.weekdays and not recurrence.month_days:
        return _month(start.month) & _month_day(start.day)
    bits = _month_days(recurrence) if recurrence.month_days else _EVERY
    if recurrence.weekdays:
        bits &= _union(_nth_of_year(nth, day) for nth, day in recurrence.weekdays)
    return bits


def _weeks(recurrence: Recurrence, start: date) -> int:
    """All days of the weeks that are looked at."""
    step = 7 * recurrence.interval
    begin = place_of(start) - (start.weekday() - recurrence.week_start) % 7
    # A week that began in 1899 has lost its first days.
    return moved_by(lasting(_comb(step, max(begin, 0)), 7), min(begin, 0))


def _weekdays(recurrence: Recurrence) -> int:
    return _union(_weekday(day) for _, day in recurrence.weekdays)


def _month_days(recurrence: Recurrence) -> int:
    return _union(map(_month_day, recurrence.month_days))


def _in_months(recurrence: Recurrence) -> int:
    return _union(map(_month, recurrence.months)) if recurrence.months else _EVERY


def _union(sets: Iterable[int]) -> int:
    whole = 0
    for bits in sets:
        whole |= bits
    return whole


def _comb(step: int, first: int) -> int:
    """Every so many days, from a place on."""
    bits, width = 1, step
    while width < SIZE:
        bits |= bits << width
        width *= 2
    return bits << first & _EVERY


@lru_cache(maxsize=7)
def _weekday(weekday: int) -> int:
    return _comb(7, (weekday - date_at(0).weekday()) % 7)


@lru_cache(maxsize=12)
def _month(month: int) -> int:
    return _spans(range(month - 1, _MONTHS, 12))


@lru_cache(maxsize=512)
def _every_month(interval: int, phase: int) -> int:
    """Every so many months; the phase says which of them, January 1900 being 0."""
    return _EVERY if interval == 1 else _spans(range(phase, _MONTHS, interval))


@lru_cache(maxsize=512)
def _years(interval: int, phase: int) -> int:
    """The years that leave this rest when they are divided by the interval."""
    if interval == 1:
        return _EVERY
    years = (year for year in range(FIRST_YEAR, LAST_YEAR + 1) if year % interval == phase)
    return _spans((year - FIRST_YEAR) * 12 + month for year in years for month in range(12))


@lru_cache(maxsize=64)
def _month_day(day: int) -> int:
    """A day of every month that has it; negative ones count from the end."""
    places = []
    for month in range(_MONTHS):
        begin, length = _MONTH_SPANS[month]
        number = day if day > 0 else length + 1 + day
        if 1 <= number <= length:
            places.append(begin + number - 1)
    return _bits_at(places)


@lru_cache(maxsize=128)
def _nth_of_month(nth: int, weekday: int) -> int:
    """A weekday of every month: every one for 0, or the nth from its start or its end."""
    if nth == 0:
        return _weekday(weekday)
    return _nth_of(nth, weekday, _MONTH_SPANS)


@lru_cache(maxsize=1024)
def _nth_of_year(nth: int, weekday: int) -> int:
    """A weekday of every year: every one for 0, or the nth from its start or its end."""
    if nth == 0:
        return _weekday(weekday)
    spans = [
        (place_of(date(year, 1, 1)), 366 if calendar.isleap(year) else 365)
        for year in range(FIRST_YEAR, LAST_YEAR + 1)
    ]
    return _nth_of(nth, weekday, spans)


def _nth_of(nth: int, weekday: int, spans: Iterable[tuple[int, int]]) -> int:
    places = []
    for begin, length in spans:
        to_first = (weekday - begin - date_at(0).weekday()) % 7
        found = range(begin + to_first, begin + length, 7)
        if -len(found) <= nth <= len(found):
            places.append(found[nth - 1 if nth > 0 else nth])
    return _bits_at(places)


def _month_number(day: date) -> int:
    return (day.year - FIRST_YEAR) * 12 + day.month - 1


def _span(month: int) -> tuple[int, int]:
    """Where a month begins, and how many days it has."""
    first = date(FIRST_YEAR + month // 12, month % 12 + 1, 1)
    return place_of(first), calendar.monthrange(first.year, first.month)[1]


_MONTH_SPANS = tuple(map(_span, range(_MONTHS)))


def _spans(months: Iterable[int]) -> int:
    return _bits_at(
        place
        for month in months
        for place in range(_MONTH_SPANS[month][0], sum(_MONTH_SPANS[month]))
    )


def _bits_at(places: Iterable[int]) -> int:
    """The number with these bits; setting them one by one would take its length each time."""
    made = bytearray(SIZE // 8 + 1)
    for place in places:
        if 0 <= place < SIZE:
            made[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(made, "little")
