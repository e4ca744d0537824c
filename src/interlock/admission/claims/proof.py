"""Release only on proof: which grants of a record count, and which are proven to count for nothing.

A grant counts for nothing once one of these is known of its Job, and none can become untrue:

- The Job of that uid has ended. An end is final.
- The Job of that uid is gone. A uid is never used again.
- The Job's epoch is above the grant's. Epochs only rise, and the epoch of a Job that may be running
  is never raised: a Job gives back by raising its epoch while it waits, in a compare-and-set on
  itself; one that is put back after it was admitted keeps its epoch, and so all that it holds,
  while it is being evicted, and has it raised in the very write in which it waits again, after
  every attempt of it is proven gone.

- The Job says of itself what nobody says whom the grant was made to: that it was let in, in the
  grant's epoch, with other grants than this; or that its epoch is below the grant's, in a version
  after that. Its status was written by somebody who may not, and nothing of it is under way. Nor
  will anything begin by this grant: before an attempt is recorded its Job's status and the record
  of each of its claims must name the same grant. Without this a status that is forged while its Job
  stands in line would hold what the Job is granted meanwhile, for ever.

So what is known may be as old as it likes. What is *not* known proves nothing: a Job that was not
heard of yet, that cannot be read, that is being deleted, or whose tasks are lost, holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from interlock.admission.claims.claim import ClaimKey, ClaimKind, Holder
from interlock.resources.admission import AdmissionPhase
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.transitions import has_ended

H = TypeVar("H", bound=Holder)


class Jobs(Protocol):
    """What is known of Jobs. It may be old."""

    @property
    def version(self) -> int:
        """The version of the store up to which all was heard."""
        ...

    @property
    def unreadable(self) -> AbstractSet[Key]:
        """Jobs that are stored and cannot be read."""
        ...

    def get(self, key: Key, /) -> Job | None:
        """The newest known version, or None when there is none."""
        ...


def is_done(holder: Holder, key: Key, jobs: Jobs) -> bool:
    """Whether a grant is proven to count for nothing; `key` is that of the Job it was made to."""
    job = jobs.get(key)
    if job is None or job.metadata.uid != holder.uid:
        if key in jobs.unreadable:
            return False
        # The Job was there at that version; who has heard all up to it, and more, and does not
        # find it, knows that it is gone.
        return jobs.version >= holder.job_version
    if has_ended(job) or job.status.admission.epoch > holder.epoch:
        return True
    return _is_disowned(holder, job)


def _is_disowned(holder: Holder, job: Job) -> bool:
    """Whether a Job of which nothing is under way says what no status says with this grant."""
    admission = job.status.admission
    if job.status.execution.active:
        return False
    if admission.epoch < holder.epoch:
        return job.version >= holder.job_version
    if admission.phase is not AdmissionPhase.ADMITTED:
        return False
    tokens = {grant.token for grant in admission.grants}
    if admission.quota is not None:
        tokens.add(admission.quota.token)
    if admission.slots is not None:
        tokens.add(admission.slots.token)
    return holder.token not in tokens


def is_unheard(holder: Holder, key: Key, jobs: Jobs) -> bool:
    """Whether nothing is known of the grant's Job, so that more has to be heard."""
    if key in jobs.unreadable:
        return False
    job = jobs.get(key)
    return job is None or job.metadata.uid != holder.uid


def kept(
    kind: ClaimKind[Any, Any], claim: ClaimKey, record: Resource | None, jobs: Jobs
) -> tuple[Any, ...]:
    """The grants of a record, if there is one, whose Jobs may still be doing something."""
    if record is None:
        return ()
    job_of = kind.job_of
    return tuple(
        holder
        for holder in kind.holders(record)
        if not is_done(_as_written(holder, record), job_of(claim, holder), jobs)
    )


def _as_written(holder: Any, record: Resource) -> Any:
    """A holder whose Job was there before the record said so, as all are that were granted it."""
    if holder.job_version <= record.version:
        return holder
    return replace(holder, job_version=record.version)


def grant_of(job: Job, holders: Iterable[H]) -> H | None:
    """The grant that counts for a Job: of this very Job, in its present epoch."""
    epoch = job.status.admission.epoch
    for holder in holders:
        if holder.uid == job.metadata.uid and holder.epoch == epoch:
            return holder
    return None
