"""Exceptions to the plan of a ControlledJob: written on it, told, and taken back.

Each ends by itself: the server takes it off once its time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from interlock.modes.cli.controlled import Controlled, controlled_of
from interlock.modes.cli.errors import BAD_INPUT, CONFLICT, CommandError
from interlock.modes.cli.finding import found
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.kinds import CONTROLLED_JOBS, parse_name
from interlock.modes.cli.person import person
from interlock.modes.cli.revising import revise
from interlock.modes.cli.schedules import noun_of
from interlock.modes.cli.session import Session
from interlock.resources.codec import encode, to_builtins
from interlock.resources.controlled_job import Override, OverrideAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


class Exceptions(NamedTuple):
    """The overrides as they are to be, and what that changes, line by line."""

    overrides: tuple[Override, ...]
    told: tuple[str, ...]


#: Works out the overrides to be from what is stored.
Plan = Callable[[Controlled], Exceptions]


def add_overriding(parser: ArgumentParser) -> None:
    """What can be typed to a verb that makes an exception."""
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for people to read")
    parser.add_argument("--cancel", action="store_true", help="take it back")
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")
    add_namespace(parser)
    add_output(parser, "json")


def override(session: Session, args: Namespace, plan: Plan) -> int:
    """Write the exceptions, and say what changes."""
    if args.cancel and args.reason:
        raise CommandError("--reason is for an exception, not for --cancel", code=BAD_INPUT)
    _, name = parse_name(args.name, CONTROLLED_JOBS)
    planned: list[Exceptions] = []

    def change(item: dict[str, Any]) -> dict[str, Any] | None:
        controlled = controlled_of(session, noun_of(CONTROLLED_JOBS, name, encode(item)))
        planned[:] = [plan(controlled)]
        if planned[0].overrides == controlled.noun.spec.overrides:
            return None
        return {"spec": {"overrides": to_builtins(planned[0].overrides) or None}}

    with found(session, CONTROLLED_JOBS, name, verb="suspend"):
        item = revise(session, CONTROLLED_JOBS, name, change, dry_run=args.dry_run)
    if args.output:
        session.terminal.data(item, "json")
        return 0
    dry = " (dry run: nothing was changed)" if args.dry_run else ""
    first, *rest = planned[0].told
    session.terminal.print(f"controlledjob/{name}  {first}{dry}")
    if item["spec"].get("suspend"):
        rest.append(f"it is suspended all the same: interlock resume controlledjob/{name}")
    for line in rest:
        session.terminal.print(f"  {line}")
    return 0


def made(args: Namespace, action: OverrideAction, **when: Any) -> Override:
    """The exception that a person asks for."""
    return Override(action=action, by=person(), reason=args.reason, **when)


def others(controlled: Controlled, *without: Override) -> tuple[Override, ...]:
    """The exceptions that stay: not these, and none that is over."""
    stays = (one for one in controlled.noun.spec.overrides if one.until > controlled.now)
    return tuple(one for one in stays if one not in without)


def of_action(controlled: Controlled, action: OverrideAction) -> tuple[Override, ...]:
    """The exceptions of one sort that are not over."""
    return tuple(one for one in others(controlled) if one.action is action)


def to_cancel(
    controlled: Controlled, found_ones: tuple[Override, ...], noun: str
) -> tuple[Override, ...]:
    """The exceptions to be taken back; there must be one."""
    if not found_ones:
        raise CommandError(
            f"{controlled.word} has no {noun} to take back",
            hint=f"`interlock why {controlled.word}` tells its exceptions",
            code=CONFLICT,
        )
    return found_ones


def whose(one: Override) -> str:
    """Who made an exception and why, as the end of a line."""
    by = f", set by {one.by}" if one.by else ""
    return f"{by} ({one.reason})" if one.reason else by
