"""What apply would change: nothing is stored.

The exit code is 0 when nothing would change, and 1 when something would.
"""

from __future__ import annotations

import argparse
import sys
from difflib import unified_diff
from typing import Any

from interlock.client.errors import BAD_INPUT, FAILED, OK, AnswerError
from interlock.commands.applying import written
from interlock.modes.cli.applying import Wanted, apply, read_wanted
from interlock.modes.cli.flags import add_files, add_namespace, add_output
from interlock.modes.cli.input.documents import refused_by_server
from interlock.modes.cli.main import tell
from interlock.modes.cli.output.formats import to_yaml
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Have the server work out each result, and compare."""
    code, changes = OK, []
    for wanted in read_wanted(session, args):
        try:
            _, before, after = apply(session, wanted, dry_run=True)
        except AnswerError as error:
            refusal = refused_by_server(wanted.given, error)
            if refusal is None:
                tell(error)
            else:
                print("\n".join(refusal.lines()), file=sys.stderr)
            code = max(code, error.code, BAD_INPUT)
            continue
        old, new = written(before), written(after)
        if old != new:
            code = code or FAILED
            changes.append({"resource": str(wanted), "before": old, "after": new})
            if not args.output:
                _show(session, wanted, old, new)
    if args.output:
        session.terminal.data({"items": changes}, "json")
    return code


def _show(session: Session, wanted: Wanted, old: dict[str, Any], new: dict[str, Any]) -> None:
    lines = unified_diff(
        to_yaml(old).splitlines() if old else [],
        to_yaml(new).splitlines(),
        f"{wanted} (stored)",
        f"{wanted} ({wanted.given.file})",
        lineterm="",
    )
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        session.terminal.print(session.terminal.paint(line, colours.get(line[:1], "")))
