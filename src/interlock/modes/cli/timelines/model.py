"""What a timeline shows: a row for each object and day, in the object's own zone.

A row is a day on the wall, from midnight to midnight, and its columns are what the wall clock
shows, so that rows stand under each other on every day. On a day of 23 hours the hour that clocks
skip is there and marked, and nothing can be in it; on one of 25 hours both passes of the hour that
comes twice share its place. The row tells how long such a day is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from interlock.modes.cli.moments import write_moment
from interlock.reporting.walls import start_of_day
from interlock.resources.timing.due import seconds_of
from interlock.resources.timing.months import DAY
from interlock.resources.timing.zones import Zone

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


class Span(Struct, frozen=True, kw_only=True):
    """A stretch of time."""

    start: datetime
    end: datetime
    sort: Sort
    #: What a reader wants to know of it.
    text: str = ""

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "from": write_moment(self.start),
            "to": write_moment(self.end),
            "sort": self.sort.value,
            "text": self.text,
        }


class Mark(Struct, frozen=True, kw_only=True):
    """A moment."""

    at: datetime
    sign: Sign
    text: str = ""

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {"at": write_moment(self.at), "sign": self.sign.value, "text": self.text}


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

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "zone": self.zone.name,
            "day": self.day.isoformat(),
            "from": write_moment(self.begin),
            "to": write_moment(self.end),
            "hours": self.hours,
            "spans": [span.data() for span in self.spans],
            "marks": [mark.data() for mark in self.marks],
            "summary": self.summary,
        }


class Chart(Struct, frozen=True, kw_only=True):
    """All rows, those of an object together."""

    now: datetime
    rows: tuple[Row, ...]

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {"now": write_moment(self.now), "rows": [row.data() for row in self.rows]}


def shares(row: Row, start: datetime, end: datetime) -> Iterator[tuple[float, float]]:
    """Where a stretch of time is on a row: parts of it, as shares of the day on the wall.

    It comes in several parts where clocks change within it.
    """
    zone, midnight = row.zone, _midnight(row)
    first, last = max(seconds_of(start), seconds_of(row.begin)), seconds_of(min(end, row.end))
    stretch = max(zone.stretch_at(first), 0)
    while first < last:
        until = min(last, zone.ends[stretch])
        offset = zone.offsets[stretch]
        begin, finish = (_share(at + offset - midnight) for at in (first, until))
        if begin < finish or until == last:
            yield begin, finish
        first, stretch = until, stretch + 1


def share_of(row: Row, moment: datetime) -> float:
    """Where a moment is on a row, as a share of the day on the wall."""
    return _share(row.zone.wall_at(seconds_of(moment)) - _midnight(row))


def skipped_shares(row: Row) -> Iterator[tuple[float, float]]:
    """The parts of a row that the wall clock never shows on that day."""
    at = 0.0
    for begin, finish in sorted(shares(row, row.begin, row.end)):
        if begin > at:
            yield at, begin
        at = max(at, finish)
    if at < 1.0:
        yield at, 1.0


def _midnight(row: Row) -> int:
    """Midnight on the wall, as the wall counts."""
    return (row.day - date(1970, 1, 1)).days * DAY


def _share(wall: int) -> float:
    return min(max(wall / DAY, 0.0), 1.0)
