"""The reconciler of execution: what wakes the room, and how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, Protocol

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.execution.capacity import Capacity, rank_of, taken
from interlock.execution.children import BY_PARENT, Children, counted, under
from interlock.execution.decide import Plan, plan
from interlock.execution.launching import runtimes_of
from interlock.execution.leftovers import is_over
from interlock.execution.view import ExecutionView
from interlock.resources.actions import Decision, ForgetTask, StopTask
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.ancestry import ancestors, parent_key
from interlock.resources.job import (
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    Job,
    is_operation,
    lock_requests,
)
from interlock.resources.lock import Lock, is_held_by, lock_name
from interlock.resources.metadata import Key
from interlock.resources.queue import QueueQuota, is_granted, quota_name, records_for
from interlock.resources.tasks import MOST_AT_ONCE, TaskId, TaskReport, TaskState
from interlock.resources.test_bed import TestBedSlots, is_seated
from interlock.resources.transitions import has_ended, is_admitted

_UNTIL_LISTED = timedelta(seconds=1)
#: What a person says of attempts whose fate is unknown, and orders about operations.
_ORDERS = (
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
)
#: With every so many attempts under way, it takes longer until a start is worth a write.
_CROWD = 8


class Patience(NamedTuple):
    """How long it may take until it is written down that a task runs.

    A task that ends sooner is written down once, not twice; where a write is dear, and many run,
    that is worth more than the news.
    """

    least: timedelta = timedelta(milliseconds=20)
    most: timedelta = timedelta(seconds=1)

    def of(self, attempts: int) -> timedelta:
        """The patience while so many attempts are under way."""
        return min(self.least * (1 + attempts // _CROWD), self.most)


class KnownReports(Protocol):
    """What `control.reports.Reports` offers to this room."""

    @property
    def complete(self) -> bool:
        """Whether everything that the runtimes know was read."""
        ...

    def has_heard(self, runtime: str) -> bool:
        """Whether everything that one runtime knows was read."""
        ...

    def of(self, job_uid: str) -> Mapping[tuple[int, int], TaskReport]:
        """The newest report of each attempt of a Job."""
        ...


class Grants(Protocol):
    """What `control.live_reads.LiveReads` offers to this room."""

    def is_not_granted(self, record: Key, job: Job, names: Callable[[Any], bool]) -> bool:
        """Whether a claim's record is proven not to name the Job; if not, the Job is woken."""
        ...


class ExecutionReconciler:
    """Looks at Jobs that were admitted, and at what the runtime holds in the name of Jobs.

    That a Job was admitted is what its status says. Before anything of it is started, the records
    of its locks must say so too.

    Capacity on the machine is given by priority, then by the order of creation. A Job that finds
    none is put in a line and woken when some comes free; nobody asks again and again.
    """

    room = "execution"

    def __init__(
        self,
        jobs: Cache[Job],
        reports: KnownReports,
        locks: Cache[Lock],
        quotas: Cache[QueueQuota],
        slots: Cache[TestBedSlots],
        grants: Grants,
        most_tasks: int = 1_000,
        *,
        patience: Patience = Patience(),  # noqa: B008 (it cannot be changed)
        launches_at_once: int = MOST_AT_ONCE,
    ) -> None:
        self._jobs = jobs
        self._reports = reports
        self._locks = locks
        self._quotas = quotas
        self._slots = slots
        self._grants = grants
        self._patience = patience
        self._launches_at_once = launches_at_once
        self._capacity = Capacity(most_tasks)
        self._counted = False
        #: Other uids that the runtime holds attempts for, by the key of their Job.
        self._strays: dict[Key, dict[str, None]] = {}
        #: When this process told the runtime to stop an attempt, by Job.
        self._told: dict[Key, dict[TaskId, datetime]] = {}
        #: Admissions that were decided on before they were stored.
        self._foreseen: dict[Key, AdmissionStatus] = {}
        #: Jobs whose end is being written, and what the runtime forgets after that.
        self._ending: dict[Key, tuple[TaskId, ...]] = {}
        #: Jobs that start nothing because of a lock, by the key of its record.
        self._withheld: dict[Key, dict[Key, None]] = {}

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake the Job unless the change is this room's own, and whoever has room now."""
        before, after = change.before, change.after
        if isinstance(after or before, Lock | QueueQuota | TestBedSlots):
            resource = after or before
            assert resource is not None
            return tuple(self._withheld.pop(resource.key, ()))
        if not isinstance(after or before, Job):
            return ()
        assert before is None or isinstance(before, Job)
        assert after is None or isinstance(after, Job)
        return tuple(self._changed(before, after))

    def _changed(self, before: Job | None, after: Job | None) -> Iterable[Key]:
        job = after or before
        assert job is not None
        key = job.key
        self._capacity.hold(key, _active(after))
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self._note_stray(key, before.metadata.uid)
        foreseen = self._foreseen.pop(key, None)
        if _concerns(before, after, foreseen) or self._is_left_behind(key, before, after):
            # It looks in any case, and joins the line again if it must.
            self._capacity.leave(key)
            if key in self._strays or (after is not None and not _waits(after)):
                yield key
            elif after is not None and after.status.execution.round:
                # What is left of its earlier rounds is cleared away.
                yield key
        yield from _relatives(self._jobs, before, after)
        yield from self._capacity.next()

    def _is_left_behind(self, key: Key, before: Job | None, after: Job | None) -> bool:
        """Whether a Job ended just now, and there is more to do than its last decision does."""
        if after is None or before is None or not has_ended(after) or has_ended(before):
            return False
        forgotten = self._ending.pop(key, None)
        reports = self._reports.of(after.metadata.uid).values()
        if forgotten is None or after.is_going or any(r.id not in forgotten for r in reports):
            return True
        self._told.pop(key, None)
        return False

    def reported(self, job: Key, uid: str) -> Iterable[Key]:
        """Wake the Job whose attempts were told of."""
        held = self._jobs.get(job)
        if held is None or held.metadata.uid != uid:
            self._strays.setdefault(job, {})[uid] = None
        return (job,)

    def waiting(self) -> Iterable[Job]:
        """Every Job that may have tasks."""
        return (job for job in self._jobs if job.is_going or self.is_next(job))

    def is_next(self, job: Job) -> bool:
        """Whether the Job is let in and not over: what is done about it is this room's."""
        return is_admitted(job) and not has_ended(job)

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about a Job, or about what is left of one."""
        job = self._jobs.get(key)
        if job is None and self._jobs.version == 0:
            # Jobs were not listed yet: what looks like a stray may well be a Job's task.
            return Decision(wake_at=now + _UNTIL_LISTED)
        self._foreseen.pop(key, None)
        return self._decide(key, job, now)

    def foresee(self, job: Job, now: datetime) -> Decision:
        """Decide about a Job that is about to be let in: its start is stored with that."""
        found = self._decide(job.key, job, now)
        if found.actions:
            self._foreseen[job.key] = job.status.admission
        return found

    def not_stopped(self, key: Key, tasks: Iterable[TaskId]) -> None:
        """Forget that these attempts were told to stop: they were not."""
        told = self._told.get(key, {})
        for task in tasks:
            told.pop(task, None)

    def owes(self, key: Key) -> bool:
        """Whether an attempt is to stop that was not told, or to start that nothing was made of."""
        job = self._jobs.get(key)
        if job is None or has_ended(job):
            return False
        reports = self._reports.of(job.metadata.uid)
        told = self._told.get(key, {})
        for task in job.status.execution.active:
            report = reports.get((task.index, task.attempt))
            if task.stop_cause is not None:
                heard = report is not None and (report.stopped or is_over(report))
                if not heard and TaskId(job.metadata.uid, task.index, task.attempt) not in told:
                    return True
            elif task.state is TaskState.STARTING and (report is None or report.prepared):
                return True
        return False

    def _decide(self, key: Key, job: Job | None, now: datetime) -> Decision:
        self._count_once()
        self._capacity.leave(key)
        self._capacity.hold(key, _active(job))
        found = plan(self._view_of(key, job), now)
        self._keep(key, job, found, now)
        if job is None and key in self._strays and not found.decision.actions:
            return Decision(wake_at=now + _UNTIL_LISTED)
        return found.decision

    def _view_of(self, key: Key, job: Job | None) -> ExecutionView:
        ungranted, unheard = self._missing_grants(job)
        return ExecutionView(
            job=job,
            reports=self._reports.of(job.metadata.uid) if job is not None else {},
            reports_complete=self._reports.complete or self._has_heard_of(job),
            capacity=self._capacity.left_for(rank_of(job)) if job is not None else 0,
            strays=self._strays_of(key, job) if key in self._strays else (),
            told=self._told.get(key, {}),
            patience=self._patience.of(self._capacity.used),
            launches_at_once=self._launches_at_once,
            ungranted=ungranted,
            grants_unheard=unheard,
            children=self._children_of(job),
            targets_above=self._targets_above(job),
            has_open_parent=self._has_open_parent(job),
        )

    def _children_of(self, job: Job | None) -> Children:
        if job is None or not is_operation(job.spec):
            return Children()
        return counted(self._jobs.by(BY_PARENT, under(job)))

    def _targets_above(self, job: Job | None) -> Mapping[str, str]:
        if job is None or job.spec.parent is None:
            return {}
        above = ((one.spec.target, one.metadata.name) for one in ancestors(job, self._jobs.get))
        return {target.path: name for target, name in above if target is not None}

    def _has_open_parent(self, job: Job | None) -> bool:
        key = parent_key(job) if job is not None else None
        parent = self._jobs.get(key) if key is not None else None
        return parent is not None and not has_ended(parent)

    def _has_heard_of(self, job: Job | None) -> bool:
        """Whether the runtime of a Job has told all it knows, although others have not."""
        return job is not None and all(map(self._reports.has_heard, runtimes_of(job)))

    def _missing_grants(self, job: Job | None) -> tuple[tuple[str, ...], bool]:
        """The locks whose records are proven not to name the Job, and whether any may yet do so."""
        if job is None or not is_admitted(job) or has_ended(job):
            return (), False
        granted = {grant.key: grant for grant in job.status.admission.grants}
        missing = [
            f"lock {request.key}"
            for request in lock_requests(job.spec)
            if request.key not in granted
        ]
        if job.spec.queue is not None and job.status.admission.quota is None:
            missing.append(f"queue {job.spec.queue}")
        if job.spec.slots is not None and job.status.admission.slots is None:
            missing.append("slots")
        unheard = False
        for told, records, cache, names in self._records_of(job):
            if any(names(cache.get(record)) for record in records):
                continue
            for record in records:
                self._withheld.setdefault(record, {})[job.key] = None
            if all(self._is_without(record, cache, job, names) for record in records):
                missing.append(told)
            else:
                unheard = True
        return tuple(missing), unheard

    def _is_without(
        self, record: Key, cache: Cache[Any], job: Job, names: Callable[[Any], bool]
    ) -> bool:
        """Whether a record is proven not to name a Job."""
        is_readable = record not in cache.unreadable
        return is_readable and self._grants.is_not_granted(record, job, names)

    def _records_of(
        self, job: Job
    ) -> Iterator[tuple[str, tuple[Key, ...], Cache[Any], Callable[[Any], bool]]]:
        """The records of which one has to name a Job: what they are called, and how to tell."""
        admission = job.status.admission
        for grant in {grant.key: grant for grant in admission.grants}.values():
            lock = Key("Lock", job.metadata.namespace, lock_name(grant.key))
            names = partial(is_held_by, job=job, grant=grant)
            yield f"lock {grant.key}", (lock,), self._locks, names
        if admission.quota is not None:
            queue = admission.quota.queue
            own = self._quotas.get(Key("QueueQuota", "", quota_name(queue)))
            if is_granted(own, job):
                return  # As nearly always.
            records = tuple(Key("QueueQuota", "", name) for name in records_for(own, queue))
            yield f"queue {queue}", records, self._quotas, partial(is_granted, job=job)
        if admission.slots is not None:
            bed = admission.slots.test_bed
            record = Key("TestBedSlots", job.metadata.namespace, bed)
            yield f"slots of {bed}", (record,), self._slots, partial(is_seated, job=job)

    def _keep(self, key: Key, job: Job | None, found: Plan, now: datetime) -> None:
        """Remember what was promised; the next look corrects what came to nothing."""
        self._capacity.hold(key, found.taken)
        if job is not None and found.starved:
            self._capacity.wait(rank_of(job))
        actions = found.decision.actions
        if found.ends:
            self._ending[key] = tuple(a.task for a in actions if isinstance(a, ForgetTask))
        else:
            self._ending.pop(key, None)
        stops = [action.task for action in actions if isinstance(action, StopTask)]
        if stops:
            self._told.setdefault(key, {}).update(dict.fromkeys(stops, now))
        elif key in self._told and (job is None or has_ended(job)) and not actions:
            del self._told[key]

    def _count_once(self) -> None:
        """Count what is under way before the first look gives any room away."""
        if not self._counted:
            self._counted = True
            for job in self._jobs:
                self._capacity.hold(job.key, _active(job))

    def _note_stray(self, key: Key, uid: str) -> None:
        if self._reports.of(uid):
            self._strays.setdefault(key, {})[uid] = None

    def _strays_of(self, key: Key, job: Job | None) -> tuple[TaskReport, ...]:
        uids = self._strays[key]
        for uid in tuple(uids):
            if not self._reports.of(uid) or (job is not None and job.metadata.uid == uid):
                del uids[uid]
        if not uids:
            del self._strays[key]
        if key in self._jobs.unreadable:
            # What cannot be read may be the very Job that they belong to.
            return ()
        heard = self._jobs.version
        reports = (report for uid in uids for report in self._reports.of(uid).values())
        # The Job was there at that version: who has not heard so far may just not know it yet.
        return tuple(report for report in reports if report.job_version <= heard)


def _relatives(jobs: Cache[Job], before: Job | None, after: Job | None) -> Iterable[Key]:
    """The parent of a Job that is new, ended or went, and the children of one: these may go now."""
    job = after or before
    assert job is not None
    is_over = after is None or has_ended(after)
    if before is None and not is_over and job.spec.parent is not None:
        parent = parent_key(job)
        assert parent is not None
        yield parent
    if not is_over or (before is not None and after is not None and has_ended(before)):
        return
    parent = parent_key(job)
    if parent is not None:
        yield parent
    if is_operation(job.spec):
        yield from (child.key for child in jobs.by(BY_PARENT, under(job)))


def _waits(job: Job) -> bool:
    """Whether the Job is admission's alone so far."""
    return job.status.admission.phase is AdmissionPhase.WAITING


def _active(job: Job | None) -> int:
    return taken(job.status.execution.active) if job is not None else 0


def _concerns(
    before: Job | None, after: Job | None, foreseen: AdmissionStatus | None = None
) -> bool:
    """Whether a change is anything but this room's own progress, or what it has foreseen.

    A decision says itself when to look again after it was carried out, so its own writes need
    no further look.
    """
    if before is None or after is None:
        return True
    old, new = before.metadata, after.metadata
    return (
        new.generation != old.generation
        or new.uid != old.uid
        or new.deletion_timestamp != old.deletion_timestamp
        or new.finalizers != old.finalizers
        or any(new.annotations.get(name) != old.annotations.get(name) for name in _ORDERS)
        or (
            after.status.admission is not before.status.admission
            and after.status.admission != foreseen
        )
    )
