"""A Calendar: named days that schedules leave out or keep to."""

from __future__ import annotations

from interlock.resources.metadata import NoStatus, Noun, Resource


class CalendarDay(Noun):
    """A day, or days that come back."""

    #: 2026-12-25, 2026-12-24..2027-01-01, 12-25, 12-24..01-01, SAT,SUN, "4th THU of NOV" or
    #: easter+1.
    day: str
    #: What people call it; told where a schedule leaves it out.
    name: str = ""


class CalendarSpec(Noun):
    """Some days."""

    days: tuple[CalendarDay, ...] = ()
    #: The text of an iCalendar (.ics) file: the days of its events are in the calendar too.
    icalendar: str = ""


class Calendar(Resource, tag="Calendar", kw_only=True):
    """Named days, used as `exclude` and `only` by schedules in the same namespace."""

    spec: CalendarSpec
    status: NoStatus = NoStatus()
