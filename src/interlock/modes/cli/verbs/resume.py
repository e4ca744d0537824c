"""Let what was suspended go on: Jobs, JobConfigs and ControlledJobs."""

from __future__ import annotations

import argparse

from interlock.modes.cli.choosing import SUSPENDABLE, add_suspendable, chosen_suspendable
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_suspendable(parser)
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Let them go."""
    from interlock.modes.cli.ordering import order_each

    names = chosen_suspendable(session, args)
    return order_each(session, args, names, "resume", {}, SUSPENDABLE)
