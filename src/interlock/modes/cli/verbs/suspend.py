"""Hold back: a waiting Job does not start, a running one starts no further task.

A suspended JobConfig makes no Jobs by the clock; runs on demand go on. A suspended ControlledJob
runs nothing: its Job is stopped. What was due meanwhile is not made up for.

  interlock suspend nightly-1763251200
  interlock suspend jobconfig/nightly --reason "month end"
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.jobs import steer
from interlock.modes.cli.session import Session
from interlock.modes.cli.suspending import SUSPENDABLE, add_names, names_of, setting


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    add_names(parser)
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for people to read")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Hold them."""
    order = setting(True, "suspended", args.reason)
    return steer(session, args, names_of(session, args), order, SUSPENDABLE)
