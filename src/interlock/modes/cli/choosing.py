"""Which Jobs a verb is about: those that are named, or those that selectors fit."""

from __future__ import annotations

from interlock.client.errors import BAD_INPUT, NOT_FOUND, CommandError
from interlock.client.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind, parse_name
from interlock.client.outcomes import has_ended, phase_of
from interlock.modes.cli.flags import add_selectors
from interlock.modes.cli.session import Session

#: Which of the Jobs that fit are meant, in the word that is told when there is none.
LIVE = "not over"
UNKNOWN = "Unknown"
#: What can be held back; a bare name is that of a Job.
SUSPENDABLE = (JOBS, JOB_CONFIGS, CONTROLLED_JOBS)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

_IS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "": lambda _: True,
    LIVE: lambda job: not has_ended(job),
    UNKNOWN: lambda job: phase_of(job) == UNKNOWN,
}


def add_choice(
    parser: ArgumentParser, metavar: str = "JOB", about: str = "a Job's name; may be several"
) -> None:
    """Names, or selectors instead."""
    parser.add_argument("names", metavar=metavar, nargs="*", help=about)
    add_selectors(parser)


def chosen(
    session: Session,
    args: Namespace,
    meant: Callable[[str], tuple[Kind, str]],
    *,
    only: str = "",
) -> list[tuple[Kind, str]]:
    """What is meant by each name, or the Jobs that fit; of these only LIVE or UNKNOWN ones.

    All names are read before anything is done about one of them.
    """
    if not args.selector and not args.field_selector:
        if not args.names:
            raise CommandError(
                "which Jobs?", hint="give names, or -l LABELS, or --field-selector", code=BAD_INPUT
            )
        return list(dict.fromkeys(map(meant, args.names)))
    if args.names:
        raise CommandError(
            f"either names or selectors, not both: {' '.join(args.names)}", code=BAD_INPUT
        )
    pages = session.api.pages(
        JOBS, session.namespace, labels=args.selector, fields=args.field_selector
    )
    found = [
        (JOBS, str(job["metadata"]["name"]))
        for page in pages
        for job in page["items"]
        if _IS[only](job)
    ]
    if not found:
        asked = (("labels", args.selector), ("fields", args.field_selector))
        told = " and ".join(f"the {what} {text}" for what, text in asked if text)
        whose = f"Job that is {only}" if only else "Job"
        raise CommandError(
            f"no {whose} has {told} in namespace {session.namespace}", code=NOT_FOUND
        )
    return found


def add_suspendable(parser: ArgumentParser) -> None:
    """Names, or selectors instead, for a verb that holds back or lets go."""
    add_choice(parser, "JOB | KIND/NAME", "a Job's name, jobconfig/NAME or controlledjob/NAME")


def chosen_suspendable(session: Session, args: Namespace) -> list[tuple[Kind, str]]:
    """What was typed to such a verb, or the Jobs that fit."""
    return chosen(session, args, lambda word: parse_name(word, *SUSPENDABLE), only=LIVE)
