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

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.modes.cli.flags import add_exception, seconds
from interlock.modes.cli.ordering import except_from_plan, length_of
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    parser.add_argument("--until", metavar="WHEN", help='19:00, or "tomorrow 02:00"')
    parser.add_argument("--by", metavar="TIME", type=seconds, help="so much longer: 2h, 90m")
    add_exception(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the exception, or take it back."""
    if not args.cancel and (args.until is None) == (args.by is None):
        raise CommandError(
            "until when?", hint="give one of --until 19:00 and --by 2h", code=BAD_INPUT
        )
    by = None if args.cancel else length_of(args.by, "--by")
    how = {"until": args.until, "by": by}
    return except_from_plan(session, args, "extend", how)
