"""Run Jobs again, each as a new Job with the same definition.

The new Job is called JOB-retry- and five characters. Moments of the old one (when to start, when
to stop) are left out: it starts as soon as it may.

  interlock retry migrate
  interlock retry -l team=ops --field-selector status.phase=Failed
"""

from __future__ import annotations

import argparse
from typing import Any

from interlock.modes.cli.choosing import add_choice, chosen
from interlock.modes.cli.creating import create_job, told_as_made
from interlock.modes.cli.flags import add_namespace, add_output, add_waiting
from interlock.modes.cli.kinds import JOBS, job_name
from interlock.modes.cli.person import person
from interlock.modes.cli.session import Session

RETRY_OF = "interlock.dev/retry-of"
CREATOR = "interlock.dev/creator"
_MOMENTS = ("killAt", "startAfter", "startBy", "suspend", "suspendReason")
#: Names are DNS labels of 63 characters, five of which the server adds.
_ROOM = 63 - len("-retry-") - 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    add_choice(parser, about="a Job to repeat; may be several")
    add_waiting(parser)
    add_namespace(parser)
    add_output(parser, "json", "yaml", "name", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Create the new Jobs, and stay with them if asked. All are read before one is made."""
    names = chosen(session, args, lambda word: (JOBS, job_name(word, verb="retry")))
    old = [session.api.get(kind, session.namespace, name) for kind, name in names]
    made = [create_job(session, repeated(one)) for one in old]
    if args.wait or args.follow:
        from interlock.modes.cli.following import follow

        return follow(session, [job["metadata"]["name"] for job in made], args)
    return told_as_made(session, args, made)


def repeated(old: dict[str, Any]) -> dict[str, Any]:
    """The same Job once more. A kill may have shortened the grace period: that is forgotten."""
    spec = {name: value for name, value in old["spec"].items() if name not in _MOMENTS}
    if "killAt" in old["spec"] and spec.get("gracePeriod") == "0s":
        del spec["gracePeriod"]
    base = old["metadata"]["name"]
    metadata: dict[str, Any] = {
        "generateName": f"{base[:_ROOM].rstrip('-')}-retry-",
        "annotations": {RETRY_OF: base, CREATOR: person()},
    }
    if labels := old["metadata"].get("labels"):
        metadata["labels"] = labels
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "metadata": metadata,
        "spec": spec,
    }
