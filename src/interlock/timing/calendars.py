"""Calendars: named sets of days, each with the reason why it is in the set.

A day is written as

    2026-12-25               one date
    2026-12-24..2027-01-01   every date from the first to the last
    12-25                    every year
    12-24..01-01             every year, also across its end
    SAT,SUN                  weekdays
    4th THU of NOV           a weekday of a month: 1st to 5th, or last; of * is every month
    easter+1                 days before or after Easter Sunday
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import NamedTuple, Protocol

from interlock.timing.months import FIRST_YEAR, LAST_YEAR, month_of


class DaySet(Protocol):
    """Some days."""

    def days_in(self, month: int) -> int:
        """Those of them that lie in a month, as bits."""


class NamedDays(NamedTuple):
    """Days, and what people call them."""

    days: DaySet
    name: str


class Calendar:
    """A named set of days."""

    def __init__(self, name: str, entries: Iterable[NamedDays]) -> None:
        self.name = name
        self.entries = tuple(entries)
        # A search asks for the same few months again and again.
        self._known: dict[int, int] = {}

    def days_in(self, month: int) -> int:
        """The days of a month that are in the calendar, as bits, the first day lowest."""
        known = self._known.get(month)
        if known is None:
            known = 0
            for entry in self.entries:
                known |= entry.days.days_in(month)
            self._known[month] = known
        return known

    def reason_for(self, day: date) -> str | None:
        """What the calendar calls a day; None if the day is not in it."""
        if not FIRST_YEAR <= day.year <= LAST_YEAR:
            return None
        month, bit = month_of(day), 1 << (day.day - 1)
        if not self.days_in(month) & bit:
            return None
        return next(entry.name for entry in self.entries if entry.days.days_in(month) & bit)


def closed_days(exclude: Iterable[Calendar], only: Iterable[Calendar], month: int) -> int:
    """The days of a month that calendars close: those of `exclude`, and those outside of `only`."""
    closed = 0
    for calendar in exclude:
        closed |= calendar.days_in(month)
    for calendar in only:
        closed |= _EVERY & ~calendar.days_in(month)
    return closed


_EVERY = (1 << 31) - 1


def why_closed(exclude: Iterable[Calendar], only: Iterable[Calendar], day: date) -> str | None:
    """The reason why calendars close a day; None if they do not."""
    for calendar in exclude:
        if reason := calendar.reason_for(day):
            return f"calendar {calendar.name}: {reason}"
    for calendar in only:
        if calendar.reason_for(day) is None:
            return f"not a day of calendar {calendar.name}"
    return None
