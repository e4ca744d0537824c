"""Run Jobs again, each as a new Job with the same definition.

The new Job is called JOB-retry- and five characters. Moments of the old one (when to start, when
to stop) are left out: it starts as soon as it may.

  interlock retry migrate
  interlock retry -l team=ops --field-selector status.phase=Failed
"""

from __future__ import annotations

import argparse

from interlock.client.kinds import JOBS, job_name
from interlock.client.moments import server_now
from interlock.modes.cli.choosing import add_choice, chosen
from interlock.modes.cli.creating import create_job, told_as_made
from interlock.modes.cli.flags import add_namespace, add_output, add_waiting
from interlock.modes.cli.input.person import person
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_choice(parser, about="a Job to repeat; may be several")
    add_waiting(parser)
    add_namespace(parser)
    add_output(parser, "json", "yaml", "name", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Create the new Jobs, and stay with them if asked. All are read before one is made."""
    from interlock.client.ordering import body_of
    from interlock.client.schedules import read_one
    from interlock.commands.change import By
    from interlock.commands.jobs import Retrying, retry
    from interlock.resources.job import Job

    names = chosen(session, args, lambda word: (JOBS, job_name(word, verb="retry")))
    old = [read_one(session.api, kind, session.namespace, name) for kind, name in names]
    made = []
    for job in old:
        assert isinstance(job, Job)
        (write,) = retry(job, Retrying(), By(person(), server_now(session.api))).writes
        made.append(create_job(session, body_of(write.after)))
    if args.wait or args.follow:
        from interlock.modes.cli.following import follow

        return follow(session, [job["metadata"]["name"] for job in made], args)
    return told_as_made(session, args, made)
