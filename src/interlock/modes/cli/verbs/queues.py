"""Of each Queue what of its quota is used, how many Jobs wait for it, and since when.

interlock queues
interlock queue training
"""

from __future__ import annotations

import argparse
from typing import Any

from interlock.client.moments import ago, day_and_time, server_now
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session

#: More sorts of resources than these share a column.
_MOST_COLUMNS = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    add_namespace(parser)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Find out, and show."""
    items = session.reports.queues(session.namespace)
    if args.output:
        session.terminal.data({"items": items}, args.output)
        return 0
    if not items:
        session.terminal.print("no queues")
        return 0
    now = server_now(session.api)
    names = resources_of(items)
    columns = [name.upper() for name in names] if len(names) <= _MOST_COLUMNS else ["USED"]
    rows = []
    has_cohorts = any(item.get("cohort") for item in items)
    for item in items:
        used = item["resources"]
        cells = [_of(used, name) for name in names] if columns != ["USED"] else [_all(used)]
        waiting = [str(item["waiting"]), ago(item.get("oldest"), now) or "-"]
        ends = [state_of(item), gate_of(item) or "-"]
        cohort = [item.get("cohort") or "-"] if has_cohorts else []
        rows.append([item["name"], *cohort, *cells, str(item["admitted"]), *waiting, *ends])
    cohort = ["COHORT"] if has_cohorts else []
    headers = ["QUEUE", *cohort, *columns, "ADMITTED", "WAITING", "OLDEST", "STATE", "GATE"]
    session.terminal.table(headers, rows)
    return 0


def resources_of(items: list[dict[str, Any]]) -> list[str]:
    """Every resource of some Queues, tasks last."""
    names = {name for item in items for name in item["resources"]}
    return sorted(names, key=lambda name: (name == "tasks", name))


def used_told(use: dict[str, Any]) -> str:
    """How much is used of how much, and how much of that others have lent: "20/16 (+4)"."""
    borrowed = f" (+{use['borrowed']})" if use.get("borrowed") else ""
    return f"{use['used']}/{use['quota']}{borrowed}"


def state_of(item: dict[str, Any]) -> str:
    """Whether a Queue lets Jobs in."""
    if item["missing"]:
        return "is not there"
    return {"Hold": "held", "HoldAndDrain": "drained"}.get(item["stop"], "-")


def gate_of(item: dict[str, Any]) -> str:
    """For whom nobody is let in; empty when that is so for nobody."""
    gate = item["gate"]
    if not gate:
        return ""
    first, more = gate[0], len(gate) - 1
    told = f"{first['namespace']}/{first['job']} is not ready"
    told += f" ({first['ready']})" if first["ready"] else ""
    told += f", until {day_and_time(first['until'])}" if first["until"] else ""
    return f"{told} (+{more})" if more else told


def _of(used: dict[str, Any], name: str) -> str:
    return used_told(used[name]) if name in used else "-"


def _all(used: dict[str, Any]) -> str:
    return ", ".join(f"{name} {used_told(use)}" for name, use in used.items()) or "-"
