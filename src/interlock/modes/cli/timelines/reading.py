"""What a timeline needs of a server: schedules, their calendars, and their Jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from interlock.forecast.upcoming import Definitions
from interlock.kube.wire import WIRES
from interlock.modes.cli.api import PAGE
from interlock.modes.cli.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind
from interlock.modes.cli.session import Session
from interlock.modes.cli.timemachine.defining import from_server
from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.resources.schedule import CONFIG_LABEL, CONTROLLED_LABEL

#: The kinds that are shown, each with the label that its Jobs carry.
SHOWN = {CONTROLLED_JOBS: CONTROLLED_LABEL, JOB_CONFIGS: CONFIG_LABEL}
#: By kind, namespace and name.
Jobs = dict[tuple[str, str, str], list[Job]]


def read_all(session: Session, named: list[tuple[Kind, str]]) -> tuple[Definitions, Jobs]:
    """What was named, or everything that is scheduled, with the Jobs of each."""
    definitions = from_server(session, named or [(kind, "") for kind in SHOWN])
    objects: list[Resource] = [*definitions.controlled.values(), *definitions.configs.values()]
    uids = {
        (one.kind, one.metadata.namespace, one.metadata.name): one.metadata.uid for one in objects
    }
    jobs: Jobs = {}
    for kind, label in SHOWN.items():
        if not any(one.kind == kind.name for one in objects):
            continue
        names = [name for each, name in named if each is kind]
        only = f"={names[0]}" if len(names) == 1 and names[0] else ""
        for job in _listed(session, f"{label}{only}"):
            metadata = job.metadata
            key = (kind.name, metadata.namespace, metadata.labels.get(label, ""))
            if key in uids and _owner(job) in ("", uids[key]):
                jobs.setdefault(key, []).append(job)
    return definitions, jobs


def _listed(session: Session, labels: str) -> Iterator[Job]:
    following = ""
    path = JOBS.path(session.namespace_or_all)
    while True:
        query = {"limit": PAGE, "continue": following, "labelSelector": labels}
        items = WIRES[JOBS.name].list(session.api.fetch("GET", path, query))
        for bad in items.undecodable:
            print(f"{bad.key} cannot be read and is left out: {bad.problem}", file=sys.stderr)
        yield from (item for item in items.items if isinstance(item, Job))
        following = items.metadata.continue_
        if not following:
            return


def _owner(job: Job) -> str:
    owners = job.metadata.owner_references
    return next((owner.uid for owner in owners if owner.controller), "")
