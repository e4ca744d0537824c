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

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.modes.cli.flags import add_exception, seconds
from interlock.modes.cli.ordering import except_from_plan, length_of
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    parser.add_argument("--until", metavar="WHEN", help="monday, 2026-11-20, 19:00, or both")
    parser.add_argument("--for", dest="lasts", metavar="TIME", type=seconds, help="3d, 2h, 90m")
    add_exception(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the exception, or take it back."""
    if not args.cancel and (args.until is None) == (args.lasts is None):
        raise CommandError(
            "until when?", hint="give one of --until monday and --for 3d", code=BAD_INPUT
        )
    lasts = None if args.cancel else length_of(args.lasts, "--for")
    how = {"until": args.until, "lasts": lasts}
    return except_from_plan(session, args, "hold", how)
