"""Cron lines of other programs: the same times, in our words.

Programs agree about most of a line. Where they do not, what a program does is written so that we
do it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from interlock.timing.cron import read_cron
from interlock.timing.due import seconds_of, wall_of
from interlock.timing.flaws import NeverDueError, UnreadableError
from interlock.timing.names import MONTH_NAMES, WEEKDAY_NAMES
from interlock.timing.walls import Line, first_at_or_after, last_at_or_before
from interlock.timing.zones import Zone

_ZONE = re.compile(r"(?:CRON_)?TZ=(\S*)\s*(.*)", re.DOTALL)
_EVERY = re.compile(r"@every\s+((?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms))+)", re.IGNORECASE)
_STEP = re.compile(r"(\*|\?|[0-9A-Za-z]+)(-[0-9A-Za-z]+)?/([0-9]+)")
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
#: The lowest value and the number of values of each of five fields.
SPANS = ((0, 60), (0, 24), (1, 31), (1, 12), (0, 7))
#: The names that other programs know in each of five fields: of three letters, and no others.
NAMES: tuple[Mapping[str, int], ...] = (
    *({}, {}, {}),
    {name: number for name, number in MONTH_NAMES.items() if len(name) == 3},
    {name: number for name, number in WEEKDAY_NAMES.items() if len(name) == 3},
)
#: Changes of clocks are looked at for so long: as far as their rules are likely to hold.
_LOOKED_AT_S = 15 * 366 * 86400


#: From here four years hold every month and a leap day.
_LOOKED_FROM = seconds_of(datetime(2027, 1, 1, tzinfo=UTC))
_DAY_S = 86400
_MOST_STEPS = 50_000
_ANY = ("*", "?")


class Zoned(NamedTuple):
    """A line, and the zone that stood before it."""

    zone: str | None
    line: str


def split_zone(text: str) -> Zoned:
    """Take `TZ=Europe/London` or `CRON_TZ=...` off the front of a line."""
    match = _ZONE.fullmatch(text.strip())
    return Zoned(match[1], match[2]) if match else Zoned(None, text.strip())


def is_every(text: str) -> bool:
    """Whether a line is an `@every`, which counts from a moment and not by the clock."""
    return text.lower().startswith("@every")


def line_for_every(text: str) -> str | None:
    """The line that is due as often as an `@every`; None when no line is."""
    match = _EVERY.fullmatch(text)
    if not match:
        return None
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|h|m|s)", match[1].lower())
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    minutes = int(seconds // 60)
    if minutes < 1 or seconds % 60:
        return None
    if 60 % minutes == 0:
        return f"*/{minutes} * * * *" if minutes < 60 else "0 * * * *"
    hours = minutes // 60
    if minutes % 60 or 24 % hours:
        return None
    return f"0 */{hours} * * *" if hours < 24 else "0 0 * * *"


def with_short_steps(text: str) -> str:
    """A line of five fields; a step beyond the end of its field leaves the first value alone.

    Other programs take such a step, and we take it for a mistake.
    """
    fields = text.split()
    if len(fields) != len(SPANS):
        return text
    return " ".join(
        ",".join(_short_step(part, low, size) for part in field.split(","))
        for field, (low, size) in zip(fields, SPANS, strict=True)
    )


def _short_step(part: str, low: int, size: int) -> str:
    match = _STEP.fullmatch(part)
    if not match or int(match[3]) <= size:
        return part
    return str(low) if match[1] in "*?" else match[1]


def is_read(text: str) -> bool:
    """Whether we can read a line."""
    try:
        read_cron(text, "default/imported")
    except UnreadableError:
        return False
    return True


def is_due_within(text: str, seconds: int) -> bool:
    """Whether a line is due again within so many seconds, whenever it was due last.

    Days are taken to have 24 hours. A line that cannot be read is not, nor one that would take
    long to look at.
    """
    try:
        line = read_cron(text, "default/imported")
    except UnreadableError:
        return False
    at = first_at_or_after(line, _LOOKED_FROM)
    end = _LOOKED_FROM + _repeats_after(text)
    for _ in range(_MOST_STEPS):
        if at is None or at >= end:
            return at is not None
        last = last_at_or_before(line, at + seconds)
        if last is None or last <= at:
            return False
        at = last
    return False


def _repeats_after(text: str) -> int:
    """How many seconds of a line are to be looked at to have seen every time between two of it."""
    words = text.split()
    if len(words) == len(SPANS) and words[2] in _ANY and words[3] in _ANY:
        return (2 if words[4] in _ANY else 15) * _DAY_S
    # With days of the month the line is due on few of them, and the first gap ends the look.
    return 4 * 366 * _DAY_S


def is_never_due(text: str) -> bool:
    """Whether a good line names only days that no month has: people write `0 0 31 2 *` for that."""
    try:
        read_cron(text, "default/imported")
    except UnreadableError as error:
        return isinstance(error, NeverDueError)
    return False


class InGap(NamedTuple):
    """What clocks skip of a line, in one change."""

    #: The first of the times, on the wall.
    wall: datetime
    #: Whether there are several, one that the wall shows right after the gap included.
    is_several: bool


def first_in_gap(line: Line, zone: Zone, after: datetime, *, several: bool = False) -> InGap | None:
    """The first change of clocks after a moment that skips a time of a line, or several."""
    now = seconds_of(after)
    for start, offset, skipped in zip(zone.starts, zone.offsets, zone.reached, strict=True):
        end = start + offset
        if not now < start < now + _LOOKED_AT_S or skipped >= end:
            continue
        first = first_at_or_after(line, skipped)
        if first is None or first >= end:
            continue
        second = first_at_or_after(line, first + 1)
        is_several = second is not None and second <= end
        if is_several or not several:
            return InGap(wall_of(first), is_several)
    return None
