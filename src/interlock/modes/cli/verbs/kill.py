"""End Jobs at once: SIGKILL to everything they started.

A Job that has ended stays as it is. A Job of a ControlledJob is not started again in this window.
"""

from __future__ import annotations

import argparse

from interlock.client.kinds import JOBS, job_name
from interlock.modes.cli.choosing import LIVE, add_choice, chosen
from interlock.modes.cli.flags import add_ending
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_choice(parser)
    add_ending(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Have them end."""
    from interlock.modes.cli.ordering import order_each

    names = chosen(session, args, lambda word: (JOBS, job_name(word, verb="kill")), only=LIVE)
    return order_each(session, args, names, "kill", {})
