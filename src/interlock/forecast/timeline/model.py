"""What a timeline tells: a row for each object and day, in the object's own zone.

A row is a day on the wall, from midnight to midnight. On a day on which clocks change it is
shorter or longer than 24 hours, and tells so.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from interlock.timing.local_time import start_of_day
from interlock.timing.zones import Zone

_HOUR = timedelta(hours=1)


class Sort(StrEnum):
    """What a stretch of time was or will be."""

    #: A window that is or was open.
    WINDOW = "Window"
    #: A window to come.
    PLANNED = "Planned"
    #: An exception lets nothing run.
    HELD = "Held"
    #: A Job ran, and ended well.
    SUCCEEDED = "Succeeded"
    #: A Job ran, and was stopped.
    STOPPED = "Stopped"
    #: A Job ran, and ended in another way.
    FAILED = "Failed"
    #: A Job runs.
    RUNNING = "Running"


#: Stretches in which a Job ran, or runs.
RUNS = frozenset({Sort.SUCCEEDED, Sort.STOPPED, Sort.FAILED, Sort.RUNNING})


class Sign(StrEnum):
    """What a moment was or will be."""

    #: Something was due and did not run, or will not.
    SKIPPED = "Skipped"
    #: Something will be due.
    DUE = "Due"
    #: An exception moves the end of a window here.
    EXTENDED = "Extended"


class Span(Struct, frozen=True, kw_only=True, rename={"start": "from", "end": "to"}):
    """A stretch of time."""

    start: datetime
    end: datetime
    sort: Sort
    #: What a reader wants to know of it.
    text: str = ""


class Mark(Struct, frozen=True, kw_only=True):
    """A moment."""

    at: datetime
    sign: Sign
    text: str = ""


class Row(Struct, frozen=True, kw_only=True):
    """One day of one object."""

    kind: str
    namespace: str
    name: str
    zone: Zone
    day: date
    spans: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()
    #: The day in a few words.
    summary: str = ""

    @property
    def begin(self) -> datetime:
        """The first moment of the day."""
        return start_of_day(self.day, self.zone)

    @property
    def end(self) -> datetime:
        """The first moment after the day."""
        return start_of_day(self.day + timedelta(days=1), self.zone)

    @property
    def hours(self) -> float:
        """How long the day is: 24 unless clocks change."""
        return (self.end - self.begin) / _HOUR

    def data(self) -> TimelineRow:
        """For programs."""
        return TimelineRow(
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            zone=self.zone.name,
            day=self.day,
            begin=self.begin,
            end=self.end,
            hours=self.hours,
            spans=self.spans,
            marks=self.marks,
            summary=self.summary,
        )


class Chart(Struct, frozen=True, kw_only=True):
    """All rows, those of an object together."""

    now: datetime
    rows: tuple[Row, ...]

    def data(self, following: str = "") -> Timeline:
        """For programs; with what to ask for to see the rows that are left out."""
        return Timeline(now=self.now, rows=tuple(row.data() for row in self.rows), next=following)


class TimelineRow(Struct, frozen=True, kw_only=True, rename={"begin": "from", "end": "to"}):
    """One day of one object, for programs."""

    kind: str
    namespace: str
    name: str
    zone: str
    day: date
    begin: datetime
    end: datetime
    #: 24 unless clocks change.
    hours: float
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    summary: str


class Timeline(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The days of some objects, for programs; those of an object are together."""

    now: datetime
    rows: tuple[TimelineRow, ...]
    #: What to give as `after` for the objects that follow; none on the last page.
    next: str = ""
