"""A Lock: the record of one lock key, made by the system and read by people."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Annotated

from interlock.resources.admission import Grant
from interlock.resources.job import LOCK_KEY, Job
from interlock.resources.metadata import Moment, Noun, Resource, Status


class LockSpec(Noun):
    """Which key the record is for."""

    key: Annotated[str, LOCK_KEY]


class Holder(Noun):
    """A Job that was granted the lock and may still be doing something."""

    #: The Job's name, in the Lock's namespace.
    job: str
    uid: str
    #: The Job's epoch for which the grant was made; a grant of an older epoch counts for nothing.
    epoch: int
    #: Rises with every grant of this key.
    token: int
    granted_at: Moment
    #: A version of the store at which the Job was there: one that is missing later is gone.
    job_version: int = 0


class LockStatus(Status):
    """Who holds the lock. Written by the admission room alone, one compare-and-set per grant."""

    holders: tuple[Holder, ...] = ()
    #: The limit that the newest holder asked with.
    limit: int = 1
    last_token: int = 0
    #: When the last holder left; a record that nobody needs for a while is removed.
    idle_since: Moment | None = None


class Lock(Resource, tag="Lock", kw_only=True):
    """The record of one lock key."""

    spec: LockSpec
    status: LockStatus = LockStatus()


def is_held_by(lock: Lock | None, job: Job, grant: Grant) -> bool:
    """Whether the record says what a Job's status says: that the Job was granted this.

    Of the two the record is the one that counts. The newest holders are the last.
    """
    if lock is None or lock.spec.key != grant.key:
        return False
    uid, epoch = job.metadata.uid, job.status.admission.epoch
    return any(
        holder.uid == uid and holder.token == grant.token and holder.epoch == epoch
        for holder in reversed(lock.status.holders)
    )


@lru_cache(maxsize=65536)
def lock_name(key: str) -> str:
    """The name of a key's record: readable, a DNS label, and different for different keys."""
    readable = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{readable}-{digest}" if readable else f"lock-{digest}"
