"""Validation of Calendars: every day can be read, so that none is left out unseen."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from interlock.findings import Findings
from interlock.resources.calendar import CalendarSpec
from interlock.resources.checks.validator import check_rules
from interlock.resources.schedule_limits import MAX_ICALENDAR_BYTES

if TYPE_CHECKING:
    from interlock.timing.icalendar import Reading


def check_calendar(spec: CalendarSpec, to: Findings) -> None:
    """Check the days of a calendar."""
    check_rules("spec", spec, to)
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
    # The command line knows all kinds and reads hardly ever such a text: what reads them would be
    # an eighth of what it loads to stop a Job.
    from interlock.timing.icalendar import read_icalendar

    return read_icalendar("", text)


def calendar_doubts(spec: CalendarSpec) -> tuple[str, ...]:
    """What of a good calendar may be otherwise than its author thinks."""
    remarks = _reading(spec.icalendar).remarks if spec.icalendar else ()
    return tuple(f"spec.icalendar: {one}" for one in remarks if one.changes_days)
