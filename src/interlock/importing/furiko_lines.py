"""Furiko's cron lines: the same times, in our words."""

from __future__ import annotations

import re

from interlock.importing.drafts import quoted
from interlock.importing.fields import Fields
from interlock.timing.hashing import place_of

_MOST = 7
#: Where each field of a line of 5, 6 and 7 fields is counted from 1 and not from 0.
_FROM_ONE = {
    5: {2: ("day-of-month", 1), 3: ("month", 1)},
    6: {2: ("day-of-month", 1), 3: ("month", 1), 5: ("year", 1970)},
    7: {3: ("day-of-month", 1), 4: ("month", 1), 6: ("year", 1970)},
}
_HASHED_STEP = re.compile(r"[Hh]/([0-9]{1,4})")


def line_of(given: Fields, text: str, identity: str) -> str:
    """One line; what is said about it is written down at `given`."""
    words = text.split()
    if len(words) > _MOST:
        rest = " ".join(words[_MOST:])
        why = "Furiko reads seven fields and takes no notice of the rest"
        given.note("", f"{quoted(rest)} is not carried over", why, "the same")
        words = words[:_MOST]
    words = [_plain(word) for word in words]
    for at, (name, low) in _FROM_ONE.get(len(words), {}).items():
        words[at] = ",".join(
            _stepped(given, part, identity, name, low) for part in words[at].split(",")
        )
    return " ".join(words)


def _plain(word: str) -> str:
    return "*" if word in ("**", "??") else word


def _stepped(given: Fields, part: str, identity: str, name: str, low: int) -> str:
    """An `H/n` where values are counted from 1: Furiko begins at 0 there, and we do not."""
    match = _HASHED_STEP.fullmatch(part)
    if not match or int(match[1]) < 1:
        return part
    start = place_of(identity, name, int(match[1]))
    if start < low:
        why = f"for {identity} Furiko begins at {start}, which there is not, and never runs it"
        given.note("", f"{quoted(part)} comes to life", why, "it begins where there is a value")
        return part
    why = f"Furiko begins at {start} for {identity}, because it counts from 0"
    written = f"{start}/{match[1]}"
    given.note("", f"{quoted(part)} is written out", why, f"{written}, which is the same days")
    return written
