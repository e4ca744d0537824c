"""End Jobs at once: SIGKILL to everything they started.

A Job that has ended stays as it is.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.jobs import add_ending, end
from interlock.modes.cli.session import Session

arguments = add_ending


def run(session: Session, args: argparse.Namespace) -> int:
    """Have them end."""
    return end(session, args, "being killed", gracePeriod="0s")
