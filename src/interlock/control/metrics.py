"""Metrics of the loop: what it counts and measures, in a registry of its own.

The loop counts in plain numbers, because it does so several times per decision; they are put in
Prometheus' words (`control.metric_families`) only when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from interlock.control.applier import Applied
from interlock.control.queue import WorkQueue
from interlock.control.reports import Reports
from interlock.control.write_fence import WriteFence
from interlock.resources.actions import Action, CreateJob, RecordStatus
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig, JobConfigStatus, SkipReason
from interlock.resources.schedule import SCHEDULED_AT_ANNOTATION

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

#: The upper ends of the buckets that durations are counted in, in seconds.
_ENDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1.0, 5.0)

#: For how late something was.
_LATE_ENDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0)


class Durations:
    """How often something took how long."""

    __slots__ = ("_ends", "counts", "total_s")

    def __init__(self, ends: Sequence[float] = _ENDS) -> None:
        self._ends = ends
        self.counts = [0] * (len(ends) + 1)
        self.total_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(self._ends, seconds)] += 1
        self.total_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many were at most as long as the end of each bucket."""
        so_far, ends = 0, []
        for end, count in zip((*map(str, self._ends), "+Inf"), self.counts, strict=True):
            so_far += count
            ends.append((end, float(so_far)))
        return ends


class RoomMetrics:
    """The numbers of one room."""

    __slots__ = ("apply", "conflicts", "decisions", "failures", "look", "looks", "retries")

    def __init__(self) -> None:
        self.looks = 0
        #: Decisions that had actions.
        self.decisions = 0
        #: Decisions that were stale.
        self.conflicts = 0
        #: Looks and decisions that failed for a reason that time does not cure.
        self.failures = 0
        #: Decisions to be tried again.
        self.retries = 0
        self.look = Durations()
        self.apply = Durations()


class DueMetrics:
    """What became of due times and windows, and how late."""

    def __init__(self) -> None:
        #: From the moment a Job was due until it was made.
        self.lateness = Durations(_LATE_ENDS)
        self.made = 0
        self.skipped = dict.fromkeys(SkipReason, 0)

    def decided(self, actions: Iterable[Action], now: datetime) -> None:
        """Count what was carried out."""
        for action in actions:
            match action:
                case CreateJob(job):
                    self.made += 1
                    self._observe(job, now)
                case RecordStatus(JobConfig() as config, JobConfigStatus() as status):
                    for skip in status.skips if status.skips != config.status.skips else ():
                        if skip not in config.status.skips:
                            self.skipped[skip.reason] += max(skip.count, 1)

    def _observe(self, job: Job, now: datetime) -> None:
        due = job.metadata.annotations.get(SCHEDULED_AT_ANNOTATION)
        if due is not None:
            late = now - datetime.fromisoformat(due)
            self.lateness.observe(max(late.total_seconds(), 0.0))


class Metrics:
    """All numbers of one loop. Two control planes in one process do not share them."""

    def __init__(self, rooms: Iterable[str], fence: WriteFence | None = None) -> None:
        self.rooms = {room: RoomMetrics() for room in rooms}
        self.store_writes = 0
        self.tasks_launched = 0
        self.tasks_stopped = 0
        self.tasks_forgotten = 0
        self.due = DueMetrics()
        self.queue: WorkQueue | None = None
        #: Shown from the start: one that only follows is asked too.
        self.fence = fence
        self.reports: Reports | None = None

    @cached_property
    def registry(self) -> CollectorRegistry:
        """Where all of it can be asked for."""
        # Slow to load, and whoever only plans or rehearses never asks.
        from prometheus_client import CollectorRegistry

        from interlock.control.metric_families import LoopFamilies

        registry = CollectorRegistry()
        registry.register(LoopFamilies(self))
        return registry

    def carried_out(self, applied: Applied) -> None:
        """Count what was done."""
        self.store_writes += applied.writes
        self.tasks_launched += len(applied.launched)
        self.tasks_stopped += len(applied.stopped)
        self.tasks_forgotten += len(applied.forgotten)

    def watch(self, queue: WorkQueue, fence: WriteFence, reports: Reports | None) -> None:
        """Show these as they are when somebody asks, and not those that were shown before."""
        self.queue, self.fence, self.reports = queue, fence, reports
