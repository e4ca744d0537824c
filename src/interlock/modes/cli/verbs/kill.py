"""End Jobs at once: SIGKILL to everything they started.

A Job that has ended stays as it is. A Job of a ControlledJob is not started again in this window.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.choosing import LIVE, chosen
from interlock.modes.cli.jobs import add_ending, ending, steer
from interlock.modes.cli.kinds import JOBS, job_name
from interlock.modes.cli.session import Session

arguments = add_ending


def run(session: Session, args: argparse.Namespace) -> int:
    """Have them end."""
    names = chosen(session, args, lambda word: (JOBS, job_name(word, verb="kill")), only=LIVE)
    order = ending(session, "being killed", gracePeriod="0s")
    return steer(session, args, names, order, verb="kill")
