"""What should be due around a change of clocks, found by walking through it step by step.

It shares nothing with the code under test: the clocks are those of the standard library, the
lines are plain predicates, and the rules are those of docs/clock-changes.md taken word by word.

    python tests/unit/schedules/wall_walker.py [FIRST_YEAR LAST_YEAR]

walks through every change of every zone in those years and prints how much was compared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

from interlock.timing.cron import read_cron
from interlock.timing.due import Schedule, next_after, previous_at_or_before
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.tzfiles import zone_names
from interlock.timing.zones import find_zone

Wall = datetime
Walls = Callable[[Wall], bool]

#: How far to walk before and after a change, beside the length of the change itself.
AROUND = timedelta(hours=14)


class Sample(NamedTuple):
    """A line, and what it means."""

    text: str
    is_interval: bool
    is_due: Walls


def _is_sunday(wall: Wall) -> bool:
    return wall.isoweekday() == 7


SAMPLES = (
    Sample("30 2 * * *", False, lambda w: (w.hour, w.minute) == (2, 30)),
    Sample("0 0 * * *", False, lambda w: (w.hour, w.minute) == (0, 0)),
    Sample("15 1 * * *", False, lambda w: (w.hour, w.minute) == (1, 15)),
    Sample("0 3 * * *", False, lambda w: (w.hour, w.minute) == (3, 0)),
    Sample("30 23 * * *", False, lambda w: (w.hour, w.minute) == (23, 30)),
    Sample("45 0 * * SUN", False, lambda w: (w.hour, w.minute) == (0, 45) and _is_sunday(w)),
    Sample(
        "5,35 0-3,23 * * *", False, lambda w: w.hour in (0, 1, 2, 3, 23) and w.minute in (5, 35)
    ),
    Sample(
        "0 2 L * SUN",
        False,
        lambda w: (
            (w.hour, w.minute) == (2, 0)
            and (_is_sunday(w) or (w + timedelta(days=1)).month != w.month)
        ),
    ),
    Sample("*/10 * * * *", True, lambda w: w.minute % 10 == 0),
    Sample("7 * * * *", True, lambda w: w.minute == 7),
    Sample("0 */2 * * *", True, lambda w: w.hour % 2 == 0 and w.minute == 0),
    Sample("0 */12 * * *", True, lambda w: w.hour % 12 == 0 and w.minute == 0),
    Sample("*/20 1-3 * * *", True, lambda w: w.hour in (1, 2, 3) and w.minute % 20 == 0),
    Sample("* 0 * * SAT-SUN", True, lambda w: w.hour == 0 and w.isoweekday() > 5),
)

POLICIES = tuple((gap, repeat) for gap in OnGap for repeat in OnRepeat)


@cache
def library_zone(name: str) -> ZoneInfo:
    """The zone as the standard library reads it, from the same release of the database."""
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def offset_at(name: str, moment: datetime) -> timedelta:
    """How far the clocks of a zone are ahead of UTC."""
    offset = moment.astimezone(library_zone(name)).utcoffset()
    assert offset is not None
    return offset


def changes_between(name: str, first_year: int, last_year: int) -> Iterator[datetime]:
    """Every moment in some years at which the clocks of a zone change."""
    step = timedelta(hours=12)
    moment = datetime(first_year, 1, 1, tzinfo=UTC)
    end = datetime(last_year + 1, 1, 1, tzinfo=UTC)
    offset = offset_at(name, moment)
    while moment < end:
        following = offset_at(name, moment + step)
        if following != offset:
            low, high = moment, moment + step
            while high - low > timedelta(seconds=1):
                middle = (low + (high - low) / 2).replace(microsecond=0)
                if offset_at(name, middle) == offset:
                    low = middle
                else:
                    high = middle
            yield high
        moment, offset = moment + step, following


class Walk:
    """The clock on the wall around a change, step by step."""

    def __init__(self, name: str, change: datetime, around: timedelta, step_s: int) -> None:
        self.step = timedelta(seconds=step_s)
        self.begin, self.end = change - around, change + around
        self.walls: list[tuple[datetime, Wall]] = []
        zone = library_zone(name)
        moment = self.begin
        while moment <= self.end:
            self.walls.append((moment, moment.astimezone(zone).replace(tzinfo=None, fold=0)))
            moment += self.step
        self.first_shown: dict[Wall, datetime] = {}
        for moment, wall in self.walls:
            self.first_shown.setdefault(wall, moment)

    def gaps(self) -> Iterator[tuple[datetime, list[Wall], Wall]]:
        """Each moment after a gap, the times that were skipped, and what the wall shows then."""
        for (_, before), (moment, wall) in zip(self.walls, self.walls[1:], strict=False):
            skipped = []
            each = before + self.step
            while each < wall:
                skipped.append(each)
                each += self.step
            if skipped:
                yield moment, skipped, wall

    def due(self, sample: Sample, on_gap: OnGap, on_repeat: OnRepeat) -> list[datetime]:
        """When a line is due, by the words of the documentation."""
        is_once = on_repeat is OnRepeat.FIRST and not sample.is_interval
        found = {
            moment
            for moment, wall in self.walls
            if sample.is_due(wall) and not (is_once and self.first_shown[wall] != moment)
        }
        if on_gap is OnGap.RUN_AFTER:
            for moment, skipped, wall in self.gaps():
                if not any(map(sample.is_due, skipped)):
                    continue
                soon = [wall + number * self.step for number in range(len(skipped))]
                if not sample.is_interval or not any(map(sample.is_due, soon)):
                    found.add(moment)
        return sorted(found - {self.begin})


def engine_due(walk: Walk, schedule: Schedule) -> tuple[list[datetime], list[datetime]]:
    """What the code under test finds in the same time, forwards and backwards."""
    forwards: list[datetime] = []
    moment = next_after(schedule, walk.begin)
    while moment and moment <= walk.end:
        forwards.append(moment)
        moment = next_after(schedule, moment)
    backwards: list[datetime] = []
    moment = previous_at_or_before(schedule, walk.end)
    while moment and moment > walk.begin:
        backwards.append(moment)
        moment = previous_at_or_before(schedule, moment - timedelta(seconds=1))
    return forwards, backwards[::-1]


def compare(name: str, change: datetime) -> int:
    """Compare every sample and policy around a change; return how many were compared."""
    second = timedelta(seconds=1)
    offsets = [offset_at(name, change - second), offset_at(name, change)]
    step_s = math.gcd(60, *(int(offset.total_seconds()) for offset in offsets))
    walk = Walk(name, change, AROUND + abs(offsets[1] - offsets[0]), step_s)
    for sample in SAMPLES:
        line = read_cron(sample.text, "default/sample")
        assert line.is_interval is sample.is_interval, sample.text
        for on_gap, on_repeat in POLICIES:
            schedule = Schedule((line,), find_zone(name), on_gap=on_gap, on_repeat=on_repeat)
            expected = walk.due(_whole_minutes(sample), on_gap, on_repeat)
            forwards, backwards = engine_due(walk, schedule)
            story = f"{name} {change} {sample.text} {on_gap} {on_repeat}"
            assert forwards == expected, story
            assert backwards == expected, story
    return len(SAMPLES) * len(POLICIES)


def _whole_minutes(sample: Sample) -> Sample:
    """The sample when steps are shorter than a minute: due only as the minute begins."""
    return sample._replace(is_due=lambda wall: wall.second == 0 and sample.is_due(wall))


def main(first_year: int, last_year: int) -> None:
    """Walk through every change of every zone."""
    zones = changes = compared = 0
    for name in zone_names():
        zones += 1
        for change in changes_between(name, first_year, last_year):
            changes += 1
            compared += compare(name, change)
    told = f"{first_year}-{last_year}: {zones} zones, {changes} changes, {compared} comparisons"
    sys.stdout.write(told + "\n")


if __name__ == "__main__":
    years = [int(argument) for argument in sys.argv[1:3]] or [2021, 2027]
    main(years[0], years[-1])
