"""Free a lock whose Job's fate cannot be proven.

A Job whose task is Unknown keeps its locks, because the task may still be doing something. Say
with this that it is not, and why you are sure: the Job ends as FinishedUnknown and its locks pass
on. The reason is kept with the Job.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.errors import CONFLICT, NOT_FOUND, CommandError, did_you_mean
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.kinds import JOBS, job_name
from interlock.modes.cli.outcomes import execution_of, has_ended, phase_of
from interlock.modes.cli.session import Session

RELEASE = "interlock.dev/release"
RELEASED_ATTEMPTS = "interlock.dev/released-attempts"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("key", metavar="KEY", help="the lock")
    parser.add_argument("--job", metavar="NAME", required=True, help="the Job that holds it")
    parser.add_argument("--reason", metavar="TEXT", required=True, help="why this is safe")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the person's word on the Job; the server does the rest."""
    name = job_name(args.job)
    _check_holds(session, args.key, name)
    job = session.api.get(JOBS, session.namespace, name)
    phase = phase_of(job)
    if phase != "Unknown":
        raise CommandError(
            f"job/{name} is {phase}, not Unknown: its fate needs nobody's word",
            hint="its lock passes on by itself"
            if has_ended(job)
            else f"its lock passes on when it ends; stop it with: interlock stop {name}",
            code=CONFLICT,
        )
    version = job["metadata"]["resourceVersion"]
    # The word is about what is unknown now, and is not taken for anything that comes later.
    unknown = [
        task for task in execution_of(job).get("active") or [] if task.get("state") == "Unknown"
    ]
    attempts = ",".join(f"{task['index']}-{task['attempt']}" for task in unknown)
    word = {RELEASE: args.reason, RELEASED_ATTEMPTS: attempts}
    change = {"metadata": {"resourceVersion": version, "annotations": word}}
    job = session.api.patch(JOBS, session.namespace, name, change)
    if args.output:
        session.terminal.data(job, "json")
    else:
        session.terminal.print(f"lock {args.key} released by job/{name}")
    return 0


def _check_holds(session: Session, key: str, name: str) -> None:
    locks = {lock["key"]: lock for lock in session.reports.locks(session.namespace)}
    if key not in locks:
        raise CommandError(
            f"there is no lock {key!r}", hint=did_you_mean(key, locks), code=NOT_FOUND
        )
    holders = [holder["job"] for holder in locks[key].get("holders") or []]
    if name not in holders:
        told = ", ".join(f"job/{holder}" for holder in holders) or "nobody"
        raise CommandError(
            f"job/{name} does not hold lock {key}", hint=f"it is held by {told}", code=CONFLICT
        )
