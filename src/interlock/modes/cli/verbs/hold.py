"""Let nothing of a ControlledJob run until a moment; then the plan is as usual.

Its Job is stopped. The exception is kept on the object, can be seen by everybody, and goes by
itself. Days and times are read on the ControlledJob's own clock.

  interlock hold pricing-engine --until monday
  interlock hold pricing-engine --until "2026-11-20 19:00" --reason "exchange is down"
  interlock hold pricing-engine --for 3d
  interlock hold pricing-engine --cancel
"""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta

from interlock.modes.cli.controlled import Controlled
from interlock.modes.cli.day_words import DayWords
from interlock.modes.cli.errors import BAD_INPUT, CommandError
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
from interlock.modes.cli.planning import LONGEST_S, coming
from interlock.modes.cli.session import Session
from interlock.resources.controlled_job import OverrideAction


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    parser.add_argument("--until", metavar="WHEN", help="monday, 2026-11-20, 19:00, or both")
    parser.add_argument("--for", dest="lasts", metavar="TIME", type=seconds, help="3d, 2h, 90m")
    add_overriding(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the exception, or take it back."""
    if args.cancel:
        return override(session, args, _cancelled)
    if (args.until is None) == (args.lasts is None):
        raise CommandError(
            "until when?", hint="give one of --until monday and --for 3d", code=BAD_INPUT
        )
    return override(session, args, lambda controlled: _held(controlled, args))


def _held(controlled: Controlled, args: argparse.Namespace) -> Exceptions:
    until = _until(controlled, args)
    held = made(args, OverrideAction.HOLD, begin=controlled.now, until=until)
    overrides = (*others(controlled, *of_action(controlled, OverrideAction.HOLD)), held)
    told = [f"held until {controlled.told(until)}; the exception goes by itself then"]
    told += [f"job/{job['metadata']['name']} is stopped now" for job in controlled.running]
    told.append(f"then {coming(controlled, overrides, until)}")
    return Exceptions(overrides, tuple(told))


def _until(controlled: Controlled, args: argparse.Namespace) -> datetime:
    if args.until is not None:
        return DayWords(controlled.zone, controlled.now).moment(args.until)
    if not 1 <= args.lasts <= LONGEST_S:
        raise CommandError("--for: expected from a second to ten years", code=BAD_INPUT)
    return controlled.now + timedelta(seconds=int(args.lasts))


def _cancelled(controlled: Controlled) -> Exceptions:
    held = to_cancel(controlled, of_action(controlled, OverrideAction.HOLD), "hold")
    overrides = others(controlled, *held)
    told = [f"no longer held until {controlled.told(one.until)}{whose(one)}" for one in held]
    return Exceptions(overrides, (*told, coming(controlled, overrides, controlled.now)))
