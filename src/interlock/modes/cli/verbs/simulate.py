"""Play a scenario on simulated time: what would run, wait, be stopped and skipped, and when.

The scenario names objects, what their work does, what happens when, and what is expected. Nothing
is executed and no server is asked. The exit code is 1 when an expectation is not met.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from interlock.client.errors import FAILED, OK
from interlock.forecast.rehearsal.checking import Difference
from interlock.forecast.rehearsal.lines import Line, written
from interlock.forecast.rehearsal.player import Played, play
from interlock.modes.cli.flags import add_output
from interlock.modes.cli.rehearsal.command_line import CommandHands
from interlock.modes.cli.rehearsal.scenario_files import BadScenarioError, load_scenario
from interlock.modes.cli.session import Session
from interlock.timing.local_time import short_name, wall_time
from interlock.timing.zones import Zone


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO.yaml", help="the file of the scenario")
    add_output(parser, "table", "json", "jsonl")


def run(session: Session, args: argparse.Namespace) -> int:
    """Play it, print the history, and tell every expectation that was not met."""
    try:
        script = load_scenario(args.scenario)
    except BadScenarioError as error:
        return _refused(session, args, error)
    namespace = script.settings.namespace
    with _in_silence():
        played = play(script, lambda front: CommandHands(front, namespace))
    if args.output == "json":
        session.terminal.data(
            {
                "start": written(script.start),
                "end": written(script.end),
                "history": [line.data() for line in played.lines],
                "differences": [each.data() for each in played.differences],
            },
            "json",
        )
    elif args.output == "jsonl":
        for line in played.lines:
            session.terminal.print(json.dumps(line.data(), ensure_ascii=False))
    else:
        _show(session, played, script.zone)
    if args.output != "json":
        _tell_differences(played, len(script.expected))
    return FAILED if played.differences else OK


@contextmanager
def _in_silence() -> Iterator[None]:
    """Log nothing: what goes wrong with an object is in its status, and so in the history."""
    logger = logging.getLogger("interlock")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _refused(session: Session, args: argparse.Namespace, error: BadScenarioError) -> int:
    if args.output in ("json", "jsonl"):
        session.terminal.data(error.refusal.data(), "json")
    else:
        print("\n".join(error.refusal.lines()), file=sys.stderr)
    return error.code


def _show(session: Session, played: Played, zone: Zone) -> None:
    rows = [
        [
            f"{wall_time(line.at, zone):%a %Y-%m-%d %H:%M:%S} {short_name(zone, line.at)}",
            _name(line),
            line.event,
            line.reason,
            line.detail,
        ]
        for line in played.lines
    ]
    session.terminal.table(["AT", "OBJECT", "EVENT", "REASON", "DETAIL"], rows)


def _name(line: Line) -> str:
    place = f"{line.namespace}/" if line.namespace not in ("", "default") else ""
    return f"{place}{line.kind.lower()}/{line.name}"


def _tell_differences(played: Played, expected: int) -> None:
    differences = played.differences
    if not differences:
        if expected:
            told = "1 expectation is" if expected == 1 else f"all {expected} expectations are"
            print(f"{told} met", file=sys.stderr)
        return
    for difference in differences:
        print("\n".join(_difference_lines(difference)), file=sys.stderr)
    print(f"{len(differences)} not as expected", file=sys.stderr)


def _difference_lines(difference: Difference) -> list[str]:
    lines = [
        f"{difference.path} at {written(difference.at)}  {difference.told}",
        f"  expected  {_json(difference.expected)}",
        f"  found     {_json(difference.found)}",
    ]
    return [*lines, f"            {difference.detail}"] if difference.detail else lines


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
