"""The control plane: the one assembly of rooms that modes, tests and the simulation share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

from msgspec import Struct

from interlock.admission.claims.claim import ClaimKind
from interlock.admission.claims.locks import LOCKS
from interlock.admission.claims.slots import SLOTS
from interlock.admission.queues.desk import QUOTA_INDEXES, QueueDesk
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.control.applier import Applier
from interlock.control.cache import Cache
from interlock.control.caches import Caches, Indexes
from interlock.control.clock import Clock, pause
from interlock.control.garbage import INDEXES, Garbage
from interlock.control.informer import Informer
from interlock.control.lease import Election
from interlock.control.live_reads import LiveReads
from interlock.control.loop import Loop
from interlock.control.loop import Observer as Counting
from interlock.control.metrics import Metrics
from interlock.control.queue import WorkQueue
from interlock.control.reconciler import Change, Reconciler
from interlock.control.reports import Reports
from interlock.control.runtime import Runtime
from interlock.control.stopping import end_task, stop_in_order
from interlock.control.turns import PART
from interlock.errors import InterlockError
from interlock.execution.children import BY_PARENT, parents_of
from interlock.execution.reconciler import ExecutionReconciler, Patience
from interlock.execution.restoring import Restorable, clear_away
from interlock.reporting.lock_queue import BY_LOCK, locks_asked_for
from interlock.reporting.slot_beds import BY_BED, beds_asked_for
from interlock.resources.calendar import Calendar
from interlock.resources.checks.validator import make_ready
from interlock.resources.cluster import Namespace, Node
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.default_queue import default_queue_in
from interlock.resources.job import Job, JobSpec
from interlock.resources.job_config import JobConfig
from interlock.resources.kinds import (
    CONTROLLED_JOBS,
    JOB_CONFIGS,
    KINDS,
    NAMESPACES,
    NODES,
    Kind,
)
from interlock.resources.lock import Lock
from interlock.resources.metadata import Resource
from interlock.resources.modes import Mode
from interlock.resources.queue import Queue, QueueQuota
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.scheduling import Scheduling, SchedulingClaims
from interlock.resources.tasks import MOST_AT_ONCE, TaskReport
from interlock.resources.test_bed import TestBed, TestBedSlots
from interlock.schedules.reconciler import SchedulesReconciler
from interlock.slots.plans.reconciler import CLAIMS_INDEXES, PLAN_INDEXES, PlansReconciler
from interlock.slots.reconciler import SlotsReconciler
from interlock.store.contract import Journal, Store

logger = logging.getLogger("interlock.plane")

#: Reaches the runtime in the name of a term; a runtime refuses the terms before the newest.
Connect = Callable[[int], Awaitable[Runtime]]
#: Told of every change that the caches take in.
Observer = Callable[[Change], None]

R = TypeVar("R", bound=Resource)


class PlaneSettings(Struct, frozen=True, kw_only=True):
    """How a control plane works; the defaults are those of the embedded server."""

    mode: Mode = Mode.EMBEDDED
    #: The one namespace that it knows the Jobs of; empty for all of them.
    namespace: str = ""
    #: How many tasks run at most, of all Jobs.
    most_tasks: int = 1000
    #: How long news of attempts are gathered before they are written.
    patience: Patience = Patience()
    launches_at_once: int = MOST_AT_ONCE
    #: After how many resources a first look at all of them lets others have a turn.
    part: int = PART
    #: What holds for all Queues that do not say otherwise.
    wait_for_pods_ready: WaitForPodsReady | None = None
    #: Whether what goes with its owner or namespace is seen to here; a cluster does it by itself.
    collects: bool = True


class Site(Struct, frozen=True):
    """What a room finds where it works, for one term of leadership."""

    caches: Caches
    reports: Reports
    #: Answers that the caches cannot give; each room has its own, which wake that room.
    proofs: LiveReads
    settings: PlaneSettings


class Room(Struct, frozen=True, kw_only=True):
    """A room: how its reconciler is made, and by what it finds things in the caches."""

    name: str
    make: Callable[[Site], Reconciler]
    indexes: Indexes = {}
    #: For rooms that do what a cluster does by itself.
    collects: bool = False
    #: What counts the room's decisions beside the numbers that all rooms have.
    counted_by: Callable[[Metrics], Counting] | None = None


def _schedules(site: Site) -> Reconciler:
    of = site.caches.of
    return SchedulesReconciler(of(Job), of(JobConfig), of(ControlledJob), of(Calendar))


def _admission(site: Site) -> Reconciler:
    of = site.caches.of
    owners = {kind.name: site.caches[kind.name] for kind in (JOB_CONFIGS, CONTROLLED_JOBS)}
    settings = site.settings
    queues = QueueDesk(
        of(Job),
        of(Queue),
        of(QueueQuota),
        settings.namespace,
        settings.wait_for_pods_ready,
        default_queue_in(settings.mode),
        of(Namespace) if NAMESPACES.name in site.caches else None,
    )
    claims: dict[ClaimKind[Any, Any], Cache[Any]] = {LOCKS: of(Lock), SLOTS: of(TestBedSlots)}
    return AdmissionReconciler(of(Job), claims, settings.mode, owners, queues)


def _execution(site: Site) -> Reconciler:
    settings = site.settings
    return ExecutionReconciler(
        site.caches.of(Job),
        site.reports,
        site.caches.of(Lock),
        site.caches.of(QueueQuota),
        site.caches.of(TestBedSlots),
        site.proofs,
        settings.most_tasks,
        patience=settings.patience,
        launches_at_once=settings.launches_at_once,
    )


def _slots(site: Site) -> Reconciler:
    caches = site.caches
    nodes = caches.of(Node) if NODES.name in caches else Cache[Node](NODES.name)
    return SlotsReconciler(caches.of(TestBed), caches.of(TestBedSlots), nodes)


def _plans(site: Site) -> Reconciler:
    of = site.caches.of
    return PlansReconciler(of(Scheduling), of(SchedulingClaims), of(Job), of(TestBedSlots))


def _garbage(site: Site) -> Reconciler:
    return Garbage(site.caches, site.proofs)


#: The rooms of every control plane, in the order in which a change passes them.
ROOMS: list[Room] = [
    Room(name="schedules", make=_schedules, counted_by=lambda metrics: metrics.due.decided),
    Room(
        name="admission",
        make=_admission,
        indexes={
            Lock: {BY_HOLDER: holder_uids},
            QueueQuota: QUOTA_INDEXES,
            TestBedSlots: {BY_HOLDER: holder_uids},
        },
    ),
    Room(name="slots", make=_slots),
    Room(
        name="plans",
        make=_plans,
        indexes={Scheduling: PLAN_INDEXES, SchedulingClaims: CLAIMS_INDEXES},
    ),
    Room(name="execution", make=_execution, indexes={Job: {BY_PARENT: parents_of}}),
    Room(name="garbage", make=_garbage, collects=True),
]
#: What the reporting room finds Jobs by.
_REPORTED: Indexes = {Job: {BY_LOCK: locks_asked_for, BY_BED: beds_asked_for}}


def _is_watched(kind: Kind, settings: PlaneSettings) -> bool:
    """Whether a control plane knows the resources of a kind.

    Of a cluster's own kinds that is namespaces, which Queues choose by their labels, and nodes,
    which have the slots of TestBeds. One that serves a single namespace may not read them.
    """
    is_chosen = kind in (NAMESPACES, NODES) and not settings.namespace
    return kind.is_ours or settings.collects or is_chosen


class ControlPlane:
    """Keeps caches of what is stored and, while it leads, has the rooms decide.

    Followers keep their caches up to date too: they answer questions, and begin without delay
    when it is their turn.
    """

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        clock: Clock,
        luck: Random,
        connect: Connect,
        election: Election,
        observers: Sequence[Observer] = (),
        settings: PlaneSettings = PlaneSettings(),  # noqa: B008 (it cannot be changed)
        restored: Restorable | None = None,
    ) -> None:
        self._store = store
        self._restored = restored
        self._journal = journal
        self._clock = clock
        self._luck = luck
        self._connect = connect
        self._settings = settings
        self._observers = tuple(observers)
        self._rooms = tuple(room for room in ROOMS if settings.collects or not room.collects)
        self.caches = Caches(
            (kind for kind in KINDS.values() if _is_watched(kind, settings)),
            INDEXES,
            (_REPORTED, *(room.indexes for room in self._rooms)),
        )
        self.election = election
        self.fence = election.fence
        self.metrics = Metrics([room.name for room in self._rooms], fence=self.fence)
        self._informers = tuple(self._informer(cache) for cache in self.caches.values())
        #: The loop of the present leadership; None while another leads.
        self.loop: Loop | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._lost = asyncio.Event()
        #: Set once this control plane leads and looks at what there is.
        self.at_work = asyncio.Event()
        #: What runs although the store was put back and knows nothing of it: it is waited for.
        self.strangers: tuple[TaskReport, ...] = ()

    def cache(self, noun: type[R]) -> Cache[R]:
        """What is known of the resources of a kind, by its noun."""
        return self.caches.of(noun)

    @property
    def is_synced(self) -> bool:
        """Whether the caches hold everything that was stored when they began."""
        return all(informer.synced.is_set() for informer in self._informers)

    def start(self) -> None:
        """Begin, on the running event loop."""
        # Jobs that are due at one moment are not to wait for it.
        make_ready(JobSpec)
        events = asyncio.get_running_loop()
        self.election.on_lost = self._lost.set
        works = [informer.run() for informer in self._informers]
        works += [self.election.run(), self._lead()]
        self._tasks = tuple(events.create_task(work) for work in works)

    async def synced(self) -> None:
        """Wait until the caches hold everything that was stored when they began."""
        for informer in self._informers:
            await informer.synced.wait()

    @property
    def activities(self) -> tuple[asyncio.Task[None], ...]:
        """What goes on until it is stopped; one that ends before is broken."""
        return self._tasks

    async def stop(self) -> None:
        """Stop looking, finish what is being carried out, and let the next one lead."""
        if self.loop is not None:
            await stop_in_order(self.loop, self.election, self._tasks, self._clock)
            return
        for task in self._tasks:
            await end_task(task)
        # It may lead without being at work yet: its runtime could not be reached.
        await self.election.release()

    async def _lead(self) -> None:
        """Work whenever this control plane leads, until cancelled."""
        await self.synced()
        while True:
            # Cleared before the wait: a lead that is lost again at once must not go unseen.
            self._lost.clear()
            await self.election.leading.wait()
            term = self.fence.term
            try:
                runtime = await self._connect(term)
                if self._restored is not None and self._restored.is_restored:
                    await self._settle(runtime, self._restored)
            except InterlockError as error:
                logger.warning("the runtime cannot be reached, again in 1 s: %s", error)
                await pause(self._clock, 1.0)
                continue
            await self._work(runtime)

    async def _settle(self, runtime: Runtime, restored: Restorable) -> None:
        """Wait until nothing runs that a store which was put back does not know of."""
        try:
            await clear_away(runtime, self.cache(Job), self._clock, self._wait_for)
        finally:
            self.strangers = ()
        await restored.settled()
        logger.info("the store was put back; nothing runs that it does not know of")

    def _wait_for(self, strangers: Sequence[TaskReport]) -> None:
        if strangers and not self.strangers:
            names = ", ".join(f"{one.namespace}/{one.job} (pid {one.pid})" for one in strangers[:5])
            logger.warning(
                "the store was put back, and knows nothing of %d tasks that run: %s; they are "
                "stopped, and nothing starts before they are gone",
                len(strangers),
                names,
            )
        self.strangers = tuple(strangers)

    async def _work(self, runtime: Runtime) -> None:
        """Look and decide until the lead is lost."""
        queue = WorkQueue(self._clock, self._luck)
        reports = Reports(runtime, self._clock, self._luck)
        proofs = {room.name: self._proofs() for room in self._rooms}
        loop = Loop(
            reconcilers=[
                room.make(Site(self.caches, reports, proofs[room.name], self._settings))
                for room in self._rooms
            ],
            caches=self.caches,
            reports=reports,
            queue=queue,
            applier=Applier(self._store, runtime, self._clock, self.fence),
            fence=self.fence,
            clock=self._clock,
            journal=self._journal,
            metrics=self.metrics,
            observers={
                room.name: room.counted_by(self.metrics)
                for room in self._rooms
                if room.counted_by is not None
            },
        )
        loop.on_changed = self._tell
        loop.on_noted = self._changed
        for name, proof in proofs.items():
            proof.wake = partial(loop.wake, name)
        reading = asyncio.get_running_loop().create_task(reports.run())
        self.loop = loop
        try:
            await loop.revisit(self._settings.part)
            loop.start()
            self.at_work.set()
            await self._lost.wait()
        finally:
            self.at_work.clear()
            self.loop = None
            loop.stop_looking()
            reading.cancel()
            for proof in proofs.values():
                proof.close()
            queue.close()

    def _proofs(self) -> LiveReads:
        return LiveReads(self._store, self.caches, self._clock)

    def _informer(self, cache: Cache[Any]) -> Informer[Any]:
        return Informer(
            self._store,
            cache,
            self._clock,
            self._luck,
            self._changed,
            on_back=self._store_is_back,
        )

    def _changed(self, changes: Sequence[Change]) -> None:
        if self.loop is not None:
            self.loop.changed(changes)
        else:
            self._tell(changes)

    def _tell(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for observe in self._observers:
                observe(change)

    def _store_is_back(self) -> None:
        if self.loop is not None:
            self.loop.store_is_back()
