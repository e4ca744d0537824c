"""When a config is due: the due times of all its schedules together, each moment once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct, field

from interlock.resources.job_config import SkipReason
from interlock.timing.due import (
    Schedule,
    due_after,
    moment_of,
    next_after,
    previous_at_or_before,
    seconds_of,
)
from interlock.timing.ticks import last_of

_INSTANT = timedelta(microseconds=1)
#: So many answers are kept for the next look, which asks the same again.
_KNOWN = 16


class Planned(Struct, frozen=True, kw_only=True, eq=False):
    """One schedule of a config, ready to be asked."""

    schedule: Schedule
    #: Nothing is due before and after these; both moments count.
    not_before: datetime | None = None
    not_after: datetime | None = None
    #: Why none of its due times is run: a calendar it names is not there.
    missing: str = ""


class Timing(Struct, frozen=True, kw_only=True, eq=False):
    """When a config is due, read from its spec and its calendars."""

    #: Without disabled schedules and those that cannot be read; empty while it is suspended.
    planned: tuple[Planned, ...] = ()
    #: Tells one timing from another: a change of it is an edit, and an edit fires nothing old.
    digest: str
    #: What of the spec cannot be read, and which calendars are not there.
    unreadable: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    #: The last few answers, by the second that was asked for: due times are whole seconds.
    known: dict[int, DueTime | None] = field(default_factory=dict)


class DueTime(Struct, frozen=True):
    """A moment at which a config is due."""

    at: datetime
    #: Why it is not to be run, if that is so whoever looks and whenever.
    reason: SkipReason | None = None
    message: str = ""


def next_due(timing: Timing, after: datetime) -> DueTime | None:
    """The first due time after a moment, to be run or not; where both meet, it is a run."""
    second, known = seconds_of(after), timing.known
    if second not in known:
        if len(known) >= _KNOWN:
            known.clear()
        known[second] = _find_due(timing, after)
    return known[second]


def _find_due(timing: Timing, after: datetime) -> DueTime | None:
    first: DueTime | None = None
    for planned in timing.planned:
        due = _next_due(planned, after)
        if due is not None and (first is None or _order(due) < _order(first)):
            first = due
    return first


def next_run(timing: Timing, after: datetime) -> datetime | None:
    """The first due time after a moment that is to be run."""
    due = next_due(timing, after)
    if due is None or due.reason is None:
        return due.at if due is not None else None
    return min(_present(_next_run(planned, after) for planned in timing.planned), default=None)


def last_due(timing: Timing, moment: datetime) -> datetime | None:
    """The last due time at or before a moment, to be run or not."""
    return max(_present(_last_due(planned, moment) for planned in timing.planned), default=None)


def last_run(timing: Timing, moment: datetime) -> datetime | None:
    """The last due time at or before a moment that is to be run."""
    return max(_present(_last_run(planned, moment) for planned in timing.planned), default=None)


def is_due(timing: Timing, at: datetime) -> bool:
    """Whether a moment is a due time, to be run or not."""
    due = next_due(timing, at - _INSTANT)
    return due is not None and due.at == at


def _next_due(planned: Planned, after: datetime) -> DueTime | None:
    due = due_after(planned.schedule, _begin(planned, after))
    if due is None or (planned.not_after is not None and due.at > planned.not_after):
        return None
    if planned.missing:
        return DueTime(due.at, SkipReason.CALENDAR_MISSING, planned.missing)
    if due.skipped is not None:
        reason = SkipReason.CLOCK_CHANGE if due.in_gap else SkipReason.CALENDAR
        return DueTime(due.at, reason, due.skipped)
    return DueTime(due.at)


def _next_run(planned: Planned, after: datetime) -> datetime | None:
    if planned.missing:
        return None
    at = next_after(planned.schedule, _begin(planned, after))
    return at if at is not None and _is_within(planned, at) else None


def _last_due(planned: Planned, moment: datetime) -> datetime | None:
    at = seconds_of(_end(planned, moment))
    ticks = [last_of(rules, at) for rules in (planned.schedule.runs, planned.schedule.skips)]
    last = max((moment_of(tick.at) for tick in ticks if tick is not None), default=None)
    return last if last is not None and _is_within(planned, last) else None


def _last_run(planned: Planned, moment: datetime) -> datetime | None:
    if planned.missing:
        return None
    at = previous_at_or_before(planned.schedule, _end(planned, moment))
    return at if at is not None and _is_within(planned, at) else None


def _begin(planned: Planned, after: datetime) -> datetime:
    """The moment after which to search: a due time at `notBefore` itself counts."""
    first = planned.not_before
    return after if first is None or first <= after else first - _INSTANT


def _end(planned: Planned, moment: datetime) -> datetime:
    last = planned.not_after
    return moment if last is None else min(moment, last)


def _is_within(planned: Planned, at: datetime) -> bool:
    if planned.not_before is not None and at < planned.not_before:
        return False
    return planned.not_after is None or at <= planned.not_after


def _order(due: DueTime) -> tuple[datetime, bool]:
    return due.at, due.reason is not None


def _present(moments: Iterable[datetime | None]) -> Iterator[datetime]:
    return (moment for moment in moments if moment is not None)
