"""Schedule permission: which Jobs of schedules are in the books, and so may start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key
from interlock.resources.schedule import ExpectedJob, controlled_lock, is_of_schedule
from interlock.resources.transitions import was_admitted


class Bookkeeping:
    """Looks Jobs up in the books of those who made them.

    What is in the books once stays there until the Job was seen to have started or gone, so an
    old view of the books lets in nobody whom a new one would not.
    """

    def __init__(self, owners: Mapping[str, Cache[Any]]) -> None:
        self._owners = owners

    def has(self, job: Job) -> bool:
        """Whether a Job may start as far as schedules are concerned.

        One that was let in before was written down then, and that was crossed out since.
        """
        if was_admitted(job) or not job.metadata.owner_references:
            return True
        if not is_of_schedule(job):
            return _has_lock_of_owner(job)
        uid = job.metadata.uid
        return any(expected.uid == uid for expected in self._expected(job))

    def _expected(self, job: Job) -> Iterator[ExpectedJob]:
        for owner in job.metadata.owner_references:
            cache = self._owners.get(owner.kind) if owner.controller else None
            found = (
                cache.get(Key(owner.kind, job.metadata.namespace, owner.name)) if cache else None
            )
            if found is not None and found.metadata.uid == owner.uid:
                yield from found.status.books.expected


def _has_lock_of_owner(job: Job) -> bool:
    """Whether a Job that a person started asks for the lock that keeps a ControlledJob's apart.

    One that was put together by hand without it gets it from the schedule, and waits until then.
    """
    asked = {request.key for request in job.spec.locks}
    return all(
        controlled_lock(owner.name) in asked
        for owner in job.metadata.owner_references
        if owner.controller and owner.kind == "ControlledJob"
    )


def newly_expected(change: Change) -> Iterator[Key]:
    """The Jobs that were written down by a change of the one who made them."""
    after, before = change.after, change.before
    if not isinstance(after, JobConfig | ControlledJob):
        return
    known = before.status.books.expected if isinstance(before, JobConfig | ControlledJob) else ()
    for expected in after.status.books.expected:
        if expected not in known:
            yield Key("Job", after.metadata.namespace, expected.name)
