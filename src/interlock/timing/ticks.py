"""Ticks: when a line is due in a zone, through every change of its clocks.

A fixed time is due once, at the first moment at which the wall clock shows it or a later one. So
a time that a change skips is due right after the change, and a repeated one the first time. An
interval is due at every moment at which the wall clock shows one of its times; where a change
makes it miss a beat, it is due right after the change. `OnGap` and `OnRepeat` choose otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from interlock.timing.months import Days
from interlock.timing.walls import Line, first_at_or_after, last_at_or_before
from interlock.timing.zones import END, Zone


class OnGap(StrEnum):
    """What happens to a time that clocks skip."""

    #: It is due at the first moment after the gap.
    RUN_AFTER = "RunAfter"
    #: It is not due at all.
    SKIP = "Skip"


class OnRepeat(StrEnum):
    """What happens to a time that clocks show twice."""

    #: It is due the first time. An interval goes on in both.
    FIRST = "First"
    #: It is due both times.
    BOTH = "Both"


class Tick(NamedTuple):
    """A moment at which something is due."""

    #: Seconds after 1970 UTC.
    at: int
    #: The time on the wall that it is due for; in a gap, the last of those that were skipped.
    wall: int


class Rule(Struct, frozen=True, kw_only=True):
    """A line, where its clock hangs, and what happens when that clock changes."""

    line: Line
    zone: Zone
    on_gap: OnGap = OnGap.RUN_AFTER
    on_repeat: OnRepeat = OnRepeat.FIRST
    #: Only these days count; None is all.
    among: Days | None = None
    #: Only what gaps swallow counts: what `OnGap.SKIP` leaves out.
    gaps_alone: bool = False

    @property
    def is_once(self) -> bool:
        """Whether a repeated time is due the first time only."""
        return self.on_repeat is OnRepeat.FIRST and not self.line.is_interval


def first_of(rules: Sequence[Rule], after: int) -> Tick | None:
    """The first moment after a moment at which any of some rules is due."""
    first: Tick | None = None
    for rule in rules:
        tick = next_tick(rule, after)
        if tick and (first is None or tick < first):
            first = tick
    return first


def last_of(rules: Sequence[Rule], at: int) -> Tick | None:
    """The last moment at or before a moment at which any of some rules is due."""
    last: Tick | None = None
    for rule in rules:
        tick = previous_tick(rule, at)
        if tick and (last is None or tick > last):
            last = tick
    return last


def next_tick(rule: Rule, after: int) -> Tick | None:
    """The first moment after a moment at which a rule is due."""
    line, zone, among, is_once = rule.line, rule.zone, rule.among, rule.is_once
    first = max(after + 1, zone.starts[0])
    if rule.gaps_alone:
        return _next_gap(rule, first)
    # The last answer of the search; it answers again for every wall time between these two.
    asked, found = END, -END
    for stretch in range(zone.stretch_at(first), len(zone.starts)):
        start, offset = zone.starts[stretch], zone.offsets[stretch]
        if first <= start and (tick := _tick_after_gap(rule, stretch)):
            return tick
        wall = max(first, start) + offset
        if is_once:
            wall = max(wall, zone.reached[stretch])
        if not asked <= wall <= found:
            answer = first_at_or_after(line, wall, among)
            asked, found = wall, END * 2 if answer is None else answer
        if found < zone.ends[stretch] + offset:
            return Tick(found - offset, found)
    return None


def previous_tick(rule: Rule, at: int) -> Tick | None:
    """The last moment at or before a moment at which a rule is due."""
    line, zone, among, is_once = rule.line, rule.zone, rule.among, rule.is_once
    if rule.gaps_alone:
        return _previous_gap(rule, at)
    asked, found = -END, END
    for stretch in range(zone.stretch_at(at), -1, -1):
        start, offset = zone.starts[stretch], zone.offsets[stretch]
        wall = min(at, zone.ends[stretch] - 1) + offset
        if not found <= wall <= asked:
            answer = last_at_or_before(line, wall, among)
            asked, found = wall, -END * 2 if answer is None else answer
        begin = max(start + offset, zone.reached[stretch]) if is_once else start + offset
        if found >= begin:
            return Tick(found - offset, found)
        if tick := _tick_after_gap(rule, stretch):
            return tick
    return None


def _next_gap(rule: Rule, first: int) -> Tick | None:
    """The first change at or after a moment that swallows something."""
    zone = rule.zone
    for stretch in range(zone.stretch_at(first), len(zone.starts)):
        if first <= zone.starts[stretch] and (tick := _swallowed(rule, stretch)):
            return tick
    return None


def _previous_gap(rule: Rule, at: int) -> Tick | None:
    """The last change at or before a moment that swallowed something."""
    for stretch in range(rule.zone.stretch_at(at), -1, -1):
        if tick := _swallowed(rule, stretch):
            return tick
    return None


def _swallowed(rule: Rule, stretch: int) -> Tick | None:
    """What would be due right after a change for the times that it skips, and for no other."""
    tick = _tick_after_gap(replace(rule, on_gap=OnGap.RUN_AFTER, gaps_alone=False), stretch)
    is_shown = tick is not None and tick.wall >= tick.at + rule.zone.offsets[stretch]
    return None if is_shown else tick


def _tick_after_gap(rule: Rule, stretch: int) -> Tick | None:
    """What is due at the moment of a change because of the times it skips."""
    zone = rule.zone
    start, skipped = zone.starts[stretch], zone.reached[stretch]
    end = start + zone.offsets[stretch]
    if skipped >= end or rule.on_gap is OnGap.SKIP:
        return None
    # A time that the wall clock shows right after the gap is due at that moment too. Earlier ones
    # do not matter: to look for the last one in all the years before would take long for a line
    # that has none, and there is a gap in nearly every year.
    wall = last_at_or_before(rule.line, end, rule.among, since=max(skipped, 0))
    if wall is None or wall < skipped:
        return None
    if wall < end and rule.line.is_interval and not _misses_a_beat(rule, end, end - skipped):
        return None
    return Tick(start, wall)


def _misses_a_beat(rule: Rule, end: int, length: int) -> bool:
    """Whether an interval is not due again soon after a gap, so that it would wait too long."""
    beat = first_at_or_after(rule.line, end)
    return beat is None or beat >= end + length
