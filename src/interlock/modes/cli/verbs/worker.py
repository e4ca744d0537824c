"""Run the steps of an application: a worker that a server gives its operations to.

APP is written as MODULE:APP, and loaded from the directory here: `broker:app` is the `app` of
broker.py. The worker runs until Ctrl-C or SIGTERM: then it takes nothing more, and ends once what
it runs has ended and is recorded. Told a second time it stops what it runs. It connects again for
ever, and its processes are replaced when they die.

interlock worker broker:app --concurrency 8
interlock worker broker:app --server https://jobs.example.com --token-file worker.token
"""

from __future__ import annotations

import argparse

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.modes.cli.flags import number_from, seconds
from interlock.modes.cli.session import Session

_MOST = 1_000


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take the application, and how much of it at a time."""
    add = parser.add_argument
    add("app", metavar="APP", help="the application: MODULE:APP")
    add(
        "--concurrency", metavar="N", type=number_from(1), default=4,
        help="how many steps each process runs at a time (4)",
    )  # fmt: skip
    add(
        "--processes", metavar="N", type=number_from(1), default=1,
        help="how many processes (1)",
    )  # fmt: skip
    add(
        "--max-jobs", metavar="N", type=number_from(1), default=0,
        help="replace a process once it had to do with so many Jobs; never in the middle of a step",
    )  # fmt: skip
    add(
        "--queue", metavar="NAME", action="append", default=[],
        help="serve this queue, and not the one without a name; may be repeated",
    )  # fmt: skip
    add(
        "--drain-timeout", metavar="TIME", type=seconds,
        help="when told to end, stop what still runs after so long (never)",
    )  # fmt: skip


def run(_: Session, args: argparse.Namespace) -> int:
    """Hand over to the supervisor."""
    for name in ("concurrency", "processes"):
        if getattr(args, name) > _MOST:
            raise CommandError(f"--{name}: expected at most {_MOST}", code=BAD_INPUT)
    from interlock.sdk.worker.settings import WorkerSettings
    from interlock.sdk.worker.supervisor import Supervisor

    settings = WorkerSettings(
        app=args.app,
        concurrency=args.concurrency,
        max_jobs=args.max_jobs,
        queues=tuple(dict.fromkeys(args.queue)),
        drain_timeout_s=args.drain_timeout,
        server=args.server,
        token_file=args.token_file,
        ca_file=args.ca_file,
        context=args.context,
        kubeconfig=args.kubeconfig,
        insecure_token=args.insecure_token,
    )
    return Supervisor(settings, args.processes).run()
