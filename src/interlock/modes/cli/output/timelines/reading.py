"""What a timeline needs of a server: schedules, their calendars, and their Jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from interlock.client.api import PAGE
from interlock.client.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind
from interlock.forecast.timeline.chart import LABELS, JobsOf, in_order, jobs_by_owner
from interlock.forecast.upcoming import Definitions
from interlock.kube.store.codec import WIRES
from interlock.modes.cli.rehearsal.definitions import from_server
from interlock.modes.cli.session import Session
from interlock.resources.job import Job

#: The kinds that are shown.
SHOWN = (CONTROLLED_JOBS, JOB_CONFIGS)


def read_all(session: Session, named: list[tuple[Kind, str]]) -> tuple[Definitions, JobsOf]:
    """What was named, or everything that is scheduled, with the Jobs of each."""
    definitions = from_server(session, named or [(kind, "") for kind in SHOWN])
    shown = {one.kind for one in in_order(definitions)}
    jobs: list[Job] = []
    for kind in SHOWN:
        if kind.name in shown:
            names = [name for each, name in named if each is kind]
            only = f"={names[0]}" if len(names) == 1 and names[0] else ""
            jobs.extend(_listed(session, f"{LABELS[kind.name]}{only}"))
    return definitions, jobs_by_owner(definitions, jobs)


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
