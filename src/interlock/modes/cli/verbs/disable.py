"""Switch the schedules of a JobConfig off, all of them or one.

Jobs that exist go on, and the config can still be run on demand.
"""

from __future__ import annotations

import argparse

from interlock.client.kinds import JOB_CONFIGS
from interlock.modes.cli.flags import add_switching
from interlock.modes.cli.session import Session

arguments = add_switching


def run(session: Session, args: argparse.Namespace) -> int:
    """Switch them off."""
    from interlock.modes.cli.ordering import carry_out_found

    how = {"schedule": args.schedule}
    instead = "suspend"
    return carry_out_found(session, args, JOB_CONFIGS, "disable", how, instead=instead)
