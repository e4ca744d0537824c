"""Where on a row a moment is drawn.

A row is a day on the wall, from midnight to midnight, and its columns are what the wall clock
shows, so that rows stand under each other on every day. On a day of 23 hours the hour that clocks
skip is there and marked, and nothing can be in it; on one of 25 hours both passes of the hour that
comes twice share its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime

from interlock.forecast.timeline.model import Row
from interlock.timing.due import seconds_of
from interlock.timing.months import DAY


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
