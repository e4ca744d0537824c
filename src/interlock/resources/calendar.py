"""A Calendar: named days that schedules leave out or keep to."""

from __future__ import annotations

from typing import Annotated, ClassVar

from interlock.resources.metadata import NoStatus, Noun, Resource
from interlock.resources.rules import AtLeastOne, Items, Line, NounRule, Reads
from interlock.resources.schedule_limits import MAX_DAY_LENGTH, MAX_DAYS
from interlock.timing.day_texts import read_days

_Days = Annotated[str, Reads(read_days, {"minLength": 1, "maxLength": MAX_DAY_LENGTH})]


class CalendarDay(Noun):
    """A day, or days that come back."""

    #: 2026-12-25, 2026-12-24..2027-01-01, 12-25, 12-24..01-01, SAT,SUN, "4th THU of NOV" or
    #: easter+1.
    day: _Days
    #: What people call it; told where a schedule leaves it out.
    name: Line = ""


class CalendarSpec(Noun):
    """Some days."""

    RULES: ClassVar[tuple[NounRule, ...]] = (
        AtLeastOne("days", "icalendar", expected="expected days, or an icalendar text"),
    )

    days: Annotated[tuple[CalendarDay, ...], Items(0, MAX_DAYS, "days")] = ()
    #: The text of an iCalendar (.ics) file: the days of its events are in the calendar too.
    icalendar: str = ""


class Calendar(Resource, tag="Calendar", kw_only=True):
    """Named days, used as `exclude` and `only` by schedules in the same namespace."""

    spec: CalendarSpec
    status: NoStatus = NoStatus()
