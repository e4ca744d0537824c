"""Lock queues: who holds each lock and who waits for it, read from the caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from interlock.admission.lines import place_of, stands_in_line
from interlock.control.cache import Cache
from interlock.reporting.why import LineView, WhyView
from interlock.resources.job import Job, lock_requests
from interlock.resources.lock import Holder, Lock, lock_name
from interlock.resources.metadata import Key
from interlock.resources.transitions import has_ended

#: The index of Jobs that are not over, by the locks they ask for.
BY_LOCK = "lock"
#: How many waiters a lock's answer names.
_NAMED = 10


def locks_asked_for(job: Job) -> Iterable[str]:
    """Under which values a Job is found in the index BY_LOCK."""
    if has_ended(job):
        return ()
    return (f"{job.metadata.namespace}/{request.key}" for request in lock_requests(job.spec))


class HolderAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A Job that holds a lock."""

    job: str
    uid: str
    token: int
    since: datetime
    phase: str


class LockAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """One lock: who holds it, and who is next."""

    key: str
    namespace: str
    limit: int
    last_token: int
    holders: tuple[HolderAnswer, ...]
    #: How many wait, and the first of them.
    waiting: int
    waiters: tuple[str, ...]


class LineReader:
    """Answers questions about locks."""

    def __init__(
        self,
        jobs: Cache[Job],
        locks: Cache[Lock],
        has_room: Callable[[Job], bool] = lambda _: True,
    ) -> None:
        """Read from caches; `has_room` says whether a Job waits for no room in a Queue."""
        self._jobs = jobs
        self._locks = locks
        self._has_room = has_room

    def why_view(self, job: Job) -> WhyView:
        """All that the answer to "why" depends on."""
        if has_ended(job):
            return WhyView(job=job)
        keys = [request.key for request in lock_requests(job.spec)]
        keys += [grant.key for grant in job.status.admission.grants]
        return WhyView(job=job, lines={key: self._line(job, key) for key in dict.fromkeys(keys)})

    def locks(self, namespace: str) -> Iterator[LockAnswer]:
        """Every lock that is held or waited for, of one namespace or of all."""
        for lock in sorted(self._locks, key=lambda lock: (lock.metadata.namespace, lock.spec.key)):
            if not namespace or lock.metadata.namespace == namespace:
                yield self._answer(lock)

    def _answer(self, lock: Lock) -> LockAnswer:
        space, key = lock.metadata.namespace, lock.spec.key
        waiting = self._waiting(space, key)
        return LockAnswer(
            key=key,
            namespace=space,
            limit=lock.status.limit,
            last_token=lock.status.last_token,
            holders=tuple(self._holder(holder, job) for holder, job in self._holders(lock)),
            waiting=len(waiting),
            waiters=tuple(job.metadata.name for job in waiting[:_NAMED]),
        )

    def _holder(self, holder: Holder, job: Job | None) -> HolderAnswer:
        return HolderAnswer(
            job=holder.job,
            uid=holder.uid,
            token=holder.token,
            since=holder.granted_at,
            phase=job.status.phase.value if job is not None else "Gone",
        )

    def _holders(self, lock: Lock | None) -> Iterator[tuple[Holder, Job | None]]:
        """The holders that are not over, with their Jobs."""
        for holder in lock.status.holders if lock is not None else ():
            assert lock is not None
            job = self._jobs.get(Key("Job", lock.metadata.namespace, holder.job))
            if job is not None and job.metadata.uid != holder.uid:
                job = None
            if job is None or not has_ended(job):
                yield holder, job

    def _waiting(self, namespace: str, key: str) -> list[Job]:
        jobs = self._jobs.by(BY_LOCK, f"{namespace}/{key}")
        return sorted(filter(self._stands_in_line, jobs), key=place_of)

    def _stands_in_line(self, job: Job) -> bool:
        """Whether a Job has a place in front of its locks: not before it has room in its Queue.

        What is done to one target has an order of its own.
        """
        return stands_in_line(job) and (job.spec.target is not None or self._has_room(job))

    def _line(self, job: Job, key: str) -> LineView:
        namespace = job.metadata.namespace
        lock = self._locks.get(Key("Lock", namespace, lock_name(key)))
        waiting = [other.metadata.uid for other in self._waiting(namespace, key)]
        uid = job.metadata.uid
        place = waiting.index(uid) + 1 if uid in waiting else 0
        return LineView(lock, tuple(self._holders(lock)), place, len(waiting))
