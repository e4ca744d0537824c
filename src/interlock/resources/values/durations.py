"""Durations as people write them: "90s", "5m", "1h30m"."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|d|h|m|s)")
_WHOLE = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|d|h|m|s))+")

#: The same in words that every program knows: the largest unit first, each at most once.
PATTERN = "0|" + "".join(f"(?:[0-9]+(?:[.][0-9]+)?{unit})?" for unit in _UNITS)
LONGEST_TEXT = 64

EXPECTED = 'expected a duration such as "90s", "5m" or "1h30m"'


class Duration(timedelta):
    """A length of time, never negative, that is written and read as text."""

    #: How it was written, so that it is written the same way again: "90s" stays "90s".
    text: str | None = None

    def __str__(self) -> str:
        return self.text or format_duration(self)


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> Duration:
    """Read a duration. Units come largest first, each at most once, to the millisecond.

    Raises:
        ValueError: The text is no duration.
    """
    if text == "0":
        text = "0s"
    if len(text) > LONGEST_TEXT or not _WHOLE.fullmatch(text):
        raise ValueError(EXPECTED)
    parts = [(float(number), _UNITS[unit]) for number, unit in _PART.findall(text)]
    sizes = [size for _, size in parts]
    if sizes != sorted(set(sizes), reverse=True):
        raise ValueError(f"{EXPECTED}, largest unit first")
    total = round(sum(number * size for number, size in parts))
    if total > 1_000_000 * 86_400_000:
        raise ValueError("expected at most 1000000 days")
    length = Duration(milliseconds=total)
    length.text = text
    return length


def format_duration(length: timedelta) -> str:
    """Write a duration so that `parse_duration` reads the same length back."""
    left = round(length / timedelta(milliseconds=1))
    parts = []
    for unit in ("h", "m", "s", "ms"):
        count, left = divmod(left, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def told_length(total_s: float) -> str:
    """A length of time in at most two units: "12.4 s", "3 m 12 s", "2 h 5 m", "4 d 3 h"."""
    if total_s < 60:
        return f"{max(total_s, 0):.1f} s" if total_s < 20 else f"{total_s:.0f} s"
    whole = int(total_s)
    for unit, size, smaller, small in (
        ("m", 60, "s", 1),
        ("h", 3600, "m", 60),
        ("d", 86400, "h", 3600),
    ):
        if whole < size * (60 if unit == "m" else 24 if unit == "h" else 10**9):
            count, left = divmod(whole, size)
            rest = left // small
            return f"{count} {unit} {rest} {smaller}" if rest else f"{count} {unit}"
    raise AssertionError("days have no end")
