"""Start the controller of a Kubernetes cluster: in a pod of it, or anywhere with a kubeconfig.

The cluster is found by --kubeconfig and --context, KUBECONFIG, the pod's service account, or
~/.kube/config. Several controllers agree on one that leads; the others take over when it is gone.

It answers to tokens of the cluster, and lets everybody do what they may do there. Without
--listen that is on 127.0.0.1:8470, or on any free port when that one is taken. On an address that
others can reach it needs --tls-cert and --tls-key.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from interlock.client.errors import CommandError
from interlock.modes.cli.flags import add_sweeping, number_from
from interlock.modes.cli.session import Session

#: What a server on one machine can do without.
_NEEDS = ("aiohttp", "cryptography")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-n", "--namespace", metavar="NAME", help="serve this namespace alone (all)")
    add("--listen", metavar="HOST:PORT", help="where to answer (127.0.0.1:8470)")
    add("--tls-cert", metavar="FILE", help="serve https with this certificate")
    add("--tls-key", metavar="FILE", help="the key of that certificate")
    add("--webhook-listen", metavar="HOST:PORT", help="where the API server asks about Jobs")
    add("--extender-listen", metavar="HOST:PORT", help="where a scheduler asks about slots")
    add("--plain-http", action="store_true", help="let others send tokens without encryption")
    add(
        "--lease-namespace", metavar="NAME",
        help="where the leader's lease is kept (POD_NAMESPACE, else interlock-system)",
    )  # fmt: skip
    add(
        "--lease-lasts", metavar="SECONDS", type=number_from(2),
        help="how soon a leader that is gone is followed (3)",
    )  # fmt: skip
    add(
        "--max-pending", metavar="N", type=number_from(1), default=None,
        help="at most so many unfinished Jobs for one target; one more is refused (100)",
    )  # fmt: skip
    add(
        "--most-tasks", metavar="N", type=number_from(1),
        help="how many tasks are under way at a time (100000)",
    )  # fmt: skip
    add(
        "--adopt-workloads", choices=("true", "false"), default="true",
        help="queue batch Jobs and pods that are labelled interlock.dev/queue (true)",
    )  # fmt: skip
    add_sweeping(parser)
    add(
        "--wait-for-pods-ready", metavar="FILE", default=None,
        help="whether Jobs have to be ready in time, for Queues that do not say: YAML or JSON",
    )  # fmt: skip


def run(_: Session, args: argparse.Namespace) -> int:
    """Hand over to the controller."""
    missing = [name for name in _NEEDS if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise CommandError(
            f"a controller needs {' and '.join(missing)}, which {are} not installed",
            hint="install Interlock with them: pip install '.[kubernetes]' in its tree",
        )
    from interlock.modes.cluster import serve

    return serve(args)
