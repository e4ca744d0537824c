"""Wait until Jobs ended, started, or are ready: as many tasks at work as may be at a time.

The exit code tells the outcome: that of the first named Job that did not do well, or 124 when
the time is over.

  interlock wait backup migrate
  interlock wait -l team=ops --timeout 5m
"""

from __future__ import annotations

import argparse
import sys

from interlock.client.errors import INTERRUPTED
from interlock.client.kinds import JOBS, job_name
from interlock.modes.cli.choosing import add_choice, chosen
from interlock.modes.cli.flags import add_namespace, add_output, seconds
from interlock.modes.cli.following import Follower
from interlock.modes.cli.output.formats import Terminal
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_choice(parser)
    parser.add_argument("--timeout", metavar="TIME", type=seconds, help="at most so long: 60s, 5m")
    parser.add_argument(
        "--for",
        dest="goal",
        choices=("ended", "started", "ready"),
        default="ended",
        help="for what (ended)",
    )
    add_namespace(parser)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Stay until all are there."""
    meant = chosen(session, args, lambda word: (JOBS, job_name(word, verb="wait")))
    names = [name for _, name in meant]
    progress = Terminal(sys.stderr) if args.output else session.terminal
    follower = Follower(session, names, goal=args.goal, timeout_s=args.timeout, progress=progress)
    code = follower.run()
    if args.output and code != INTERRUPTED:
        jobs = [follower.jobs[name] for name in names]
        whole = {"apiVersion": "v1", "kind": "List", "items": jobs}
        session.terminal.data(jobs[0] if len(jobs) == 1 else whole, args.output)
    return code
