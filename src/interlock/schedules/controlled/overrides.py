"""The periods of a plan as exceptions leave them: some skipped, some longer, some on hold.

A period lasts from a start until, but not at, a stop. Skips come first, then extensions, and what
is on hold runs nothing whatever the periods are.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from interlock.resources.controlled_job import Override, OverrideAction
from interlock.timing.plans import Plan, State

#: The smallest step back: the plan counts in seconds, and exceptions need not.
_TICK = timedelta(microseconds=1)
#: How many states of the plan are kept at hand.
_STATES = 16


class Period(NamedTuple):
    """The time from a start to the stop that ends it."""

    start: datetime
    #: None when it never ends.
    stop: datetime | None = None

    def covers(self, moment: datetime) -> bool:
        """Whether a moment lies in it, the start included and the stop not."""
        return self.start <= moment and (self.stop is None or moment < self.stop)

    def overlaps(self, start: datetime, stop: datetime | None) -> bool:
        """Whether it has time in common with another."""
        return (self.stop is None or start < self.stop) and (stop is None or self.start < stop)


def of_action(overrides: Iterable[Override], action: OverrideAction) -> tuple[Override, ...]:
    """The overrides that do one thing, in order; those that last for no time do nothing."""
    found = (one for one in overrides if one.action is action and one.begin < one.until)
    return tuple(sorted(found, key=lambda one: (one.begin, one.until)))


class Periods:
    """The periods of a plan, without those that are skipped, and with the longer ones."""

    def __init__(self, plan: Plan, overrides: Iterable[Override], since: datetime | None) -> None:
        overrides = tuple(overrides)
        self._plan = plan
        self._since = since
        #: The states that were asked for last: one question needs the same ones again and again.
        self._states: dict[datetime, State] = {}
        self._skips = of_action(overrides, OverrideAction.SKIP)
        #: Periods that an extension made longer. No start or stop of the plan counts inside.
        self._stretches: tuple[Period, ...] = ()
        for one in of_action(overrides, OverrideAction.EXTEND):
            self._stretches = self._extended(one)

    def at(self, moment: datetime) -> Period | None:
        """The period that a moment lies in."""
        stretch = self._stretch_at(moment)
        if stretch is not None:
            return stretch
        planned = self.planned_at(moment)
        return None if planned is None or self.skip_of(planned.start) is not None else planned

    def planned_at(self, moment: datetime) -> Period | None:
        """The period that a moment lies in if there were no exceptions."""
        state = self._state(moment)
        return Period(state.period_start, state.next_stop) if state.period_start else None

    def skip_of(self, start: datetime) -> Override | None:
        """What leaves out a period that starts then."""
        return next((one for one in self._skips if one.begin <= start < one.until), None)

    def last_stop(self, moment: datetime) -> datetime | None:
        """The newest stop at or before a moment."""
        found = self._state(moment).last_stop
        for stretch in reversed(self._stretches):
            if found is not None and found > stretch.start and stretch.covers(found):
                found = self._state(stretch.start).last_stop
        ends = (each.stop for each in self._stretches if each.stop and each.stop <= moment)
        return max((stop for stop in (found, *ends) if stop), default=None)

    def next_stop(self, moment: datetime) -> datetime | None:
        """The first stop after a moment, whether anything runs then or not."""
        found = self._state(moment).next_stop
        for stretch in self._stretches:
            if found is not None and found > stretch.start and stretch.covers(found):
                end = stretch.stop
                found = self._state(end - _TICK).next_stop if end is not None else None
        ends = (each.stop for each in self._stretches if each.stop and each.stop > moment)
        return min((stop for stop in (found, *ends) if stop), default=None)

    def next_start(self, moment: datetime) -> datetime | None:
        """The first start of a period after a moment."""
        at = moment
        while (start := self._planned_start(at)) is not None:
            skip, stretch = self.skip_of(start), self._stretch_at(start)
            if stretch is not None and stretch.start < start:
                if stretch.stop is None:
                    return None
                at = stretch.stop - _TICK
            elif skip is not None:
                # At once to its end: it may leave out any number of periods.
                at = skip.until - _TICK
            else:
                return start
        return None

    def stretches(self) -> tuple[Period, ...]:
        """The periods that an extension made longer."""
        return self._stretches

    def is_over(self, override: Override, now: datetime) -> bool:
        """Whether an exception can make no difference any more.

        One that is over as the clock goes is kept while a period that it shaped lasts: without
        it, that period would be another.
        """
        if now < override.until:
            return False
        match override.action:
            case OverrideAction.SKIP:
                planned = self.planned_at(now)
                return planned is None or not override.begin <= planned.start < override.until
            case OverrideAction.EXTEND:
                stretch = self._stretch_at(override.begin)
                return stretch is None or (stretch.stop is not None and stretch.stop <= now)
            case OverrideAction.HOLD:
                return True

    def _state(self, moment: datetime) -> State:
        state = self._states.get(moment)
        if state is None:
            if len(self._states) >= _STATES:
                self._states.clear()
            state = self._states[moment] = self._plan.state_at(moment, self._since)
        return state

    def _extended(self, one: Override) -> tuple[Period, ...]:
        """The stretches with one more extension."""
        period = self.at(one.begin)
        if period is None or period.stop is None or one.until <= period.stop:
            return self._stretches
        later = self.at(one.until)
        # A period that begins before the other's new end goes on with it to its own end.
        joins = later is not None and later.start < one.until
        stop = later.stop if later is not None and joins else one.until
        longer = Period(period.start, stop)
        others = (each for each in self._stretches if not longer.overlaps(*each))
        return tuple(sorted((*others, longer)))

    def _stretch_at(self, moment: datetime) -> Period | None:
        return next((each for each in self._stretches if each.covers(moment)), None)

    def _planned_start(self, after: datetime) -> datetime | None:
        """The first start of a period of the plan; further starts within one do not count."""
        state = self._state(after)
        if not state.is_inside:
            return state.next_start
        if state.next_stop is None:
            return None
        at_stop = self._state(state.next_stop)
        return state.next_stop if at_stop.is_inside else at_stop.next_start
