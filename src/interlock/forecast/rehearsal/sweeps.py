"""Sweeps of a rehearsal: wake-ups for operations that nobody looks at, by the real rules."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.execution.sweeping import Sweep, SweepView, sweep
from interlock.forecast.rehearsal.scenario import SweepSpec
from interlock.plane import ControlPlane
from interlock.resources.job import Job
from interlock.resources.transitions import has_ended


def sweep_now(plane: ControlPlane, now: datetime, how: SweepSpec) -> Sweep:
    """Post what is missing; of the wake-ups only those are told that were not there already."""
    loop = plane.loop
    if loop is None:
        return Sweep(operations=0, under_way=0, wake_ups=(), stuck=())
    jobs = tuple(job for job in plane.cache(Job) if not has_ended(job))
    under_way = frozenset(job.metadata.uid for job in jobs if loop.is_under_way(job))
    view = SweepView(jobs=jobs, under_way=under_way, target=how.target)
    found = sweep(view, now, how.older_than)
    posted = tuple(wake_up for wake_up in found.wake_ups if loop.post(wake_up.job))
    return replace(found, wake_ups=posted)
