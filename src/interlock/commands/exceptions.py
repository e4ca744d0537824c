"""Exceptions to the plan of a ControlledJob: skip, extend, hold, and taking them back.

Each is kept on the object and ends by itself: the server takes it off once its time is over. Days
and times are read on the ControlledJob's own clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice, takewhile
from typing import Annotated

from msgspec.structs import replace

from interlock.commands.change import By, Change, changed
from interlock.commands.controlled import (
    LONGEST,
    ControlledView,
    Window,
    windows_from,
    windows_of,
)
from interlock.commands.dates import DayWords
from interlock.commands.errors import OrderRefusedError, conflict
from interlock.commands.limits import MOST_SKIPPED
from interlock.commands.manual_runs import whose
from interlock.resources.controlled_job import Override, OverrideAction
from interlock.resources.metadata import Noun
from interlock.resources.rules import Limit, Line
from interlock.resources.values.durations import Duration
from interlock.timing.local_time import day_at, start_of_day, told_time, wall_time

NEXT = "next"
#: So many of them are told one by one.
_TOLD = 5
_SECOND = timedelta(seconds=1)


class Skipping(Noun):
    """Which starts to leave out."""

    #: next (the default), today, tomorrow, a weekday such as monday, or a date such as 2026-11-20.
    when: Line = ""
    #: So many starts from there on; without it the next one, or all of a day.
    count: Annotated[int, Limit(1, MOST_SKIPPED)] | None = None
    #: Take it back; without `when`, all of them.
    cancel: bool = False
    #: Why, for people to read.
    reason: Line = ""


class Extending(Noun):
    """Until when the window that is open, or the next one, goes on: one of `until` and `by`."""

    #: A time such as 19:00, a day and a time, or a moment with its zone.
    until: Line | None = None
    #: So much longer: 2h, 90m.
    by: Duration | None = None
    #: Take it back.
    cancel: bool = False
    #: Why, for people to read.
    reason: Line = ""


class Holding(Noun):
    """Until when nothing runs: one of `until` and `lasts`."""

    #: A day such as monday, a time such as 19:00, both, or a moment with its zone.
    until: Line | None = None
    #: So long from now on: 3d, 2h, 90m.
    lasts: Duration | None = None
    #: Take it back.
    cancel: bool = False
    #: Why, for people to read.
    reason: Line = ""


# Skip


def skip(view: ControlledView, how: Skipping, by: By) -> Change:
    """Leave out a start, or several. A window that is open goes on."""
    _check_reason(how.cancel, how.reason)
    if how.cancel:
        if how.count is not None:
            raise OrderRefusedError("is not for cancel", option="count")
        return _skip_taken_back(view, how)
    begin, windows = _starts_to_skip(view, how)
    until = _end_of_skip(view, windows[-1], how)
    left_out = Override(
        action=OverrideAction.SKIP, begin=begin, until=until, by=by.who, reason=how.reason
    )
    overrides = (*_others(view), left_out)
    told = [_left_out(view, one) for one in windows[:_TOLD]]
    if len(windows) > _TOLD:
        last = view.day_told(windows[-1].start)
        told.append(f"and {len(windows) - _TOLD} more, the last {last}")
    told += _running_through(view, overrides, windows[0].start)
    goes = max(until, windows[-1].stop or until)
    told.append(f"the exception goes by itself {view.told(goes)}")
    told.append(f"then {view.coming(overrides, until - _SECOND)}")
    return _written(view, overrides, told)


def _running_through(
    view: ControlledView, overrides: tuple[Override, ...], start: datetime
) -> Iterator[str]:
    """What runs now and is not stopped before the first start that is left out.

    A skip leaves out starts and stops nothing: what a person started goes on to the next stop.
    """
    stop = view.plan_with(overrides).closes_after(view.now)
    if stop is not None and stop <= start:
        return
    until = f"until {view.told(stop)}" if stop is not None else "without an end"
    for job in view.running:
        yield (
            f"job/{job.metadata.name} runs, and goes on {until}; stop it with:"
            f" interlock stop {view.word}"
        )


def _left_out(view: ControlledView, window: Window) -> str:
    time = told_time(window.start, view.zone)
    return f"{view.day_of(window.start)}  does not start at {time}"


def _starts_to_skip(view: ControlledView, how: Skipping) -> tuple[datetime, list[Window]]:
    """From when on starts are left out, and which."""
    when = how.when.strip().lower() or NEXT
    if when == NEXT:
        windows = list(islice(windows_from(view.plan, view.now + _SECOND), how.count or 1))
        if not windows:
            raise OrderRefusedError(f"{view.word} is not to start any more")
        return windows[0].start, windows
    day = DayWords(view.zone, view.now).day(when)
    begin = max(start_of_day(day, view.zone), view.now)
    coming = windows_from(view.plan, begin + _SECOND if begin == view.now else begin)
    if how.count:
        windows = list(islice(coming, how.count))
    else:
        end = start_of_day(day + timedelta(days=1), view.zone)
        windows = list(takewhile(lambda one: one.start < end, coming))
    if not windows:
        raise _nothing_starts(view, day)
    return begin, windows


def _end_of_skip(view: ControlledView, last: Window, how: Skipping) -> datetime:
    """Until when starts are left out: a day's end, or what comes first after the last one."""
    if not how.count and how.when.strip().lower() not in ("", NEXT):
        following = day_at(last.start, view.zone) + timedelta(days=1)
        return start_of_day(following, view.zone)
    ends = [last.stop] if last.stop else []
    ends += [one.start for one in islice(windows_of(view.plan, last.start), 1)]
    return min(ends, default=last.start + _SECOND)


def _nothing_starts(view: ControlledView, day: date) -> OrderRefusedError:
    begin = start_of_day(day, view.zone)
    end = start_of_day(day + timedelta(days=1), view.zone)
    skipped = view.plan.next_skipped(begin - _SECOND)
    closed = skipped.skipped if skipped is not None and skipped.at < end else ""
    hint = view.coming(view.noun.spec.overrides, max(begin, view.now))
    if view.plan.state_at(view.now).is_inside and begin <= view.now:
        hint = f"its window is open already; stop it with: interlock stop {view.word}"
    told = f"{view.word} has no start to leave out {view.day_told(begin)}"
    return OrderRefusedError(f"{told}: {closed}" if closed else told, hint=hint)


def _skip_taken_back(view: ControlledView, how: Skipping) -> Change:
    skips = _of_action(view, OverrideAction.SKIP)
    when = how.when.strip().lower()
    if when == NEXT:
        skips = tuple(sorted(skips, key=lambda one: one.begin)[:1])
    elif when:
        day = DayWords(view.zone, view.now).day(when)
        skips = tuple(one for one in skips if _touches(view, one, day))
    _check_there(view, skips, "skip")
    overrides = _others(view, *skips)
    told = [f"skip of {_span(view, one)} taken back{whose(one)}" for one in skips]
    return _written(view, overrides, [*told, view.coming(overrides, view.now)])


def _touches(view: ControlledView, left_out: Override, day: date) -> bool:
    first = start_of_day(day, view.zone)
    following = start_of_day(day + timedelta(days=1), view.zone)
    return left_out.begin < following and first < left_out.until


def _span(view: ControlledView, left_out: Override) -> str:
    first, last = view.day_told(left_out.begin), view.day_told(left_out.until - _SECOND)
    return first if first == last else f"{first} to {last}"


# Extend


def extend(view: ControlledView, how: Extending, by: By) -> Change:
    """Let the window that is open, or the next one, go on longer than the plan says, once."""
    _check_reason(how.cancel, how.reason)
    if how.cancel:
        return _extension_taken_back(view)
    _check_one_of(how.until, how.by, 'give one of until, such as "19:00", and by, such as "2h"')
    _check_length(how.by, "by")
    begin, stop = _window_to_extend(view)
    before = tuple(
        one for one in _of_action(view, OverrideAction.EXTEND) if _is_of(one, begin, stop)
    )
    plain = view.plan_with(_others(view, *before)).state_at(begin)
    if plain.is_inside and plain.next_stop and how.by is None:
        # A new `until` takes the place of the one before, also an earlier one.
        stop = plain.next_stop
    until = _end_of_extension(view, how, begin, stop)
    extension = Override(
        action=OverrideAction.EXTEND, begin=begin, until=until, by=by.who, reason=how.reason
    )
    overrides = (*_others(view, *before), extension)
    ends = _end_in_fact(view, overrides, until)
    joins = ": it goes on into the next window" if ends > until else ""
    first = (
        f"{view.day_of(begin)}  ends {_time(view, ends, begin)}"
        f" instead of {_time(view, stop, begin)}{joins};"
        f" the exception goes by itself {_time(view, until, begin) if joins else 'then'}"
    )
    return _written(view, overrides, [first, f"after that {view.coming(overrides, ends)}"])


def _end_in_fact(
    view: ControlledView, overrides: tuple[Override, ...], until: datetime
) -> datetime:
    """When it is stopped: later than asked for if another window is open then."""
    plan = view.plan_with(overrides)
    closes = plan.closes_after(until) if plan.state_at(until).is_inside else None
    return closes or until


def _window_to_extend(view: ControlledView) -> tuple[datetime, datetime]:
    """From when on the window is open that is meant, and when it closes as things stand."""
    state = view.plan.state_at(view.now)
    window: Window | None = Window(view.now, state.next_stop)
    if not state.is_inside:
        window = next(windows_of(view.plan, view.now), None)
    if window is None:
        raise conflict(f"{view.word} is not to start any more")
    if window.stop is None:
        raise conflict(f"{view.word} is never stopped by its plan")
    return window.start, window.stop


def _end_of_extension(
    view: ControlledView, how: Extending, begin: datetime, stop: datetime
) -> datetime:
    if how.by is not None:
        return stop + how.by
    assert how.until is not None, "one of both is given"
    until = DayWords(view.zone, view.now).moment(how.until)
    if until <= stop:
        later = wall_time(stop + timedelta(hours=1), view.zone)
        which = "" if begin <= view.now else f" of {view.told(begin)}"
        raise OrderRefusedError(
            f"{how.until!r} is {view.told(until)}, and the window{which} is open"
            f" until {view.told(stop)} anyway",
            hint=f'expected a later moment, such as "{later:%Y-%m-%d %H:%M}", or --by 1h',
        )
    return until


def _is_of(one: Override, begin: datetime, stop: datetime) -> bool:
    """Whether an extension is about the window that was found."""
    return one.begin < stop and begin < one.until


def _time(view: ControlledView, moment: datetime, begin: datetime) -> str:
    if day_at(moment, view.zone) == day_at(begin, view.zone):
        return told_time(moment, view.zone, named=False)
    return view.told(moment)


def _extension_taken_back(view: ControlledView) -> Change:
    gone = _of_action(view, OverrideAction.EXTEND)
    _check_there(view, gone, "extension")
    overrides = _others(view, *gone)
    told = [f"no longer extended until {view.told(one.until)}{whose(one)}" for one in gone]
    if not view.plan_with(overrides).state_at(view.now).is_inside:
        told += [f"job/{job.metadata.name} is stopped now" for job in view.running]
    return _written(view, overrides, [*told, view.coming(overrides, view.now)])


# Hold


def hold(view: ControlledView, how: Holding, by: By) -> Change:
    """Let nothing run until a moment; then the plan is as usual. Its Job is stopped."""
    _check_reason(how.cancel, how.reason)
    if how.cancel:
        return _hold_taken_back(view)
    _check_one_of(
        how.until, how.lasts, 'give one of until, such as "monday", and lasts, such as "3d"'
    )
    until = _end_of_hold(view, how)
    held = Override(
        action=OverrideAction.HOLD, begin=view.now, until=until, by=by.who, reason=how.reason
    )
    overrides = (*_others(view, *_of_action(view, OverrideAction.HOLD)), held)
    told = [f"held until {view.told(until)}; the exception goes by itself then"]
    told += [f"job/{job.metadata.name} is stopped now" for job in view.running]
    return _written(view, overrides, [*told, f"then {view.coming(overrides, until)}"])


def _end_of_hold(view: ControlledView, how: Holding) -> datetime:
    if how.until is not None:
        return DayWords(view.zone, view.now).moment(how.until)
    assert how.lasts is not None, "one of both is given"
    _check_length(how.lasts, "lasts")
    return view.now + how.lasts


def _hold_taken_back(view: ControlledView) -> Change:
    held = _of_action(view, OverrideAction.HOLD)
    _check_there(view, held, "hold")
    overrides = _others(view, *held)
    told = [f"no longer held until {view.told(one.until)}{whose(one)}" for one in held]
    return _written(view, overrides, [*told, view.coming(overrides, view.now)])


# What all have in common


def _written(view: ControlledView, overrides: tuple[Override, ...], told: list[str]) -> Change:
    before = view.noun
    if before.spec.suspend:
        told = [*told, f"it is suspended all the same: interlock resume {view.word}"]
    after = replace(before, spec=replace(before.spec, overrides=overrides))
    first, *rest = told
    return changed(before, after, f" {first}", *(f"  {line}" for line in rest))


def _others(view: ControlledView, *without: Override) -> tuple[Override, ...]:
    """The exceptions that stay: not these, and none that is over."""
    stays = (one for one in view.noun.spec.overrides if one.until > view.now)
    return tuple(one for one in stays if one not in without)


def _of_action(view: ControlledView, action: OverrideAction) -> tuple[Override, ...]:
    """The exceptions of one sort that are not over."""
    return tuple(one for one in _others(view) if one.action is action)


def _check_there(view: ControlledView, found: tuple[Override, ...], noun: str) -> None:
    if not found:
        raise conflict(
            f"{view.word} has no {noun} to take back",
            f"`interlock why {view.word}` tells its exceptions",
        )


def _check_reason(cancel: bool, reason: str) -> None:
    if cancel and reason:
        raise OrderRefusedError("is for an exception, not for cancel", option="reason")


def _check_one_of(until: str | None, length: Duration | None, hint: str) -> None:
    if (until is None) == (length is None):
        raise OrderRefusedError("until when?", hint=hint, option="until")


def _check_length(length: Duration | None, option: str) -> None:
    if length is not None and not _SECOND <= length <= LONGEST:
        raise OrderRefusedError("expected from a second to ten years", option=option)
