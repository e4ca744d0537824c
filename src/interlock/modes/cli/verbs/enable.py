"""Switch the schedules of a JobConfig on, all of them or one.

What was due while they were off is not made up for.
"""

from __future__ import annotations

import argparse

from interlock.client.kinds import JOB_CONFIGS
from interlock.modes.cli.flags import add_switching
from interlock.modes.cli.session import Session

arguments = add_switching


def run(session: Session, args: argparse.Namespace) -> int:
    """Switch them on."""
    from interlock.modes.cli.ordering import carry_out_found

    how = {"schedule": args.schedule}
    instead = "resume"
    return carry_out_found(session, args, JOB_CONFIGS, "enable", how, instead=instead)
