"""What the loop counts and measures, in a registry of its own.

The loop counts in plain numbers, because it does so several times per decision; they are put in
Prometheus' words only when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from interlock.control.applier import Applied
from interlock.control.gate import Gate
from interlock.control.queue import WorkQueue
from interlock.control.reports import Reports
from interlock.resources.actions import Action, CreateJob, RecordJobConfig
from interlock.resources.job import Job
from interlock.resources.job_config import SkipReason
from interlock.resources.schedule import SCHEDULED_AT_ANNOTATION
from interlock.resources.tasks import ReportState

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
                case RecordJobConfig(config, status) if status.skips != config.status.skips:
                    for skip in status.skips:
                        if skip not in config.status.skips:
                            self.skipped[skip.reason] += max(skip.count, 1)

    def _observe(self, job: Job, now: datetime) -> None:
        due = job.metadata.annotations.get(SCHEDULED_AT_ANNOTATION)
        if due is not None:
            late = now - datetime.fromisoformat(due)
            self.lateness.observe(max(late.total_seconds(), 0.0))


class Metrics(Collector):
    """All numbers of one loop. Two control planes in one process do not share them."""

    def __init__(
        self,
        rooms: Iterable[str],
        registry: CollectorRegistry | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self.rooms = {room: RoomMetrics() for room in rooms}
        self.store_writes = 0
        self.tasks_launched = 0
        self.tasks_stopped = 0
        self.tasks_forgotten = 0
        self.due = DueMetrics()
        self._queue: WorkQueue | None = None
        #: Shown from the start: one that only follows is asked too.
        self._gate = gate
        self._reports: Reports | None = None
        self.registry.register(self)

    def carried_out(self, applied: Applied) -> None:
        """Count what was done."""
        self.store_writes += applied.writes
        self.tasks_launched += len(applied.launched)
        self.tasks_stopped += len(applied.stopped)
        self.tasks_forgotten += len(applied.forgotten)

    def watch(self, queue: WorkQueue, gate: Gate, reports: Reports | None) -> None:
        """Show these as they are when somebody asks, and not those that were shown before."""
        self._queue, self._gate, self._reports = queue, gate, reports

    def collect(self) -> Iterator[Metric]:
        """Everything that was counted, in Prometheus' words."""
        yield self._per_room("looks", "Looks at a key.", lambda room: room.looks)
        yield self._per_room("decisions", "Decisions that had actions.", lambda r: r.decisions)
        yield self._per_room("conflicts", "Decisions that were stale.", lambda r: r.conflicts)
        yield self._per_room("failures", "Looks and decisions that failed.", lambda r: r.failures)
        yield self._per_room("retries", "Decisions to be tried again.", lambda r: r.retries)
        yield self._durations("look_seconds", "Time to look and decide.", lambda r: r.look)
        yield self._durations("apply_seconds", "Time to carry a decision out.", lambda r: r.apply)
        yield _total("store_writes", "Writes by the loop.", self.store_writes)
        yield _total("tasks_launched", "Attempts handed to a runtime.", self.tasks_launched)
        yield _total("tasks_stopped", "Orders to stop an attempt.", self.tasks_stopped)
        yield _total("tasks_forgotten", "Attempts a runtime forgot.", self.tasks_forgotten)
        yield from self._due()
        yield from self._live()

    def _per_room(self, name: str, told: str, number: Callable[[RoomMetrics], int]) -> Metric:
        family = CounterMetricFamily(f"interlock_{name}", told, labels=("room",))
        for room, numbers in self.rooms.items():
            family.add_metric((room,), number(numbers))
        return family

    def _durations(
        self, name: str, told: str, durations: Callable[[RoomMetrics], Durations]
    ) -> Metric:
        family = HistogramMetricFamily(f"interlock_{name}", told, labels=("room",))
        for room, numbers in self.rooms.items():
            held = durations(numbers)
            family.add_metric((room,), held.buckets(), held.total_s)
        return family

    def _due(self) -> Iterator[Metric]:
        yield _total("scheduled_jobs", "Jobs that schedules made.", self.due.made)
        told = "From the moment a Job was due until it was made."
        late = HistogramMetricFamily("interlock_due_lateness_seconds", told)
        late.add_metric((), self.due.lateness.buckets(), self.due.lateness.total_s)
        yield late
        told = "Due times that became no Job."
        skipped = CounterMetricFamily("interlock_due_times_skipped", told, labels=("reason",))
        for reason, count in self.due.skipped.items():
            skipped.add_metric((reason.value,), count)
        yield skipped

    def _live(self) -> Iterator[Metric]:
        """What is not counted but looked at."""
        if (queue := self._queue) is not None:
            yield _gauge("queue_depth", "Keys ready to be looked at.", queue.depth)
            yield _gauge("queue_in_work", "Keys being worked on.", queue.in_work)
            yield _gauge("queue_backing_off", "Keys to be tried again.", queue.backing_off)
        if (gate := self._gate) is not None:
            yield _gauge("leading", "1 while this control plane may write.", gate.is_open)
        if (reports := self._reports) is not None:
            told = "Attempts that the runtime knows."
            family = GaugeMetricFamily("interlock_tasks", told, labels=("state",))
            for state in ReportState:
                family.add_metric((state.value,), reports.count(state))
            yield family


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(f"interlock_{name}", told, value=float(value))


def _total(name: str, told: str, value: int) -> Metric:
    return CounterMetricFamily(f"interlock_{name}", told, value=value)
