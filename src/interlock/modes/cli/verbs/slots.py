"""The slots of TestBeds: how many are free, and of one bed who is in which, as a picture.

interlock slots
interlock slots bed-a
interlock slots bed-a -o json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from interlock.client.errors import AnswerError, CommandError
from interlock.client.kinds import kind_named
from interlock.client.moments import ago, server_now
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.not_found import found
from interlock.modes.cli.session import Session
from interlock.resources.words import plural

#: What stands before who is in a slot, by its state.
_SIGNS = {"Free": "□", "Reserved": "◪", "Occupied": "■", "Gone": "!"}
#: Plans that are so far want no slots any more.
_OVER = ("Completed", "Failed")
_COUNTED = ("slots", "free", "reserved", "occupied", "waiting")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="TESTBED", nargs="?", help="every slot of this one")
    add_namespace(parser, every=True)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Find out, and show."""
    if args.name:
        return _one(session, args)
    items = session.reports.beds(session.namespace_or_all)
    if args.output:
        session.terminal.data({"items": items}, args.output)
        return 0
    if not items:
        session.terminal.print("no test beds")
        return 0
    headers = ["TESTBED", "NODES", *map(str.upper, _COUNTED), "PROBLEMS"]
    rows = [
        [item["name"], str(item["nodes"]), *(str(item[one]) for one in _COUNTED), _problems(item)]
        for item in items
    ]
    if args.all_namespaces:
        headers.insert(0, "NAMESPACE")
        rows = [[item["namespace"], *row] for item, row in zip(items, rows, strict=True)]
    session.terminal.table(headers, rows)
    return 0


def _one(session: Session, args: argparse.Namespace) -> int:
    """Draw the seats of one bed."""
    if args.all_namespaces:
        raise CommandError(
            f"slots {args.name}: a test bed is of one namespace", hint="name it with -n NAMESPACE"
        )
    name = args.name.removeprefix("testbed/").removeprefix("testbeds/")
    with found(session, kind_named("testbeds"), name):
        item = session.reports.bed(session.namespace, name)
    if args.output:
        session.terminal.data(item, args.output)
        return 0
    terminal, now = session.terminal, server_now(session.api)
    seats = item["seats"]
    if seats:
        columns = max(seat["number"] for seat in seats) + 1
        rows = {seat["node"]: [""] * columns for seat in seats}
        for seat in seats:
            told = _SIGNS[seat["state"]] + f" {_who(seat)}"
            rows[seat["node"]][seat["number"]] = told
        terminal.table(
            ["", *map(str, range(columns))], ([node, *row] for node, row in rows.items())
        )
    terminal.print(_whole(item))
    for seat in seats:
        if seat["state"] == "Gone":
            held = f"{seat['job']} ({seat['phase']}, {ago(seat['since'], now)})"
            terminal.print(f"{seat['slot']} is not there any more, and is still held by {held}")
    for problem in item["problems"]:
        terminal.print(f"{problem['node']} has no slots: {problem['message']}")
    if item["waiting"]:
        more = item["waiting"] - len(item["waiters"])
        named = ", ".join(item["waiters"]) + (f" and {more} more" if more > 0 else "")
        terminal.print(f"waiting: {named}; why: interlock why {item['waiters'][0]}")
    for plan in _plans(session, name):
        terminal.print(_planned(plan))
    return 0


def _plans(session: Session, bed: str) -> list[dict[str, Any]]:
    """The plans for a bed that are not over; those who may not read them are told of none."""
    kind, fields = kind_named("schedulings"), f"spec.testBed={bed}"
    try:
        pages = session.api.pages(kind, session.namespace, fields=fields)
        found = [plan for page in pages for plan in page["items"]]
    except AnswerError as error:
        if error.status not in (403, 404):
            raise
        return []
    return [plan for plan in found if (plan.get("status") or {}).get("state") not in _OVER]


def _planned(plan: dict[str, Any]) -> str:
    """How far a plan is, and what it waits for first."""
    spec, status = plan["spec"], plan.get("status") or {}
    by_slots = spec.get("slotBased")
    sort = "queue" if by_slots is None else by_slots.get("mode", "strict")
    over = status.get("completed", 0) + status.get("failed", 0)
    told = f"scheduling/{plan['metadata']['name']}   {sort}, {over} of {status.get('total', 0)}"
    waits = status.get("waits") or []
    first = f"; {waits[0]['message']}" if waits else ""
    return f"{told} jobs over, {status.get('state', 'not looked at')}{first}"


def _who(seat: dict[str, Any]) -> str:
    match seat["state"]:
        case "Free":
            return "free"
        case "Occupied":
            return str(seat["task"])
        case "Reserved":
            return f"for {seat['job']}"
        case _:
            return f"gone, {seat['job']}"


def _whole(item: dict[str, Any]) -> str:
    """How many slots there are, and in which state."""
    if item["missing"]:
        return f"test bed {item['name']} is not there any more; {_parts(item, ('gone',))}"
    told = f"{plural(item['slots'], 'slot')} on {plural(item['nodes'], 'node')}: "
    told += _parts(item, ("occupied", "reserved", "free"))
    return told + (f"; {item['gone']} more are held and gone" if item["gone"] else "")


def _parts(item: dict[str, Any], names: Iterable[str]) -> str:
    return ", ".join(f"{item[name]} {name}" for name in names)


def _problems(item: dict[str, Any]) -> str:
    return ", ".join(problem["node"] for problem in item["problems"]) or "-"
