"""What is really so: the newest committed version of everything, and what really runs.

Control planes only have caches and reports. The promises are judged by this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.admission import AdmissionPhase
from interlock.resources.calendar import Calendar
from interlock.resources.cluster import Node
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.default_queue import DEFAULT_QUEUE, queue_asked
from interlock.resources.job import Job, LockRequest, OperateVerb, WhenTaken, lock_requests
from interlock.resources.job_config import JobConfig
from interlock.resources.lock import Lock
from interlock.resources.metadata import Key, Resource
from interlock.resources.queue import Demand, Queue, QueueQuota, demand_of
from interlock.resources.readiness import is_ready_now
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.steps import Step
from interlock.resources.tasks import TaskId, TaskResult
from interlock.resources.test_bed import TestBed, TestBedSlots, seats_of, slots_asked
from interlock.resources.transitions import has_ended, is_admitted
from interlock.store.contract import Event, EventType
from interlock.store.watching import Change

#: A lock: namespace and key.
LockKey = tuple[str, str]


#: The uid of a holder that no grant ever made.
PHANTOM = "uid-of-nobody"


class Term(Struct, frozen=True):
    """On which terms a Job was let in under one lock."""

    limit: int
    is_allowed: bool
    token: int


class Truth:
    """Everything that the promises are about."""

    def __init__(self, loop: SimLoop, epoch: datetime) -> None:
        self._loop = loop
        self._epoch = epoch
        self.jobs: dict[Key, Job] = {}
        self.by_uid: dict[str, Job] = {}
        self.gone: dict[str, None] = {}
        #: When each Job was created, in seconds; the first is the oldest.
        self.created: dict[str, float] = {}
        #: Jobs that were edited before any control plane had seen them, by uid, where the store
        #: does not say when they were created: they take their place then.
        self.moved_back: dict[str, None] = {}
        self.locks: dict[LockKey, Lock] = {}
        #: JobConfigs, ControlledJobs and Calendars.
        self.schedules: dict[Key, Resource] = {}
        #: Queues and the records of their quotas, by the name of the Queue; every version of a
        #: Queue that ever was, and when it was last changed.
        self.queues: dict[str, Queue] = {}
        self.quotas: dict[str, QueueQuota] = {}
        self.queue_versions: dict[tuple[str, int], Queue] = {}
        self.queue_changed: dict[str, float] = {}
        #: How many slots each version of a Job asked for, by uid and version.
        self.asked_slots: dict[tuple[str, int], int] = {}
        #: TestBeds, the records of their slots and nodes, by name; and when anything of them was
        #: last changed.
        self.beds: dict[str, TestBed] = {}
        self.slots: dict[str, TestBedSlots] = {}
        self.nodes: dict[str, Node] = {}
        self.beds_changed = -math.inf
        #: What each version of a Job asked of its Queue, by uid and version.
        self.demands: dict[tuple[str, int], Demand] = {}
        #: Since when each Job holds its part of a quota, by uid and epoch.
        self.part_since: dict[tuple[str, int], float] = {}
        #: Jobs that were ready at some time, by uid and epoch.
        self.was_ready: dict[tuple[str, int], None] = {}
        #: Names of Jobs that a person took out of their Queue.
        self.deactivated: dict[str, None] = {}
        #: What holds for all Queues that do not say otherwise.
        self.wait_for_pods_ready: WaitForPodsReady | None = None
        #: The terms of every admitted Job, by uid and key.
        self.terms: dict[str, dict[str, Term]] = {}
        #: What really runs, and how what ran has ended: exit code and signal.
        self.lives: dict[TaskId, Life] = {}
        self.ends: dict[TaskId, tuple[int | None, int | None]] = {}
        #: What runs, or is about to, and the store that was put back knows nothing of.
        self.strangers: set[TaskId] = set()
        #: Attempts that a person wrote off: what they do is that person's responsibility.
        self.written_off: dict[TaskId, None] = {}
        #: Uids that a person asked to delete.
        self.to_delete: dict[str, None] = {}
        #: The rounds of Jobs that a person ordered back, by uid.
        self.to_requeue: dict[str, set[int]] = {}
        #: The orders of people about operations, by uid: the number of each, and what was ordered.
        self.operated: dict[str, dict[int, OperateVerb]] = {}
        #: The steps that a worker made of a request, by uid.
        self.elaborated: dict[str, tuple[Step, ...]] = {}
        #: When the schedule of each owner was last changed, by uid.
        self.edited: dict[str, datetime] = {}
        #: Uids of owners that a person deleted.
        self.removed: dict[str, None] = {}
        #: Names of objects that no door would have let in; they may do harm to themselves.
        self.bad: dict[str, None] = {}
        #: How many unfinished Jobs a target may have; None where nobody counts them.
        self.most_pending: int | None = None
        #: Names of requests that no worker can turn into steps.
        self.bad_requests: dict[str, None] = {}
        #: Jobs whose locks were changed after they were created, by uid.
        self.revised: dict[str, None] = {}
        #: Since when each waiting Job stands where it stands.
        self.stands_since: dict[str, float] = {}
        #: Who made the write that is being judged.
        self.writer = ""
        #: Who asks for it at the door; empty when nobody does.
        self.person = ""
        #: The clock of every control plane that ever was, by its name.
        self.clocks: dict[str, SimClock] = {}
        #: How long a view of the line may be out of date in this world.
        self.patience = 5.0
        #: How many pods may still be made for a Job that was told to stop; None where news may be
        #: late, and nobody can say.
        self.made_after_stop: int | None = None
        #: Writes and launches so far, renewals of the lease not counted.
        self.activity = 0

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self._loop.time()

    @property
    def moment(self) -> datetime:
        """What a clock shows that goes right."""
        return self._epoch + timedelta(microseconds=self._loop.now_us)

    def take(self, change: Change) -> None:
        """Take over a committed change."""
        resource = change.event.resource
        is_gone = change.event.type is EventType.DELETED
        if isinstance(resource, Job):
            self._take_job(change.before, resource, is_gone)
        elif isinstance(resource, Lock):
            lock = (resource.metadata.namespace, resource.spec.key)
            if is_gone:
                self.locks.pop(lock, None)
            else:
                self.locks[lock] = resource
        elif isinstance(resource, Queue | QueueQuota):
            self._take_queue(resource, is_gone)
        elif isinstance(resource, TestBed | TestBedSlots | Node):
            self._take_bed(resource, is_gone)
        elif isinstance(resource, JobConfig | ControlledJob | Calendar):
            self.schedules[resource.key] = resource
            if is_gone:
                del self.schedules[resource.key]
        else:
            return
        self.activity += 1

    def queue_asked(self, job: Job) -> str | None:
        """The Queue that a Job asks: the default one where it names none and that is there."""
        return queue_asked(job.spec, DEFAULT_QUEUE if DEFAULT_QUEUE in self.queues else "")

    def is_settled(self, queue: str) -> bool:
        """Whether everybody must know by now how a Queue is, and whether it is there."""
        return self.now - self.queue_changed.get(queue, -math.inf) > self.patience

    def _take_queue(self, resource: Queue | QueueQuota, is_gone: bool) -> None:
        if isinstance(resource, Queue):
            name = resource.metadata.name
            self.queues[name] = resource
            self.queue_versions[name, resource.version] = resource
            self.queue_changed[name] = self.now
            if is_gone:
                del self.queues[name]
            return
        self.quotas[resource.metadata.name] = resource
        for holder in resource.status.holders:
            self.part_since.setdefault((holder.uid, holder.epoch), self.now)
        if is_gone:
            del self.quotas[resource.metadata.name]

    def _take_bed(self, resource: TestBed | TestBedSlots | Node, is_gone: bool) -> None:
        name = resource.metadata.name
        held: dict[str, Any] = self.nodes
        is_news = True
        if isinstance(resource, TestBedSlots):
            held, before = self.slots, self.slots.get(name)
            is_news = is_gone or before is None or before.status.places != resource.status.places
        elif isinstance(resource, TestBed):
            held = self.beds
        held[name] = resource
        if is_gone:
            del held[name]
        if is_news:
            self.beds_changed = self.now

    def may_be_seated(self, job: Job) -> bool:
        """Whether there are such slots as a Job asks for, if it does, and everybody knows."""
        request = job.spec.slots
        if request is None:
            return True
        record = self.slots.get(request.test_bed or "")
        if record is None or self.now - self.beds_changed <= self.patience:
            return False
        there = {seat.id for seat in seats_of(record.status.places)}
        return slots_asked(job) <= len(there) and there.issuperset(request.ids or ())

    def _take_job(self, before: object, job: Job, is_gone: bool) -> None:
        uid = job.metadata.uid
        self.by_uid[uid] = job
        if is_ready_now(job):
            self.was_ready[uid, job.status.admission.epoch] = None
        demand = demand_of(job, DEFAULT_QUEUE)
        if demand is not None:
            self.demands[uid, job.version] = demand
        if job.spec.slots is not None:
            self.asked_slots[uid, job.version] = slots_asked(job)
        self.created.setdefault(uid, self.now)
        if is_gone:
            self.jobs.pop(job.key, None)
            self.gone[uid] = None
            self.stands_since.pop(uid, None)
            return
        self.jobs[job.key] = job
        was = before if isinstance(before, Job) else None
        if was is not None and was.spec.locks != job.spec.locks:
            self.revised[uid] = None
        is_placed = job.status.admission.sequence or job.metadata.creation_version
        if was is not None and not is_placed:
            self.moved_back[uid] = None
        if was is None or _standing(was) != _standing(job):
            self.stands_since[uid] = self.now
        if _is_admitted(job) and (was is None or not _is_admitted(was)):
            self.terms[uid] = _terms(job)
        elif not is_admitted(job) and was is not None and is_admitted(was):
            # It was put back: nothing of it may run until it is let in again.
            self.terms.pop(uid, None)
        operation = job.status.execution.operation
        if operation is not None and operation.elaborated is not None:
            self.elaborated.setdefault(uid, operation.elaborated)
        for task in job.status.execution.ended:
            if task.result is TaskResult.WRITTEN_OFF:
                self.written_off[TaskId(uid, task.index, task.attempt)] = None

    def steps_of(self, job: Job) -> tuple[Step, ...] | None:
        """The steps of an operation, also when it is over; None while nobody has made them."""
        if job.spec.steps is not None:
            return job.spec.steps
        return self.elaborated.get(job.metadata.uid)

    def put_back(self, kept: Sequence[Resource], launched: Iterable[TaskId]) -> None:
        """The store holds this and nothing else from here on; what was launched goes on."""
        self.gone.update(dict.fromkeys(self.by_uid))
        self.jobs.clear()
        self.locks.clear()
        self.stands_since.clear()
        for resource in kept:
            self.gone.pop(resource.metadata.uid, None)
            event = Event(EventType.ADDED, resource, resource.version)
            self.take(Change(resource.key, None, event, resource.version))
        self.strangers = {task for task in launched if not self._is_recorded(task)}

    def _is_recorded(self, task: TaskId) -> bool:
        job = self.by_uid.get(task.job_uid)
        if job is None or task.job_uid in self.gone:
            return False
        active = job.status.execution.active
        return any((one.index, one.attempt) == (task.task, task.attempt) for one in active)

    def alive(self, uid: str) -> list[Life]:
        """The processes of a Job that really run, but for those a person answers for."""
        return [
            life
            for task, life in self.lives.items()
            if task.job_uid == uid and task not in self.written_off
        ]

    def is_over(self, uid: str) -> bool:
        """Whether a Job is proven to do nothing any more."""
        return uid in self.gone or uid not in self.by_uid or has_ended(self.by_uid[uid])


def _is_admitted(job: Job) -> bool:
    return job.status.admission.phase is AdmissionPhase.ADMITTED


def _standing(job: Job) -> tuple[object, ...]:
    admission = job.status.admission
    # Who gives grants back, and so begins another epoch, stands in those lines from then on.
    since = (admission.sequence > 0, admission.epoch)
    return (job.spec, job.is_going, admission.phase, admission.waits, since)


def _terms(job: Job) -> dict[str, Term]:
    tokens = {grant.key: grant.token for grant in job.status.admission.grants}
    return {r.key: _term(r, tokens.get(r.key, 0)) for r in lock_requests(job.spec)}


def _term(request: LockRequest, token: int) -> Term:
    return Term(request.limit, request.when_taken is WhenTaken.ALLOW, token)
