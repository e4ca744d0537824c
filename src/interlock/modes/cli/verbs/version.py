"""The version of this program and of the server; on a cluster also who leads there."""

from __future__ import annotations

import argparse

import interlock
from interlock.client.errors import CommandError
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--client", action="store_true", help="of this program alone")
    add_namespace(parser)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Ask the server too; that there is none is no error here."""
    told: dict[str, object] = {"client": interlock.__version__}
    if not args.client:
        try:
            told["server"] = session.api.call("GET", "/version").get("gitVersion", "")
            told["url"] = session.target.url
            if session.target.note:
                told["note"] = session.target.note
            if session.on_cluster:
                from interlock.client.cluster.leading import find_leader

                told["leader"] = find_leader(session.api, session.namespace).data()
        except CommandError as error:
            told["server"] = None
            told["message"] = error.message
    if args.output:
        session.terminal.data(told, args.output)
        return 0
    session.terminal.print(f"interlock {told['client']}")
    if not args.client:
        server = f"{told['server']} at {told['url']}" if told.get("url") else told["message"]
        note = f"; {told['note']}" if told.get("note") else ""
        session.terminal.print(f"server    {server}{note}")
    leader = told.get("leader")
    if isinstance(leader, dict):
        session.terminal.print(f"leader    {leader['message']}")
    return 0
