"""The two sides of a move, each with the few things that a move does there."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from interlock.modes.cli.api import Api
from interlock.modes.cli.errors import AnswerError
from interlock.modes.cli.kinds import JOBS, kind_named

Job = dict[str, Any]


class Side:
    """A server with Jobs: ours, or a cluster's."""

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

    def jobs(self, namespace: str | None, labels: str = "") -> list[Job]:
        """All Jobs, of a namespace or of all."""
        head = {"apiVersion": JOBS.api_version, "kind": JOBS.name}
        pages = self._api.pages(JOBS, namespace, labels=labels)
        return [head | item for page in pages for item in page["items"]]

    def read(self, job: Job) -> Job | None:
        """The Job of that name as it is now; None when there is none."""
        try:
            return self._api.get(JOBS, job["metadata"]["namespace"], job["metadata"]["name"])
        except AnswerError as error:
            if error.status != 404:
                raise
            return None

    def check(self, job: Job) -> None:
        """Have the server say what is wrong with a new Job, without storing it."""
        self._api.create(JOBS, job["metadata"]["namespace"], job, dry_run=True)

    def create(self, job: Job) -> Job:
        """Store a new Job."""
        made: Job = self._api.create(JOBS, job["metadata"]["namespace"], job)
        return made

    def change(self, job: Job, change: Job) -> Job:
        """Change a Job, from the version that the change names."""
        metadata = job["metadata"]
        changed: Job = self._api.patch(JOBS, metadata["namespace"], metadata["name"], change)
        return changed

    def remove(self, job: Job) -> None:
        """Delete a Job if it is still the very one, and as it was read."""
        metadata = job["metadata"]
        same = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": same}
        path = JOBS.path(metadata["namespace"], metadata["name"])
        self._api.call("DELETE", path, None, options)
