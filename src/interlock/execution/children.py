"""Children: the Jobs that have an operation as their parent, counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.tasks import JobResult
from interlock.resources.transitions import has_ended

#: The index of Jobs by their parents.
BY_PARENT = "parent"


class Children(NamedTuple):
    """How the Jobs are going that have this one as their parent."""

    unfinished: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """All of them that are there."""
        return self.unfinished + self.succeeded + self.failed


def parents_of(job: Job) -> Iterable[str]:
    """Under which value a Job is found in the index BY_PARENT."""
    parent = job.spec.parent
    return () if parent is None else (f"{job.metadata.namespace}/{parent}",)


def under(job: Job) -> str:
    """Under which value the children of a Job are found there."""
    return f"{job.metadata.namespace}/{job.metadata.name}"


def parent_key(job: Job) -> Key | None:
    """The Job that this one is a part of."""
    parent = job.spec.parent
    return None if parent is None else Key("Job", job.metadata.namespace, parent)


def counted(jobs: Iterable[Job]) -> Children:
    """How some Jobs are going. One that is gone is not among them, and counts for nothing."""
    unfinished = succeeded = failed = 0
    for job in jobs:
        if not has_ended(job):
            unfinished += 1
        elif job.status.execution.result is JobResult.SUCCEEDED:
            succeeded += 1
        else:
            failed += 1
    return Children(unfinished, succeeded, failed)
