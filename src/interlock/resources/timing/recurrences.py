"""Repeating days as iCalendar files tell them: the RRULE of RFC 5545, for whole days."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from msgspec import Struct

from interlock.resources.timing.months import LAST_YEAR

_LAST = date(LAST_YEAR, 12, 31)


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


def days_of(recurrence: Recurrence, start: date) -> Iterator[date]:
    """The days of a recurrence from its start on, in order, up to its end or that of 2099."""
    last = min(recurrence.until or _LAST, _LAST)
    left = recurrence.count
    for period in _periods(recurrence, start):
        if period > last:
            return
        for day in sorted(set(_days_in(recurrence, period, start))):
            if day < start:
                continue
            if day > last or left == 0:
                return
            yield day
            left = left - 1 if left is not None else None


def work_of(recurrence: Recurrence, start: date) -> int:
    """About how many days must be looked at to find all of a recurrence."""
    last = min(recurrence.until or _LAST, _LAST)
    looked_at = max((last - start).days, 0) // recurrence.interval + 366
    is_spread = recurrence.weekdays or recurrence.month_days
    if recurrence.frequency == "YEARLY" and not is_spread:
        return looked_at * max(len(recurrence.months), 1) // 12
    return looked_at


def _periods(recurrence: Recurrence, start: date) -> Iterator[date]:
    """The first day of each day, week, month or year that is looked at."""
    step = recurrence.interval
    match recurrence.frequency:
        case "DAILY":
            yield from _dates(start, step)
        case "WEEKLY":
            back = (start.weekday() - recurrence.week_start) % 7
            first = start - timedelta(days=back) if start.toordinal() > back else start
            yield from _dates(first, 7 * step)
        case "MONTHLY":
            for month in range(start.year * 12 + start.month - 1, (LAST_YEAR + 1) * 12, step):
                yield date(month // 12, month % 12 + 1, 1)
        case _:
            for year in range(start.year, LAST_YEAR + 1, step):
                yield date(year, 1, 1)


def _dates(first: date, step: int) -> Iterator[date]:
    for ordinal in range(first.toordinal(), _LAST.toordinal() + 1, step):
        yield date.fromordinal(ordinal)


def _days_in(recurrence: Recurrence, period: date, start: date) -> Iterable[date]:
    match recurrence.frequency:
        case "DAILY":
            return [period] if _is_allowed(recurrence, period) else []
        case "WEEKLY":
            return _days_in_week(recurrence, period, start)
        case "MONTHLY":
            if recurrence.months and period.month not in recurrence.months:
                return []
            return _days_in_month(recurrence, period.year, period.month, start)
        case _:
            return _days_in_year(recurrence, period.year, start)


def _is_allowed(recurrence: Recurrence, day: date) -> bool:
    """Whether a day passes every limit that is given."""
    if recurrence.months and day.month not in recurrence.months:
        return False
    if recurrence.month_days and not _is_month_day(recurrence, day):
        return False
    return not recurrence.weekdays or any(
        weekday == day.weekday() for _, weekday in recurrence.weekdays
    )


def _is_month_day(recurrence: Recurrence, day: date) -> bool:
    from_end = day.day - calendar.monthrange(day.year, day.month)[1] - 1
    return day.day in recurrence.month_days or from_end in recurrence.month_days


def _days_in_week(recurrence: Recurrence, week: date, start: date) -> Iterator[date]:
    weekdays = {weekday for _, weekday in recurrence.weekdays} or {start.weekday()}
    for number in range(7):
        day = week + timedelta(days=number)
        if day.weekday() in weekdays and _is_allowed_month(recurrence, day):
            yield day


def _is_allowed_month(recurrence: Recurrence, day: date) -> bool:
    return not recurrence.months or day.month in recurrence.months


def _days_in_month(recurrence: Recurrence, year: int, month: int, start: date) -> Iterator[date]:
    length = calendar.monthrange(year, month)[1]
    days = [date(year, month, day) for day in range(1, length + 1)]
    if recurrence.month_days:
        days = [day for day in days if _is_month_day(recurrence, day)]
    elif not recurrence.weekdays:
        days = [day for day in days if day.day == start.day]
    if recurrence.weekdays:
        wanted = set(_by_weekday(recurrence, date(year, month, 1), date(year, month, length)))
        days = [day for day in days if day in wanted]
    yield from days


def _days_in_year(recurrence: Recurrence, year: int, start: date) -> Iterator[date]:
    if recurrence.weekdays and not recurrence.months and not recurrence.month_days:
        yield from _by_weekday(recurrence, date(year, 1, 1), date(year, 12, 31))
        return
    every_month = recurrence.month_days or recurrence.weekdays
    for month in recurrence.months or (range(1, 13) if every_month else (start.month,)):
        yield from _days_in_month(recurrence, year, month, start)


def _by_weekday(recurrence: Recurrence, first: date, last: date) -> Iterator[date]:
    """The weekdays between two days: every one, or the nth from the start or the end."""
    length = last.toordinal() - first.toordinal()
    for nth, weekday in recurrence.weekdays:
        to_first = (weekday - first.weekday()) % 7
        places = range(to_first, length + 1, 7)
        if nth == 0:
            yield from (first + timedelta(days=place) for place in places)
        elif -len(places) <= nth <= len(places):
            yield first + timedelta(days=places[nth - 1 if nth > 0 else nth])
