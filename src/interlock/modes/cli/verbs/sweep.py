"""Have operations looked at that were left alone for too long, and tell which are stuck.

The server does so by itself now and then (interlock up --sweep-every). A sweep runs nothing: what
is found is looked at as if it were new, and what is under way is left alone. An operation counts as
left alone when nothing was done about it for TIME beyond the delay of its next retry; 0 takes all
that are not under way. One that is stuck is told of and not touched: nobody acts on it but you.

interlock sweep
interlock sweep --older-than 30m --target domains/acme
"""

from __future__ import annotations

import argparse
from typing import Any

from interlock.client.errors import BAD_INPUT, OK, CommandError
from interlock.client.moments import ago, server_now
from interlock.modes.cli.flags import add_output, duration
from interlock.modes.cli.session import Session

_REASONS = {
    "NeverSeen": "never seen",
    "Untouched": "untouched",
    "RetryOverdue": "retry overdue",
    "UndoOverdue": "undo overdue",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take the age and the target."""
    add = parser.add_argument
    add("--older-than", metavar="TIME", type=duration, help="left alone for longer (10m)")
    add("--target", metavar="PATH", help="only on this target, or on one below it")
    add("-n", "--namespace", metavar="NAME", help="only in this namespace (all)")
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Have the server sweep, and tell what it found."""
    if session.on_cluster:
        raise CommandError(
            "a cluster's API server does not sweep: its controller does",
            hint="it sweeps by itself; to ask it now: interlock --server https://CONTROLLER sweep",
            code=BAD_INPUT,
        )
    given = {
        "olderThan": args.older_than,
        "target": args.target,
        "namespace": args.namespace,
    }
    query = {name: value for name, value in given.items() if value}
    answer = session.api.call("POST", "/operations/sweep", query)
    if args.output:
        session.terminal.data(answer, "json")
        return OK
    _show(session, answer)
    return OK


def _show(session: Session, answer: dict[str, Any]) -> None:
    terminal, now = session.terminal, server_now(session.api)
    if answer["woken"]:
        terminal.table(
            ("WOKEN", "BECAUSE", "LEFT-ALONE", "TARGET"),
            [
                (
                    _name(one), _REASONS.get(one["reason"], one["reason"]),
                    ago(one["since"], now), one.get("target", ""),
                )
                for one in answer["woken"]
            ],
        )  # fmt: skip
        terminal.print()
    if answer["stuck"]:
        terminal.table(
            ("STUCK", "SINCE", "TARGET", "WHY"),
            [
                (_name(one), ago(one["since"], now), one.get("target", ""), one.get("reason", ""))
                for one in answer["stuck"]
            ],
        )
        terminal.print("nobody acts on these but you: interlock op show NAME")
        terminal.print()
    open_ones, under_way = answer["operations"], answer["underWay"]
    stuck = answer["stuckCount"]
    terminal.print(f"operations not over: {open_ones}; under way: {under_way}; stuck: {stuck}")
    counts = ", ".join(
        f"{_REASONS.get(reason, reason)}: {number}" for reason, number in answer["posted"].items()
    )
    terminal.print(f"woken: {sum(answer['posted'].values())} ({counts})")


def _name(one: dict[str, Any]) -> str:
    return f"{one['namespace']}/{one['name']}"
