"""ControlledJobs on a real store, with the real admission room, and work that does as it is told.

Nothing here waits: a look, each write of a decision, and what a plane has heard of are taken one
by one, so that a test can stop, repeat and reorder them.
"""

from __future__ import annotations

from datetime import datetime
from math import inf
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from interlock.admission.claims.locks import LOCKS
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.control.applier import Applier
from interlock.control.cache import Cache
from interlock.control.garbage import INDEXES
from interlock.control.informer import drop_from, note_in
from interlock.control.reconciler import Change
from interlock.control.write_fence import WriteFence
from interlock.errors import AlreadyExistsError, ConflictError, NotFoundError
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.resources.actions import Decision
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.lock import Lock, lock_name
from interlock.resources.metadata import Key, Resource
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    TaskState,
    TaskStatus,
)
from interlock.resources.transitions import has_ended, is_admitted, with_execution
from interlock.schedules.controlled.reconciler import ControlledSide
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.builders import T0
from support.config_desk import HandClock, NoRuntime

R = TypeVar("R", bound=Resource)

#: More looks than any world needs that is going to be settled.
_LOOKS = 100
NAME = "engine"


class Plane:
    """A control plane's caches, its side of the room, and the door. It knows what it has heard."""

    def __init__(self, store: MemoryStore, clock: HandClock) -> None:
        self._store = store
        self.jobs: Cache[Job] = Cache("Job", INDEXES)
        self.controlled: Cache[ControlledJob] = Cache("ControlledJob", INDEXES)
        self.calendars: Cache[Calendar] = Cache("Calendar", INDEXES)
        self.locks: Cache[Lock] = Cache("Lock", {BY_HOLDER: holder_uids, **INDEXES})
        self.side = ControlledSide(self.jobs, self.controlled, self.calendars)
        owners = {"ControlledJob": self.controlled}
        self.door = AdmissionReconciler(self.jobs, {LOCKS: self.locks}, owners=owners)
        fence = WriteFence(clock)
        fence.open(1, inf)
        self._applier = Applier(store, NoRuntime(), clock, fence)

    def hear(self, *kinds: str) -> None:
        """Take in all that is stored, or all of some kinds."""
        for cache in (self.jobs, self.controlled, self.calendars, self.locks):
            if not kinds or cache.kind in kinds:
                self._refresh(cache)

    def look(self, now: datetime, name: str = NAME) -> Decision:
        """Decide by what was heard."""
        return self.side.look(Key("ControlledJob", "default", name), now)

    def apply(self, decision: Decision, most: int | None = None) -> bool:
        """Carry out the first actions of a decision; tells whether none was refused as stale."""
        try:
            run_now(self._applier.apply(Decision(decision.actions[:most])))
        except (ConflictError, NotFoundError, AlreadyExistsError):
            return False
        return True

    def admit(self, now: datetime) -> None:
        """Have the door look at every Job and lock until there is nothing left to be done."""
        for _ in range(_LOOKS):
            self.hear()
            keys = [key for job in self.jobs for key in (job.key, *_locks(job))]
            decisions = [self.door.look(key, now) for key in dict.fromkeys(keys)]
            busy = [decision for decision in decisions if decision.actions]
            if not busy:
                return
            self.apply(busy[0])
        raise AssertionError("the door does not settle")

    def _refresh(self, cache: Cache[Any]) -> None:
        page = run_now(self._store.list(cache.kind))
        listed = {item.key for item in page.items}
        changes: list[Change] = []
        for held in cache:
            if held.key not in listed:
                drop_from(cache, held.key, page.version, changes)
        for item in page.items:
            note_in(cache, item, changes)
        cache.settle(page.version)
        for change in changes:
            tuple(self.side.wakes(change))
            tuple(self.door.wakes(change))


def _locks(job: Job) -> list[Key]:
    namespace = job.metadata.namespace
    return [Key("Lock", namespace, lock_name(request.key)) for request in job.spec.locks]


class ControlledDesk:
    """A store with a ControlledJob and its Jobs, and one plane that sees everything at once."""

    def __init__(self, *resources: Resource, at: datetime = T0) -> None:
        self.clock = HandClock(at)
        self.store = MemoryStore(self.clock.now, SeededIdentities(Random(0)))
        self.plane = self.a_plane()
        #: Jobs that do not stop when they are told to.
        self.stubborn: set[str] = set()
        for resource in resources:
            self.put(resource)

    def a_plane(self) -> Plane:
        """A further control plane."""
        return Plane(self.store, self.clock)

    @property
    def now(self) -> datetime:
        """What the clock says."""
        return self.clock.now()

    def put(self, resource: R) -> R:
        """Store a resource as if it were new, with the status it has."""
        metadata = replace(resource.metadata, resource_version="", uid="")
        stored = run_now(self.store.create(replace(resource, metadata=metadata)))
        status: Any = getattr(resource, "status", None)
        if status is not None and status != stored.status:  # type: ignore[attr-defined]
            stored = run_now(self.store.update_status(replace(stored, status=status)))
        return stored

    # What is there

    @property
    def controlled(self) -> ControlledJob:
        """The ControlledJob as it is stored."""
        found = run_now(self.store.get(Key("ControlledJob", "default", NAME)))
        assert isinstance(found, ControlledJob)
        return found

    @property
    def jobs(self) -> dict[str, Job]:
        """The Jobs as they are stored, by name."""
        items = run_now(self.store.list("Job")).items
        return {job.metadata.name: job for job in items if isinstance(job, Job)}

    @property
    def live(self) -> list[str]:
        """The Jobs that were let in and are not over."""
        return [name for name, job in self.jobs.items() if is_admitted(job) and not has_ended(job)]

    # What people do

    def edit(self, **spec: Any) -> None:
        """Change the spec."""
        controlled = self.controlled
        run_now(self.store.update(replace(controlled, spec=replace(controlled.spec, **spec))))

    def revise(self, name: str, notes: dict[str, str] | None = None, **spec: Any) -> None:
        """Change a Job, as a person does."""
        job = self.jobs[name]
        annotations = job.metadata.annotations | (notes or {})
        metadata = replace(job.metadata, annotations=annotations)
        run_now(self.store.update(replace(job, metadata=metadata, spec=replace(job.spec, **spec))))

    def delete(self, name: str) -> None:
        """Delete a Job; it is gone once its work is."""
        run_now(self.store.delete(self.jobs[name].key))

    # What work does

    def end(self, name: str, result: str = "Succeeded") -> None:
        """Have a Job that was let in end by itself."""
        reason = "Completed" if result == "Succeeded" else "TaskFailed"
        self._execute(self.jobs[name], _ended(self.now, result, reason))

    def work(self) -> None:
        """Have everyone start that may, and stop who must."""
        for name in self.jobs:
            job = self.jobs.get(name)
            if job is None:
                continue
            if has_ended(job):
                self._let_go(job)
            elif is_admitted(job):
                self._work_on(name, job)

    def _work_on(self, name: str, job: Job) -> None:
        execution, kill_at = job.status.execution, job.spec.kill_at
        is_told = kill_at is not None and kill_at <= self.now
        if job.is_going or is_told or execution.stopping_for is not None:
            reason = ExecutionReason.DELETED if job.is_going else ExecutionReason.KILLED
            if name not in self.stubborn:
                self._execute(job, _ended(self.now, "Killed", reason))
                self._let_go(self.jobs[name])
            elif execution.stopping_for is None:
                stopping = replace(execution, stopping_for=reason, stopping_at=self.now)
                self._execute(job, stopping)
        elif execution.started_at is None:
            self._execute(job, _running(self.now))

    def _let_go(self, job: Job) -> None:
        if job.is_going and JOB_FINALIZER in job.metadata.finalizers:
            ties = replace(job.metadata, finalizers=())
            run_now(self.store.update_ties(replace(job, metadata=ties)))

    def _execute(self, job: Job, execution: ExecutionStatus) -> None:
        status = with_execution(job, execution, self.now)
        run_now(self.store.update_status(replace(job, status=status)))

    # What the rooms do

    def at(self, moment: datetime) -> None:
        """Set the clock."""
        self.clock.at = moment

    def look(self) -> Decision:
        """Look once, with everything heard, and carry out what is decided."""
        self.plane.hear()
        decision = self.plane.look(self.now)
        self.plane.apply(decision)
        return decision

    def settle(self) -> Decision:
        """Have all rooms look until nothing is left to be done; returns the last decision."""
        for _ in range(_LOOKS):
            before = self._versions()
            decision = self.look()
            self.plane.admit(self.now)
            self.work()
            if not decision.actions and self._versions() == before:
                return decision
        raise AssertionError(f"it does not settle: {decision.actions}")

    def settle_at(self, moment: datetime) -> Decision:
        """Set the clock, and have all rooms look until nothing is left to be done."""
        self.at(moment)
        return self.settle()

    def run_through(self, moment: datetime) -> Decision:
        """Look whenever it is asked for, until a moment."""
        decision = self.settle()
        while decision.wake_at is not None and decision.wake_at <= moment:
            decision = self.settle_at(decision.wake_at)
        return self.settle_at(moment)

    def _versions(self) -> int:
        return run_now(self.store.list("Namespace")).version


def _running(at: datetime) -> ExecutionStatus:
    task = TaskStatus(
        name="task", index=0, attempt=0, state=TaskState.RUNNING, created_at=at, started_at=at
    )
    return ExecutionStatus(total=1, started_at=at, active=(task,))


def _ended(at: datetime, result: str, reason: str) -> ExecutionStatus:
    return ExecutionStatus(
        total=1,
        started_at=at,
        ended_at=at,
        result=JobResult(result),
        reason=ExecutionReason(reason),
    )
