"""Run a Job again, as a new Job with the same definition.

The new Job is called JOB-retry- and five characters. Moments of the old one (when to start, when
to stop) are left out: it starts as soon as it may.
"""

from __future__ import annotations

import argparse
from typing import Any

from interlock.modes.cli.flags import add_namespace, add_output, add_waiting
from interlock.modes.cli.kinds import JOBS, job_name
from interlock.modes.cli.session import Session

RETRY_OF = "interlock.dev/retry-of"
_MOMENTS = ("killAt", "startAfter", "startBy", "suspend", "suspendReason")
#: Names are DNS labels of 63 characters, five of which the server adds.
_ROOM = 63 - len("-retry-") - 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("name", metavar="JOB", help="the Job to repeat")
    add_waiting(parser)
    add_namespace(parser)
    add_output(parser, "json", "yaml", "name", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Create the new Job, and stay with it if asked."""
    old = session.api.get(JOBS, session.namespace, job_name(args.name))
    job = session.api.create(JOBS, session.namespace, repeated(old))
    name = job["metadata"]["name"]
    if args.wait or args.follow:
        from interlock.modes.cli.following import follow

        return follow(session, name, args)
    if args.output and args.output != "name":
        session.terminal.data(job, args.output)
    else:
        session.terminal.print(f"job/{name}" + ("" if args.output else " created"))
    return 0


def repeated(old: dict[str, Any]) -> dict[str, Any]:
    """The same Job once more. A kill may have shortened the grace period: that is forgotten."""
    spec = {name: value for name, value in old["spec"].items() if name not in _MOMENTS}
    if "killAt" in old["spec"] and spec.get("gracePeriod") == "0s":
        del spec["gracePeriod"]
    base = old["metadata"]["name"]
    metadata: dict[str, Any] = {
        "generateName": f"{base[:_ROOM].rstrip('-')}-retry-",
        "annotations": {RETRY_OF: base},
    }
    if labels := old["metadata"].get("labels"):
        metadata["labels"] = labels
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "metadata": metadata,
        "spec": spec,
    }
