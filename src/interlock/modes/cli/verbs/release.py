"""Say that the tasks of a Job are gone whose fate cannot be proven: it ends, its locks pass on.

A Job whose task is Unknown stays so, and keeps its locks, because the task may still be doing
something. Say with this that it is not, and why you are sure: the Job ends as FinishedUnknown. The
reason is kept with the Job, and so is who gave it. With --job it is done only if the Job holds
the lock that is named.

  interlock release report --reason "looked on node 7: it is gone"
  interlock release database --job migrate --reason "ledger checked"
  interlock release --field-selector status.phase=Unknown --reason "the machine was rebuilt"
"""

from __future__ import annotations

import argparse

from interlock.client.errors import (
    BAD_INPUT,
    CONFLICT,
    NOT_FOUND,
    OK,
    CommandError,
    did_you_mean,
)
from interlock.client.kinds import JOBS, job_name
from interlock.modes.cli.choosing import UNKNOWN, add_choice, chosen
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.main import tell
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    add_choice(parser, "JOB | KEY", "a Job's name, may be several; with --job: a lock it holds")
    parser.add_argument("--job", metavar="NAME", default="", help="the Job that holds the lock")
    parser.add_argument("--reason", metavar="TEXT", required=True, help="why this is safe")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the person's word on each Job; the server does the rest."""
    if not args.reason.strip():
        raise CommandError(
            "--reason is empty", hint="say why you are sure that it is gone", code=BAD_INPUT
        )
    if args.job:
        return _release_lock(session, args)
    code, changed = OK, []
    for _, name in chosen(session, args, lambda word: (JOBS, job_name(word)), only=UNKNOWN):
        try:
            changed.append(_release(session, name, args.reason))
        except CommandError as error:
            if not args.names and error.code in (CONFLICT, NOT_FOUND):
                continue  # It fitted a moment ago, and needs nobody's word any more.
            if error.code == NOT_FOUND:
                error.hint = _lock_of_that_name(session, name) or error.hint
            tell(error)
            code = code or error.code
            continue
        if not args.output:
            session.terminal.print(f"job/{name} released")
    if args.output:
        session.terminal.data(changed if len(args.names) != 1 else (changed or [{}])[0], "json")
    return code


def _release_lock(session: Session, args: argparse.Namespace) -> int:
    if args.selector or args.field_selector or len(args.names) > 1:
        raise CommandError("with --job goes one lock at most, and no selector", code=BAD_INPUT)
    name = job_name(args.job)
    for key in args.names:
        _check_holds(session, key, name)
    job = _release(session, name, args.reason)
    if args.output:
        session.terminal.data(job, "json")
    else:
        told = [f"lock {key} released by job/{name}" for key in args.names]
        session.terminal.print(told[0] if told else f"job/{name} released")
    return OK


def _release(session: Session, name: str, reason: str) -> dict[str, Any]:
    from interlock.modes.cli.ordering import carry_out

    (job,) = carry_out(session, JOBS, name, "release", {"reason": reason}).items
    return job


def _lock_of_that_name(session: Session, key: str) -> str:
    """What to type when the name of a lock was given."""
    for lock in session.reports.locks(session.namespace):
        if lock["key"] == key and lock.get("holders"):
            holder = lock["holders"][0]["job"]
            return (
                f"{key} is a lock, held by job/{holder}:"
                f" interlock release {key} --job {holder} --reason …"
            )
    return ""


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
