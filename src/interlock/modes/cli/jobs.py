"""Orders to Jobs: the small changes that steer them."""

from __future__ import annotations

import sys
from typing import Any

from interlock.modes.cli.errors import OK, AnswerError
from interlock.modes.cli.flags import add_namespace, add_output, seconds
from interlock.modes.cli.kinds import JOBS, job_name
from interlock.modes.cli.main import tell
from interlock.modes.cli.moments import server_now, write_moment
from interlock.modes.cli.outcomes import has_ended, phase_of
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

Job = dict[str, Any]


def add_ending(parser: ArgumentParser) -> None:
    """What can be typed to a verb that ends Jobs."""
    parser.add_argument("names", metavar="JOB", nargs="+", help="a Job's name")
    parser.add_argument("--wait", action="store_true", help="stay until they ended")
    parser.add_argument("--timeout", metavar="TIME", type=seconds, help="stay at most this long")
    add_namespace(parser)
    add_output(parser, "json")


def end(session: Session, args: Any, word: str, **more: str) -> int:
    """Have the named Jobs end from now on, with more that their spec says about it."""
    return steer(
        session,
        args,
        word,
        lambda: {"spec": {"killAt": write_moment(server_now(session.api)), **more}},
    )


def steer(session: Session, args: Any, word: str, change: Callable[[], dict[str, Any]]) -> int:
    """Change each named Job that has not ended, and say what was done about each.

    One that cannot be changed does not keep the others from being changed.
    """
    code, changed = OK, []
    for name in map(job_name, args.names):
        try:
            job = session.api.get(JOBS, session.namespace, name)
            done = "already " + phase_of(job).lower() if has_ended(job) else word
            if not has_ended(job):
                job = session.api.patch(JOBS, session.namespace, name, change())
            changed.append(job)
            if not args.output:
                session.terminal.print(f"job/{name} {done}")
        except AnswerError as error:
            tell(error)
            code = code or error.code
    if args.output == "json":
        session.terminal.data(changed if len(args.names) > 1 else (changed or [{}])[0], "json")
    if code == OK and getattr(args, "wait", False):
        return _wait(session, args)
    return code


def _wait(session: Session, args: Any) -> int:
    """Stay until all ended. That they did is the success here, however they did."""
    from interlock.modes.cli.errors import INTERRUPTED, TIMED_OUT
    from interlock.modes.cli.following import Follower
    from interlock.modes.cli.output import Terminal

    names = [job_name(name) for name in args.names]
    progress = Terminal(sys.stderr) if args.output else None
    code = Follower(session, names, timeout_s=args.timeout, progress=progress).run()
    return code if code in (TIMED_OUT, INTERRUPTED) else OK
