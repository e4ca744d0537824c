"""What a plan comes to, in words on its own clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from interlock.modes.cli.controlled import Controlled, Window, windows_of
from interlock.resources.controlled_job import Override
from interlock.resources.timing.local_time import day_at, told_day, told_time

#: No exception is made for longer than ten years.
LONGEST_S = 10 * 366 * 86400
_FORTNIGHT = timedelta(days=14)


def coming(controlled: Controlled, overrides: tuple[Override, ...], after: datetime) -> str:
    """When it runs next at or after a moment, with these exceptions."""
    plan = controlled.plan_with(overrides)
    state = plan.state_at(after)
    if state.is_inside:
        stop = f" until {controlled.told(state.next_stop)}" if state.next_stop else ""
        is_same = plan.state_at(controlled.now).start == state.start
        if not is_same or not controlled.done_with:
            return f"its window is open{stop}: it runs"
        return (
            f"its window is open{stop}, and {controlled.done_with}: start it again with:"
            f" interlock start {controlled.name}"
        )
    window = next(windows_of(plan, after), None)
    if window is None:
        return "nothing starts after that"
    return f"it starts {controlled.told(window.start)}{until(controlled, window)}"


def until(controlled: Controlled, window: Window) -> str:
    """The end of a window, as the end of a line."""
    if window.stop is None:
        return ""
    zone = controlled.zone
    if day_at(window.stop, zone) == day_at(window.start, zone):
        return f", until {told_time(window.stop, zone, named=False)}"
    return f", until {controlled.told(window.stop)}"


def day_of(controlled: Controlled, moment: datetime) -> str:
    """The day of a moment, for the beginning of a line: "Fri 27"; further ahead, with its month."""
    day, today = day_at(moment, controlled.zone), day_at(controlled.now, controlled.zone)
    return f"{day:%a} {day.day}" if day - today < _FORTNIGHT else told_day(day, today)


def windows_from(controlled: Controlled, moment: datetime) -> Iterator[Window]:
    """The windows that are to open at or after a moment, with the exceptions there are."""
    return windows_of(controlled.plan, moment - timedelta(seconds=1))


def day_told(controlled: Controlled, moment: datetime) -> str:
    """The day of a moment, within a line."""
    zone = controlled.zone
    return told_day(day_at(moment, zone), day_at(controlled.now, zone))
