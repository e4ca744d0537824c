"""What Jobs have on record, asked afresh before anything is let run.

Whoever stops an attempt records that first and looks for its object after that. Whoever launches it
makes the object first and looks at the record after that. So one of the two sees what the other
did, and an attempt that is over is not let run, whoever believes to lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from interlock.errors import InterlockError, NotFoundError
from interlock.kube.pods.fan_out import for_each
from interlock.kube.pods.models import JobRecord, KubeObject
from interlock.kube.pods.objects import Sort
from interlock.resources.metadata import GROUP, VERSION
from interlock.resources.tasks import TaskId

RECORDS: Sort[JobRecord] = Sort("Job", GROUP, VERSION, "jobs", JobRecord)


class Records(Protocol):
    """Where the records of Jobs are read."""

    async def get(self, namespace: str, name: str) -> JobRecord:
        """The newest record of a Job.

        Raises:
            NotFoundError: There is no such Job.
            UnavailableError: Nothing is known.
        """
        ...


class Wanted:
    """Says which of the attempts that are ready to run are still to run."""

    def __init__(self, records: Records) -> None:
        self._records = records
        #: The attempts that were found on record.
        self.tasks: set[TaskId] = set()

    async def ask(self, things: Sequence[KubeObject]) -> list[InterlockError]:
        """Ask about the attempts that objects were made for, once for each Job."""
        jobs = {(one.metadata.namespace, one.metadata.labels.job): None for one in things}
        return await for_each(tuple(jobs), self._ask)

    async def _ask(self, job: tuple[str, str]) -> None:
        with suppress(NotFoundError):
            self.tasks.update((await self._records.get(*job)).wanted)
