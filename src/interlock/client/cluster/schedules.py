"""One JobConfig or ControlledJob as a cluster stores it, with its Jobs and calendars."""

from __future__ import annotations

from interlock.client.api import Api
from interlock.client.cluster.snapshot import pages
from interlock.client.kinds import JOB_CONFIGS, JOBS, Kind
from interlock.client.schedules import read_calendars, read_one
from interlock.control.caches import Caches
from interlock.reporting.schedule_reader import BY_OWNER, ScheduleReader, owner_uids
from interlock.resources.calendar import Calendar
from interlock.resources.job import Job
from interlock.resources.kinds import KINDS
from interlock.resources.schedule import CONFIG_LABEL, CONTROLLED_LABEL


def read_schedule(api: Api, kind: Kind, namespace: str, name: str) -> ScheduleReader:
    """Read what the answer about one of them depends on, and nothing else."""
    caches = Caches(KINDS.values(), indexes=({Job: {BY_OWNER: owner_uids}},))
    resource = read_one(api, kind, namespace, name)
    caches[kind.name].note(resource)
    for calendar in read_calendars(api, resource):
        caches.of(Calendar).note(calendar)
    label = CONFIG_LABEL if kind is JOB_CONFIGS else CONTROLLED_LABEL
    for items in pages(api, JOBS, namespace, labels=f"{label}={name}"):
        for job in items.items:
            assert isinstance(job, Job)
            caches.of(Job).note(job)
    return ScheduleReader(caches)
