"""Changes as they happen, until Ctrl-C or --limit.

First what there is, then a line for each change. With -o json each line is one change:
{"type": "ADDED" | "MODIFIED" | "DELETED", "object": {...}}.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.client.kinds import Kind, parse_names
from interlock.client.outcomes import fences_told, has_ended, last_line, phase_of, waits_told
from interlock.client.watching import Change, Feed
from interlock.modes.cli.flags import add_namespace, add_output, add_selectors, number_from
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="KIND [NAME] | KIND/NAME", nargs="+", help="which")
    parser.add_argument("--limit", metavar="N", type=number_from(1), help="end after so many lines")
    add_selectors(parser)
    add_namespace(parser, every=True)
    add_output(parser, "json", "name", "wide")


def run(session: Session, args: argparse.Namespace) -> int:
    """Print changes until told to stop."""
    names = parse_names(args.what)
    if len(names) != 1:
        raise CommandError("one kind, or one resource, can be watched at a time", code=BAD_INPUT)
    kind, name = names[0]
    fields = ",".join(filter(None, (args.field_selector, f"metadata.name={name}" if name else "")))
    feed = Feed(session.api, kind, session.namespace_or_all, labels=args.selector, fields=fields)
    try:
        return _print_changes(session, args, kind, feed)
    finally:
        feed.close()


def _print_changes(session: Session, args: argparse.Namespace, kind: Kind, feed: Feed) -> int:
    left = args.limit
    changes = feed.start()
    while True:
        for change in changes:
            session.terminal.print(_line(session, args, kind, change))
            if left is not None:
                left -= 1
                if left == 0:
                    return 0
        changes = feed.next(None) or []


def _line(session: Session, args: argparse.Namespace, kind: Kind, change: Change) -> str:
    type, item = change
    if args.output == "json":
        return json.dumps({"type": type, "object": item}, ensure_ascii=False)
    metadata = item["metadata"]
    place = f"{metadata['namespace']}/" if args.all_namespaces and kind.namespaced else ""
    name = f"{kind.singular}/{place}{metadata['name']}"
    if args.output == "name":
        return name
    return f"{type:<8}  {name}  {_state(session, kind, item)}".rstrip()


def _state(session: Session, kind: Kind, item: dict[str, Any]) -> str:
    if kind.name == "Job":
        phase = phase_of(item)
        detail = waits_told(item) if phase == "Queued" else fences_told(item)
        told = last_line(item) if has_ended(item) else detail
        return f"{session.terminal.mood(phase)}  {told}"
    if kind.name == "Lock":
        holders = (item.get("status") or {}).get("holders") or []
        held = ", ".join(f"{holder['job']} (token {holder['token']})" for holder in holders)
        return f"{item['spec']['key']}: {held or 'free'}"
    return str((item.get("status") or {}).get("phase") or "")
