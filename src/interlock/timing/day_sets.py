"""Sets of days that calendars are made of, each told month by month."""

from __future__ import annotations

from datetime import date, timedelta

from msgspec import Struct

from interlock.timing.months import (
    SHAPE,
    STARTS,
    all_days,
    date_of,
    every_weekday,
    month_of,
    nth_weekday,
    year_and_month,
)


class Dates(Struct, frozen=True):
    """Every date from the first to the last."""

    first: date
    last: date

    def days_in(self, month: int) -> int:
        """The days of a month that lie between."""
        begin, end = date_of(STARTS[month]), date_of(STARTS[month + 1] - 1)
        low, high = max(self.first, begin), min(self.last, end)
        return _span(low.day, high.day) if low <= high else 0


class Yearly(Struct, frozen=True):
    """Every year from a month and day to a month and day, across the end of the year too."""

    first: tuple[int, int]
    last: tuple[int, int]

    def days_in(self, month: int) -> int:
        """The days of a month that lie between; a 29 February only where there is one."""
        _, number = year_and_month(month)
        from_first = _span(self.first[1], 31) if number == self.first[0] else 0
        to_last = _span(1, self.last[1]) if number == self.last[0] else 0
        after = _EVERY if number > self.first[0] else from_first
        before = _EVERY if number < self.last[0] else to_last
        days = after & before if self.first <= self.last else after | before
        return days & all_days(SHAPE[month])


class Weekdays(Struct, frozen=True):
    """Weekdays, as bits, Sunday lowest."""

    weekdays: int

    def days_in(self, month: int) -> int:
        """The days of a month that are such weekdays."""
        return every_weekday(SHAPE[month], self.weekdays)


class WeekdayOfMonth(Struct, frozen=True):
    """The nth, or for -1 the last, weekday of some months; months are bits, January lowest."""

    weekday: int
    nth: int
    months: int

    def days_in(self, month: int) -> int:
        """That day, if it is one of the months."""
        if not self.months >> month % 12 & 1:
            return 0
        return nth_weekday(SHAPE[month], self.weekday, self.nth)


class EasterDay(Struct, frozen=True):
    """A day that lies so many days after Easter Sunday."""

    after: int

    def days_in(self, month: int) -> int:
        """That day, if it lies in the month."""
        year, _ = year_and_month(month)
        days = [easter(each) + timedelta(days=self.after) for each in (year - 1, year, year + 1)]
        return sum(1 << day.day - 1 for day in days if month_of(day) == month)


class Counted(Struct, frozen=True):
    """Days that were found beforehand, as the bits of one number."""

    #: The day that the lowest bit stands for.
    first: int
    bits: int

    def days_in(self, month: int) -> int:
        """Those of the days that lie in a month."""
        after = STARTS[month] - self.first
        if after <= -31:
            return 0
        bits = self.bits >> after if after >= 0 else self.bits << -after
        return bits & all_days(SHAPE[month])


def easter(year: int) -> date:
    """Easter Sunday of the western churches (the anonymous Gregorian rule)."""
    golden = year % 19
    century, of_century = divmod(year, 100)
    leaps, rest = divmod(century, 4)
    moon_shift = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leaps - moon_shift + 15) % 30
    leap_years, odd_years = divmod(of_century, 4)
    to_sunday = (32 + 2 * rest + 2 * leap_years - epact - odd_years) % 7
    late = (golden + 11 * epact + 22 * to_sunday) // 451
    month, day = divmod(epact + to_sunday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def _span(first: int, last: int) -> int:
    return (1 << last) - (1 << first - 1)


_EVERY = (1 << 31) - 1
