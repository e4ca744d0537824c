"""Why something is (not) running: everything it waits for, who can change it, and when.

A JobConfig and a ControlledJob are asked about as jobconfig/NAME and controlledjob/NAME: when
they run next, what is in the way, their exceptions, and what was skipped.

On a cluster it also says when no controller leads, because then nothing moves.

  interlock why migrate
  interlock why controlledjob/pricing-engine
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from interlock.client.errors import AnswerError
from interlock.client.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind, parse_name
from interlock.client.moments import ago, day_and_time, server_now
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.not_found import exists, found
from interlock.modes.cli.session import Session

#: More holders than these are counted, and not named.
_MOST_HOLDERS = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="JOB | KIND/NAME", help="a Job's name, or what else")
    add_namespace(parser)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Have it explained, and tell."""
    kind, name = parse_name(args.name, JOBS, JOB_CONFIGS, CONTROLLED_JOBS)
    answer = why_of(session, kind, name, is_bare="/" not in args.name)
    if args.output:
        session.terminal.data(answer, args.output)
        return 0
    for line in told(answer, server_now(session.api)):
        session.terminal.print(line)
    return 0


def why_of(session: Session, kind: Kind, name: str, *, is_bare: bool = False) -> dict[str, Any]:
    """The answer about one thing; a bare name that no Job has may be that of a schedule."""
    if kind is not JOBS:
        with found(session, kind, name):
            return session.reports.why_schedule(kind, session.namespace, name)
    try:
        return session.reports.why(session.namespace, name)
    except AnswerError as error:
        if error.status == 404 and is_bare:
            for other in (CONTROLLED_JOBS, JOB_CONFIGS):
                if exists(session, other, name):
                    return session.reports.why_schedule(other, session.namespace, name)
        raise


def told(answer: dict[str, Any], now: datetime) -> list[str]:
    """The answer for people: the first line answers the question, the others explain it."""
    lines = [str(answer.get("summary") or f"{answer.get('job')} is {answer.get('phase')}")]
    for wait in answer.get("waits") or []:
        # One task that waits to be tried again does not keep the others from running.
        is_retry = wait.get("reason") == "RetryBackoff"
        label = "retry" if is_retry else "blocked"
        lines += ["", f"  {label:<9} {wait.get('message') or wait.get('reason')}"]
        holders = wait.get("holders") or []
        if len(holders) > 1:
            lines += [_holder_told(holder, now) for holder in holders[:_MOST_HOLDERS]]
        if len(holders) > _MOST_HOLDERS:
            lines.append(f"            and {len(holders) - _MOST_HOLDERS} more")
        # What is said about a schedule has its times on the schedule's own clock already.
        if wait.get("until") and not answer.get("kind") and not is_retry:
            lines.append(
                f"  until     {day_and_time(wait['until'])}, or earlier when something changes"
            )
    estimate = answer.get("estimate")
    last = (answer.get("waits") or [{}])[-1]
    # One that is the moment of the line above says nothing more.
    if estimate and last.get("until") != estimate["at"]:
        lines.append(f"  estimate  {estimate['message']}")
    lines += [""] if answer.get("details") else []
    lines += [f"  {label:<9} {text}" for label, text in answer.get("details") or []]
    for key, token in (answer.get("locks") or {}).items():
        lines.append(f"  holds     lock {key} (token {token})")
    return lines


def _holder_told(holder: dict[str, Any], now: datetime) -> str:
    held = ago(holder.get("since"), now)
    amounts = ", ".join(f"{name} {n}" for name, n in (holder.get("holds") or {}).items())
    what = f": {amounts}" if amounts else ""
    return f"  held by   job/{holder.get('job')} ({holder.get('phase')}, {held}){what}"
