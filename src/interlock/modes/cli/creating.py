"""Jobs that a person makes: what to do when the name is taken, and whether it was let in at all."""

from __future__ import annotations

import sys
from time import monotonic

from interlock.client.errors import NEVER_RAN, OK, AnswerError, CommandError
from interlock.client.kinds import JOBS
from interlock.client.outcomes import has_ended, phase_of, waits_of
from interlock.modes.cli.main import tell
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Job = dict[str, Any]

#: How long the first look at a Job is waited for that may be refused then; it takes milliseconds.
_FIRST_LOOK_S = 15.0


def create_job(session: Session, body: Job) -> Job:
    """Store a Job; an error about its name tells the next step."""
    try:
        job: Job = session.api.create(JOBS, session.namespace, body)
    except AnswerError as error:
        if error.reason == "AlreadyExists":
            error.hint = next_step(session, str(body["metadata"].get("name") or ""))
        raise
    return job


def next_step(session: Session, name: str) -> str:
    """What to do when the name of a new Job is taken."""
    other = "or give another --name"
    try:
        job = session.api.get(JOBS, session.namespace, name)
    except AnswerError:
        return other.removeprefix("or ")
    if has_ended(job):
        return (
            f"it is over ({phase_of(job)}): run it again with: interlock retry {name}; or let it"
            f" go first: interlock delete job {name}; {other}"
        )
    return (
        f"it is {phase_of(job)}: wait for it with: interlock wait {name}; or end it:"
        f" interlock stop {name}; {other}"
    )


def told_as_made(session: Session, args: Any, jobs: list[Job], told: str = "") -> int:
    """Say that Jobs were made, or that one was refused at once: that is no success."""
    jobs = [_after_first_look(session, job) for job in jobs]
    refused = [job for job in jobs if phase_of(job) == "Refused"]
    if args.output and args.output != "name":
        session.terminal.data(jobs[0] if len(jobs) == 1 else jobs, args.output)
    for job in jobs:
        if args.output == "name":
            session.terminal.print(f"job/{job['metadata']['name']}")
        elif not args.output and job not in refused:
            session.terminal.print(f"job/{job['metadata']['name']} created{told}")
    for job in refused:
        tell(_refusal(job, args))
    return NEVER_RAN if refused else OK


def _refusal(job: Job, args: Any) -> CommandError:
    name, admission = job["metadata"]["name"], job["status"]["admission"]
    hint = f"interlock why {name}"
    if admission.get("refusal") == "LockForbidden" and hasattr(args, "policy"):
        flag = "--policy" if args.config else "--when-taken"
        hint = f"have it wait instead: {flag} Enqueue; interlock locks shows who holds what"
    elif admission.get("refusal") == "QueueFull":
        hint = "as many wait as may; try again when one has started: interlock locks"
    return CommandError(
        f"job/{name} was refused and never ran: {admission.get('message')}",
        hint=hint,
        code=NEVER_RAN,
    )


def _after_first_look(session: Session, job: Job) -> Job:
    """The Job once the server has looked at it, if that look may refuse it."""
    if not _may_be_refused(job) or _was_looked_at(job):
        return job
    from interlock.client.watching import Change, Feed

    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    deadline = monotonic() + _FIRST_LOOK_S
    feed = Feed(session.api, JOBS, session.namespace, fields=f"metadata.name={name}")
    try:
        changes: list[Change] | None = feed.start()
        while changes is not None:
            for type, seen in changes:
                if seen["metadata"]["uid"] == uid and type != "DELETED":
                    job = seen
            if _was_looked_at(job):
                return job
            changes = feed.next(max(0.0, deadline - monotonic()))
    except CommandError:
        pass  # It was made, whatever cannot be said about it now.
    finally:
        feed.close()
    print(
        f"it is not known yet whether job/{name} may run; ask: interlock why {name}",
        file=sys.stderr,
    )
    return job


def _may_be_refused(job: Job) -> bool:
    spec = job.get("spec") or {}
    locks = spec.get("locks") or []
    return bool(spec.get("startBy")) or any(
        lock.get("whenTaken") == "Forbid" or lock.get("maxWaiting") is not None for lock in locks
    )


def _was_looked_at(job: Job) -> bool:
    """Whether it was let in, refused, or put in a line. Its schedule's books come before that."""
    waits = [wait for wait in waits_of(job) if wait.get("reason") != "NotInBooks"]
    return bool(waits) or phase_of(job) != "Queued"
