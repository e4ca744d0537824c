"""Reading the starts and stops of a plan, by time of day; cron lines are read by `cron`."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.timing.calendars import Calendar
from interlock.timing.day_texts import read_weekdays
from interlock.timing.due import Schedule
from interlock.timing.plans import Action, Event
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.walls import Line
from interlock.timing.windows import daily, read_time_of_day
from interlock.timing.zones import Zone


def at_time_of_day(text: str, days: str = "*") -> Line:
    """Read a time on some weekdays, such as 09:00 and MON-FRI.

    Raises:
        UnreadableError: There is no such time, or there are no such days.
    """
    return daily(f"{text} {days}", read_time_of_day(text), read_weekdays(days))


def event_of(
    action: Action,
    line: Line,
    zone: Zone,
    *,
    on_gap: OnGap = OnGap.RUN_AFTER,
    on_repeat: OnRepeat = OnRepeat.FIRST,
    exclude: Iterable[Calendar] = (),
    only: Iterable[Calendar] = (),
) -> Event:
    """The event that happens at the times of a line in a zone."""
    schedule = Schedule(
        (line,), zone, on_gap=on_gap, on_repeat=on_repeat, exclude=exclude, only=only
    )
    return Event(action, schedule)
