"""Let what was suspended go on: Jobs, JobConfigs and ControlledJobs."""

from __future__ import annotations

import argparse

from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.jobs import steer
from interlock.modes.cli.session import Session
from interlock.modes.cli.suspending import SUSPENDABLE, add_names, names_of, setting


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    add_names(parser)
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Let them go."""
    order = setting(False, "resumed")
    return steer(session, args, names_of(session, args), order, SUSPENDABLE)
