"""When a ControlledJob is to run: its plan with the exceptions to it, as one thing to ask.

The decisions, `next`, `plan` and `timeline` all ask it, so that what is foretold is what happens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from heapq import merge
from itertools import groupby

import msgspec
from msgspec import Struct

from interlock.resources.codec import encode_special
from interlock.resources.controlled_job import (
    ControlledJob,
    ControlledJobSpec,
    EventSpec,
    Override,
    OverrideAction,
    WindowSpec,
)
from interlock.schedules.controlled.overrides import Period, Periods, of_action
from interlock.timing.calendars import Calendar
from interlock.timing.cron import read_cron
from interlock.timing.due import seconds_of, wall_of
from interlock.timing.events import at_time_of_day, event_of
from interlock.timing.flaws import unreadable
from interlock.timing.plans import Action, Event, Plan, Turn
from interlock.timing.walls import Line
from interlock.timing.windows import Window, read_window
from interlock.timing.zones import Zone, find_zone


class Standing(Struct, frozen=True, kw_only=True):
    """Where a moment lies in the plan, exceptions included."""

    #: Whether something is to run: a window is open, and nothing holds it.
    is_inside: bool
    #: The window that is open, also while it is on hold.
    window: Period | None = None
    #: Why nothing may run at all, whatever the plan says; empty when it may.
    held: str = ""
    #: When that ends; None when it does not by itself.
    held_until: datetime | None = None
    #: The newest stop: what began before it must not run any more.
    last_stop: datetime | None = None
    #: When something starts, and when whatever runs then is stopped.
    next_start: datetime | None = None
    next_stop: datetime | None = None
    #: The newest start or stop of the plan, and the next moment at which anything here changes.
    last_turn: datetime | None = None
    next_turn: datetime | None = None

    @property
    def start(self) -> datetime | None:
        """When the window opened that is open; None outside."""
        return self.window.start if self.window is not None else None


class Timetable:
    """The starts and stops of a ControlledJob."""

    def __init__(self, plan: Plan, zone: Zone, spec: ControlledJobSpec, since: datetime | None):
        """Take a plan; one that never stops counts from `since`, when it was made."""
        self.zone = zone
        #: Whether anything ever starts by the plan.
        self.has_starts = bool(spec.windows) or any(
            event.action is Action.START for event in spec.events
        )
        self._plan = plan
        self._since = since
        self._periods = Periods(plan, spec.overrides, since)
        self._holds = of_action(spec.overrides, OverrideAction.HOLD)
        self._overrides = spec.overrides
        self._suspend = spec.suspend
        #: What was last asked for: nothing changes between two turns.
        self._known: tuple[datetime, Standing] | None = None

    def state_at(self, moment: datetime) -> Standing:
        """Tell where a moment lies."""
        if self._known is not None:
            begin, known = self._known
            if begin <= moment and (known.next_turn is None or moment < known.next_turn):
                return known
        standing = self._standing(moment)
        self._known = (moment, standing)
        return standing

    def upcoming(self, after: datetime) -> Iterator[Turn]:
        """All starts and stops after a moment in order, the skipped ones with their reason."""
        made = sorted(self._made(after), key=_order)
        for _, turns in groupby(merge(self._planned(after), made, key=_order), key=_order):
            yield next(turns)

    def _planned(self, after: datetime) -> Iterator[Turn]:
        """The turns of the plan as the exceptions leave them.

        A plan may start every second until a stop in years: what changes nothing is not walked
        through for ever.
        """
        at, in_vain = after, 0
        turns = self._plan.upcoming(at)
        while (turn := next(turns, None)) is not None:
            told = tuple(self._as_it_is(turn))
            yield from told
            at, in_vain = turn.at, 0 if told else in_vain + 1
            if in_vain >= _TURNS_IN_VAIN:
                stop = self._plan.state_at(at).next_stop
                if stop is None:
                    return
                turns, in_vain = self._plan.upcoming(max(at, stop - _SECOND)), 0

    def next_skipped(self, after: datetime) -> Turn | None:
        """The first start or stop after a moment that calendars or clocks keep from happening."""
        return self._plan.next_skipped(after)

    def next_in_gap(self, after: datetime, until: datetime | None = None) -> tuple[Turn, ...]:
        """What the first gap after a moment, until another, swallows: onGap: Skip."""
        return self._plan.next_in_gap(after, until)

    def window_before(self, moment: datetime) -> Period | None:
        """The newest window that opened before a moment; None if it is not found nearby."""
        at = moment
        for _ in range(_STEPS_BACK):
            period = self._periods.at(_just_before(at))
            if period is not None:
                return period
            stop = self._plan.state_at(_just_before(at)).last_stop
            if stop is None:
                return None
            at = stop
        return None

    def closes_after(self, moment: datetime) -> datetime | None:
        """When whatever runs is stopped next after a moment: by the plan, or by a hold."""
        holds = (one.begin for one in self._holds if one.begin > moment)
        return _earliest(self._periods.next_stop(moment), *holds)

    def overrides_left(self, now: datetime) -> tuple[Override, ...]:
        """The exceptions that may still make a difference, to the plan or to each other."""
        left = tuple(one for one in self._overrides if not self._periods.is_over(one, now))
        if left == self._overrides:
            return left
        without = Periods(self._plan, left, self._since)
        is_same = _ahead(without, now) == _ahead(self._periods, now)
        return left if is_same else self._overrides

    def _standing(self, moment: datetime) -> Standing:
        periods = self._periods
        window, last_stop = periods.at(moment), periods.last_stop(moment)
        hold = hold_at(self._holds, moment)
        turns = (
            *(turn for one in self._overrides for turn in (one.begin, one.until) if turn > moment),
            periods.next_stop(moment),
            periods.next_start(moment),
        )
        return Standing(
            is_inside=window is not None and hold is None and not self._suspend,
            window=window,
            held=why_held(self._suspend, hold),
            held_until=hold.until if hold is not None and not self._suspend else None,
            last_stop=last_stop,
            next_start=None if self._suspend else self._next_start(moment),
            next_stop=self.closes_after(moment),
            last_turn=max((t for t in (last_stop, _start_of(window)) if t), default=None),
            next_turn=_earliest(*turns),
        )

    def _next_start(self, moment: datetime) -> datetime | None:
        """The next start of a period, or end of a hold within one."""
        at = moment
        while True:
            ends = (
                one.until
                for one in self._holds
                if one.until > at and self._periods.at(one.until) is not None
            )
            start = _earliest(self._periods.next_start(at), *ends)
            if start is None:
                return None
            hold = hold_at(self._holds, start)
            if hold is None:
                return start
            # At once to its end: it may hold back any number of starts.
            at = _just_before(hold.until)

    def _as_it_is(self, turn: Turn) -> Iterator[Turn]:
        """What the exceptions make of a start or stop of the plan."""
        if turn.skipped is not None:
            yield turn
            return
        hold = hold_at(self._holds, turn.at)
        if turn.action is Action.STOP:
            is_inside = any(each.covers(turn.at) for each in self._periods.stretches())
            if hold is None and (not is_inside or self._starts_at(turn.at)):
                yield turn
            return
        planned = self._periods.planned_at(turn.at)
        if planned is None or planned.start != turn.at:
            return
        skip = self._periods.skip_of(turn.at)
        if skip is not None:
            yield _turn(self.zone, turn.at, Action.START, _told("skipped", skip))
        elif self._starts_at(turn.at):
            held = why_held(self._suspend, hold)
            yield Turn(at=turn.at, wall=turn.wall, action=Action.START, skipped=held or None)

    def _starts_at(self, moment: datetime) -> bool:
        period = self._periods.at(moment)
        return period is not None and period.start == moment

    def _made(self, after: datetime) -> Iterator[Turn]:
        """Starts and stops that only exceptions make."""
        for stretch in self._periods.stretches():
            if stretch.stop is not None and stretch.stop > after:
                yield _turn(self.zone, stretch.stop, Action.STOP)
        if self._suspend:
            return
        for one in self._holds:
            before = self._periods.at(_just_before(one.begin))
            is_open = before is not None and before.covers(one.begin)
            if is_open and one.begin > after and not hold_at(self._holds, _just_before(one.begin)):
                yield _turn(self.zone, one.begin, Action.STOP)
            period = self._periods.at(one.until)
            is_new = period is not None and period.start < one.until
            if is_new and one.until > after and not hold_at(self._holds, one.until):
                yield _turn(self.zone, one.until, Action.START)


#: So many starts and stops that change nothing are passed over one by one.
_TURNS_IN_VAIN = 500
_SECOND = timedelta(seconds=1)
#: How many stops without a window are passed over in search of an earlier window.
_STEPS_BACK = 100


def timetable_of(controlled: ControlledJob, calendars: Mapping[str, Calendar]) -> Timetable:
    """The starts and stops of a ControlledJob; a calendar that is not given counts as not named.

    Raises:
        UnreadableError: The zone, a window or an event makes no sense.
    """
    spec, metadata = controlled.spec, controlled.metadata
    zone = find_zone(spec.timezone.name, spec.timezone.offset)
    identity = f"{metadata.namespace}/{metadata.name}"

    def found(names: tuple[str, ...]) -> tuple[Calendar, ...]:
        return tuple(calendars[name] for name in names if name in calendars)

    def window(one: WindowSpec) -> Window:
        return read_window(
            one.begin, one.end, one.days, exclude=found(one.exclude), only=found(one.only)
        )

    def event(one: EventSpec) -> Event:
        return event_of(
            one.action,
            _line(one, identity),
            zone,
            on_gap=spec.on_gap,
            on_repeat=spec.on_repeat,
            exclude=found(one.exclude),
            only=found(one.only),
        )

    plan = Plan(zone, map(window, spec.windows), map(event, spec.events))
    created = metadata.creation_timestamp
    return Timetable(plan, zone, spec, created.replace(microsecond=0) if created else None)


def calendars_named(spec: ControlledJobSpec) -> tuple[str, ...]:
    """The calendars that windows and events name, each once."""
    parts: tuple[WindowSpec | EventSpec, ...] = (*spec.windows, *spec.events)
    return tuple(dict.fromkeys(name for part in parts for name in (*part.exclude, *part.only)))


def schedule_hash(spec: ControlledJobSpec) -> str:
    """What tells one plan from another."""
    parts = (spec.timezone, spec.events, spec.windows, spec.on_gap, spec.on_repeat)
    content = msgspec.to_builtins(parts, enc_hook=encode_special)
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def hold_at(holds: tuple[Override, ...], moment: datetime) -> Override | None:
    """What holds everything at a moment; of several the one that ends last."""
    found = (one for one in holds if one.begin <= moment < one.until)
    return max(found, key=lambda one: one.until, default=None)


def why_held(suspend: bool, hold: Override | None) -> str:
    """Why nothing may run, whatever the plan says; empty when it may."""
    if suspend:
        return "suspended"
    if hold is None:
        return ""
    return _told(f"on hold until {hold.until:%Y-%m-%dT%H:%M:%SZ}", hold)


def _told(what: str, override: Override) -> str:
    by = f" by {override.by}" if override.by else ""
    return f"{what}{by}: {override.reason}" if override.reason else f"{what}{by}"


def _line(event: EventSpec, identity: str) -> Line:
    if event.cron:
        return read_cron(event.cron, identity, event.format)
    if event.schedule is None:
        raise unreadable("event", event.action, "expected a schedule or a cron line")
    return at_time_of_day(event.schedule.time_of_day, event.schedule.days_of_week)


def _turn(zone: Zone, at: datetime, action: Action, skipped: str | None = None) -> Turn:
    wall = wall_of(zone.wall_at(seconds_of(at)))
    return Turn(at=at, wall=wall, action=action, skipped=skipped)


def _order(turn: Turn) -> tuple[datetime, bool, bool]:
    return (turn.at, turn.action is Action.START, turn.skipped is not None)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _ahead(periods: Periods, now: datetime) -> tuple[object, ...]:
    """What matters from a moment on."""
    return (periods.at(now), periods.next_start(now), periods.next_stop(now))


def _start_of(period: Period | None) -> datetime | None:
    return period.start if period is not None else None


def _just_before(moment: datetime) -> datetime:
    """The last moment before one, as far as the plan counts."""
    return moment - datetime.resolution
