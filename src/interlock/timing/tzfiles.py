"""Time zone files: when the clocks of a zone change, as the tz database tells it.

The standard library answers which offset holds at a moment, but not when it changes; a search
needs the changes. They are read from the `tzdata` package and from nowhere else: the database of
the machine may be years older, and two machines must never disagree about when something is due.
"""

from __future__ import annotations

import re
import struct
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

import tzdata

from interlock.timing.months import DAY, FIRST_YEAR, LAST_YEAR, day_of

#: The package is a folder of files; `importlib.resources` takes longer to load than to read one.
_FOLDER = Path(tzdata.__file__).parent
#: Before this moment nothing is looked for: early enough for every wall clock to show 1969.
BEGIN = -2 * DAY


class Change(NamedTuple):
    """From this moment on, the clocks are this many seconds ahead of UTC."""

    at: int
    offset: int


@cache
def edition() -> str:
    """Which edition of the database this is, such as 2026.2: another may have other changes."""
    return str(tzdata.__version__)


def zone_names() -> tuple[str, ...]:
    """The names of all zones, old names included."""
    return tuple((_FOLDER / "zones").read_text("utf-8").split())


def changes_of(name: str) -> tuple[Change, ...]:
    """The changes of a known zone from 1970 to 2099; the first one holds from the beginning."""
    data = _FOLDER.joinpath("zoneinfo", *name.split("/")).read_bytes()
    listed, first_offset, rule = _read(data)
    changes = [Change(BEGIN, first_offset)]
    for change in [*listed, *_by_rule(rule, listed[-1].at if listed else BEGIN)]:
        if change.at <= BEGIN:
            changes[0] = Change(BEGIN, change.offset)
        elif change.offset != changes[-1].offset:
            changes.append(change)
    return tuple(changes)


def _read(data: bytes) -> tuple[list[Change], int, str]:
    """The listed changes, the offset before them, and the rule after them (RFC 9636)."""
    *sizes, start = _header(data, 0)
    # The first block repeats in 32 bits what the second one says in 64.
    start += _size(sizes, 4)
    *sizes, start = _header(data, start)
    _, _, _, times, kinds, _ = sizes
    at = struct.unpack_from(f">{times}q", data, start)
    kind = struct.unpack_from(f">{times}B", data, start + 8 * times)
    offsets = [
        struct.unpack_from(">l", data, start + 9 * times + 6 * each)[0] for each in range(kinds)
    ]
    rule = data[start + _size(sizes, 8) :].decode("ascii").strip()
    listed = [Change(when, offsets[which]) for when, which in zip(at, kind, strict=True)]
    return listed, offsets[0], rule


def _header(data: bytes, start: int) -> tuple[int, ...]:
    return (*struct.unpack_from(">6l", data, start + 20), start + 44)


def _size(sizes: list[int], width: int) -> int:
    universal, standard, leaps, times, kinds, letters = sizes
    return times * (width + 1) + kinds * 6 + letters + leaps * (width + 4) + standard + universal


_NAME = r"(?:<[^>]+>|[A-Za-z]+)"
_TIME = r"[+-]?[0-9]+(?::[0-9]+){0,2}"
_RULE = re.compile(
    rf"{_NAME}(?P<standard>{_TIME})"
    rf"(?:{_NAME}(?P<summer>{_TIME})?,(?P<start>[^,/]+)(?:/(?P<start_time>{_TIME}))?"
    rf",(?P<end>[^,/]+)(?:/(?P<end_time>{_TIME}))?)?"
)


def _by_rule(text: str, after: int) -> list[Change]:
    """The changes after a moment that the rule at the end of a file foretells."""
    match = _RULE.fullmatch(text)
    if not match or not match["start"]:
        return []
    standard = -_seconds(match["standard"])
    summer = -_seconds(match["summer"]) if match["summer"] else standard + 3600
    changes = []
    for year in range(FIRST_YEAR, LAST_YEAR + 2):
        starts = _day(match["start"], year) * DAY + _seconds(match["start_time"] or "2")
        ends = _day(match["end"], year) * DAY + _seconds(match["end_time"] or "2")
        changes += [Change(starts - standard, summer), Change(ends - summer, standard)]
    return sorted(change for change in changes if change.at > after)


def _seconds(text: str) -> int:
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    total = sum(part * size for part, size in zip(parts, (3600, 60, 1), strict=False))
    return -total if text.startswith("-") else total


def _day(text: str, year: int) -> int:
    """The day of a year that a rule means: M3.2.0, J60 (leap days not counted) or 59."""
    january = day_of(date(year, 1, 1))
    if text.startswith("J"):
        leap = day_of(date(year, 3, 1)) - january == 60
        number = int(text[1:])
        return january + number - 1 + (leap and number >= 60)
    if not text.startswith("M"):
        return january + int(text)
    month, week, weekday = map(int, text[1:].split("."))
    first = day_of(date(year, month, 1))
    following = day_of(date(year + month // 12, month % 12 + 1, 1))
    day = first + (weekday - first - 4) % 7 + 7 * (week - 1)
    return day if day < following else day - 7
