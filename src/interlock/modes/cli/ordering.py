"""Carrying out what was typed, and saying what came of it; `interlock.client.ordering` does it."""

from __future__ import annotations

import sys

from interlock.client import ordering
from interlock.client.errors import BAD_INPUT, OK, AnswerError, CommandError
from interlock.client.kinds import CONTROLLED_JOBS, JOBS, Kind, parse_name
from interlock.client.ordering import Carried, Place
from interlock.modes.cli.input.person import person
from interlock.modes.cli.main import tell
from interlock.modes.cli.not_found import found, other_verb, same_name
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping

    from interlock.client.ordering import Item

    #: The options of an order; what is None was not typed.
    How = Mapping[str, object]


def carry_out(
    session: Session, kind: Kind, name: str, order: str, how: How, *, dry_run: bool = False
) -> Carried:
    """Give one resource an order, in the name of whoever types."""
    where = Place(session.api, session.namespace, person(), on_cluster=session.on_cluster)
    return ordering.carry_out(where, kind, name, order, how, dry_run=dry_run)


def order_each(
    session: Session,
    args: Namespace,
    names: Iterable[tuple[Kind, str]],
    order: str,
    how: How,
    kinds: tuple[Kind, ...] = (),
) -> int:
    """Give each of the named an order, and say what was done about each.

    One that cannot be changed does not keep the others from being changed. For one that is not
    there, another of these kinds is suggested, or what does the like of the order to a schedule.
    """
    code, changed = OK, []
    for kind, name in names:
        try:
            carried = carry_out(session, kind, name, order, how)
        except AnswerError as error:
            if error.status == 404:
                error.hint = error.hint or same_name(session, name, kinds)
                error.hint = error.hint or other_verb(session, name, order)
            tell(error)
            code = code or error.code
            continue
        changed += carried.items
        print_lines(session, args, carried)
    return finish(session, args, changed, code)


def carry_out_found(
    session: Session,
    args: Namespace,
    kind: Kind,
    order: str,
    how: How,
    *,
    meant: str = "",
    instead: str = "",
) -> int:
    """Give the one that is named an order, and say what came of it.

    `meant` is the verb whose like there may be for another kind that was typed, `instead` the one
    for another kind that has the name.
    """
    _, name = parse_name(args.name, kind, verb=meant)
    with found(session, kind, name, verb=instead):
        carried = carry_out(
            session, kind, name, order, how, dry_run=getattr(args, "dry_run", False)
        )
    if args.output:
        session.terminal.data(carried.items[0], "json")
        return OK
    dry = " (dry run: nothing was changed)" if getattr(args, "dry_run", False) else ""
    first, *rest = carried.lines
    for line in (first + dry, *rest):
        session.terminal.print(line)
    return OK


def except_from_plan(session: Session, args: Namespace, order: str, how: How) -> int:
    """Make an exception to the plan of the ControlledJob that is named, or take it back."""
    if args.cancel and args.reason:
        raise CommandError("--reason is for an exception, not for --cancel", code=BAD_INPUT)
    said = {"cancel": args.cancel, "reason": args.reason, **how}
    return carry_out_found(session, args, CONTROLLED_JOBS, order, said, instead="suspend")


def length_of(typed: float | None, flag: str) -> str | None:
    """A length of time that was typed, in whole seconds; None when none was."""
    from interlock.commands.limits import LONGEST_S

    if typed is None:
        return None
    if not 1 <= typed <= LONGEST_S:
        raise CommandError(f"{flag}: expected from a second to ten years", code=BAD_INPUT)
    return f"{int(typed)}s"


def print_lines(session: Session, args: Namespace, carried: Carried) -> None:
    """Say what was done, unless a program reads."""
    if not args.output:
        for line in carried.lines:
            session.terminal.print(line)


def finish(session: Session, args: Namespace, changed: list[Item], code: int) -> int:
    """Show what was changed to programs, and stay until Jobs ended if that was asked for."""
    if args.output == "json":
        session.terminal.data(changed if len(args.names) != 1 else (changed or [{}])[0], "json")
    jobs = [item["metadata"]["name"] for item in changed if item.get("kind") == JOBS.name]
    if code == OK and jobs and getattr(args, "wait", False):
        return _wait(session, args, jobs)
    return code


def _wait(session: Session, args: Namespace, names: list[str]) -> int:
    """Stay until all ended. That they did is the success here, however they did."""
    from interlock.client.errors import INTERRUPTED, TIMED_OUT
    from interlock.modes.cli.following import Follower
    from interlock.modes.cli.output.formats import Terminal

    progress = Terminal(sys.stderr) if args.output else None
    code = Follower(session, names, timeout_s=args.timeout, progress=progress).run()
    return code if code in (TIMED_OUT, INTERRUPTED) else OK
