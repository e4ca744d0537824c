"""The control plane: the one assembly of rooms that modes, tests and the simulation share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

from interlock.admission.claims.locks import LOCKS
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.control.applier import Applier
from interlock.control.cache import Cache
from interlock.control.clock import Clock, pause
from interlock.control.garbage import INDEXES, Garbage
from interlock.control.informer import Informer
from interlock.control.lease import Election
from interlock.control.loop import Loop
from interlock.control.metrics import Metrics
from interlock.control.proofs import Proofs
from interlock.control.queue import WorkQueue
from interlock.control.reconciler import Change
from interlock.control.reports import Reports
from interlock.control.runtime import Runtime
from interlock.control.stopping import end_task, stop_in_order
from interlock.control.turns import PART
from interlock.execution.launching import MOST_AT_ONCE
from interlock.execution.reconciler import ExecutionReconciler, Patience
from interlock.execution.restoring import Restorable, clear_away
from interlock.reporting.lines import BY_LOCK, locks_asked_for
from interlock.resources.calendar import Calendar
from interlock.resources.cluster import Lease, Namespace
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.errors import InterlockError
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.lock import Lock
from interlock.resources.modes import Mode
from interlock.resources.tasks import TaskReport
from interlock.schedules.reconciler import SchedulesReconciler
from interlock.store.contract import Journal, Store

logger = logging.getLogger("interlock.plane")

#: Reaches the runtime in the name of a term; a runtime refuses the terms before the newest.
Connect = Callable[[int], Awaitable[Runtime]]
#: Told of every change that the caches take in.
Observer = Callable[[Change], None]

_ROOMS_OF_OURS = ("schedules", "admission", "execution")
_ROOMS = (*_ROOMS_OF_OURS, "garbage")


class ControlPlane:
    """Keeps caches of what is stored and, while it leads, has the rooms decide.

    Followers keep their caches up to date too: they answer questions, and begin without delay
    when it is their turn. With `collects`, what goes with its owner or namespace is seen to here;
    a cluster does that by itself.
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
        most_tasks: int = 1000,
        patience: Patience | None = None,
        launches_at_once: int = MOST_AT_ONCE,
        part: int = PART,
        collects: bool = True,
        mode: Mode = Mode.EMBEDDED,
        restored: Restorable | None = None,
    ) -> None:
        self._store = store
        self._restored = restored
        self._journal = journal
        self._clock = clock
        self._luck = luck
        self._connect = connect
        self._most_tasks = most_tasks
        self._patience = patience or Patience()
        self._launches_at_once = launches_at_once
        self._part = part
        self._mode = mode
        self._observers = tuple(observers)
        self.jobs: Cache[Job] = Cache("Job", {BY_LOCK: locks_asked_for, **INDEXES})
        self.configs: Cache[JobConfig] = Cache("JobConfig", INDEXES)
        self.controlled: Cache[ControlledJob] = Cache("ControlledJob", INDEXES)
        self.calendars: Cache[Calendar] = Cache("Calendar", INDEXES)
        self.locks: Cache[Lock] = Cache("Lock", {BY_HOLDER: holder_uids, **INDEXES})
        self.namespaces: Cache[Namespace] = Cache("Namespace", INDEXES)
        self.leases: Cache[Lease] = Cache("Lease", INDEXES)
        self._collects = collects
        self.election = election
        self.gate = election.gate
        self.metrics = Metrics(_ROOMS if collects else _ROOMS_OF_OURS, gate=self.gate)
        self._informers = tuple(self._informer(cache) for cache in self._caches.values())
        #: The loop of the present leadership; None while another leads.
        self.loop: Loop | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._lost = asyncio.Event()
        #: Set once this control plane leads and looks at what there is.
        self.at_work = asyncio.Event()
        #: What runs although the store was put back and knows nothing of it: it is waited for.
        self.strangers: tuple[TaskReport, ...] = ()

    @property
    def _caches(self) -> dict[str, Cache[Any]]:
        caches: tuple[Cache[Any], ...] = (self.jobs, self.locks)
        caches += (self.configs, self.controlled, self.calendars)
        if self._collects:
            caches += (self.namespaces, self.leases)
        return {cache.kind: cache for cache in caches}

    @property
    def is_synced(self) -> bool:
        """Whether the caches hold everything that was stored when they began."""
        return all(informer.synced.is_set() for informer in self._informers)

    def start(self) -> None:
        """Begin, on the running event loop."""
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
            term = self.gate.term
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
            await clear_away(runtime, self.jobs, self._clock, self._wait_for)
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
        proofs = Proofs(self._store, self._caches, self._clock)
        garbage = (Garbage(self._caches, proofs),) if self._collects else ()
        grants = Proofs(self._store, self._caches, self._clock)
        loop = Loop(
            reconcilers=(
                SchedulesReconciler(self.jobs, self.configs, self.controlled, self.calendars),
                AdmissionReconciler(
                    self.jobs,
                    {LOCKS: self.locks},
                    self._mode,
                    {"JobConfig": self.configs, "ControlledJob": self.controlled},
                ),
                ExecutionReconciler(
                    self.jobs,
                    reports,
                    self.locks,
                    grants,
                    self._most_tasks,
                    patience=self._patience,
                    launches_at_once=self._launches_at_once,
                ),
                *garbage,
            ),
            caches=self._caches,
            reports=reports,
            queue=queue,
            applier=Applier(self._store, runtime, self._clock, self.gate),
            gate=self.gate,
            clock=self._clock,
            journal=self._journal,
            metrics=self.metrics,
        )
        loop.on_changed = self._tell
        proofs.wake = lambda key: loop.wake("garbage", key)
        grants.wake = lambda key: loop.wake("execution", key)
        reading = asyncio.get_running_loop().create_task(reports.run())
        self.loop = loop
        try:
            await loop.revisit(self._part)
            loop.start()
            self.at_work.set()
            await self._lost.wait()
        finally:
            self.at_work.clear()
            self.loop = None
            loop.stop_looking()
            reading.cancel()
            proofs.close()
            grants.close()
            queue.close()

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
