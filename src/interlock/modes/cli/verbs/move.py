"""Move queued Jobs, schedules and calendars to a cluster, without losing or doubling one.

JobConfigs and ControlledJobs are suspended at the server, created in the cluster with what they
know, and resumed there; what was due meanwhile is caught up on. They stay suspended at the server.
Jobs that never started are held at the server, created in the cluster, removed at the server, and
let go in the cluster, in this order and in their order. What started or ended is left, and so are
all that run processes, unless --image makes pods of them. Interrupted at any point, the same
command brings it to its end. What needs a lock that an unfinished Job left at the server needs too
stays suspended in the cluster; move again when that is over.

  interlock move --from http://127.0.0.1:8470 --to production --dry-run
  interlock move --from http://127.0.0.1:8470 --to production --image registry/tools:1
"""

from __future__ import annotations

import argparse
from collections import Counter
from contextlib import closing

from interlock.client.api import Api
from interlock.client.errors import BAD_INPUT, FAILED, OK, CommandError
from interlock.client.kubeconfig import read_context
from interlock.client.target import Target, find_target
from interlock.migration.endpoints import Side
from interlock.migration.judging import (
    CONFLICT,
    HELD_BACK,
    LEFT,
    MOVED,
    NOT_MOVABLE,
    THERE_ALREADY,
    WOULD_MOVE,
)
from interlock.migration.mover import Mover
from interlock.modes.cli.flags import add_output
from interlock.modes.cli.session import Session

_OUTCOMES = (MOVED, WOULD_MOVE, THERE_ALREADY, HELD_BACK, LEFT, NOT_MOVABLE, CONFLICT)


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--from", dest="source", metavar="URL", required=True, help="the server to move from")
    add("--from-token-file", metavar="FILE", help="the token to show there")
    add("--to", dest="goal", metavar="CONTEXT", required=True, help="the cluster to move to")
    add("-n", "--namespace", metavar="NAME", help="what is in this namespace alone (all)")
    add("--image", metavar="IMAGE", default="",
        help="make pods with this image of what runs processes")  # fmt: skip
    add("--dry-run", action="store_true", help="only say what would be done")
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Move, and tell what became of everything."""
    if args.server or args.context:
        told = "move takes its servers from --from and --to"
        raise CommandError(told, hint="leave out --server and --context", code=BAD_INPUT)
    source, goal = _source(args), read_context(args.kubeconfig, args.goal)
    with closing(Api(source)) as ours, closing(Api(goal)) as theirs:
        _check_places(args, ours, theirs)
        mover = Mover(
            Side(ours, source.url),
            Side(theirs, goal.url),
            args.goal,
            namespace=args.namespace,
            image=args.image,
        )
        _move(mover, args)
    return _tell(session, args, mover)


def _move(mover: Mover, args: argparse.Namespace) -> None:
    try:
        mover.run(dry_run=args.dry_run)
    except CommandError as error:
        again = "nothing is lost or doubled: give the same command again"
        error.hint = "; ".join(filter(None, (error.hint, again)))
        raise


def _source(args: argparse.Namespace) -> Target:
    wanted = argparse.Namespace(**vars(args))
    wanted.server, wanted.kubeconfig = args.source, None
    wanted.token_file = args.from_token_file or args.token_file
    return find_target(wanted)


def _check_places(args: argparse.Namespace, ours: Api, theirs: Api) -> None:
    if not _is_ours(ours):
        raise CommandError(f"{args.source} is not a server of ours", code=BAD_INPUT)
    if _is_ours(theirs):
        told = f"context {args.goal} is a server of ours, not a cluster"
        raise CommandError(told, code=BAD_INPUT)


def _is_ours(api: Api) -> bool:
    return "+interlock." in str(api.call("GET", "/version").get("gitVersion"))


def _tell(session: Session, args: argparse.Namespace, mover: Mover) -> int:
    counts = Counter(verdict.outcome for verdict in mover.verdicts.values())
    if args.output:
        items = [
            {**what._asdict(), "outcome": verdict.outcome, "why": verdict.why}
            for what, verdict in mover.verdicts.items()
        ]
        session.terminal.data({"items": items, "summary": dict(counts)}, "json")
    else:
        rows = [
            [what.namespace, what.told, verdict.outcome, verdict.why]
            for what, verdict in mover.verdicts.items()
        ]
        if rows:
            session.terminal.table(["NAMESPACE", "NAME", "OUTCOME", "WHY"], rows)
        told = [f"{counts[outcome]} {outcome}" for outcome in _OUTCOMES if counts[outcome]]
        session.terminal.print(", ".join(told) or "there is nothing to move")
    return FAILED if counts[CONFLICT] else OK
