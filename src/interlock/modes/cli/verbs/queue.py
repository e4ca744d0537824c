"""One Queue: what of its quota is used, who holds it, who waits in which order, and why.

interlock queue training
interlock queue training --limit 100
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from interlock.client.kinds import kind_named
from interlock.client.moments import ago, day_and_time, server_now
from interlock.modes.cli.flags import add_namespace, add_output, number_from
from interlock.modes.cli.not_found import found
from interlock.modes.cli.session import Session
from interlock.modes.cli.verbs.queues import gate_of, resources_of, state_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the Queue's name")
    parser.add_argument("--limit", metavar="N", type=number_from(0),
        help="at most so many of those who wait (20)")  # fmt: skip
    add_namespace(parser)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Find out, and show."""
    name = args.name.removeprefix("queue/").removeprefix("queues/")
    with found(session, kind_named("queues"), name):
        item = session.reports.queue(session.namespace, name, args.limit)
    if args.output:
        session.terminal.data(item, args.output)
        return 0
    now = server_now(session.api)
    terminal = session.terminal
    for line in headlines(item):
        terminal.print(line)
    if item["resources"]:
        names = resources_of([item])
        shown = (*_USE, "borrowed") if item.get("cohort") else _USE
        uses = [[name, *(str(item["resources"][name][one]) for one in shown)] for name in names]
        terminal.print()
        terminal.table(["RESOURCE", *map(str.upper, shown)], uses)
    if values := item.get("waitForPodsReady"):
        terminal.print()
        told = [[one["name"], one["value"], one["saidBy"].lower()] for one in values]
        terminal.table(["READY IN TIME", "VALUE", "SAID BY"], told)
    if item["holders"]:
        terminal.print()
        headers = ["HOLDER", "PHASE", "TASKS", "HOLDS", "SINCE", "ENDS BY"]
        terminal.table(headers, [_holder(one, now) for one in item["holders"]])
    if item["waiters"]:
        terminal.print()
        headers, rows = list(_WAITERS), [_waiter(one, now) for one in item["waiters"]]
        if any("about" in one for one in item["waiters"]):
            headers.append("ABOUT")
            for row, one in zip(rows, item["waiters"], strict=True):
                row.append(day_and_time(one.get("about")) or "-")
        terminal.table(headers, rows)
        more = item["waiting"] - len(item["waiters"])
        if more > 0:
            terminal.print(f"and {more} more")
    if item["why"]:
        terminal.print(f"\nthe first waits   {item['why']}")
    return 0


_USE = ("used", "quota", "free")
_WAITERS = ("PLACE", "WAITS", "PRIORITY", "NEEDS", "SINCE")


def headlines(item: dict[str, Any]) -> list[str]:
    """What the Queue is, and how many are where."""
    state = state_of(item)
    told = f"queue {item['name']}   {item['order'] or state}"
    told += f"   cohort {item['cohort']}" if item.get("cohort") else ""
    told += f"   {state}" if item["order"] and state != "-" else ""
    counts = f"{item['admitted']} admitted, {item['waiting']} waiting"
    lines = [f"{told}   {counts}"]
    if gate := gate_of(item):
        lines.append(f"nobody is let in: {gate}")
    if item["namespaces"] is not None:
        lines.append(f"for namespaces {', '.join(item['namespaces']) or 'none'}")
    return lines


def _holder(one: dict[str, Any], now: datetime) -> list[str]:
    return [
        _place(one),
        one["phase"],
        str(one["tasks"]),
        _amounts(one["holds"]),
        ago(one["since"], now),
        day_and_time(one.get("endsBy")) or "-",
    ]


def _waiter(one: dict[str, Any], now: datetime) -> list[str]:
    return [
        str(one["place"]),
        _place(one),
        str(one.get("priority", 0)),
        _amounts(one["needs"]),
        ago(one.get("since"), now) or "-",
    ]


def _place(one: dict[str, Any]) -> str:
    """A Job with its namespace: a Queue is of all of them."""
    return f"{one['namespace']}/{one['job']}"


def _amounts(held: dict[str, Any]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in held.items())
