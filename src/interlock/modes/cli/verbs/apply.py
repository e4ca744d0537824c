"""Create or change what files define.

Every document is checked before any is stored. Fields that were applied before and are gone from
the file are removed; fields that others wrote are left alone. `kubectl apply` may be mixed with it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from interlock.client.errors import OK, AnswerError
from interlock.modes.cli.applying import Wanted, apply, read_wanted
from interlock.modes.cli.flags import add_files, add_namespace, add_output
from interlock.modes.cli.input.documents import refused_by_server
from interlock.modes.cli.main import tell
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    parser.add_argument("--dry-run", action="store_true", help="have the server check, not store")
    add_namespace(parser)
    add_output(parser, "json", "yaml", "name", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Apply each document; one that the server refuses does not keep the others back."""
    code, items = OK, []
    for wanted in read_wanted(session, args):
        try:
            word, _, item = apply(session, wanted, dry_run=args.dry_run)
        except AnswerError as error:
            _say_refused(wanted, error)
            code = code or error.code
            continue
        items.append(item)
        _say(session, args, wanted, word)
    if args.output and args.output != "name":
        _print_items(session, args, items)
    return code


def _say(session: Session, args: argparse.Namespace, wanted: Wanted, word: str) -> None:
    if args.output == "name":
        session.terminal.print(str(wanted))
    elif not args.output:
        dry = " (dry run)" if args.dry_run else ""
        colour = {"created": "green", "configured": "yellow"}.get(word, "")
        session.terminal.print(f"{wanted} {session.terminal.paint(word, colour)}{dry}")


def _say_refused(wanted: Wanted, error: AnswerError) -> None:
    refusal = refused_by_server(wanted.given, error)
    if refusal is None:
        error.message = f"{wanted}: {error.message}"
        tell(error)
    else:
        print("\n".join(refusal.lines()), file=sys.stderr)


def _print_items(session: Session, args: argparse.Namespace, items: list[dict[str, Any]]) -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    session.terminal.data(items[0] if len(items) == 1 else whole, args.output)
