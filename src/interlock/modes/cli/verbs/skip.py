"""Leave out a start of a ControlledJob, or several.

WHEN is next (the default), today, tomorrow, a weekday, or a date; on a day, all that starts
there is left out, and with --count so many starts from there on. A window that is open goes on.
The exception is kept on the object, can be seen by everybody, and goes by itself. Days are
those of the ControlledJob's own clock.

  interlock skip pricing-engine
  interlock skip pricing-engine tomorrow --reason "no trading"
  interlock skip pricing-engine 2026-12-24 --count 3
  interlock skip pricing-engine --cancel
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice, takewhile

from interlock.modes.cli.controlled import Controlled, Window, windows_of
from interlock.modes.cli.day_words import DayWords
from interlock.modes.cli.errors import BAD_INPUT, CommandError
from interlock.modes.cli.flags import number_from
from interlock.modes.cli.overriding import (
    Exceptions,
    add_overriding,
    made,
    of_action,
    others,
    override,
    to_cancel,
    whose,
)
from interlock.modes.cli.planning import coming, day_of, day_told, windows_from
from interlock.modes.cli.session import Session
from interlock.resources.controlled_job import Override, OverrideAction
from interlock.resources.timing.local_time import day_at, start_of_day, told_time

NEXT = "next"
#: So many starts can be left out by one exception.
MOST = 100
#: So many of them are told one by one.
_TOLD = 5
_SECOND = timedelta(seconds=1)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    parser.add_argument("when", metavar="WHEN", nargs="?",
                        help="next, today, tomorrow, monday, 2026-11-20 (next)")  # fmt: skip
    parser.add_argument("--count", metavar="N", type=number_from(1), help="so many starts")
    add_overriding(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the exception, or take it back."""
    if args.count is not None and args.count > MOST:
        raise CommandError(f"--count: expected at most {MOST}", code=BAD_INPUT)
    if not args.cancel:
        return override(session, args, lambda controlled: _skipped(controlled, args))
    if args.count is not None:
        raise CommandError("--count is not for --cancel", code=BAD_INPUT)
    return override(session, args, lambda controlled: _cancelled(controlled, args))


def _skipped(controlled: Controlled, args: argparse.Namespace) -> Exceptions:
    begin, windows = _found(controlled, args)
    until = _end(controlled, windows[-1], args)
    skip = made(args, OverrideAction.SKIP, begin=begin, until=until)
    overrides = (*others(controlled), skip)
    told = [_left_out(controlled, one) for one in windows[:_TOLD]]
    if len(windows) > _TOLD:
        last = day_told(controlled, windows[-1].start)
        told.append(f"and {len(windows) - _TOLD} more, the last {last}")
    told += _running_through(controlled, overrides, windows[0].start)
    goes = max(until, windows[-1].stop or until)
    told.append(f"the exception goes by itself {controlled.told(goes)}")
    told.append(f"then {coming(controlled, overrides, until - _SECOND)}")
    return Exceptions(overrides, tuple(told))


def _running_through(
    controlled: Controlled, overrides: tuple[Override, ...], start: datetime
) -> Iterator[str]:
    """What runs now and is not stopped before the first start that is left out.

    A skip leaves out starts and stops nothing: what a person started goes on to the next stop.
    """
    stop = controlled.plan_with(overrides).closes_after(controlled.now)
    if stop is not None and stop <= start:
        return
    until = f"until {controlled.told(stop)}" if stop is not None else "without an end"
    for job in controlled.running:
        yield (
            f"job/{job['metadata']['name']} runs, and goes on {until}; stop it with:"
            f" interlock stop {controlled.word}"
        )


def _left_out(controlled: Controlled, window: Window) -> str:
    time = told_time(window.start, controlled.zone)
    return f"{day_of(controlled, window.start)}  does not start at {time}"


def _found(controlled: Controlled, args: argparse.Namespace) -> tuple[datetime, list[Window]]:
    """From when on starts are left out, and which."""
    when = (args.when or "").strip().lower() or NEXT
    if when == NEXT:
        windows = list(islice(windows_from(controlled, controlled.now + _SECOND), args.count or 1))
        if not windows:
            raise CommandError(f"{controlled.word} is not to start any more", code=BAD_INPUT)
        return windows[0].start, windows
    day = DayWords(controlled.zone, controlled.now).day(when)
    begin = max(start_of_day(day, controlled.zone), controlled.now)
    coming_ones = windows_from(controlled, begin + _SECOND if begin == controlled.now else begin)
    if args.count:
        windows = list(islice(coming_ones, args.count))
    else:
        end = start_of_day(day + timedelta(days=1), controlled.zone)
        windows = list(takewhile(lambda one: one.start < end, coming_ones))
    if not windows:
        raise _nothing_starts(controlled, day)
    return begin, windows


def _end(controlled: Controlled, last: Window, args: argparse.Namespace) -> datetime:
    """Until when starts are left out: a day's end, or what comes first after the last one."""
    if not args.count and (args.when or "").strip().lower() not in ("", NEXT):
        following = day_at(last.start, controlled.zone) + timedelta(days=1)
        return start_of_day(following, controlled.zone)
    ends = [last.stop] if last.stop else []
    ends += [one.start for one in islice(windows_of(controlled.plan, last.start), 1)]
    return min(ends, default=last.start + _SECOND)


def _nothing_starts(controlled: Controlled, day: date) -> CommandError:
    begin = start_of_day(day, controlled.zone)
    end = start_of_day(day + timedelta(days=1), controlled.zone)
    skipped = controlled.plan.next_skipped(begin - _SECOND)
    closed = skipped.skipped if skipped is not None and skipped.at < end else ""
    shown = day_told(controlled, begin)
    hint = coming(controlled, controlled.noun.spec.overrides, max(begin, controlled.now))
    if controlled.plan.state_at(controlled.now).is_inside and begin <= controlled.now:
        hint = f"its window is open already; stop it with: interlock stop {controlled.word}"
    told = f"{controlled.word} has no start to leave out {shown}"
    return CommandError(f"{told}: {closed}" if closed else told, hint=hint, code=BAD_INPUT)


def _cancelled(controlled: Controlled, args: argparse.Namespace) -> Exceptions:
    skips = of_action(controlled, OverrideAction.SKIP)
    when = (args.when or "").strip().lower()
    if when == NEXT:
        skips = tuple(sorted(skips, key=lambda one: one.begin)[:1])
    elif when:
        day = DayWords(controlled.zone, controlled.now).day(when)
        skips = tuple(one for one in skips if _touches(controlled, one, day))
    skips = to_cancel(controlled, skips, "skip")
    overrides = others(controlled, *skips)
    told = [f"skip of {_span(controlled, one)} taken back{whose(one)}" for one in skips]
    return Exceptions(overrides, (*told, coming(controlled, overrides, controlled.now)))


def _touches(controlled: Controlled, skip: Override, day: date) -> bool:
    first = start_of_day(day, controlled.zone)
    return (
        skip.begin < start_of_day(day + timedelta(days=1), controlled.zone) and first < skip.until
    )


def _span(controlled: Controlled, skip: Override) -> str:
    first, last = day_told(controlled, skip.begin), day_told(controlled, skip.until - _SECOND)
    return first if first == last else f"{first} to {last}"
