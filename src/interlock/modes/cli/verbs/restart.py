"""Stop the Job of a ControlledJob and start the next, without a moment in which there is none.

The next Job is there before the old one is told to stop, and starts once that is proven gone. When
none runs, one is started.

  interlock restart pricing-engine --reason "new market data"
"""

from __future__ import annotations

import argparse

from interlock.client.kinds import CONTROLLED_JOBS
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for people to read")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Make the next Job, and stop the old one."""
    from interlock.modes.cli.ordering import carry_out_found

    return carry_out_found(
        session, args, CONTROLLED_JOBS, "restart", {"reason": args.reason}, meant="start"
    )
