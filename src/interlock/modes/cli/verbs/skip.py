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

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.commands.limits import MOST_SKIPPED
from interlock.modes.cli.flags import add_exception, number_from
from interlock.modes.cli.ordering import except_from_plan
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    parser.add_argument("when", metavar="WHEN", nargs="?",
                        help="next, today, tomorrow, monday, 2026-11-20 (next)")  # fmt: skip
    parser.add_argument("--count", metavar="N", type=number_from(1), help="so many starts")
    add_exception(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the exception, or take it back."""
    if args.count is not None and args.count > MOST_SKIPPED:
        raise CommandError(f"--count: expected at most {MOST_SKIPPED}", code=BAD_INPUT)
    if args.cancel and args.count is not None:
        raise CommandError("--count is not for --cancel", code=BAD_INPUT)
    how = {"when": args.when, "count": args.count}
    return except_from_plan(session, args, "skip", how)
