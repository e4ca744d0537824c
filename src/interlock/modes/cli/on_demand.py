"""Running a JobConfig on demand: its options, its clock, and the Job that is made of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from interlock.modes.cli.creating import create_job
from interlock.modes.cli.day_words import DayWords, has_zone
from interlock.modes.cli.errors import BAD_INPUT, CommandError
from interlock.modes.cli.finding import found
from interlock.modes.cli.kinds import JOB_CONFIGS, parse_name
from interlock.modes.cli.moments import server_now
from interlock.modes.cli.person import person
from interlock.modes.cli.planning import LONGEST_S
from interlock.modes.cli.schedules import read_one
from interlock.modes.cli.session import Session
from interlock.resources.codec import to_builtins
from interlock.resources.errors import Problem
from interlock.resources.job import CREATOR_ANNOTATION, WhenTaken
from interlock.resources.job_config import JobConfig
from interlock.resources.option_values import value_of_text
from interlock.resources.options import OptionSpec, OptionType
from interlock.resources.timing.flaws import UnreadableError
from interlock.resources.timing.local_time import told_at
from interlock.resources.timing.zones import Zone, find_zone
from interlock.schedules.configs.making import job_on_demand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

#: So many of the values that can be chosen are told.
_TOLD = 10


def run_config(session: Session, args: Namespace) -> tuple[dict[str, Any], str]:
    """Make a Job of a JobConfig; gives it as it was stored, and when it starts, for people."""
    config = _read(session, args)
    now = server_now(session.api)
    values = _values(config, args.option)
    start_after, told = _start_after(config, args, now)
    made = job_on_demand(
        config,
        values,
        now,
        name=args.name or "",
        start_after=start_after,
        policy=_policy(args),
        substitutions=dict(args.substitution),
    )
    if made.problems:
        raise _refused(config, made.problems)
    body = to_builtins(made.job)
    body.pop("status", None)
    body["metadata"].setdefault("annotations", {})[CREATOR_ANNOTATION] = person()
    job = create_job(session, body)
    _tell_of_no_effect(config, values, dict(args.substitution))
    return job, told


def _read(session: Session, args: Namespace) -> JobConfig:
    _, name = parse_name(args.config, JOB_CONFIGS)
    hint = f"a command comes after --: {args.typed.as_command}" if name == args.config else ""
    with found(session, JOB_CONFIGS, name, hint):
        config = read_one(session.api, JOB_CONFIGS, session.namespace, name)
    assert isinstance(config, JobConfig)
    if config.is_going:
        raise CommandError(f"jobconfig/{name} is being deleted", code=BAD_INPUT)
    return config


def _values(config: JobConfig, given: list[tuple[str, str]]) -> dict[str, object]:
    """What was typed for each option; only a Multi takes several values."""
    options = {option.name: option for option in config.spec.options}
    values: dict[str, object] = {}
    for name, text in given:
        option = options.get(name)
        value = value_of_text(option, text) if option is not None else text
        before = values.get(name)
        if isinstance(before, list) and isinstance(value, list):
            value = before + value
        elif name in values:
            raise CommandError(
                f"--option {name} is given more than once",
                hint="only a Multi takes several values",
                code=BAD_INPUT,
            )
        values[name] = value
    return values


def _tell_of_no_effect(
    config: JobConfig, values: Mapping[str, object], substitutions: Mapping[str, str]
) -> None:
    """Tell of options that were given for nothing; the Job is made all the same."""
    for name in values:
        full = f"option.{name}"
        if full in config.spec.template.spec.substitutions and full not in substitutions:
            print(
                f'option {name} has no effect: the template\'s substitutions give "{full}"; for'
                f" one run give --substitution {full}=VALUE",
                file=sys.stderr,
            )


def _start_after(config: JobConfig, args: Namespace, now: datetime) -> tuple[datetime | None, str]:
    """When the Job may start at the earliest, and that for people."""
    if args.at is None and args.after is None:
        return None, ""
    if args.at is not None and args.after is not None:
        raise CommandError("give one of --at and --after, not both", code=BAD_INPUT)
    zone = _zone(config)
    if args.after is not None:
        if not 1 <= args.after <= LONGEST_S:
            raise CommandError("--after: expected from a second to ten years", code=BAD_INPUT)
        at = now + timedelta(seconds=int(args.after))
    else:
        at = DayWords(zone, now).moment(args.at)
        _check_zone(config, args.at)
    return at, f"; it starts {told_at(at, zone, now)} at the earliest"


def _zone(config: JobConfig) -> Zone:
    """The clock of the config's schedules; UTC when it has none."""
    try:
        return find_zone(next((one.timezone for one in config.spec.schedules), "UTC"))
    except UnreadableError as error:
        raise CommandError(f"jobconfig/{config.metadata.name}: {error}", code=BAD_INPUT) from None


def _check_zone(config: JobConfig, typed: str) -> None:
    """Refuse a time that could be on several clocks."""
    names = dict.fromkeys(schedule.timezone for schedule in config.spec.schedules)
    if len(names) > 1 and not has_zone(typed):
        raise CommandError(
            f"--at {typed!r}: the schedules of jobconfig/{config.metadata.name} are in several"
            f" zones ({', '.join(names)})",
            hint="write a moment with its zone, such as 2026-11-20T19:00Z, or use --after",
            code=BAD_INPUT,
        )


def _policy(args: Namespace) -> WhenTaken | None:
    """What to do when as many run as may; whoever asks for later wants it to wait then."""
    if args.policy:
        return WhenTaken(args.policy)
    return WhenTaken.ENQUEUE if args.at is not None or args.after is not None else None


def _refused(config: JobConfig, problems: Iterable[Problem]) -> CommandError:
    name = config.metadata.name
    lines = [f"jobconfig/{name} cannot be run like this, nothing was stored"]
    lines += [f"  {_problem_told(problem)}" for problem in problems]
    hint = ""
    if config.spec.options:
        hint = "\n  ".join(["its options:", *map(_option_told, config.spec.options)])
    return CommandError("\n".join(lines), hint=hint, code=BAD_INPUT)


def _problem_told(problem: Problem) -> str:
    path = problem.path.replace("options.", "option ", 1)
    return f"{path}: {problem.message}"


def _option_told(option: OptionSpec) -> str:
    """An option for people: what it takes, and what it is without a value."""
    told = [f"  {option.name:<12} {option.type.value}"]
    if option.type in (OptionType.SELECT, OptionType.MULTI):
        more = ", …" if len(option.values) > _TOLD or option.allow_custom else ""
        told.append(f"({' | '.join(option.values[:_TOLD])}{more})")
    if option.default is not None:
        told.append(f"default {_written(option.default)}")
    elif option.required:
        told.append("required")
    return "  ".join([*told, option.description]).rstrip()


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
