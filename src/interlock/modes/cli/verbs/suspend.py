"""Hold Jobs back: a waiting Job does not start, a running one starts no further task."""

from __future__ import annotations

import argparse

from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.jobs import steer
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("names", metavar="JOB", nargs="+", help="a Job's name")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for people to read")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Hold them."""
    spec = {"suspend": True, "suspendReason": args.reason or None}
    return steer(session, args, "suspended", lambda: {"spec": spec})
