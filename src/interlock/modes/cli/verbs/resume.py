"""Let suspended Jobs go on."""

from __future__ import annotations

import argparse

from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.jobs import steer
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("names", metavar="JOB", nargs="+", help="a Job's name")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Let them go."""
    spec = {"suspend": None, "suspendReason": None}
    return steer(session, args, "resumed", lambda: {"spec": spec})
