"""Start a ControlledJob by hand, now.

Outside its windows the Job runs until the next stop of the plan, or until a person stops it; if a
window opens meanwhile, it is that window's Job. Inside a window this starts again what a person
stopped, or what has ended. When one runs already, nothing is done.

  interlock start pricing-engine
"""

from __future__ import annotations

import argparse

from interlock.client.kinds import CONTROLLED_JOBS
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the ControlledJob")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Make the Job."""
    from interlock.modes.cli.ordering import carry_out_found

    return carry_out_found(session, args, CONTROLLED_JOBS, "start", {}, meant="start")
