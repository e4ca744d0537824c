"""Validate files without a server: every problem of every document, with its line."""

from __future__ import annotations

import argparse

from interlock.client.errors import BAD_INPUT, OK
from interlock.modes.cli.flags import add_files, add_output
from interlock.modes.cli.input.documents import read_all, refusals_of, refuse
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Read everything, and tell what is wrong."""
    reading = read_all(args.filename, recursive=args.recursive)
    found, flaws, refusals = reading.found, reading.flaws, refusals_of(reading.found)
    if args.output:
        refused = [refusal.data() for refusal in refusals]
        unreadable = [flaw.message for flaw in flaws]
        whole = {"documents": len(found), "refused": refused, "unreadable": unreadable}
        session.terminal.data(whole, "json")
        return BAD_INPUT if refusals or flaws else OK
    refuse(flaws, refusals)
    told = "1 document is" if len(found) == 1 else f"{len(found)} documents are"
    session.terminal.print(f"{told} good")
    return OK
