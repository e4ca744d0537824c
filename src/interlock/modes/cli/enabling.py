"""Switching the schedules of a JobConfig on and off."""

from __future__ import annotations

from typing import Any

from interlock.modes.cli.errors import BAD_INPUT, CONFLICT, CommandError
from interlock.modes.cli.finding import found
from interlock.modes.cli.flags import add_namespace, add_output, number_from
from interlock.modes.cli.kinds import JOB_CONFIGS, parse_name
from interlock.modes.cli.revising import revise
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_switching(parser: ArgumentParser) -> None:
    """What can be typed to a verb that switches schedules."""
    parser.add_argument("name", metavar="CONFIG", help="the JobConfig")
    parser.add_argument(
        "--schedule", metavar="N", type=number_from(0),
        help="only spec.schedules[N], counted from 0; without it, all of them",
    )  # fmt: skip
    add_namespace(parser)
    add_output(parser, "json")


def switch(session: Session, args: Namespace, *, on: bool) -> int:
    """Switch schedules on or off, and say what that came to."""
    _, name = parse_name(args.name, JOB_CONFIGS)
    word = "enabled" if on else "disabled"
    switched: list[int] = []

    def change(config: dict[str, Any]) -> dict[str, Any] | None:
        schedules = config["spec"].get("schedules") or []
        switched[:] = _to_switch(name, schedules, args.schedule, on)
        if not switched:
            return None
        after = [
            _switched(schedule, on) if number in switched else schedule
            for number, schedule in enumerate(schedules)
        ]
        return {"spec": {"schedules": after}}

    with found(session, JOB_CONFIGS, name, verb="resume" if on else "suspend"):
        config = revise(session, JOB_CONFIGS, name, change)
    if args.output:
        session.terminal.data(config, "json")
        return 0
    which = f" schedule {args.schedule}" if args.schedule is not None else ""
    session.terminal.print(f"jobconfig/{name}{which} {'' if switched else 'already '}{word}")
    if on and config["spec"].get("suspend"):
        session.terminal.print(
            f"  it is suspended all the same; let it go with: interlock resume jobconfig/{name}"
        )
    return 0


def _to_switch(name: str, schedules: list[Any], wanted: int | None, on: bool) -> list[int]:
    """The numbers of the schedules that are not yet as they should be."""
    if not schedules:
        raise CommandError(
            f"jobconfig/{name} has no schedule: it runs on demand only",
            hint=f"run it now with: interlock run {name}",
            code=CONFLICT,
        )
    if wanted is not None and wanted >= len(schedules):
        raise CommandError(
            f"jobconfig/{name} has no schedule {wanted}",
            hint=f"it has {len(schedules)}, counted from 0",
            code=BAD_INPUT,
        )
    numbers = range(len(schedules)) if wanted is None else (wanted,)
    return [number for number in numbers if bool(schedules[number].get("disabled")) is on]


def _switched(schedule: dict[str, Any], on: bool) -> dict[str, Any]:
    rest = {name: value for name, value in schedule.items() if name != "disabled"}
    return rest if on else {**rest, "disabled": True}
