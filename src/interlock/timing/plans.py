"""Plans: starts and stops, from windows and from single events, as one sequence.

Something is inside its plan from a start until, but not at, the next stop. Of several starts
in a row the first begins the period. A stop and a start at the same moment end one period and
begin another, in whatever order they are written. A plan without stops never ends once it has
started; one without starts is never inside, but its stops are still told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from interlock.timing.calendars import why_closed
from interlock.timing.due import Schedule, moment_of, seconds_of, wall_of
from interlock.timing.ticks import Rule, Tick, first_of, last_of
from interlock.timing.windows import Hours, Window
from interlock.timing.zones import END, Zone


class Action(StrEnum):
    """What an event does."""

    START = "start"
    STOP = "stop"


class Event(Struct, frozen=True):
    """A start or a stop, by the clock."""

    action: Action
    schedule: Schedule


class State(Struct, frozen=True, kw_only=True):
    """Where a moment lies in a plan."""

    is_inside: bool
    #: When the period began that the moment lies in; None outside.
    period_start: datetime | None = None
    #: The last stop at or before the moment.
    last_stop: datetime | None = None
    #: The next start that begins a period or comes within one.
    next_start: datetime | None = None
    next_stop: datetime | None = None


class Turn(Struct, frozen=True, kw_only=True):
    """A start or stop to come."""

    at: datetime
    #: The time on the wall that it is meant for.
    wall: datetime
    action: Action
    #: Why it does not happen; None if it does.
    skipped: str | None = None


class Plan:
    """The starts and stops of some windows and events."""

    def __init__(self, zone: Zone, windows: Iterable[Window] = (), events: Iterable[Event] = ()):
        self._hours = Hours(windows, zone)
        self._events = tuple(events)
        by_action = {
            action: tuple(
                rule
                for event in self._events
                if event.action is action
                for rule in event.schedule.runs
            )
            for action in Action
        }
        self._starts = by_action[Action.START]
        self._stops = by_action[Action.STOP]

    def state_at(self, moment: datetime, since: datetime | None = None) -> State:
        """Tell where a moment lies.

        A plan that has never stopped began with its first start, which may be long ago; `since`,
        the moment the plan was made, says not to count from before that.
        """
        at = seconds_of(moment)
        start, stop = self._previous_start(at), self._previous_stop(at)
        # At one moment, what is due for an earlier time on the wall comes first, and a stop
        # before a start.
        is_inside = start is not None and (stop is None or start >= stop)
        return State(
            is_inside=is_inside,
            period_start=self._period_start(stop, since) if is_inside else None,
            last_stop=_moment(stop),
            next_start=_moment(self._next_start(at)),
            next_stop=_moment(self._next_stop(at)),
        )

    def upcoming(self, moment: datetime) -> Iterator[Turn]:
        """All starts and stops after a moment in order, the skipped ones with their reason."""
        at = seconds_of(moment)
        while turns := self._turns_after(at):
            yield from turns
            at = seconds_of(turns[0].at)

    def next_skipped(self, moment: datetime) -> Turn | None:
        """The first start or stop after a moment that calendars or clocks keep from happening."""
        skipped = self._skipped_after(seconds_of(moment))
        return min(skipped, key=lambda turn: turn.at, default=None)

    def next_in_gap(self, moment: datetime, until: datetime | None = None) -> tuple[Turn, ...]:
        """What does not happen because of the first gap after a moment that swallows anything.

        One that comes later than `until` is not looked for.
        """
        at, end = seconds_of(moment), END if until is None else seconds_of(until) + 1
        found = [
            _turn(tick, event.action, event.schedule.why_skipped(tick))
            for event in self._events
            if (tick := event.schedule.next_in_gap(at, end))
        ]
        first = min((turn.at for turn in found), default=None)
        return tuple(turn for turn in found if turn.at == first)

    def _turns_after(self, at: int) -> list[Turn]:
        """What comes next: all that is due at the first moment after `at` at which anything is."""
        found = [
            _turn(tick, action, None)
            for tick, action in (
                (self._next_stop(at), Action.STOP),
                (self._next_start(at), Action.START),
            )
            if tick
        ]
        found += self._skipped_after(at)
        first = min((turn.at for turn in found), default=None)
        return [turn for turn in found if turn.at == first]

    def _skipped_after(self, at: int) -> Iterator[Turn]:
        if skipped := self._hours.next_skipped(at):
            tick, window = skipped
            reason = why_closed(window.exclude, window.only, wall_of(tick.wall).date())
            yield _turn(tick, Action.START, reason)
        for event in self._events:
            if tick_skipped := event.schedule.next_skip(at):
                reason = event.schedule.why_skipped(tick_skipped)
                yield _turn(tick_skipped, event.action, reason)

    def _period_start(self, stop: Tick | None, since: datetime | None) -> datetime | None:
        if stop:
            return _moment(self._next_start(stop.at - 1))
        first = _moment(self._next_start(-_LONG_AGO))
        return max(first, since) if first and since else first

    def _next_start(self, after: int) -> Tick | None:
        """The next start that is not undone by a stop at the same moment."""
        while tick := _first(after, self._starts, self._hours.next_start):
            last, stop = self._previous_start(tick.at), self._previous_stop(tick.at)
            if last is None or stop is None or last >= stop:
                return tick
            after = tick.at
        return None

    def _next_stop(self, after: int) -> Tick | None:
        return _first(after, self._stops, self._hours.next_stop)

    def _previous_start(self, at: int) -> Tick | None:
        ticks = (last_of(self._starts, at), self._hours.previous_start(at))
        return max((tick for tick in ticks if tick), default=None)

    def _previous_stop(self, at: int) -> Tick | None:
        ticks = (last_of(self._stops, at), self._hours.previous_stop(at))
        return max((tick for tick in ticks if tick), default=None)


_LONG_AGO = 1 << 40


def _first(
    after: int, rules: Sequence[Rule], of_hours: Callable[[int], Tick | None]
) -> Tick | None:
    ticks = (first_of(rules, after), of_hours(after))
    return min((tick for tick in ticks if tick), default=None)


def _moment(tick: Tick | None) -> datetime | None:
    return moment_of(tick.at) if tick else None


def _turn(tick: Tick, action: Action, skipped: str | None) -> Turn:
    return Turn(at=moment_of(tick.at), wall=wall_of(tick.wall), action=action, skipped=skipped)
