"""Put Jobs back that were let in: they are stopped, give everything back, and wait again.

A Job keeps its locks until all of it is proven gone. Then it waits behind all of its priority who
wait by then, and begins a new round: what succeeded is not done again, every other task has all its
attempts. A Job that ends meanwhile has ended. Who gave the order, and why, stays with the Job.

  interlock requeue train-6 --reason "node 12 is slow"
  interlock requeue -l team=ops --reason "the database goes down at noon"
"""

from __future__ import annotations

import argparse

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.client.kinds import JOBS, job_name
from interlock.modes.cli.choosing import LIVE, add_choice, chosen
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take Jobs and the reason."""
    add_choice(parser)
    parser.add_argument("--reason", metavar="TEXT", required=True, help="why, for people to read")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Give the order to each; the server does the rest."""
    if not args.reason.strip():
        raise CommandError("--reason is empty", hint="say why it is put back", code=BAD_INPUT)
    from interlock.modes.cli.ordering import order_each

    names = chosen(session, args, lambda word: (JOBS, job_name(word, verb="requeue")), only=LIVE)
    return order_each(session, args, names, "requeue", {"reason": args.reason})
