"""Running a JobConfig on demand: what was typed, and the Job that is made of it."""

from __future__ import annotations

import sys
from typing import Any

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.client.kinds import JOB_CONFIGS, parse_name
from interlock.client.moments import server_now
from interlock.client.ordering import body_of
from interlock.client.refusals import told_as_command
from interlock.client.schedules import read_one
from interlock.commands.change import By
from interlock.commands.errors import OrderRefusedError
from interlock.commands.on_demand import Running, run, values_of_texts
from interlock.modes.cli.creating import create_job
from interlock.modes.cli.input.person import person
from interlock.modes.cli.not_found import found
from interlock.modes.cli.ordering import length_of
from interlock.modes.cli.session import Session
from interlock.resources.job import WhenTaken
from interlock.resources.job_config import JobConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace


def run_config(session: Session, args: Namespace) -> tuple[dict[str, Any], str]:
    """Make a Job of a JobConfig; gives it as it was stored, and when it starts, for people."""
    config = _read(session, args)
    by = By(person(), server_now(session.api))
    try:
        change = run(config, _how(config, args), by)
    except OrderRefusedError as error:
        refused = told_as_command(error)
        refused.code = BAD_INPUT
        raise refused from None
    (write,) = change.writes
    job = create_job(session, body_of(write.after))
    for warning in change.warnings:
        print(warning, file=sys.stderr)
    return job, change.made.removeprefix("created")


def _read(session: Session, args: Namespace) -> JobConfig:
    _, name = parse_name(args.config, JOB_CONFIGS)
    hint = f"a command comes after --: {args.typed.as_command}" if name == args.config else ""
    with found(session, JOB_CONFIGS, name, hint):
        config = read_one(session.api, JOB_CONFIGS, session.namespace, name)
    assert isinstance(config, JobConfig)
    return config


def _how(config: JobConfig, args: Namespace) -> Running:
    if args.at is not None and args.after is not None:
        raise CommandError("give one of --at and --after, not both", code=BAD_INPUT)
    return Running(
        name=args.name or "",
        options=values_of_texts(config, args.option),
        substitutions=dict(args.substitution),
        at=args.at,
        after=length_of(args.after, "--after"),
        policy=WhenTaken(args.policy) if args.policy else None,
    )
