"""The due times behind the skips of a JobConfig: its status tells stretches, a history each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

from msgspec.structs import replace

from interlock.forecast.rehearsal.lines import written
from interlock.resources.calendar import Calendar
from interlock.resources.job_config import JobConfig, Skip
from interlock.resources.metadata import Key, Resource
from interlock.schedules.calendars import FoundCalendar, read_calendar
from interlock.schedules.configs.due_times import next_due
from interlock.schedules.configs.reading import read_timing

#: Stretches of more due times stay one line.
MOST = 1000
_INSTANT = timedelta(microseconds=1)

#: Finds a stored object.
Get = Callable[[Key], Resource | None]


def told_skips(before: JobConfig | None, after: JobConfig, get: Get) -> Iterator[tuple[str, str]]:
    """The reason and the detail of every due time that a change says was skipped."""
    known = before.status.skips if before is not None else ()
    for skip in _new_skips(known, after.status.skips):
        for one in _taken_apart(after, skip, get):
            yield one.reason.value, _in_words(one)


def _new_skips(before: tuple[Skip, ...], after: tuple[Skip, ...]) -> Iterator[Skip]:
    """What was added: the oldest that were known may be gone, and the last one may be longer."""
    for kept in range(min(len(before), len(after)), 0, -1):
        *same, last = zip(before[-kept:], after[:kept], strict=True)
        if all(old == new for old, new in same) and _goes_on(*last):
            yield from _rest(*last)
            yield from after[kept:]
            return
    yield from after


def _goes_on(old: Skip, new: Skip) -> bool:
    return (old.at, old.reason, old.message) == (new.at, new.reason, new.message)


def _rest(old: Skip, new: Skip) -> Iterator[Skip]:
    """The part by which a stretch became longer."""
    if old == new or new.until is None:
        return
    count = new.count - old.count if new.count and old.count else 0
    begin = new.until if count == 1 else (old.until or old.at) + timedelta(seconds=1)
    yield replace(new, at=begin, count=count)


def _taken_apart(config: JobConfig, skip: Skip, get: Get) -> Iterator[Skip]:
    """Each due time of a stretch, if the schedule still tells them; else the stretch."""
    if skip.until is None or not 0 <= skip.count <= MOST or skip.at == skip.until:
        yield replace(skip, until=None)
        return
    namespace = config.metadata.namespace

    def find(name: str) -> FoundCalendar:
        stored = get(Key("Calendar", namespace, name))
        if isinstance(stored, Calendar):
            return read_calendar(stored)
        return FoundCalendar(None, "", f"calendar {name} does not exist")

    timing = read_timing(config, find)
    found: list[Skip] = []
    due = next_due(timing, skip.at - _INSTANT)
    while due is not None and due.at <= skip.until and len(found) <= MOST:
        found.append(replace(skip, at=due.at, until=None, count=1))
        due = next_due(timing, due.at)
    yield from found if len(found) == skip.count else (skip,)


def _in_words(skip: Skip) -> str:
    due = f"due {written(skip.at)}"
    if skip.until is not None:
        count = str(skip.count) if skip.count else "many"
        due = f"{count} due {written(skip.at)} to {written(skip.until)}"
    return f"{due}, {skip.message}" if skip.message else due
