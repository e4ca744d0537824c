"""Lines that Kubernetes refuses, by the rules of the Go package that it reads them with.

We read more than that package does: `L`, `1#2`, `H`, a 7 for Sunday, days that go over the end of
the week. A manifest with such a line was never taken by a cluster, so it comes to life here.
"""

from __future__ import annotations

import re

from interlock.importing.cron_lines import NAMES, SPANS, is_every

_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
_NICKNAMES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_PART = re.compile(r"(?:[*?]|([0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?)(?:/([0-9]+))?")


def why_refused(text: str) -> str:
    """Why Kubernetes does not take a line; empty when it does, or when nobody would."""
    if text.startswith("@"):
        return "" if text in _NICKNAMES or is_every(text) else f"{text} is none of its words"
    fields = text.split()
    if len(fields) != len(SPANS):
        return f"it expects {len(SPANS)} fields"
    for at, field in enumerate(fields):
        # Empty parts are passed over.
        for part in filter(None, field.split(",")):
            if not _is_taken(at, part):
                low, size = SPANS[at]
                return f'"{part}" is no {_FIELDS[at]} to it, {low} to {low + size - 1}'
    return ""


def _is_taken(at: int, part: str) -> bool:
    match = _PART.fullmatch(part)
    if not match or (match[3] and not int(match[3])):
        return False
    first, last = (_value(at, word) if word else None for word in (match[1], match[2]))
    low, size = SPANS[at]
    for word, value in ((match[1], first), (match[2], last)):
        if word and (value is None or not low <= value < low + size):
            return False
    return not (first is not None and last is not None and first > last)


def _value(at: int, word: str) -> int | None:
    return int(word) if word.isdigit() and word.isascii() else NAMES[at].get(word.upper())
