"""Binds the admission room to the loop: what wakes it, and how it looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from interlock.admission.books import Bookkeeping, newly_expected
from interlock.admission.decide import decide_job, decide_lock, stands_in_line
from interlock.admission.eviction import concerns_eviction, decide_eviction
from interlock.admission.lines import Lines, LockKey, place_of
from interlock.admission.view import Candidate, JobView, KeyView, LockView
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision
from interlock.resources.job import Job, LockRequest, WhenTaken
from interlock.resources.lock import Holder, Lock, lock_name
from interlock.resources.metadata import Key
from interlock.resources.modes import Mode
from interlock.resources.transitions import has_ended, is_admitted

#: The index of Locks by the uids of their holders.
BY_HOLDER = "holder"
#: How many Jobs one decision replaces at most; the rest is left to the next look.
_REPLACED_AT_ONCE = 50


def holder_uids(lock: Lock) -> Iterable[str]:
    """Under which values a Lock is found in the index BY_HOLDER."""
    return (holder.uid for holder in lock.status.holders)


class AdmissionReconciler:
    """Looks at Jobs that wait and at Locks; decides who may start."""

    room = "admission"

    def __init__(
        self,
        jobs: Cache[Job],
        locks: Cache[Lock],
        mode: Mode = Mode.EMBEDDED,
        owners: Mapping[str, Cache[Any]] = {},
    ) -> None:
        """Take Jobs of `owners`, caches by kind, only as far as they are in their books."""
        self._jobs = jobs
        self._locks = locks
        self._books = Bookkeeping(owners)
        self._mode = mode
        self._lines = Lines()
        #: The keys of locks, by the key of their record; a record is named by a digest.
        self._texts: dict[Key, str] = {}
        #: The locks that each Job that is not over asks for, and how many ask for each lock.
        self._asked: dict[Key, tuple[LockKey, ...]] = {}
        self._wanted: dict[LockKey, int] = {}

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake what a change of a Job or a Lock can matter to."""
        resource = change.after or change.before
        if isinstance(resource, Job):
            # Not lazily: the lines must have changed before anyone looks.
            return tuple(self._job_changed(resource.key, _job(change.before), _job(change.after)))
        if isinstance(resource, Lock):
            return tuple(self._lock_changed(resource, change.after is None))
        return tuple(self._written_down(change))

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about a Job or a Lock."""
        if key.kind == "Job":
            job = self._jobs.get(key)
            if job is None or has_ended(job):
                return Decision()
            if is_admitted(job):
                return decide_eviction(job, now)
            return decide_job(self.view_of_job(job), now)
        text = self._texts.get(key)
        if text is None:
            return Decision()
        view = self.view_of_lock(key, text)
        if view.lock is None and not view.is_wanted:
            del self._texts[key]
        return decide_lock(view, now)

    # What a change wakes

    def _job_changed(self, key: Key, before: Job | None, after: Job | None) -> Iterator[Key]:
        self._count(key, after)
        moved = self._lines.update(key, after if after and self._books.has(after) else None)
        is_open = after is not None and not is_admitted(after) and not has_ended(after)
        is_news = moved or _concerns(before, after)
        if (is_open and is_news) or concerns_eviction(before, after):
            yield key
        if moved or _frees(before, after):
            yield from self._lock_keys(before)
            yield from self._lock_keys(after)
        if moved and after is not None and not is_admitted(after):
            yield from self._overtaken(after)

    def _written_down(self, change: Change) -> Iterator[Key]:
        """Take Jobs into their lines that their schedule has just written down."""
        for key in newly_expected(change):
            job = self._jobs.get(key)
            if job is not None:
                yield from self._job_changed(key, None, job)

    def _lock_changed(self, lock: Lock, is_gone: bool) -> Iterator[Key]:
        self._texts.setdefault(lock.key, lock.spec.key)
        yield lock.key
        if is_gone:
            return
        for holder in lock.status.holders:
            job = self._jobs.get(Key("Job", lock.metadata.namespace, holder.job))
            if job is not None and not is_admitted(job) and not has_ended(job):
                yield job.key
                # Its other locks are decided on their own, and now may have to follow.
                yield from self._lock_keys(job)

    def _overtaken(self, job: Job) -> Iterator[Key]:
        """The Job that was first before: it may have to give back what it holds.

        One that joined a line behind the first two has overtaken neither of them.
        """
        place = place_of(job) if stands_in_line(job) else None
        for request in job.spec.locks:
            line = self._lines.of((job.metadata.namespace, request.key))
            if line is None or (place is not None and line.before(place) > 1):
                continue
            for name in islice(line.names(), 2):
                yield Key("Job", job.metadata.namespace, name)

    def _lock_keys(self, job: Job | None) -> Iterator[Key]:
        if job is None:
            return
        for request in job.spec.locks:
            key = Key("Lock", job.metadata.namespace, lock_name(request.key))
            self._texts.setdefault(key, request.key)
            yield key

    def _count(self, key: Key, job: Job | None) -> None:
        """Take in what a Job asks for now, whatever it was told of before."""
        asks: tuple[LockKey, ...] = ()
        if job is not None and job.spec.locks and not has_ended(job):
            asks = tuple((key.namespace, request.key) for request in job.spec.locks)
        for lock in self._asked.pop(key, ()):
            self._wanted[lock] -= 1
            if not self._wanted[lock]:
                del self._wanted[lock]
        for lock in asks:
            self._wanted[lock] = self._wanted.get(lock, 0) + 1
        if asks:
            self._asked[key] = asks

    # How it looks

    def view_of_job(self, job: Job) -> JobView:
        """All that a decision about a waiting Job depends on."""
        keys = tuple(self._key_view(job, request) for request in job.spec.locks)
        return JobView(
            job=job,
            keys=keys,
            has_stray_grant=self._has_stray_grant(job),
            rivals=tuple({rival.key: rival for rival in self._rivals(job, keys)}.values()),
            in_books=self._books.has(job),
            mode=self._mode,
        )

    def view_of_lock(self, key: Key, text: str) -> LockView:
        """All that a decision about a Lock depends on."""
        lock = self._locks.get(key)
        kept = self._kept(lock)
        return LockView(
            namespace=key.namespace,
            key=text,
            lock=lock,
            kept=kept,
            candidate=self._candidate((key.namespace, text), kept),
            is_wanted=(key.namespace, text) in self._wanted,
            is_unheard=any(self._is_unheard(key.namespace, holder) for holder in kept),
        )

    def _key_view(self, job: Job, request: LockRequest) -> KeyView:
        namespace = job.metadata.namespace
        kept = self._kept(self._locks.get(Key("Lock", namespace, lock_name(request.key))))
        grant = _grant_of(job, kept)
        return KeyView(
            request=request,
            held=len(kept),
            grant=grant,
            before=sum(holder.token < grant.token for holder in kept) if grant else 0,
            ahead=self._ahead(job, (namespace, request.key), kept),
        )

    def _ahead(self, job: Job, lock: LockKey, kept: tuple[Holder, ...]) -> int:
        """Jobs before this one in the line, without those that have their grant already."""
        line = self._lines.of(lock)
        if line is None:
            return 0
        place = place_of(job)
        granted = 0
        for holder in kept:
            other = self._jobs.get(Key("Job", lock[0], holder.job))
            if other is not None and _grant_of(other, kept) is not None and stands_in_line(other):
                granted += place_of(other) < place and holder.job not in line.allowed
        return line.before(place) - granted

    def _kept(self, lock: Lock | None) -> tuple[Holder, ...]:
        """The holders that may still be doing something."""
        if lock is None:
            return ()
        namespace = lock.metadata.namespace
        return tuple(h for h in lock.status.holders if not self._is_done(namespace, h))

    def _is_done(self, namespace: str, holder: Holder) -> bool:
        """Whether a grant is proven to count for nothing; facts that cannot become untrue."""
        key = Key("Job", namespace, holder.job)
        job = self._job_of(namespace, holder)
        if job is None:
            if key in self._jobs.unreadable:
                return False
            # The Job was there at that version; who has heard all up to it, and more, and does
            # not find it, knows that it is gone.
            return self._jobs.version >= holder.job_version
        return has_ended(job) or job.status.admission.epoch > holder.epoch

    def _is_unheard(self, namespace: str, holder: Holder) -> bool:
        is_read = Key("Job", namespace, holder.job) not in self._jobs.unreadable
        return is_read and self._job_of(namespace, holder) is None

    def _job_of(self, namespace: str, holder: Holder) -> Job | None:
        job = self._jobs.get(Key("Job", namespace, holder.job))
        return job if job is not None and job.metadata.uid == holder.uid else None

    def _candidate(self, lock: LockKey, kept: tuple[Holder, ...]) -> Candidate | None:
        """Who is next: anyone who need not wait, else the first in line without a grant."""
        line = self._lines.of(lock)
        if line is None:
            return None
        for names in (line.allowed, line.names()):
            for name in names:
                job = self._jobs.get(Key("Job", lock[0], name))
                if job is not None and _grant_of(job, kept) is None:
                    candidate = self._as_candidate(job, lock[1])
                    if candidate.has_way or names is not line.allowed:
                        return candidate
        return None

    def _as_candidate(self, job: Job, key: str) -> Candidate:
        has_way = all(self._key_view(job, request).is_free for request in job.spec.locks)
        request = next(request for request in job.spec.locks if request.key == key)
        return Candidate(job=job, request=request, has_way=has_way)

    def _has_stray_grant(self, job: Job) -> bool:
        asked = {request.key for request in job.spec.locks}
        return any(
            lock.spec.key not in asked
            and lock.metadata.namespace == job.metadata.namespace
            and _grant_of(job, lock.status.holders) is not None
            for lock in self._locks.by(BY_HOLDER, job.metadata.uid)
        )

    def _rivals(self, job: Job, keys: tuple[KeyView, ...]) -> Iterator[Job]:
        """Whom the Job replaces: of the holders as many as needed, and all who came before."""
        if not stands_in_line(job):
            return
        for key in keys:
            if key.request.when_taken is WhenTaken.REPLACE and key.is_taken:
                yield from self._rivals_for(job, key)

    def _rivals_for(self, job: Job, key: KeyView) -> Iterator[Job]:
        namespace, place = job.metadata.namespace, place_of(job)
        lock = self._locks.get(Key("Lock", namespace, lock_name(key.request.key)))
        kept = self._kept(lock)
        holders = (self._jobs.get(Key("Job", namespace, holder.job)) for holder in kept)
        older = [h for h in holders if h is not None and place_of(h).sequence < place.sequence]
        for holder in older[: max(0, len(kept) - key.request.limit + 1)]:
            if not holder.status.admission.replaced_by and not has_ended(holder):
                yield holder
        line = self._lines.of((namespace, key.request.key))
        names = tuple(islice(line.names(), _REPLACED_AT_ONCE)) if line is not None else ()
        for name in names:
            other = self._jobs.get(Key("Job", namespace, name))
            if other is None or other.key == job.key or other in older:
                continue
            if place_of(other).sequence < place.sequence and stands_in_line(other):
                yield other


def _job(resource: object) -> Job | None:
    return resource if isinstance(resource, Job) else None


def _grant_of(job: Job, holders: Iterable[Holder]) -> Holder | None:
    """The grant that counts: of this very Job, in its present epoch."""
    epoch = job.status.admission.epoch
    for holder in holders:
        if holder.uid == job.metadata.uid and holder.epoch == epoch:
            return holder
    return None


def _concerns(before: Job | None, after: Job | None) -> bool:
    """Whether a change of a waiting Job is anything but this room's own note of what it waits for.

    A decision says itself when to look again. Only a Job that replaces others may have more of
    them to mark than one decision does.
    """
    if before is None or after is None:
        return True
    old, new = before.metadata, after.metadata
    was, now = before.status.admission, after.status.admission
    return (
        new.generation != old.generation
        or new.uid != old.uid
        or new.deletion_timestamp != old.deletion_timestamp
        or now.phase is not was.phase
        or now.epoch != was.epoch
        or now.replaced_by != was.replaced_by
        or any(request.when_taken is WhenTaken.REPLACE for request in after.spec.locks)
    )


def _frees(before: Job | None, after: Job | None) -> bool:
    """Whether a change can make a grant count for nothing, or change what is wanted."""
    if before is None or after is None:
        return True
    return (
        has_ended(after) != has_ended(before)
        or after.status.admission.epoch != before.status.admission.epoch
        or after.spec.locks != before.spec.locks
        or after.metadata.uid != before.metadata.uid
    )
