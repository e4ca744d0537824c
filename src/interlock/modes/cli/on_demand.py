"""Running a JobConfig on demand: what was typed, and the Job that is made of it."""

from __future__ import annotations

import sys

from interlock.client.errors import BAD_INPUT, AnswerError
from interlock.client.kinds import JOB_CONFIGS, parse_name
from interlock.modes.cli.creating import next_step
from interlock.modes.cli.not_found import found
from interlock.modes.cli.ordering import carry_out, length_of
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from interlock.client.ordering import Carried, Item


def run_config(session: Session, args: Namespace) -> tuple[Item, str]:
    """Make a Job of a JobConfig; gives it as it was stored, and when it starts, for people."""
    _, name = parse_name(args.config, JOB_CONFIGS)
    hint = f"a command comes after --: {args.typed.as_command}" if name == args.config else ""
    with found(session, JOB_CONFIGS, name, hint):
        carried = _carry_out(session, args, name)
    for warning in carried.warnings:
        print(warning, file=sys.stderr)
    (job,) = carried.items
    return job, carried.lines[0].removeprefix(f"job/{job['metadata']['name']} created")


def _carry_out(session: Session, args: Namespace, name: str) -> Carried:
    texts: dict[str, list[str]] = {}
    for option, text in args.option:
        texts.setdefault(option, []).append(text)
    how = {
        "name": args.name,
        "texts": texts,
        "substitutions": dict(args.substitution),
        "at": args.at,
        "after": length_of(args.after, "--after"),
        "policy": args.policy,
    }
    try:
        return carry_out(session, JOB_CONFIGS, name, "run", how)
    except AnswerError as error:
        if error.reason == "AlreadyExists":
            error.hint = next_step(session, args.name)
        elif error.reason == "Conflict":
            # It is about what was typed: the config is being deleted.
            error.code = BAD_INPUT
        raise
