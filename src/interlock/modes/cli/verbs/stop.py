"""End Jobs gracefully: SIGTERM, then SIGKILL after the grace period.

A Job that has ended stays as it is. A ControlledJob whose Job is stopped is not started again in
this window; its next window starts as planned.

  interlock stop migrate
  interlock stop controlledjob/pricing-engine
"""

from __future__ import annotations

import argparse
from typing import Any

from interlock.modes.cli.errors import OK, AnswerError
from interlock.modes.cli.finding import exists
from interlock.modes.cli.jobs import add_ending_flags, ending, finish, steer
from interlock.modes.cli.kinds import CONTROLLED_JOBS, JOBS, Kind, parse_name
from interlock.modes.cli.main import tell
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument(
        "names", metavar="JOB | CONTROLLEDJOB", nargs="+",
        help="a Job's name, or that of a ControlledJob; also as controlledjob/NAME",
    )  # fmt: skip
    add_ending_flags(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Have them end."""
    names = [_meant(session, word) for word in args.names]
    if all(kind is JOBS for kind, _ in names):
        return steer(session, args, names, ending(session, "stopping"), verb="stop")
    code, changed = OK, []
    for kind, name in names:
        try:
            changed += _stop(session, args, kind, name)
        except AnswerError as error:
            tell(error)
            code = code or error.code
    return finish(session, args, changed, code)


def _meant(session: Session, word: str) -> tuple[Kind, str]:
    """A bare name is that of a Job, or else of a ControlledJob."""
    kind, name = parse_name(word, JOBS, CONTROLLED_JOBS, verb="stop")
    if "/" in word or exists(session, JOBS, name) or not exists(session, CONTROLLED_JOBS, name):
        return kind, name
    return CONTROLLED_JOBS, name


def _stop(session: Session, args: argparse.Namespace, kind: Kind, name: str) -> list[Any]:
    if kind is CONTROLLED_JOBS:
        from interlock.modes.cli.by_hand import stop_controlled

        return stop_controlled(session, args, name)
    job = session.api.get(JOBS, session.namespace, name)
    told, change = ending(session, "stopping")(kind, job)
    if change is not None:
        job = session.api.patch(JOBS, session.namespace, name, change)
    if not args.output:
        session.terminal.print(f"job/{name} {told}")
    return [job]
