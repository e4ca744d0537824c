"""Hold back: a waiting Job does not start, a running one starts no further task.

A suspended JobConfig makes no Jobs by the clock; runs on demand go on. A suspended ControlledJob
runs nothing: its Job is stopped. What was due meanwhile is not made up for.

  interlock suspend nightly-1763251200
  interlock suspend jobconfig/nightly --reason "month end"
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.choosing import SUSPENDABLE, add_suspendable, chosen_suspendable
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_suspendable(parser)
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for people to read")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Hold them."""
    from interlock.modes.cli.ordering import order_each

    names = chosen_suspendable(session, args)
    how = {"reason": args.reason}
    return order_each(session, args, names, "suspend", how, SUSPENDABLE)
