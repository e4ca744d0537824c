"""What a Job printed: standard output and standard error together.

Without --task and --attempt it is the newest attempt of the Job's first task; with --follow it is
every task, and every further attempt, until the Job ends.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.errors import INTERRUPTED, OK, TIMED_OUT, UnreachableError
from interlock.modes.cli.flags import add_namespace, number_from, seconds
from interlock.modes.cli.kinds import job_name
from interlock.modes.cli.printing import log_path, log_query, write
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    add = parser.add_argument
    add("name", metavar="JOB", help="the Job's name")
    add("-f", "--follow", action="store_true", help="go on as it prints more, until it ends")
    add("--task", metavar="N", type=number_from(0), help="which task (0)")
    add("--attempt", metavar="N", type=number_from(0), help="which attempt, from 0 (the newest)")
    add("--since", metavar="TIME", type=seconds, help="only what is newer than this: 5m")
    add("--tail", metavar="N", type=number_from(0), help="only the last lines")
    add_namespace(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Hand the bytes on as they come."""
    if args.follow and args.attempt is None:
        return _follow(session, args)
    path = log_path(session.namespace, job_name(args.name))
    answer = session.api.stream("GET", path, log_query(session, args), accept="text/plain")
    try:
        for part in answer.parts():
            write(part)
    except ConnectionError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UnreachableError("the server went away in the middle") from None
    finally:
        answer.close()
    return 0


def _follow(session: Session, args: argparse.Namespace) -> int:
    """Stay until the Job ends, also while it has not started yet. Its outcome is not ours."""
    from interlock.modes.cli.following import Follower

    follower = Follower(session, [job_name(args.name)], shows_output=True, quiet=True)
    follower.only_task = args.task
    follower.log_query = log_query(session, args)
    code = follower.run()
    return code if code in (INTERRUPTED, TIMED_OUT) else OK
