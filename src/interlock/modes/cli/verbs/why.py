"""Why a Job is (not) running: everything it waits for, who can change it, and when.

On a cluster it also says when no controller leads, because then nothing moves.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.kinds import job_name
from interlock.modes.cli.moments import ago, day_and_time, server_now
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("name", metavar="JOB", help="the Job's name")
    add_namespace(parser)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Have it explained, and tell."""
    answer = session.reports.why(session.namespace, job_name(args.name))
    if args.output:
        session.terminal.data(answer, args.output)
        return 0
    for line in told(answer, server_now(session.api)):
        session.terminal.print(line)
    return 0


def told(answer: dict[str, Any], now: datetime) -> list[str]:
    """The answer for people: the first line answers the question, the others explain it."""
    lines = [str(answer.get("summary") or f"{answer.get('job')} is {answer.get('phase')}")]
    for wait in answer.get("waits") or []:
        lines += ["", f"  blocked   {wait.get('message') or wait.get('reason')}"]
        holders = wait.get("holders") or []
        if len(holders) > 1:
            lines += [_holder_told(holder, now) for holder in holders]
        if wait.get("until"):
            lines.append(
                f"  until     {day_and_time(wait['until'])}, or earlier when something changes"
            )
    lines += [""] if answer.get("details") else []
    lines += [f"  {label:<9} {text}" for label, text in answer.get("details") or []]
    for key, token in (answer.get("locks") or {}).items():
        lines.append(f"  holds     lock {key} (token {token})")
    return lines


def _holder_told(holder: dict[str, Any], now: datetime) -> str:
    held = ago(holder.get("since"), now)
    return f"  held by   job/{holder.get('job')} ({holder.get('phase')}, {held})"
