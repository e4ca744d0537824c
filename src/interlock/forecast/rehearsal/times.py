"""Moments as scenarios write them: with a zone, on the wall of the settings' zone, or counted."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from interlock.resources.values.durations import parse_duration
from interlock.timing.due import moment_of, seconds_of
from interlock.timing.months import FIRST_YEAR, LAST_YEAR
from interlock.timing.zones import Zone

_WALL = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[Tt ]+(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?")
_ZONED = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}.*([Zz]|[+-]\d{2}:?\d{2})")

EXPECTED = (
    'expected a moment such as "2026-03-29T09:00:00Z", "2026-03-29 09:00" on the wall of '
    'settings.timezone, or "+5m" after the start'
)


def read_moment(text: str, zone: Zone, start: datetime | None) -> datetime:
    """Read a moment; without `start` it cannot be counted from there.

    Raises:
        ValueError: It is none.
    """
    if text.startswith("+"):
        if start is None:
            raise ValueError("the start is a moment itself: " + EXPECTED.rpartition(", or")[0])
        return start + parse_duration(text[1:].replace(" ", ""))
    moment = _zoned(text) if _ZONED.fullmatch(text) else _on_wall(text, zone)
    if not FIRST_YEAR <= moment.year < LAST_YEAR:
        raise ValueError(f"expected a moment from {FIRST_YEAR} to {LAST_YEAR - 1}")
    return moment


def _zoned(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(EXPECTED) from None


def _on_wall(text: str, zone: Zone) -> datetime:
    match = _WALL.fullmatch(text)
    if match is None:
        raise ValueError(EXPECTED)
    try:
        shown = datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}+00:00")
    except ValueError:
        raise ValueError(EXPECTED) from None
    moment = moment_of(zone.first_at(seconds_of(shown)))
    return moment.replace(microsecond=shown.microsecond)
