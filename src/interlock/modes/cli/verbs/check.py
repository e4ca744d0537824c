"""Validate files without a server: every problem of every document, with its line."""

from __future__ import annotations

import argparse
import sys

from interlock.modes.cli.documents import read_documents, refusal_of
from interlock.modes.cli.errors import BAD_INPUT, OK
from interlock.modes.cli.flags import add_files, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    add_files(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Read everything, and tell what is wrong."""
    found = read_documents(args.filename, recursive=args.recursive)
    refusals = [refusal for given in found if (refusal := refusal_of(given))]
    if args.output:
        refused = [refusal.data() for refusal in refusals]
        session.terminal.data({"documents": len(found), "refused": refused}, "json")
        return BAD_INPUT if refusals else OK
    for refusal in refusals:
        print("\n".join(refusal.lines()), file=sys.stderr)
    if refusals:
        return BAD_INPUT
    told = "1 document is" if len(found) == 1 else f"{len(found)} documents are"
    session.terminal.print(f"{told} good")
    return OK
