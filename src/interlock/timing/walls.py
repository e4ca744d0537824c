"""Wall times: which of them a cron line means, and how the next or the last is found.

A wall time is what the clock on the wall shows, as seconds after 1970-01-01 00:00 on that wall.
The search goes month by month, then looks at the bits of days, hours, minutes and seconds; it
takes at most one step for each month from 1970 to 2099, and never walks through time.
"""

from __future__ import annotations

from bisect import bisect_right

from msgspec import Struct

from interlock.timing.months import DAY, LAST_WALL, SHAPE, STARTS, Days


class Line(Struct, frozen=True, kw_only=True):
    """The wall times of a cron line: every combination of its bits."""

    #: How it was written.
    text: str
    seconds: int
    minutes: int
    hours: int
    #: The days of a month, for each shape that a month can have.
    days: tuple[int, ...]
    #: The months from January 1970 on.
    months: int
    #: Whether it goes on and on (every few minutes, every few hours), so that no single one of
    #: its times matters when clocks change.
    is_interval: bool = False


def first_at_or_after(line: Line, wall: int, among: Days | None = None) -> int | None:
    """The first time of a line at or after a wall time, on one of the days `among` all."""
    if wall > LAST_WALL:
        return None
    day, second = divmod(max(wall, 0), DAY)
    month = bisect_right(STARTS, day) - 1
    left = _days(line, month, among) >> (day - STARTS[month])
    if left & 1:
        time = _time_at_or_after(line, second)
        if time is not None:
            return day * DAY + time
        left ^= 1
    if not left:
        month = _month_after(line, month, among)
        if month < 0:
            return None
        day, left = STARTS[month], _days(line, month, among)
    return (day + _lowest(left)) * DAY + _first_time(line)


def last_at_or_before(
    line: Line, wall: int, among: Days | None = None, *, since: int = 0
) -> int | None:
    """The last time of a line at or before a wall time, on one of the days `among` all.

    Months before that of `since` are not looked at.
    """
    if wall < 0:
        return None
    day, second = divmod(min(wall, LAST_WALL), DAY)
    month = bisect_right(STARTS, day) - 1
    place = day - STARTS[month]
    left = _days(line, month, among) & ((2 << place) - 1)
    if left >> place:
        time = _time_at_or_before(line, second)
        if time is not None:
            return day * DAY + time
        left ^= 1 << place
    if not left:
        month = _month_before(line, month, among, bisect_right(STARTS, since // DAY) - 1)
        if month < 0:
            return None
        left = _days(line, month, among)
    return (STARTS[month] + left.bit_length() - 1) * DAY + _last_time(line)


def _days(line: Line, month: int, among: Days | None) -> int:
    if not line.months >> month & 1:
        return 0
    days = line.days[SHAPE[month]]
    return days & among(month) if among and days else days


def _month_after(line: Line, month: int, among: Days | None) -> int:
    left = line.months >> (month + 1)
    while left:
        step = _lowest(left) + 1
        month += step
        if _days(line, month, among):
            return month
        left >>= step
    return -1


def _month_before(line: Line, month: int, among: Days | None, first: int) -> int:
    left = line.months & ((1 << month) - 1)
    while left:
        month = left.bit_length() - 1
        if month < first:
            return -1
        if _days(line, month, among):
            return month
        left ^= 1 << month
    return -1


def _time_at_or_after(line: Line, second: int) -> int | None:
    hour, rest = divmod(second, 3600)
    if line.hours >> hour & 1:
        minute, rest = divmod(rest, 60)
        if line.minutes >> minute & 1 and (left := line.seconds >> rest):
            return second + _lowest(left)
        if left := line.minutes >> (minute + 1):
            return hour * 3600 + (minute + 1 + _lowest(left)) * 60 + _lowest(line.seconds)
    if left := line.hours >> (hour + 1):
        hour += 1 + _lowest(left)
        return hour * 3600 + _lowest(line.minutes) * 60 + _lowest(line.seconds)
    return None


def _time_at_or_before(line: Line, second: int) -> int | None:
    hour, rest = divmod(second, 3600)
    if line.hours >> hour & 1:
        minute, rest = divmod(rest, 60)
        if line.minutes >> minute & 1 and (left := line.seconds & ((2 << rest) - 1)):
            return second - rest + left.bit_length() - 1
        if left := line.minutes & ((1 << minute) - 1):
            return hour * 3600 + (left.bit_length() - 1) * 60 + line.seconds.bit_length() - 1
    if left := line.hours & ((1 << hour) - 1):
        minutes = (left.bit_length() - 1) * 60 + line.minutes.bit_length() - 1
        return minutes * 60 + line.seconds.bit_length() - 1
    return None


def _first_time(line: Line) -> int:
    return _lowest(line.hours) * 3600 + _lowest(line.minutes) * 60 + _lowest(line.seconds)


def _last_time(line: Line) -> int:
    minutes = (line.hours.bit_length() - 1) * 60 + line.minutes.bit_length() - 1
    return minutes * 60 + line.seconds.bit_length() - 1


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
