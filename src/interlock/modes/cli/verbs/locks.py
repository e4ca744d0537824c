"""Who holds and who waits for each lock, with the tokens that prove it."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from interlock.client.moments import ago, server_now
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("keys", metavar="KEY", nargs="*", help="only these locks")
    add_namespace(parser, every=True)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Find out, and show."""
    items = session.reports.locks(session.namespace_or_all)
    if args.keys:
        items = [item for item in items if item["key"] in args.keys]
    if args.output:
        session.terminal.data({"items": items}, args.output)
        return 0
    if not items:
        session.terminal.print("no locks")
        return 0
    place, now = args.all_namespaces, server_now(session.api)
    headers = ["KEY", "LIMIT", "HOLDER", "TOKEN", "SINCE", "PHASE", "WAITING"]
    rows = [row for item in items for row in rows_of(item, now)]
    if place:
        headers.insert(0, "NAMESPACE")
        rows = [
            [str(item.get("namespace", "")), *row] for item in items for row in rows_of(item, now)
        ]
    session.terminal.table(headers, rows)
    return 0


def rows_of(item: dict[str, Any], now: datetime) -> list[list[str]]:
    """A line for each holder; the key, the limit and the waiters stand on the first."""
    waiting = int(item.get("waiting") or 0)
    first = ", ".join(item.get("waiters") or [])
    told = f"{waiting}" + (f" ({first}{', ...' if waiting > 10 else ''})" if first else "")
    holders = item.get("holders") or [{}]
    rows = []
    for number, holder in enumerate(holders):
        head = [item["key"], str(item.get("limit", ""))] if number == 0 else ["", ""]
        rows.append(
            [
                *head,
                holder.get("job", "-"),
                str(holder.get("token", f"last {item.get('lastToken', 0)}")),
                ago(holder.get("since"), now) or "-",
                holder.get("phase", "-"),
                told if number == 0 else "",
            ]
        )
    return rows
