"""Reading an iCalendar file (.ics) as a calendar: its whole-day events are the days.

A day of an event that the file moves or cancels is not where the event's rule would have it. What
the file says and this cannot do is told, with its line: a holiday that is left out in silence would
be a run on a holiday.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from msgspec import Struct

from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.day_sets import Counted
from interlock.timing.icalendar_events import Event, Unread, day_in, read_event
from interlock.timing.icalendar_lines import Finding, events_of
from interlock.timing.months import LAST_YEAR, date_of
from interlock.timing.recurrences import (
    before_place,
    bit_of,
    bits_of,
    days_of,
    from_place,
    lasting,
    moved_by,
    place_of,
)

_UNNAMED = "a day without a name"
#: The place of the first day that a schedule can be about.
_FIRST = place_of(date_of(0))


class Reading(Struct, frozen=True):
    """The calendar of a file, and what is to be said about it; places are line numbers."""

    calendar: Calendar
    #: What of the file is not in the calendar.
    flaws: tuple[Finding, ...]
    #: What is in it otherwise than somebody may think.
    remarks: tuple[Finding, ...] = ()
    #: The events that the days come from.
    events: tuple[Event, ...] = ()


class _Named(NamedTuple):
    line: int
    bits: int
    name: str


def read_icalendar(name: str, text: str) -> Reading:
    """Read the whole-day events of a file; whatever cannot be read is told in `flaws`."""
    flaws: list[Finding] = []
    remarks: list[Finding] = []
    by_uid: dict[str, list[Event]] = {}
    for raw in events_of(text, flaws):
        event = read_event(raw)
        if isinstance(event, Unread):
            flaws.append(event.finding)
            if event.instead is None:
                continue
            event = event.instead
        by_uid.setdefault(event.uid or f"\0{event.line}", []).append(event)
    named: list[_Named] = []
    kept: list[Event] = []
    for events in by_uid.values():
        series = _Series(events)
        named += series.days()
        kept += series.kept
        flaws += series.flaws
        remarks += series.remarks
    entries = [
        NamedDays(days, one.name)
        for one in sorted(named, key=lambda one: one.line)
        if (days := _counted(one.bits))
    ]
    return Reading(
        Calendar(name, entries),
        tuple(sorted(flaws, key=lambda one: one.place)),
        tuple(sorted(remarks, key=lambda one: one.place)),
        tuple(sorted(kept, key=lambda one: one.line)),
    )


def _counted(bits: int) -> Counted | None:
    """The days from 1970 on; None when there is none."""
    bits >>= _FIRST
    if not bits:
        return None
    first = (bits & -bits).bit_length() - 1
    return Counted(first, bits >> first)


class _Series:
    """The events that have one UID: an event, and those that stand for some of its days."""

    def __init__(self, events: list[Event]) -> None:
        self.flaws: list[Finding] = []
        self.remarks: list[Finding] = []
        self.kept: list[Event] = []
        #: The event itself; several where a file uses one UID for more than one event.
        self._events = self._newest([one for one in events if one.instance is None])
        self._is_alone = not self._events
        self._is_cancelled = bool(self._events) and all(one.is_cancelled for one in self._events)
        self._events = [one for one in self._events if not one.is_cancelled]
        self._singles: dict[date, Event] = {}
        self._ranges: dict[date, Event] = {}
        for one in sorted(
            (one for one in events if one.instance is not None),
            key=lambda one: (one.sequence, one.stamp, one.line),
        ):
            (self._ranges if one.is_range else self._singles)[self._day(one)] = one

    def _newest(self, events: list[Event]) -> list[Event]:
        highest = max((one.sequence for one in events), default=0)
        newest = [one for one in events if one.sequence == highest]
        for one in events:
            if one.sequence < highest:
                told = f"is replaced by line {newest[0].line}, which has a higher SEQUENCE"
                self.remarks.append(_about(one, told))
        return newest

    def _day(self, one: Event) -> date:
        """The day of the event that another stands for."""
        assert one.instance is not None
        if not self._events:
            return one.instance.day
        return day_in(one.instance, self._events[0].start)

    def days(self) -> list[_Named]:
        """All days, each with its name."""
        if self._is_cancelled:
            return []
        starts = [(one, _starts(one)) for one in self._events]
        found: list[_Named] = []
        self._tell_doubles(starts)
        self._check_ranges(starts)
        for day, one in self._singles.items():
            self._check_single(day, one, starts)
            self.kept.append(one)
            if not one.is_cancelled:
                name = one.summary or next((each.summary for each in self._events), "")
                found.append(_Named(one.line, _own_days(one), name or _UNNAMED))
        moved = bits_of(self._singles) if self._singles else 0
        for event, bits in starts:
            self.kept.append(event)
            found += self._of_event(event, bits & ~moved)
        self.kept += self._ranges.values()
        self._tell_odd_starts(found)
        return found

    def _of_event(self, event: Event, starts: int) -> list[_Named]:
        """The days of an event itself, later ones as its ranges have them."""
        ranges = sorted(self._ranges.items())
        name = event.summary or _UNNAMED
        first = before_place(starts, place_of(ranges[0][0])) if ranges else starts
        found = [_Named(event.line, lasting(first, event.length), name)]
        for at, (day, one) in enumerate(ranges):
            part = from_place(starts, place_of(day))
            if at + 1 < len(ranges):
                part = before_place(part, place_of(ranges[at + 1][0]))
            if not one.is_cancelled:
                bits = moved_by(part, (one.start.day - day).days)
                found.append(_Named(one.line, lasting(bits, one.length), one.summary or name))
        return found

    def _tell_doubles(self, starts: list[tuple[Event, int]]) -> None:
        for event, bits in starts[1:]:
            first, known = starts[0]
            if (bits, event.length) != (known, first.length):
                told = f"has the UID of line {first.line} too; the days of both are kept"
                self.remarks.append(_about(event, told))

    def _tell_odd_starts(self, found: list[_Named]) -> None:
        """Tell of a first day that is none of its rule's: programs disagree about it."""
        for event in self._events:
            day = event.start.day
            if event.recurrence is None or day.year > LAST_YEAR or day in event.excluded:
                continue
            if day not in self._singles and not any(_has(one.bits, day) for one in found):
                told = f"its rule does not have {day}, on which it starts: that day is left out"
                self.remarks.append(_about(event, told, changes_days=True))

    def _check_single(self, day: date, one: Event, starts: list[tuple[Event, int]]) -> None:
        """Tell of a day that was moved, and is none of the event's."""
        if self._is_alone or any(_has(bits, day) for _, bits in starts):
            return
        if one.is_cancelled or any(day in event.excluded for event in self._events):
            return
        told = f"it moves {day}, which is no day of its event at line {self._events[0].line}"
        self.remarks.append(_about(one, told, changes_days=True))

    def _check_ranges(self, starts: list[tuple[Event, int]]) -> None:
        for day, one in list(self._ranges.items()):
            if not any(_has(bits, day) for _, bits in starts):
                found = one.properties[0] if one.properties else None
                told = f"{day} names no day of its event"
                shown = found.shown if found else ""
                self.flaws.append(Finding(one.instance_line, shown, told, one.summary))
                del self._ranges[day]


def _about(one: Event, message: str, *, changes_days: bool = False) -> Finding:
    place = one.instance_line or one.line
    return Finding(place, "", message, one.summary or _UNNAMED, changes_days=changes_days)


def _starts(event: Event) -> int:
    """The days on which an event starts."""
    if event.recurrence is not None:
        bits = days_of(event.recurrence, event.start.day)
    else:
        bits = bit_of(event.start.day)
    if event.added:
        bits |= bits_of(event.added)
    if event.excluded:
        bits &= ~bits_of(event.excluded)
    return bits


def _own_days(event: Event) -> int:
    return lasting(bit_of(event.start.day), event.length)


def _has(bits: int, day: date) -> bool:
    return bool(bits >> max(place_of(day), 0) & 1)
