"""JobConfigs and ControlledJobs, read from the caches for a question."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from interlock.control.caches import Caches
from interlock.errors import NotFoundError
from interlock.reporting.config_why import ConfigView, explain_config
from interlock.reporting.controlled_why import (
    ControlledView,
    explain_controlled,
    explain_unreadable,
)
from interlock.reporting.schedule_why import ScheduleWhy
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key
from interlock.resources.transitions import has_ended
from interlock.schedules.calendars import Calendars
from interlock.schedules.configs.reading import read_timing
from interlock.schedules.controlled.plan import calendars_named, timetable_of
from interlock.timing.flaws import UnreadableError

#: The index of Jobs by the identities of their owners.
BY_OWNER = "owner"


def owner_uids(job: Job) -> Iterable[str]:
    """Under which values a Job is found in the index BY_OWNER."""
    return tuple(owner.uid for owner in job.metadata.owner_references)


class ScheduleReader:
    """Answers why schedules do, or do not, run. The cache of Jobs must have the index BY_OWNER."""

    def __init__(self, caches: Caches) -> None:
        self._jobs = caches.of(Job)
        self._configs = caches.of(JobConfig)
        self._controlled = caches.of(ControlledJob)
        self._calendars = Calendars(caches.of(Calendar).get)

    def why_config(self, namespace: str, name: str, now: datetime) -> ScheduleWhy:
        """Why a JobConfig is, or is not, running.

        Raises:
            NotFoundError: There is none of that name.
        """
        key = Key("JobConfig", namespace, name)
        config = self._configs.get(key)
        if config is None:
            raise NotFoundError(key)
        timing = read_timing(config, lambda named: self._calendars.find(namespace, named))
        view = ConfigView(config=config, timing=timing, jobs=self._jobs_of(config))
        return explain_config(view, now)

    def why_controlled(self, namespace: str, name: str, now: datetime) -> ScheduleWhy:
        """Why a ControlledJob is, or is not, running.

        Raises:
            NotFoundError: There is none of that name.
        """
        key = Key("ControlledJob", namespace, name)
        controlled = self._controlled.get(key)
        if controlled is None:
            raise NotFoundError(key)
        found = {
            named: self._calendars.find(namespace, named)
            for named in calendars_named(controlled.spec)
        }
        calendars = {n: one.calendar for n, one in found.items() if one.calendar is not None}
        jobs = self._jobs_of(controlled)
        try:
            plan = timetable_of(controlled, calendars)
        except UnreadableError as error:
            return explain_unreadable(controlled, jobs, error, now)
        view = ControlledView(
            controlled=controlled,
            plan=plan,
            jobs=jobs,
            ended=tuple(filter(has_ended, self._owned(controlled))),
            problems=tuple(one.problem for one in found.values() if one.calendar is None),
        )
        return explain_controlled(view, now)

    def _jobs_of(self, owner: JobConfig | ControlledJob) -> tuple[Job, ...]:
        """The Jobs that it made or that were made for it, and that are not over."""
        return tuple(job for job in self._owned(owner) if not has_ended(job))

    def _owned(self, owner: JobConfig | ControlledJob) -> Iterable[Job]:
        return self._jobs.by(BY_OWNER, owner.metadata.uid)
