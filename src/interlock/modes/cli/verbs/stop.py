"""End Jobs gracefully: SIGTERM, then SIGKILL after the grace period.

A Job that has ended stays as it is.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.flags import add_namespace, add_output, seconds
from interlock.modes.cli.jobs import steer
from interlock.modes.cli.moments import server_now, write_moment
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("names", metavar="JOB", nargs="+", help="a Job's name")
    parser.add_argument("--wait", action="store_true", help="stay until they ended")
    parser.add_argument("--timeout", metavar="TIME", type=seconds, help="stay at most this long")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Have them end."""
    return steer(
        session,
        args,
        "stopping",
        lambda: {"spec": {"killAt": write_moment(server_now(session.api))}},
    )
