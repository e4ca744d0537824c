"""Zones: what the clock on the wall shows, and when it shows it first.

A zone is a list of stretches between two changes of its clocks. Within a stretch the wall clock
and UTC differ by a fixed offset.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

from msgspec import Struct

from interlock.findings import did_you_mean
from interlock.timing.flaws import unreadable
from interlock.timing.months import DAY
from interlock.timing.tzfiles import BEGIN, Change, changes_of, zone_names

#: After every moment that is looked for.
END = 1 << 40

_OFFSET = re.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?(?P<minutes>[0-9]{2}))?")


class Zone(Struct, frozen=True, kw_only=True, eq=False):
    """The stretches of a zone, in order; all moments are seconds after 1970 UTC."""

    #: How it is shown to people: its name, and an extra offset if it has one.
    name: str
    #: When each stretch starts.
    starts: tuple[int, ...]
    #: When each stretch ends: the start of the next one.
    ends: tuple[int, ...]
    #: How far the wall clock is ahead of UTC in each stretch.
    offsets: tuple[int, ...]
    #: The first wall time that no wall clock has shown or passed before the stretch.
    reached: tuple[int, ...]

    def stretch_at(self, at: int) -> int:
        """The stretch that a moment lies in; -1 before all."""
        return bisect_right(self.starts, at) - 1

    def wall_at(self, at: int) -> int:
        """What the wall clock shows at a moment."""
        return at + self.offsets[max(self.stretch_at(at), 0)]

    def passed_by(self, at: int) -> int:
        """The latest wall time that was shown or passed at or before a moment."""
        stretch = max(self.stretch_at(at), 0)
        return max(at + self.offsets[stretch], self.reached[stretch] - 1)

    def has_gap(self, after: int, until: int) -> bool:
        """Whether clocks skip anything after a moment, until another."""
        first, last = self.stretch_at(after) + 1, self.stretch_at(until)
        return any(
            self.reached[each] < self.starts[each] + self.offsets[each]
            for each in range(max(first, 0), last + 1)
        )

    def first_at(self, wall: int) -> int:
        """The first moment at which the wall clock shows that time or a later one.

        For a time that a change skips, that is the moment of the change; for one that a change
        repeats, the first of the two.
        """
        stretch = max(bisect_right(self.reached, wall) - 1, 0)
        return max(self.starts[stretch], wall - self.offsets[stretch])


def zone_of(changes: tuple[Change, ...], name: str, extra_s: int = 0) -> Zone:
    """The zone with these changes, its wall clock `extra_s` seconds further ahead of UTC."""
    starts = tuple(change.at for change in changes)
    ends = (*starts[1:], END)
    offsets = tuple(change.offset + extra_s for change in changes)
    lasts = [end + offset for end, offset in zip(ends, offsets, strict=True)]
    reached = (starts[0] + offsets[0], *list(accumulate(lasts, max))[:-1])
    return Zone(name=name, starts=starts, ends=ends, offsets=offsets, reached=reached)


@lru_cache(maxsize=1024)
def find_zone(name: str, extra_s: int = 0) -> Zone:
    """The zone that a text names, its clock put forward by `extra_s` seconds.

    A name of the time zone database, `UTC`, `UTC+8`, `GMT-0330` or `+05:30`; nothing at all
    is UTC.

    Raises:
        UnreadableError: There is no such zone, or the extra offset is more than a day.
    """
    if abs(extra_s) > DAY:
        raise unreadable("offset", str(extra_s), f"expected at most {DAY} seconds either way")
    shown = f"{name or 'UTC'}{extra_s:+}s" if extra_s else name or "UTC"
    return zone_of(_changes(name), shown, extra_s)


def _changes(name: str) -> tuple[Change, ...]:
    if match := _OFFSET.fullmatch(name):
        return (Change(BEGIN, _fixed(name, match)),)
    if name in ("", "UTC"):
        return (Change(BEGIN, 0),)
    if name.lower() in ("local", "localtime"):
        message = 'machines differ in their own zone; name one, such as "Europe/London"'
        raise unreadable("zone", name, message)
    known = zone_names()
    if name not in known:
        near = did_you_mean(name, known)
        message = f'expected a zone such as "Europe/London", "UTC" or "UTC+05:30"{near}'
        raise unreadable("zone", name, message)
    return changes_of(name)


def _fixed(name: str, match: re.Match[str]) -> int:
    hours, minutes = int(match["hours"]), int(match["minutes"] or 0)
    if hours > 23 or minutes > 59:
        raise unreadable("zone", name, "expected at most 23:59 between a zone and UTC")
    seconds = hours * 3600 + minutes * 60
    return -seconds if match["sign"] == "-" else seconds
