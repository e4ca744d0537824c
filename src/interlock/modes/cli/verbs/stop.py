"""End Jobs gracefully: SIGTERM, then SIGKILL after the grace period.

A Job that has ended stays as it is. A ControlledJob whose Job is stopped is not started again in
this window; its next window starts as planned.

  interlock stop migrate
  interlock stop controlledjob/pricing-engine
  interlock stop -l team=ops
"""

from __future__ import annotations

import argparse

from interlock.client.errors import OK, AnswerError
from interlock.client.kinds import CONTROLLED_JOBS, JOBS, Kind, parse_name
from interlock.modes.cli.choosing import LIVE, add_choice, chosen
from interlock.modes.cli.flags import add_ending
from interlock.modes.cli.main import tell
from interlock.modes.cli.not_found import exists
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    about = "a Job's name, or that of a ControlledJob; also as controlledjob/NAME"
    add_choice(parser, "JOB | CONTROLLEDJOB", about)
    add_ending(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Have them end."""
    from interlock.modes.cli.ordering import carry_out, finish, order_each, print_lines

    names = chosen(session, args, lambda word: _meant(session, word), only=LIVE)
    if all(kind is JOBS for kind, _ in names):
        return order_each(session, args, names, "stop", {})
    code, changed = OK, []
    for kind, name in names:
        try:
            carried = carry_out(session, kind, name, "stop", {})
        except AnswerError as error:
            tell(error)
            code = code or error.code
            continue
        # What is shown of a ControlledJob are its Jobs.
        changed += [item for item in carried.items if item.get("kind") == JOBS.name]
        print_lines(session, args, carried)
    return finish(session, args, changed, code)


def _meant(session: Session, word: str) -> tuple[Kind, str]:
    """A bare name is that of a Job, or else of a ControlledJob."""
    kind, name = parse_name(word, JOBS, CONTROLLED_JOBS, verb="stop")
    if "/" in word or exists(session, JOBS, name) or not exists(session, CONTROLLED_JOBS, name):
        return kind, name
    return CONTROLLED_JOBS, name
