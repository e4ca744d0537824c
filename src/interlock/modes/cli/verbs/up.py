"""Start the server: one process, one data directory.

It serves until Ctrl-C or SIGTERM; SIGHUP has it read tokens and certificate again, and open its
logs anew. It answers the user that it runs as, and root: whose a
connection is, the kernel says. With --token-file or --tokens it answers whoever shows a token; on
an address that other machines can reach it needs one. Those of --token-file may do everything;
--tokens gives each a name and rights: read, operate, admin or worker.
"""

from __future__ import annotations

import argparse

from interlock.modes.cli.flags import add_sweeping, number_from, seconds
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", metavar="DIR", default=None, help="where everything is kept (.interlock)")
    add("--listen", metavar="HOST:PORT", default=None, help="where to listen (127.0.0.1:8470)")
    add(
        "--tokens", metavar="FILE", default=None,
        help="named tokens with rights: YAML or JSON, [{name, token, rights, paths}]",
    )  # fmt: skip
    add("--tls-cert", metavar="FILE", default=None, help="serve https with this certificate")
    add("--tls-key", metavar="FILE", default=None, help="the key of that certificate")
    add(
        "--any-local-user", action="store_true",
        help="let every user of this machine run commands as this one, without a token",
    )  # fmt: skip
    add(
        "--accept-loss", action="store_true",
        help="go on with what is there when the store lacks something that was acknowledged",
    )  # fmt: skip
    add(
        "--keeper-patience", metavar="TIME", type=patience, default=None,
        help="a keeper that has not answered for so long counts as hanging (10s)",
    )  # fmt: skip
    add_sweeping(parser)
    add(
        "--wait-for-pods-ready", metavar="FILE", default=None,
        help="whether Jobs have to be ready in time, for Queues that do not say: YAML or JSON",
    )  # fmt: skip
    add(
        "--worker-lease", metavar="TIME", type=patience, default=None,
        help="a worker that is silent for so long loses what it does (30s)",
    )  # fmt: skip
    add(
        "--max-pending", metavar="N", type=number_from(1), default=None,
        help="at most so many unfinished Jobs for one target; one more is refused (100)",
    )  # fmt: skip
    add(
        "--keep-finished", metavar="TIME", type=seconds, default=None,
        help="how long the statuses of Jobs are kept that are over and were removed (30d)",
    )  # fmt: skip
    add(
        "--queue-cpu", metavar="CORES", type=_cores, default=None,
        help="what all processes may ask for together; kept in the Queue machine, as are the next "
        "two (the cores of this machine)",
    )  # fmt: skip
    add(
        "--queue-memory", metavar="AMOUNT", type=_memory, default=None,
        help="the same of memory, such as 8Gi (the memory of this machine)",
    )  # fmt: skip
    add(
        "--queue-tasks", metavar="N", type=number_from(1), default=None,
        help="how many processes run at a time, whatever they ask for (32 for each core, "
        "64 to 512)",
    )  # fmt: skip
    add("--examples", action="store_true", help="apply examples/ to a new store")


def patience(text: str) -> float:
    """A length of time that is not nothing."""
    given = seconds(text)
    if given <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time at all; expected such as 10s")
    return given


def _cores(text: str) -> str:
    """So many cores, or thousandths of one."""
    if _milli(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of cores; expected such as 4")
    return text


def _memory(text: str) -> str:
    """So much memory; what is less than a MiB was meant as something else."""
    if _milli(text) < 1000 << 20:
        told = f"{text!r} is no amount of memory from 1Mi up; expected such as 8Gi"
        raise argparse.ArgumentTypeError(told)
    return text


def _milli(text: str) -> int:
    from interlock.resources.values.amounts import Amount

    try:
        return Amount.read(text).milli
    except ValueError:
        return 0


def run(_: Session, args: argparse.Namespace) -> int:
    """Hand over to the server."""
    from interlock.modes.embedded import serve

    return serve(args)
