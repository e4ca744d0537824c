"""What promises about schedules have in common."""

from __future__ import annotations

from datetime import datetime, timedelta

from interlock.resources.job import Job
from support.simulation.judge import Promise

#: What is to happen has happened this long after, when nothing is wrong.
PROMPT = timedelta(seconds=60)


class SchedulePromise(Promise):
    """A promise that is also asked while nothing is wrong and schedules go on."""

    def calm(self, now: datetime) -> None:
        """There has been no trouble for a while."""


def owner_of(job: Job) -> str | None:
    """The uid of the JobConfig or ControlledJob that a Job is of."""
    for owner in job.metadata.owner_references:
        if owner.controller and owner.kind in ("JobConfig", "ControlledJob"):
            return owner.uid
    return None


def is_controlled(job: Job) -> bool:
    """Whether a Job is of a ControlledJob."""
    return any(owner.kind == "ControlledJob" for owner in job.metadata.owner_references)
