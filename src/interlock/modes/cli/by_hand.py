"""Jobs of a ControlledJob that a person starts and stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from interlock.modes.cli.controlled import Controlled, read_controlled, windows_of
from interlock.modes.cli.errors import CONFLICT, AnswerError, CommandError
from interlock.modes.cli.jobs import marks_of_stop, stopped_because, told_to_end
from interlock.modes.cli.kinds import JOBS
from interlock.modes.cli.outcomes import has_ended
from interlock.modes.cli.overriding import whose
from interlock.modes.cli.person import person
from interlock.modes.cli.session import Session
from interlock.resources.codec import to_builtins
from interlock.resources.controlled_job import OverrideAction
from interlock.resources.job import CREATOR_ANNOTATION
from interlock.schedules.controlled.making import make_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

#: How often a Job is made anew because its number was taken meanwhile.
_TRIES = 10

Job = dict[str, Any]


def start(session: Session, args: Namespace) -> int:
    """Make a Job unless one runs."""
    controlled, job = _made(session, args.name, is_needed=lambda one: not one.running)
    if job is None:
        return _runs_already(session, args, controlled)
    return _told(session, args, controlled, job)


def restart(session: Session, args: Namespace) -> int:
    """Make the Job that comes after the running one, then stop that.

    The new one waits for the lock, so at no moment do two run, and at none is there no Job.
    """
    controlled, job = _made(session, args.name, is_needed=lambda _: True)
    assert job is not None
    because = stopped_because("restarted", args.reason)
    for old in controlled.running:
        try:
            _stop_job(session, old, controlled, because)
        except AnswerError:
            # The server stops it as soon as the next one is there, and it may be over by now.
            if not _is_over(session, old):
                raise
        if not args.output:
            session.terminal.print(f"job/{old['metadata']['name']} stopping")
    return _told(session, args, controlled, job)


def _is_over(session: Session, job: Job) -> bool:
    try:
        return has_ended(session.api.get(JOBS, session.namespace, job["metadata"]["name"]))
    except AnswerError as error:
        return error.status == 404


def stop_controlled(session: Session, args: Namespace, name: str) -> list[Job]:
    """Stop the Jobs of a ControlledJob in a person's name: it makes no other in this window."""
    controlled = read_controlled(session, name)
    marks = marks_of_stop()
    stopped = [_stop_job(session, job, controlled, marks) for job in controlled.jobs]
    if not args.output:
        for job in stopped:
            session.terminal.print(f"job/{job['metadata']['name']} stopping")
        if not stopped:
            session.terminal.print(f"{controlled.word} runs nothing")
        for line in _after_stop(controlled, stopped=bool(stopped)):
            session.terminal.print(f"  {line}")
    return stopped


def _after_stop(controlled: Controlled, *, stopped: bool) -> Iterator[str]:
    """When it starts again."""
    state = controlled.plan.state_at(controlled.now)
    if not stopped and state.is_inside and not controlled.done_with:
        yield f"to keep it from starting: interlock hold {controlled.name} --until WHEN"
        return
    window = next(windows_of(controlled.plan, controlled.now), None)
    if window is None:
        yield f"it does not start again by itself, only with: interlock start {controlled.name}"
    else:
        can = stopped or controlled.done_with
        now = f", or now with: interlock start {controlled.name}" if can else ""
        yield f"it starts again {controlled.told(window.start)}{now}"


def _stop_job(session: Session, job: Job, controlled: Controlled, marks: dict[str, str]) -> Job:
    """Have a Job end from now on, and note why."""
    change = {
        "spec": told_to_end(job, controlled.now),
        "metadata": {"annotations": marks},
    }
    changed: Job = session.api.patch(JOBS, session.namespace, job["metadata"]["name"], change)
    return changed


def _made(
    session: Session, word: str, is_needed: Callable[[Controlled], bool]
) -> tuple[Controlled, Job | None]:
    """What was found, and the Job that was made after it; None when none is needed.

    Its number follows from what is stored: when somebody else takes it, all is read again.
    """
    for tried in range(_TRIES):
        controlled = read_controlled(session, word, verb="start")
        if not is_needed(controlled):
            return controlled, None
        _check_may_run(controlled)
        # A name may also be taken by a Job that is no concern of ours: then further on.
        job = _next(controlled, controlled.last_number + 1 + tried)
        try:
            return controlled, session.api.create(JOBS, session.namespace, job)
        except AnswerError as error:
            if error.status != 409 or tried == _TRIES - 1:
                raise
    raise AssertionError("the last try returns or raises")


def _next(controlled: Controlled, number: int) -> Job:
    """The Job of that number: of the window that is open, or a person's own."""
    standing = controlled.plan.state_at(controlled.now)
    job = make_job(
        controlled.noun,
        start=standing.start or controlled.now,
        number=number,
        stop=standing.next_stop,
        is_manual=True,
        takes_over_from=next((job["metadata"]["name"] for job in controlled.running), ""),
    )
    body: Job = to_builtins(job)
    body.pop("status", None)
    body["metadata"]["annotations"][CREATOR_ANNOTATION] = person()
    return body


def _check_may_run(controlled: Controlled) -> None:
    """Refuse where a Job would be stopped again at once."""
    word, spec = controlled.word, controlled.noun.spec
    if controlled.noun.is_going:
        raise CommandError(f"{word} is being deleted", code=CONFLICT)
    if spec.suspend:
        raise CommandError(
            f"{word} is suspended", hint=f"let it go with: interlock resume {word}", code=CONFLICT
        )
    for one in spec.overrides:
        if one.action is OverrideAction.HOLD and one.begin <= controlled.now < one.until:
            raise CommandError(
                f"{word} is held until {controlled.told(one.until)}{whose(one)}",
                hint=f"take that back with: interlock hold {controlled.name} --cancel",
                code=CONFLICT,
            )


def _runs_already(session: Session, args: Namespace, controlled: Controlled) -> int:
    job = controlled.running[0]
    if args.output:
        session.terminal.data(job, "json")
        return 0
    name = job["metadata"]["name"]
    session.terminal.print(f"{controlled.word} runs already: job/{name}; nothing was done")
    return 0


def _told(session: Session, args: Namespace, controlled: Controlled, job: Job) -> int:
    if args.output:
        session.terminal.data(job, "json")
        return 0
    session.terminal.print(f"job/{job['metadata']['name']} created")
    for old in controlled.jobs:
        name = old["metadata"]["name"]
        session.terminal.print(f"  it waits until job/{name} is gone, which was told to stop")
    stop = controlled.plan.state_at(controlled.now).next_stop
    when = f"{controlled.told(stop)}, or earlier" if stop else "only"
    session.terminal.print(f"  it is stopped {when} with: interlock stop {controlled.word}")
    return 0
