"""The reports of a control plane that does not run: they tell what they were given."""

from __future__ import annotations

from typing import Any

from interlock.api.routing import Route
from interlock.control.cache import Cache
from interlock.control.clock import SystemClock
from interlock.control.garbage import INDEXES
from interlock.control.reconciler import Change
from interlock.forecast.rehearsal.front import NoLogs
from interlock.forecast.service import Forecasting
from interlock.reporting.lines import BY_LOCK, locks_asked_for
from interlock.reporting.logs import Logs
from interlock.reporting.roster import Roster
from interlock.reporting.schedule_reader import ScheduleReader
from interlock.reporting.service import Reporting
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.lock import Lock
from interlock.resources.metadata import Resource
from interlock.store.memory import MemoryJournal, MemoryStore


class Reports:
    """Reports on a store; `note` tells them of a resource, as an informer would."""

    def __init__(self, store: MemoryStore, logs: Logs | None = None) -> None:
        self.roster = Roster()
        clock = SystemClock()
        self.journal = MemoryJournal()
        jobs: Cache[Job] = Cache("Job", {BY_LOCK: locks_asked_for, **INDEXES})
        locks: Cache[Lock] = Cache("Lock", INDEXES)
        configs: Cache[JobConfig] = Cache("JobConfig", INDEXES)
        controlled: Cache[ControlledJob] = Cache("ControlledJob", INDEXES)
        calendars: Cache[Calendar] = Cache("Calendar", INDEXES)
        caches: tuple[Cache[Any], ...] = (jobs, locks, configs, controlled, calendars)
        self._caches = {cache.kind: cache for cache in caches}
        self.reporting = Reporting(
            store=store,
            jobs=jobs,
            locks=locks,
            roster=self.roster,
            journal=self.journal,
            logs=logs or NoLogs(),
            clock=clock,
            schedules=ScheduleReader(jobs, configs, controlled, calendars),
        )
        self.forecasting = Forecasting(
            jobs=jobs,
            locks=locks,
            configs=configs,
            controlled=controlled,
            calendars=calendars,
            clock=clock,
        )

    def routes(self) -> tuple[Route, ...]:
        """Everything that is told."""
        return (*self.reporting.routes(), *self.forecasting.routes())

    def note(self, resource: Resource) -> None:
        """Have the reports know of a resource."""
        self._caches[resource.kind].note(resource)
        self.roster.observe(Change(None, resource))
