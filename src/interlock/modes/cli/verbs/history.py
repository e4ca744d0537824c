"""What was decided about a resource, or about all of them, and for which reason. Newest first.

On a cluster it is what its Events tell, which are kept for about an hour.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from interlock.client.kinds import JOBS, kind_named
from interlock.client.moments import day_and_time
from interlock.modes.cli.flags import add_namespace, add_output, number_from
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="JOB | KIND/NAME", nargs="?", help="of what")
    parser.add_argument(
        "--limit", metavar="N", type=number_from(1), default=50, help="at most so many (50)"
    )
    parser.add_argument(
        "--before", metavar="NUMBER", type=number_from(0), help="only older than this entry"
    )
    add_namespace(parser)
    add_output(parser, "json", "yaml", "wide", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Ask for the journal, and print it. Without a name it is that of all namespaces."""
    kind, _, name = (args.what or "").rpartition("/")
    key: dict[str, str] = {}
    if name:
        named = kind_named(kind) if kind else JOBS
        place = session.namespace if named.namespaced else ""
        key = {"kind": named.name, "namespace": place, "name": name}
    elif args.namespace and session.on_cluster:
        key = {"namespace": args.namespace}
    answer = session.reports.history(key, args.limit, args.before)
    if args.output and args.output != "wide":
        session.terminal.data(answer, args.output)
        return 0
    for entry in answer["items"]:
        session.terminal.print(line_of(entry, wide=args.output == "wide", named=not name))
    if session.on_cluster:
        from interlock.client.cluster.events import KEPT

        print(KEPT, file=sys.stderr)
    return 0


def line_of(entry: dict[str, Any], *, wide: bool = False, named: bool = True) -> str:
    """One decision on one line: when, who, what, why."""
    what = f"{entry['kind'].lower()}/{entry['name']}  " if named else ""
    told = entry.get("reason") or ", ".join(entry.get("actions") or [])
    parts = [f"{day_and_time(entry['at'])}  {entry['room']:<9}  {what}{told}"]
    if wide and entry.get("actions"):
        parts.append(f"[{'; '.join(entry['actions'])}; at version {entry.get('version')}]")
    if entry.get("outcome"):
        parts.append(f"({entry['outcome']})")
    return "  ".join(parts)
