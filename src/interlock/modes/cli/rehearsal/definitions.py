"""Where definitions come from: a server's store, or files without any server."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from msgspec.structs import replace

from interlock.client.api import PAGE, Api
from interlock.client.kinds import CALENDARS, CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind
from interlock.client.schedules import read_calendars, read_one
from interlock.forecast.rehearsal.targets import placed
from interlock.forecast.upcoming import Definitions
from interlock.kube.store.codec import WIRES
from interlock.modes.cli.input.documents import read_good
from interlock.modes.cli.not_found import found
from interlock.modes.cli.session import Session
from interlock.resources.door.validation import read_resource
from interlock.resources.metadata import Resource

#: Kinds whose objects something is due for.
SCHEDULED = (JOB_CONFIGS, CONTROLLED_JOBS, JOBS)


def from_files(files: list[str], namespace: str, *, recursive: bool) -> Definitions:
    """What files define; no server is asked."""
    documents = read_good(files, recursive=recursive)
    definitions = Definitions()
    for number, given in enumerate(documents, 1):
        resource = placed(read_resource(given.data)[0], namespace)
        # Who reads schedules tells one object from another by what a store gives it.
        metadata = replace(
            resource.metadata, uid=f"{given.file}#{number}", resource_version=str(number)
        )
        definitions.add(replace(resource, metadata=metadata))
    return definitions


def from_server(session: Session, named: list[tuple[Kind, str]]) -> Definitions:
    """What a server stores: what was named, or everything of the namespace or of all."""
    definitions = Definitions()
    if named and all(name for _, name in named):
        for kind, name in named:
            with found(session, kind, name):
                resource = read_one(session.api, kind, session.namespace, name)
            definitions.add(resource)
            for calendar in read_calendars(session.api, resource):
                definitions.add(calendar)
        return definitions
    kinds = [kind for kind, _ in named] or list(SCHEDULED)
    for kind in (*kinds, CALENDARS):
        for resource in listed(session.api, kind, session.namespace_or_all):
            definitions.add(resource)
    return definitions


def listed(api: Api, kind: Kind, namespace: str | None) -> Iterator[Resource]:
    """Every object of a kind. What cannot be read is said, and left out."""
    following = ""
    while True:
        query = {"limit": PAGE, "continue": following}
        items = WIRES[kind.name].list(api.fetch("GET", kind.path(namespace), query))
        for bad in items.undecodable:
            print(f"{bad.key} cannot be read and is left out: {bad.problem}", file=sys.stderr)
        yield from items.items
        following = items.metadata.continue_
        if not following:
            return
