"""Orders to what is stored: the small changes that steer Jobs, and those who make them."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from interlock.modes.cli.choosing import add_choice
from interlock.modes.cli.errors import OK, AnswerError
from interlock.modes.cli.finding import other_verb, same_name
from interlock.modes.cli.flags import add_namespace, add_output, seconds
from interlock.modes.cli.kinds import CONTROLLED_JOBS, JOBS, Kind
from interlock.modes.cli.main import tell
from interlock.modes.cli.moments import parse_moment, server_now, write_moment
from interlock.modes.cli.outcomes import has_ended, phase_of, way_out
from interlock.modes.cli.person import person
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterable
    from datetime import datetime

Job = dict[str, Any]
#: Says that a person stopped the Job: its ControlledJob does not start it again in this window.
SUSPEND_REASON = "interlock.dev/suspend-reason"
USER_STOP = "user-stop"
#: Why the Job was stopped, for people, and by whom; a server that knows better says so instead.
STOPPED_BECAUSE = "interlock.dev/stopped-because"
STOPPED_BY = "interlock.dev/stopped-by"


class Order(NamedTuple):
    """What to say about one resource, and how to change it; None leaves it as it is."""

    told: str
    change: dict[str, Any] | None = None


def add_ending(parser: ArgumentParser) -> None:
    """What can be typed to a verb that ends Jobs."""
    add_choice(parser)
    add_ending_flags(parser)


def add_ending_flags(parser: ArgumentParser) -> None:
    """The flags of a verb that ends Jobs."""
    parser.add_argument("--wait", action="store_true", help="stay until they ended")
    parser.add_argument("--timeout", metavar="TIME", type=seconds, help="stay at most this long")
    add_namespace(parser)
    add_output(parser, "json")


def ending(session: Session, word: str, **more: str) -> Callable[[Kind, Job], Order]:
    """The order to a Job to end from now on, with more that its spec says about it."""

    def order(_: Kind, job: Job) -> Order:
        if has_ended(job):
            return Order(f"already {phase_of(job).lower()}")
        end = told_to_end(job, server_now(session.api))
        change: dict[str, Any] = {"spec": {**end, **more}}
        if is_of(job, CONTROLLED_JOBS):
            change["metadata"] = {"annotations": marks_of_stop()}
        elif end:
            # Of a Job that is told already, whoever told it first is the one to name.
            change["metadata"] = {"annotations": stopped_because("stopped")}
        if out := way_out(job):
            return Order(f"{word}; what became of it is not known: {out}", change)
        return Order(word, change)

    return order


def told_to_end(job: Job, now: datetime) -> dict[str, str]:
    """What a Job's spec says from now on about its end; a stop that is due stays as it is."""
    kill_at = parse_moment((job.get("spec") or {}).get("killAt"))
    return {} if kill_at is not None and kill_at <= now else {"killAt": write_moment(now)}


def marks_of_stop() -> dict[str, str]:
    """The annotations of a Job that a person stops."""
    return {SUSPEND_REASON: USER_STOP, **stopped_because("stopped")}


def stopped_because(verb: str, reason: str = "") -> dict[str, str]:
    """The annotations that say why a Job is stopped, and by whom as far as this machine knows."""
    told = f"{verb}: {reason}" if reason else verb
    return {STOPPED_BECAUSE: told, STOPPED_BY: person()}


def is_of(job: Job, kind: Kind) -> bool:
    """Whether a resource of the kind made the Job and manages it."""
    owners = job["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner.get("kind") == kind.name for owner in owners)


def steer(
    session: Session,
    args: Any,
    names: Iterable[tuple[Kind, str]],
    order: Callable[[Kind, dict[str, Any]], Order],
    kinds: tuple[Kind, ...] = (),
    *,
    verb: str = "",
) -> int:
    """Give each of the named an order, and say what was done about each.

    One that cannot be changed does not keep the others from being changed. For one that is not
    there, another of these kinds is suggested, or what does the like of `verb` to a schedule.
    """
    code, changed = OK, []
    for kind, name in names:
        try:
            told, item = ordered(session, kind, name, order)
            changed.append(item)
            if not args.output:
                session.terminal.print(f"{kind.singular}/{name} {told}")
        except AnswerError as error:
            if error.status == 404:
                error.hint = error.hint or same_name(session, name, kinds)
                error.hint = error.hint or other_verb(session, name, verb)
            tell(error)
            code = code or error.code
    return finish(session, args, changed, code)


def ordered(
    session: Session, kind: Kind, name: str, order: Callable[[Kind, dict[str, Any]], Order]
) -> tuple[str, dict[str, Any]]:
    """Give one resource an order; what to say about that, and the resource after it."""
    item = session.api.get(kind, session.namespace, name)
    told, change = order(kind, item)
    if change is None:
        return told, item
    try:
        return told, session.api.patch(kind, session.namespace, name, change)
    except AnswerError as error:
        # It may have ended meanwhile, and then it is not told to any more.
        item = session.api.get(kind, session.namespace, name)
        told, change = order(kind, item)
        if error.status != 422 or change is not None:
            raise
        return told, item


def finish(session: Session, args: Any, changed: list[dict[str, Any]], code: int) -> int:
    """Show what was changed to programs, and stay until Jobs ended if that was asked for."""
    if args.output == "json":
        session.terminal.data(changed if len(args.names) != 1 else (changed or [{}])[0], "json")
    jobs = [item["metadata"]["name"] for item in changed if item.get("kind") == JOBS.name]
    if code == OK and jobs and getattr(args, "wait", False):
        return _wait(session, args, jobs)
    return code


def _wait(session: Session, args: Any, names: list[str]) -> int:
    """Stay until all ended. That they did is the success here, however they did."""
    from interlock.modes.cli.errors import INTERRUPTED, TIMED_OUT
    from interlock.modes.cli.following import Follower
    from interlock.modes.cli.output import Terminal

    progress = Terminal(sys.stderr) if args.output else None
    code = Follower(session, names, timeout_s=args.timeout, progress=progress).run()
    return code if code in (TIMED_OUT, INTERRUPTED) else OK
