"""Windows: the hours on the wall in which something is to run.

A window is the time from `from` until, but not at, `to`, on some weekdays; the day is that of its
start. A `to` that is not later than `from` lies on the next day, so equal times are a whole day.
Windows that overlap or touch are one. On the day clocks change, each end comes at the first
moment at which the wall clock shows it or a later time; a window that is wholly skipped is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from interlock.timing.calendars import Calendar, closed_days
from interlock.timing.day_texts import read_weekdays
from interlock.timing.flaws import unreadable
from interlock.timing.months import (
    DAY,
    LAST_WALL,
    MONTHS,
    SHAPES,
    Days,
    every_weekday,
)
from interlock.timing.ticks import Tick
from interlock.timing.walls import Line, first_at_or_after, last_at_or_before
from interlock.timing.zones import Zone

_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")
_WEEK = 7 * DAY


class Window(Struct, frozen=True, kw_only=True):
    """Hours on some days."""

    #: When it starts.
    line: Line
    #: How long it is on the wall.
    length_s: int
    exclude: tuple[Calendar, ...] = ()
    only: tuple[Calendar, ...] = ()

    @property
    def among(self) -> Days | None:
        """The days on which it may start; None is all."""
        return self.open_days if self.exclude or self.only else None

    def open_days(self, month: int) -> int:
        """The days of a month on which it may start."""
        return ~closed_days(self.exclude, self.only, month)

    def closed_days(self, month: int) -> int:
        """The days of a month on which calendars keep it from starting."""
        return closed_days(self.exclude, self.only, month)


def read_window(
    begin: str,
    end: str,
    days: str = "*",
    *,
    exclude: Iterable[Calendar] = (),
    only: Iterable[Calendar] = (),
) -> Window:
    """Read a window.

    Raises:
        UnreadableError: One of the texts makes no sense.
    """
    start = read_time_of_day(begin)
    stop = read_time_of_day(end, is_end=True)
    return Window(
        line=daily(f"{begin} {days}", start, read_weekdays(days)),
        length_s=stop - start if stop > start else stop - start + DAY,
        exclude=tuple(exclude),
        only=tuple(only),
    )


def read_time_of_day(text: str, *, is_end: bool = False) -> int:
    """Read a time such as 09:00 or 09:00:30 to seconds after midnight; an end may be 24:00.

    Raises:
        UnreadableError: There is no such time.
    """
    match = _TIME.fullmatch(text)
    if match:
        hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
        seconds = hour * 3600 + minute * 60 + second
        if minute < 60 and second < 60 and (seconds < DAY or (is_end and seconds == DAY)):
            return seconds
    padded = "0" + text
    hint = f'; did you mean "{padded}"?' if _TIME.fullmatch(padded) else ""
    latest = "24:00" if is_end else "23:59:59"
    raise unreadable("time", text, f"expected a time from 00:00 to {latest}, as HH:MM{hint}")


def daily(text: str, second: int, weekdays: int) -> Line:
    """The line that is due at one time of some weekdays."""
    return Line(
        text=text,
        seconds=1 << second % 60,
        minutes=1 << second // 60 % 60,
        hours=1 << second // 3600,
        days=tuple(every_weekday(shape, weekdays) for shape in range(SHAPES)),
        months=(1 << MONTHS) - 1,
    )


class Hours:
    """Some windows on one wall, as the starts and stops of the time that they cover together."""

    def __init__(self, windows: Iterable[Window], zone: Zone) -> None:
        self._windows = tuple(windows)
        self._zone = zone
        self._is_always = _cover_the_week(self._windows)

    def next_start(self, after: int) -> Tick | None:
        """The first moment after a moment at which covered time begins."""
        wall = self._zone.passed_by(after) + 1
        if self._is_always:
            return self._tick(0) if wall <= 0 else None
        while (start := self._first_start(wall)) is not None:
            if not self._is_covered(start - 1):
                return self._tick(start)
            wall = start + 1
        return None

    def previous_start(self, at: int) -> Tick | None:
        """The last moment at or before a moment at which covered time begins."""
        wall = self._zone.passed_by(at)
        if self._is_always:
            return self._tick(0) if wall >= 0 else None
        while (start := self._last_start(wall)) is not None:
            if not self._is_covered(start - 1):
                return self._tick(start)
            wall = start - 1
        return None

    def next_stop(self, after: int) -> Tick | None:
        """The first moment after a moment at which covered time ends."""
        wall = self._zone.passed_by(after) + 1
        while not self._is_always and (stop := self._first_stop(wall)) is not None:
            if stop > LAST_WALL:
                return None
            if not self._is_covered(stop):
                return self._tick(stop)
            wall = stop + 1
        return None

    def previous_stop(self, at: int) -> Tick | None:
        """The last moment at or before a moment at which covered time ends."""
        wall = min(self._zone.passed_by(at), LAST_WALL)
        while not self._is_always and (stop := self._last_stop(wall)) is not None:
            if not self._is_covered(stop):
                return self._tick(stop)
            wall = stop - 1
        return None

    def next_skipped(self, after: int) -> tuple[Tick, Window] | None:
        """The first start after a moment that does not happen because of a calendar."""
        wall = self._zone.passed_by(after) + 1
        skipped = [
            (self._tick(start), window)
            for window in self._windows
            if (window.exclude or window.only)
            and (start := first_at_or_after(window.line, wall, window.closed_days)) is not None
        ]
        return min(skipped, key=lambda each: each[0], default=None)

    def _tick(self, wall: int) -> Tick:
        return Tick(self._zone.first_at(wall), wall)

    def _is_covered(self, wall: int) -> bool:
        for window in self._windows:
            start = last_at_or_before(window.line, wall, window.among)
            if start is not None and wall < start + window.length_s:
                return True
        return False

    def _first_start(self, wall: int) -> int | None:
        starts = [first_at_or_after(each.line, wall, each.among) for each in self._windows]
        return min((start for start in starts if start is not None), default=None)

    def _last_start(self, wall: int) -> int | None:
        starts = [last_at_or_before(each.line, wall, each.among) for each in self._windows]
        return max((start for start in starts if start is not None), default=None)

    def _first_stop(self, wall: int) -> int | None:
        stops = [
            start + each.length_s
            for each in self._windows
            if (start := first_at_or_after(each.line, wall - each.length_s, each.among)) is not None
        ]
        return min(stops, default=None)

    def _last_stop(self, wall: int) -> int | None:
        stops = [
            start + each.length_s
            for each in self._windows
            if (start := last_at_or_before(each.line, wall - each.length_s, each.among)) is not None
        ]
        return max(stops, default=None)


def _cover_the_week(windows: tuple[Window, ...]) -> bool:
    """Whether the windows that no calendar limits leave no second of a week uncovered."""
    spans = sorted(
        (start + shift, start + shift + window.length_s)
        for window in windows
        if not window.exclude and not window.only
        for start in _starts_in_first_week(window)
        for shift in (-_WEEK, 0)
    )
    covered = 0
    for start, stop in spans:
        if start <= covered:
            covered = max(covered, stop)
    return covered >= _WEEK


def _starts_in_first_week(window: Window) -> list[int]:
    starts = []
    start = first_at_or_after(window.line, 0)
    while start is not None and start < _WEEK:
        starts.append(start)
        start = first_at_or_after(window.line, start + 1)
    return starts
