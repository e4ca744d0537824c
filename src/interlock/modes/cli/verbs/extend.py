"""Let a ControlledJob run longer than its plan says, once.

It is about the window that is open or, between two windows, about the next one. The exception is
kept on the object, can be seen by everybody, and goes by itself. Days and times are read on
the ControlledJob's own clock.

  interlock extend pricing-engine --until 19:00
  interlock extend pricing-engine --by 2h --reason "late trades"
  interlock extend pricing-engine --cancel
"""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta

from interlock.modes.cli.controlled import Controlled, Window, windows_of
from interlock.modes.cli.day_words import DayWords
from interlock.modes.cli.errors import BAD_INPUT, CONFLICT, CommandError
from interlock.modes.cli.flags import seconds
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
from interlock.modes.cli.planning import LONGEST_S, coming, day_of
from interlock.modes.cli.session import Session
from interlock.resources.controlled_job import Override, OverrideAction
from interlock.resources.timing.local_time import day_at, told_time, wall_time


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    parser.add_argument("--until", metavar="WHEN", help='19:00, or "tomorrow 02:00"')
    parser.add_argument("--by", metavar="TIME", type=seconds, help="so much longer: 2h, 90m")
    add_overriding(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the exception, or take it back."""
    if args.cancel:
        return override(session, args, _cancelled)
    if (args.until is None) == (args.by is None):
        raise CommandError(
            "until when?", hint="give one of --until 19:00 and --by 2h", code=BAD_INPUT
        )
    if args.by is not None and not 1 <= args.by <= LONGEST_S:
        raise CommandError("--by: expected from a second to ten years", code=BAD_INPUT)
    return override(session, args, lambda controlled: _extended(controlled, args))


def _extended(controlled: Controlled, args: argparse.Namespace) -> Exceptions:
    begin, stop = _window(controlled)
    before = tuple(
        one for one in of_action(controlled, OverrideAction.EXTEND) if _is_of(one, begin, stop)
    )
    plain = controlled.plan_with(others(controlled, *before)).state_at(begin)
    if plain.is_inside and plain.next_stop and args.by is None:
        # A new --until takes the place of the one before, also an earlier one.
        stop = plain.next_stop
    until = _until(controlled, args, begin, stop)
    extension = made(args, OverrideAction.EXTEND, begin=begin, until=until)
    overrides = (*others(controlled, *before), extension)
    ends = _end(controlled, overrides, until)
    joins = ": it goes on into the next window" if ends > until else ""
    first = (
        f"{day_of(controlled, begin)}  ends {_time(controlled, ends, begin)}"
        f" instead of {_time(controlled, stop, begin)}{joins};"
        f" the exception goes by itself {_time(controlled, until, begin) if joins else 'then'}"
    )
    return Exceptions(overrides, (first, f"after that {coming(controlled, overrides, ends)}"))


def _end(controlled: Controlled, overrides: tuple[Override, ...], until: datetime) -> datetime:
    """When it is stopped in fact: later than asked for if another window is open then."""
    plan = controlled.plan_with(overrides)
    closes = plan.closes_after(until) if plan.state_at(until).is_inside else None
    return closes or until


def _window(controlled: Controlled) -> tuple[datetime, datetime]:
    """From when on the window is open that is meant, and when it closes as things stand."""
    state = controlled.plan.state_at(controlled.now)
    window: Window | None = Window(controlled.now, state.next_stop)
    if not state.is_inside:
        window = next(windows_of(controlled.plan, controlled.now), None)
    if window is None:
        raise CommandError(f"{controlled.word} is not to start any more", code=CONFLICT)
    if window.stop is None:
        raise CommandError(f"{controlled.word} is never stopped by its plan", code=CONFLICT)
    return window.start, window.stop


def _until(
    controlled: Controlled, args: argparse.Namespace, begin: datetime, stop: datetime
) -> datetime:
    if args.by is not None:
        return stop + timedelta(seconds=int(args.by))
    until = DayWords(controlled.zone, controlled.now).moment(args.until)
    if until <= stop:
        later = wall_time(stop + timedelta(hours=1), controlled.zone)
        which = "" if begin <= controlled.now else f" of {controlled.told(begin)}"
        raise CommandError(
            f"{args.until!r} is {controlled.told(until)}, and the window{which} is open"
            f" until {controlled.told(stop)} anyway",
            hint=f'expected a later moment, such as "{later:%Y-%m-%d %H:%M}", or --by 1h',
            code=BAD_INPUT,
        )
    return until


def _is_of(one: Override, begin: datetime, stop: datetime) -> bool:
    """Whether an extension is about the window that was found."""
    return one.begin < stop and begin < one.until


def _time(controlled: Controlled, moment: datetime, begin: datetime) -> str:
    if day_at(moment, controlled.zone) == day_at(begin, controlled.zone):
        return told_time(moment, controlled.zone, named=False)
    return controlled.told(moment)


def _cancelled(controlled: Controlled) -> Exceptions:
    gone = to_cancel(controlled, of_action(controlled, OverrideAction.EXTEND), "extension")
    overrides = others(controlled, *gone)
    told = [f"no longer extended until {controlled.told(one.until)}{whose(one)}" for one in gone]
    state = controlled.plan_with(overrides).state_at(controlled.now)
    if not state.is_inside:
        told += [f"job/{job['metadata']['name']} is stopped now" for job in controlled.running]
    return Exceptions(overrides, (*told, coming(controlled, overrides, controlled.now)))
