"""Due times of a schedule: its lines in its zone, without the days that calendars close.

A due time on a closed day is not forgotten: it is told as skipped, with the reason.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.timing.calendars import Calendar, closed_days, why_closed
from interlock.timing.ticks import OnGap, OnRepeat, Rule, Tick, first_of, last_of
from interlock.timing.walls import Line
from interlock.timing.zones import END, Zone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (what a wall shows has no zone)
_SECOND = timedelta(seconds=1)


class _Next:
    """When any of some rules is due next.

    The last answer is kept: while days are closed it is asked for at every due time, and the next
    open day may be years away.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._asked: int | None = None
        self._found: Tick | None = None

    def after(self, at: int) -> Tick | None:
        """The first moment after a moment."""
        found = self._found
        if self._asked is None or at < self._asked or (found is not None and at >= found.at):
            found = first_of(self._rules, at)
            self._asked, self._found = at, found
        return found


class Schedule:
    """Some lines that hang on the same wall, and the days that are left out."""

    def __init__(
        self,
        lines: Iterable[Line],
        zone: Zone,
        *,
        on_gap: OnGap = OnGap.RUN_AFTER,
        on_repeat: OnRepeat = OnRepeat.FIRST,
        exclude: Iterable[Calendar] = (),
        only: Iterable[Calendar] = (),
    ) -> None:
        """Take no day of the calendars `exclude`, and only days that are in each of `only`."""
        self.lines = tuple(lines)
        self.zone = zone
        self.exclude = tuple(exclude)
        self.only = tuple(only)
        rules = [
            Rule(line=line, zone=zone, on_gap=on_gap, on_repeat=on_repeat) for line in self.lines
        ]
        is_limited = bool(self.exclude or self.only)
        #: The lines on the days that are open, and on those that are closed.
        self.runs = tuple(replace(rule, among=self._open) if is_limited else rule for rule in rules)
        closed = tuple(replace(rule, among=self._closed) for rule in rules if is_limited)
        #: What gaps swallow is left out too, if it is not run after them.
        swallowed = (replace(rule, gaps_alone=True) for rule in rules if on_gap is OnGap.SKIP)
        in_gaps = tuple(swallowed)
        self.skips = (*closed, *in_gaps)
        self.next_run = _Next(self.runs)
        self._next_closed = _Next(closed)
        self._next_in_gap = _Next(in_gaps)
        self._has_gaps = bool(in_gaps)

    def next_skip(self, after: int, before: int = END) -> Tick | None:
        """The first that is left out after a moment, if that is before another."""
        ticks = (self._next_closed.after(after), self.next_in_gap(after, before))
        return min((tick for tick in ticks if tick and tick.at < before), default=None)

    def next_in_gap(self, after: int, before: int = END) -> Tick | None:
        """The first after a moment that a gap swallows, if that is before another.

        Most lines are in the way of no gap, and that is found out only at the end of time: gaps
        are looked for before lines are.
        """
        if not self._has_gaps or not self.zone.has_gap(after, before - 1):
            return None
        tick = self._next_in_gap.after(after)
        return tick if tick and tick.at < before else None

    def _closed(self, month: int) -> int:
        return closed_days(self.exclude, self.only, month)

    def _open(self, month: int) -> int:
        return ~closed_days(self.exclude, self.only, month)

    def why_skipped(self, tick: Tick) -> str:
        """The reason why something is left out: its day is closed, or clocks skip its time."""
        wall = wall_of(tick.wall)
        return self.why_closed(wall) or _in_gap(wall)

    def why_closed(self, wall: datetime) -> str | None:
        """Why nothing runs on the day of a time; None if something may."""
        return why_closed(self.exclude, self.only, wall.date())


class Due(Struct, frozen=True, kw_only=True, order=True):
    """A moment at which a schedule is due."""

    at: datetime
    #: The time on the wall that it is due for: not the wall's time at `at`, if clocks skipped it.
    wall: datetime
    #: Why it is not to be run; None if it is.
    skipped: str | None = None
    #: Whether that is because clocks skip its time.
    in_gap: bool = False


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first moment after `moment` at which the schedule is to run; None if there is none."""
    tick = schedule.next_run.after(seconds_of(moment))
    return moment_of(tick.at) if tick else None


def previous_at_or_before(schedule: Schedule, moment: datetime) -> datetime | None:
    """The last moment at or before `moment` at which the schedule was to run."""
    tick = last_of(schedule.runs, seconds_of(moment))
    return moment_of(tick.at) if tick else None


def due_after(schedule: Schedule, moment: datetime) -> Due | None:
    """The first due time after `moment`, whether it is to run or to be skipped."""
    after = seconds_of(moment)
    run = schedule.next_run.after(after)
    skip = schedule.next_skip(after, run.at if run else END)
    if skip:
        in_gap = schedule.why_closed(wall_of(skip.wall)) is None
        return replace(_due(skip, schedule.why_skipped(skip)), in_gap=in_gap)
    return _due(run) if run else None


def upcoming(schedules: Iterable[Schedule], moment: datetime) -> Iterator[Due]:
    """All due times of some schedules after `moment`, in order, each moment once.

    Where one schedule runs and another skips, it is a run.
    """
    merged = heapq.merge(
        *(_upcoming(schedule, moment) for schedule in schedules),
        key=lambda due: (due.at, due.skipped is not None),
    )
    last = None
    for due in merged:
        if due.at != last:
            yield due
        last = due.at


def _upcoming(schedule: Schedule, moment: datetime) -> Iterator[Due]:
    due = due_after(schedule, moment)
    while due:
        yield due
        due = due_after(schedule, due.at)


def _due(tick: Tick, skipped: str | None = None) -> Due:
    return Due(at=moment_of(tick.at), wall=wall_of(tick.wall), skipped=skipped)


#: How it begins to be told that clocks skip a time.
IN_GAP = "clocks skip "


def _in_gap(wall: datetime) -> str:
    """Why a time is left out that no clock shows."""
    shown = f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"
    return f"{IN_GAP}{shown}, and onGap is Skip"


def seconds_of(moment: datetime) -> int:
    """The whole seconds of a moment after 1970 UTC; fractions are dropped, also before 1970."""
    return (moment - _EPOCH) // _SECOND


def moment_of(at: int) -> datetime:
    """The moment that is so many seconds after 1970 UTC."""
    return datetime.fromtimestamp(at, UTC)


def wall_of(wall: int) -> datetime:
    """A wall time, as a time without a zone."""
    return _WALL_EPOCH + timedelta(seconds=wall)
