"""Switch the schedules of a JobConfig on, all of them or one.

What was due while they were off is not made up for.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.enabling import add_switching, switch
from interlock.modes.cli.session import Session

arguments = add_switching


def run(session: Session, args: argparse.Namespace) -> int:
    """Switch them on."""
    return switch(session, args, on=True)
