"""The reconciler of admission: what wakes the room, and how it looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from interlock.admission.claims.candidates import (
    BY_HOLDER,
    Known,
    candidate_for,
    claim_view,
    has_stray_grant,
    rivals_of,
)
from interlock.admission.claims.claim import COUNT, NOTHING, Ask, ClaimKey, ClaimKind, fits
from interlock.admission.claims.proof import grant_of, is_unheard, kept
from interlock.admission.decide import decide_claim, decide_job
from interlock.admission.eviction import concerns_eviction, decide_eviction, is_left_alone
from interlock.admission.lines import Lines, may_be_granted, place_of, stands_in_line
from interlock.admission.queues.desk import QUOTA_INDEXES, QueueDesk
from interlock.admission.schedule_permission import Bookkeeping, newly_expected
from interlock.admission.view import JobView, RecordView
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision
from interlock.resources.admission import AdmissionPhase
from interlock.resources.ancestry import held_above
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job, JobSpec, WhenTaken
from interlock.resources.metadata import Key, Resource
from interlock.resources.modes import Mode
from interlock.resources.queue import Queue, QueueQuota
from interlock.resources.transitions import has_ended, is_admitted

__all__ = ["BY_HOLDER", "AdmissionReconciler", "holder_uids"]


def holder_uids(record: Any) -> Iterable[str]:
    """Under which values a claim's record is found in the index BY_HOLDER."""
    return (holder.uid for holder in record.status.holders)


class AdmissionReconciler:
    """Looks at Jobs that wait and at the records of claims; decides who may start."""

    room = "admission"

    def __init__(
        self,
        jobs: Cache[Job],
        claims: Mapping[ClaimKind[Any, Any], Cache[Any]],
        mode: Mode = Mode.EMBEDDED,
        owners: Mapping[str, Cache[Any]] = {},
        queues: QueueDesk | None = None,
    ) -> None:
        """Decide about claims of some kinds, each with the cache of its records, and about Queues.

        Jobs of `owners`, caches by kind, are taken only as far as they are in their books.
        """
        self._jobs = jobs
        self._books = Bookkeeping(owners)
        self._mode = mode
        self._lines = Lines()
        self._known = Known(
            jobs=jobs,
            kinds={kind.record_kind: kind for kind in claims},
            records={kind.record_kind: records for kind, records in claims.items()},
            lines=self._lines,
            is_ready=self._has_part,
        )
        self._queues = queues or QueueDesk(jobs, Cache("Queue"), Cache("QueueQuota", QUOTA_INDEXES))
        #: What each Job that is not over asks for, and how many ask for each claim.
        self._asked: dict[Key, tuple[ClaimKey, ...]] = {}
        self._wanted: dict[ClaimKey, int] = {}
        #: What Jobs at the door were defined as when they were last looked at and left waiting.
        self._found_good: dict[Key, JobSpec] = {}
        #: Who may ask for each claim of which its record says how much there is.
        self._sized: dict[ClaimKey, dict[Key, None]] = {}

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake what a change of a Job or of a claim's record can matter to."""
        resource = change.after or change.before
        if isinstance(resource, Job):
            # Not lazily: the lines must have changed before anyone looks.
            before, after = _job(change.before), _job(change.after)
            return self._with_queues(self._job_changed(resource.key, before, after))
        if isinstance(resource, Queue):
            return self._with_queues(self._queue_changed(change))
        if isinstance(resource, Namespace):
            return tuple(self._queues.namespace_changed(change))
        if isinstance(resource, QueueQuota):
            return self._with_queues(self._quota_changed(change))
        if resource is not None and resource.key.kind in self._known.kinds:
            return self._with_queues(self._record_changed(resource, change))
        return self._with_queues(self._written_down(change))

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about a Job or a claim."""
        if key.kind == "Job":
            job = self._jobs.get(key)
            if job is None or has_ended(job):
                return Decision()
            if is_admitted(job):
                return decide_eviction(job, now, self._queues.queue_of(job), self._queues.system)
            decision = decide_job(self.view_of_job(job), now)
            if not decision.actions:
                self._found_good[key] = job.spec
            return decision
        if key.kind == "QueueQuota":
            return self._queues.decide(key, self._way_is_clear, now)
        return decide_claim(self.view_of_claim(key), now)

    # What a change wakes

    def _job_changed(self, key: Key, before: Job | None, after: Job | None) -> Iterator[Key]:
        asks = self._asks_of(after)
        self._count(key, asks if after is not None and not has_ended(after) else ())
        is_expected = after is not None and self._books.has(after)
        expected = after if is_expected else None
        # Who waits for room in a Queue holds up nobody who waits for a lock; a target has an order
        # of its own.
        may_stand = (
            expected is not None
            and (not asks or expected.spec.target is not None or self._has_part(expected))
            and self._could_fit(key, asks)
        )
        moved = self._lines.update(key, expected if may_stand else None, asks)
        yield from self._queues.job_changed(before, after, expected, asks)
        is_open = after is not None and _is_at_the_door(after)
        if not is_open:
            self._found_good.pop(key, None)
        is_news = moved or _concerns(before, after, asks)
        if (is_open and is_news) or self._concerns_eviction(before, after):
            yield key
        asked = asks if _ask_the_same(before, after) else self._asks_of(before)
        if moved or asked != asks or _frees(before, after) or _lets_go_on(before, after):
            yield from (ask.key for ask in asked)
            yield from (ask.key for ask in asks)
        if before is not None and _frees(before, after):
            yield from self._held_by(before)
        if moved and after is not None and not is_admitted(after):
            yield from self._overtaken(after, asks)

    def _concerns_eviction(self, before: Job | None, after: Job | None) -> bool:
        """Whether a Job that was let in is to be looked at: it may have to be put back."""
        if after is None or not concerns_eviction(before, after):
            return False
        return not is_left_alone(after, self._queues.queue_of(after), self._queues.system)

    def _held_by(self, job: Job) -> Iterator[Key]:
        """The records that name a Job, which may ask for something else by now."""
        for name in self._known.kinds:
            found = self._known.records[name].by(BY_HOLDER, job.metadata.uid)
            yield from (record.key for record in found)

    def _could_fit(self, key: Key, asks: tuple[Ask, ...]) -> bool:
        """Whether there is as much of everything as a Job asks for; if not, it is in nobody's way.

        It waits apart, until there is more or less of what it asks for.
        """
        could = True
        for ask in asks:
            if ask.kind.is_sized:
                self._sized.setdefault(ask.key, {})[key] = None
                limits = ask.kind.limits(ask, self._known.records[ask.key.kind].get(ask.key))
                could = could and fits(ask.amounts, NOTHING, limits)
        return could

    def _resized(self, claim: ClaimKey) -> Iterator[Key]:
        """Take those who ask for a claim into their lines, or out: there is more of it, or less."""
        for key in tuple(self._sized.pop(claim, ())):
            job = self._jobs.get(key)
            if job is None or claim not in self._asked.get(key, ()):
                continue
            if _is_at_the_door(job):
                yield key
            yield from self._job_changed(key, job, job)

    def _written_down(self, change: Change) -> Iterator[Key]:
        """Take Jobs into their lines that their schedule has just written down."""
        for key in newly_expected(change):
            job = self._jobs.get(key)
            if job is not None:
                yield from self._job_changed(key, None, job)

    def _queue_changed(self, change: Change) -> Iterator[Key]:
        """Wake the Jobs of a Queue; those that ask it since now, or no more, change their lines."""
        yield from self._queues.queue_changed(change)
        for key in self._queues.asked_anew(change):
            job = self._jobs.get(key)
            if job is not None:
                yield from self._job_changed(key, None, job)

    def _quota_changed(self, change: Change) -> Iterator[Key]:
        """Take those who were granted room into the lines of their locks."""
        for key in self._queues.quota_changed(change):
            if key.kind != "Job":
                yield key
                continue
            job = self._jobs.get(key)
            if job is not None and _is_at_the_door(job):
                yield key
                if key in self._asked:
                    yield from self._job_changed(key, job, job)
                    # One with a target stood in its line before, and is waited for there.
                    yield from (ask.key for ask in self._asks_of(job))

    def _with_queues(self, keys: Iterable[Key]) -> tuple[Key, ...]:
        """The keys, and the quotas in whose lines somebody needs one of the claims among them."""
        found = dict.fromkeys(keys)
        for key in tuple(found):
            if key.kind in self._known.kinds:
                found.update(dict.fromkeys(self._queues.needing(key)))
        return tuple(found)

    def _record_changed(self, record: Resource, change: Change) -> Iterator[Key]:
        yield record.key
        kind = self._known.kinds[record.key.kind]
        if kind.is_resized(change.before, change.after):
            yield from self._resized(record.key)
        if change.after is None:
            return
        for holder in kind.holders(record):
            job = self._jobs.get(kind.job_of(record.key, holder))
            if job is not None and _is_at_the_door(job):
                yield job.key
                # What else it asks for is decided on its own, and now may have to follow.
                yield from (ask.key for ask in self._known.asks(job))
        yield from self._first_without(record.key, kind.holders(record))

    def _first_without(self, claim: ClaimKey, holders: tuple[Any, ...]) -> Iterator[Key]:
        """The first in line without a grant, if it waits for something else as well.

        It may wait for less now than it has written down. One that waits for nothing else is
        granted the claim as soon as it is free, and that wakes it.
        """
        line = self._lines.of(claim)
        for key in line.jobs() if line is not None else ():
            job = self._jobs.get(key)
            if job is not None and grant_of(job, holders) is None:
                if len(self._asked.get(key, ())) > 1:
                    yield key
                return

    def _asks_of(self, job: Job | None) -> tuple[Ask, ...]:
        return self._known.asks(job) if job is not None else ()

    def _overtaken(self, job: Job, asks: Iterable[Ask]) -> Iterator[Key]:
        """The Job that was first before: it may have to give back what it holds.

        One that joined a line behind the first two has overtaken neither of them.
        """
        place = place_of(job) if stands_in_line(job) else None
        for ask in asks:
            line = self._lines.of(ask.key)
            if line is None or (place is not None and line.before(place) > 1):
                continue
            yield from islice(line.jobs(), 2)

    def _count(self, key: Key, asks: tuple[Ask, ...]) -> None:
        """Take in what a Job asks for now, whatever it was told of before."""
        for claim in self._asked.pop(key, ()):
            self._wanted[claim] -= 1
            if not self._wanted[claim]:
                del self._wanted[claim]
            if claim in self._sized:
                self._sized[claim].pop(key, None)
        if not asks:
            return
        self._asked[key] = tuple(ask.key for ask in asks)
        for claim in self._asked[key]:
            self._wanted[claim] = self._wanted.get(claim, 0) + 1

    # How it looks

    def view_of_job(self, job: Job) -> JobView:
        """All that a decision about a waiting Job depends on."""
        asks = self._known.asks(job)
        claims = tuple(claim_view(self._known, job, ask) for ask in asks)
        quota = self._queues.view_of(job)
        return JobView(
            job=job,
            claims=claims,
            quota=quota,
            has_stray_grant=(
                has_stray_grant(self._known, job, asks) or self._queues.has_stray(job, quota)
            ),
            rivals=rivals_of(self._known, job, claims),
            in_books=self._books.has(job),
            held_above=self._held_above(job),
            mode=self._mode,
            is_checked=self._found_good.get(job.key) is job.spec,
        )

    def _held_above(self, job: Job) -> Job | None:
        above = held_above(job, self._jobs.get)
        if above is None or is_admitted(above):
            return above
        # One that asked before its parent did has its turn before that.
        return above if place_of(above) < place_of(job) else None

    def _has_part(self, job: Job) -> bool:
        """Whether a Job needs no room in a Queue, or was granted it."""
        return self._queues.has_part(job)

    def _way_is_clear(self, job: Job, promised: Mapping[Key, int]) -> bool:
        """Whether all claims of a Job are free for it, beside what is promised to others."""
        for ask in self._known.asks(job):
            view = claim_view(self._known, job, ask)
            if not view.is_free:
                return False
            beside = promised.get(ask.key, 0)
            if beside and ask.is_in_order and not fits({COUNT: 1 + beside}, view.held, view.limits):
                return False
        return True

    def view_of_claim(self, claim: ClaimKey) -> RecordView:
        """All that a decision about a claim's record depends on."""
        kind = self._known.kinds[claim.kind]
        record = self._known.records[claim.kind].get(claim)
        holders = kept(kind, claim, record, self._jobs)
        return RecordView(
            kind=kind,
            record=record,
            kept=holders,
            candidate=candidate_for(self._known, claim, holders),
            is_wanted=claim in self._wanted,
            is_unheard=any(is_unheard(h, kind.job_of(claim, h), self._jobs) for h in holders),
        )


def _job(resource: object) -> Job | None:
    return resource if isinstance(resource, Job) else None


def _is_at_the_door(job: Job) -> bool:
    """Whether the Job was neither let in nor refused."""
    return job.status.admission.phase is AdmissionPhase.WAITING and not has_ended(job)


def _concerns(before: Job | None, after: Job | None, asks: Iterable[Ask]) -> bool:
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
        or any(ask.when_taken is WhenTaken.REPLACE for ask in asks)
    )


def _ask_the_same(before: Job | None, after: Job | None) -> bool:
    """Whether a change is one that leaves alone what the Job asks for."""
    if before is None or after is None:
        return False
    old, new = before.metadata, after.metadata
    return new.generation == old.generation and new.uid == old.uid


def _lets_go_on(before: Job | None, after: Job | None) -> bool:
    """Whether a Job that kept its place in line is held back no more."""
    if before is None or after is None or after.spec.target is None:
        return False
    return may_be_granted(after) and not may_be_granted(before)


def _frees(before: Job | None, after: Job | None) -> bool:
    """Whether a change can make a grant count for nothing."""
    if before is None or after is None:
        return True
    return (
        has_ended(after) != has_ended(before)
        or after.status.admission.epoch != before.status.admission.epoch
        or after.metadata.uid != before.metadata.uid
    )
