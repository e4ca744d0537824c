"""What a Calendar must keep to: every day of it can be read, so that none is left out unseen."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from interlock.resources.calendar import CalendarSpec
from interlock.resources.job_checks import check_line
from interlock.resources.naming import MAX_LABEL, check_label_name
from interlock.resources.schedule_limits import (
    MAX_CALENDARS,
    MAX_DAYS,
    MAX_ICALENDAR_BYTES,
)
from interlock.resources.suggestions import Findings, shortened
from interlock.resources.timing.day_texts import read_days
from interlock.resources.timing.flaws import UnreadableError
from interlock.resources.timing.icalendar import Reading, read_icalendar

#: So many flaws of one text are told in one line.
_TOLD = 3


def check_calendar(spec: CalendarSpec, to: Findings) -> None:
    """Check the days of a calendar."""
    if not spec.days and not spec.icalendar:
        to.add("spec", "expected days, or an icalendar text")
    if len(spec.days) > MAX_DAYS:
        to.add("spec.days", f"expected at most {MAX_DAYS} days", len(spec.days))
        return
    for at, day in enumerate(spec.days):
        if to.is_full:
            return
        try:
            read_days(day.day)
        except UnreadableError as error:
            to.add(f"spec.days[{at}].day", flaws_in_words(error), day.day)
        if day.name:
            check_line(f"spec.days[{at}].name", day.name, to)
    if spec.icalendar:
        _check_icalendar(spec.icalendar, to)


def _check_icalendar(text: str, to: Findings) -> None:
    size = len(text.encode())
    if size > MAX_ICALENDAR_BYTES:
        message = (
            f"expected at most {MAX_ICALENDAR_BYTES} bytes, found {size}; `interlock import "
            "icalendar` keeps nothing but what tells days"
        )
        to.add("spec.icalendar", message, text)
        return
    reading = _reading(text)
    for flaw in reading.flaws:
        to.add("spec.icalendar", str(flaw), flaw.found)
    if not reading.flaws and not reading.calendar.entries:
        to.add("spec.icalendar", "expected at least one event that lasts whole days", text)


@lru_cache(maxsize=1)
def _reading(text: str) -> Reading:
    """Read a text once for all that is to be said about it."""
    return read_icalendar("", text)


def calendar_doubts(spec: CalendarSpec) -> tuple[str, ...]:
    """What of a good calendar may be otherwise than its author thinks."""
    remarks = _reading(spec.icalendar).remarks if spec.icalendar else ()
    return tuple(f"spec.icalendar: {one}" for one in remarks if one.changes_days)


def check_calendars(path: str, exclude: Iterable[str], only: Iterable[str], to: Findings) -> None:
    """Check the names of calendars that a schedule keeps to; each must be able to exist."""
    for field, names in (("exclude", tuple(exclude)), ("only", tuple(only))):
        if len(names) > MAX_CALENDARS:
            message = f"expected at most {MAX_CALENDARS} calendars"
            to.add(f"{path}.{field}", message, len(names))
            continue
        for at, name in enumerate(names):
            check_label_name(f"{path}.{field}[{at}]", name, MAX_LABEL, to)
            if name in names[:at]:
                to.add(f"{path}.{field}[{at}]", "is there twice", name)


def flaws_in_words(error: UnreadableError) -> str:
    """What is wrong with a text, in one line; parts of it are named where they are wrong."""
    whole = shortened(error.text)
    told = [
        flaw.message if flaw.found == whole else f'"{flaw.found}": {flaw.message}'
        for flaw in error.flaws[:_TOLD]
    ]
    more = len(error.flaws) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")
