"""The reports of a control plane that does not run: they tell what they were given."""

from __future__ import annotations

from interlock.api.routing import Route
from interlock.api.workers import WorkerDoor
from interlock.control.caches import Caches
from interlock.control.clock import SystemClock
from interlock.control.garbage import INDEXES
from interlock.control.reconciler import Change
from interlock.forecast.rehearsal.front import NoLogs
from interlock.forecast.service import Forecasting
from interlock.modes.settings import Sweeping
from interlock.modes.sweeper import Sweeper
from interlock.reporting.job_index import JobIndex
from interlock.reporting.lock_queue import BY_LOCK, locks_asked_for
from interlock.reporting.logs import Logs
from interlock.reporting.service import Reporting
from interlock.resources.job import Job
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Resource
from interlock.store.memory import MemoryJournal, MemoryStore


class Reports:
    """Reports on a store; `note` tells them of a resource, as an informer would."""

    def __init__(self, store: MemoryStore, logs: Logs | None = None) -> None:
        self.roster = JobIndex()
        clock = SystemClock()
        self.journal = MemoryJournal()
        self._caches = Caches(
            (kind for kind in KINDS.values() if kind.is_ours),
            INDEXES,
            ({Job: {BY_LOCK: locks_asked_for}},),
        )
        self.reporting = Reporting(
            store=store,
            caches=self._caches,
            roster=self.roster,
            journal=self.journal,
            logs=logs or NoLogs(),
            clock=clock,
        )
        self.forecasting = Forecasting(caches=self._caches, clock=clock)
        jobs = self._caches.of(Job)
        self.sweeper = Sweeper(lambda: None, jobs, self.roster, clock, Sweeping())

    def routes(self) -> tuple[Route, ...]:
        """Everything that is told."""
        reports = (*self.reporting.routes(), *self.forecasting.routes())
        workers = WorkerDoor(lambda: None)
        return (*reports, *workers.routes(), *self.sweeper.routes())

    def note(self, resource: Resource) -> None:
        """Have the reports know of a resource."""
        self._caches[resource.kind].note(resource)
        self.roster.observe(Change(None, resource))
