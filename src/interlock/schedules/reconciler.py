"""The reconciler of schedules: JobConfigs on one side, ControlledJobs on the other."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key
from interlock.schedules.configs.reconciler import ConfigSide
from interlock.schedules.controlled.reconciler import ControlledSide


class Side(Protocol):
    """One kind's part of the room."""

    def wakes(self, change: Change) -> Iterable[Key]:
        """Those whom a change concerns."""
        ...

    def look(self, key: Key, now: datetime) -> Decision:
        """Read all that matters into one view, and decide."""
        ...


class SchedulesReconciler:
    """Looks at JobConfigs and ControlledJobs; decides which Jobs exist, and when they stop."""

    room = "schedules"

    def __init__(
        self,
        jobs: Cache[Job],
        configs: Cache[JobConfig],
        controlled: Cache[ControlledJob],
        calendars: Cache[Calendar],
    ) -> None:
        self._sides: dict[str, Side] = {
            "JobConfig": ConfigSide(jobs, configs, calendars),
            "ControlledJob": ControlledSide(jobs, controlled, calendars),
        }

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake those whom a change of a Job, a Calendar or themselves concerns."""
        return (key for side in self._sides.values() for key in side.wakes(change))

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about a JobConfig or a ControlledJob."""
        return self._sides[key.kind].look(key, now)
