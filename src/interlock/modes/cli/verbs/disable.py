"""Switch the schedules of a JobConfig off, all of them or one.

Jobs that exist go on, and the config can still be run on demand.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.enabling import add_switching, switch
from interlock.modes.cli.session import Session

arguments = add_switching


def run(session: Session, args: argparse.Namespace) -> int:
    """Switch them off."""
    return switch(session, args, on=False)
