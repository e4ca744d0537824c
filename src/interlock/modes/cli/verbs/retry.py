"""Run Jobs again, each as a new Job with the same definition.

The new Job is called JOB-retry- and five characters. Moments of the old one (when to start, when
to stop) are left out: it starts as soon as it may.

  interlock retry migrate
  interlock retry -l team=ops --field-selector status.phase=Failed
"""

from __future__ import annotations

import argparse

from interlock.client.kinds import JOBS, job_name
from interlock.modes.cli.choosing import add_choice, chosen
from interlock.modes.cli.creating import told_as_made
from interlock.modes.cli.flags import add_namespace, add_output, add_waiting
from interlock.modes.cli.ordering import carry_out
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_choice(parser, about="a Job to repeat; may be several")
    add_waiting(parser)
    add_namespace(parser)
    add_output(parser, "json", "yaml", "name", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Create the new Jobs, and stay with them if asked. All are read before one is made."""
    names = chosen(session, args, lambda word: (JOBS, job_name(word, verb="retry")))
    if len(names) > 1:
        for kind, name in names:
            session.api.get(kind, session.namespace, name)
    made = [carry_out(session, kind, name, "retry", {}).items[0] for kind, name in names]
    if args.wait or args.follow:
        from interlock.modes.cli.following import follow

        return follow(session, [job["metadata"]["name"] for job in made], args)
    return told_as_made(session, args, made)
