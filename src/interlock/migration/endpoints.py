"""The endpoints of a migration: what is read and written on each of the two servers."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from interlock.client.api import MERGE_PATCH, Api
from interlock.client.errors import AnswerError
from interlock.client.kinds import JOBS, Kind, kind_named

#: A resource as an API tells it, its kind included.
Thing = dict[str, Any]


class Side:
    """A server with Jobs and what makes them: ours, or a cluster's."""

    def __init__(self, api: Api, url: str) -> None:
        self._api = api
        self.url = url

    def identity(self, namespace: str) -> str:
        """What tells this server from every other: the uid of a namespace that it always has.

        Who may not read it is content with the address.
        """
        try:
            found = self._api.get(kind_named("namespaces"), "", namespace)
        except AnswerError as error:
            if error.status not in (403, 404):
                raise
            return sha256(self.url.encode()).hexdigest()[:32]
        return str(found["metadata"]["uid"])

    def all(self, kind: Kind, namespace: str | None, labels: str = "") -> list[Thing]:
        """All of a kind, in a namespace or in all."""
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        pages = self._api.pages(kind, namespace, labels=labels)
        things = [head | item for page in pages for item in page["items"]]
        for thing in things:
            thing["metadata"].setdefault("namespace", "")
        return things

    def jobs(self, namespace: str | None, labels: str = "") -> list[Thing]:
        """All Jobs, of a namespace or of all."""
        return self.all(JOBS, namespace, labels)

    def read(self, thing: Thing) -> Thing | None:
        """What has that kind and name now; None when nothing has."""
        metadata = thing["metadata"]
        try:
            return self._api.get(_kind(thing), metadata["namespace"], metadata["name"])
        except AnswerError as error:
            if error.status != 404:
                raise
            return None

    def check(self, thing: Thing) -> None:
        """Have the server say what is wrong with something new, without storing it."""
        self._api.create(_kind(thing), thing["metadata"]["namespace"], thing, dry_run=True)

    def create(self, thing: Thing) -> Thing:
        """Store something new."""
        made: Thing = self._api.create(_kind(thing), thing["metadata"]["namespace"], thing)
        return made

    def change(self, thing: Thing, change: Thing) -> Thing:
        """Change something, from the version that the change names."""
        metadata = thing["metadata"]
        changed: Thing = self._api.patch(
            _kind(thing), metadata["namespace"], metadata["name"], change
        )
        return changed

    def tell(self, thing: Thing, status: Thing) -> Thing:
        """Write parts of a status, if the thing is still as it was read."""
        metadata = thing["metadata"]
        path = f"{_kind(thing).path(metadata['namespace'], metadata['name'])}/status"
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status}
        told: Thing = self._api.call("PATCH", path, None, body, content_type=MERGE_PATCH)
        return told

    def remove(self, thing: Thing) -> None:
        """Delete something if it is still the very one, and as it was read."""
        metadata = thing["metadata"]
        same = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": same}
        path = _kind(thing).path(metadata["namespace"], metadata["name"])
        self._api.call("DELETE", path, None, options)


def _kind(thing: Thing) -> Kind:
    return kind_named(thing["kind"])
