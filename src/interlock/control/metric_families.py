"""Prometheus metric families of the loop's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from interlock.control.metrics import Durations, Metrics, RoomMetrics
from interlock.resources.tasks import ReportState


class LoopFamilies(Collector):
    """Tells what was counted, as it is when somebody asks."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Everything that was counted, in Prometheus' words."""
        yield self._per_room("looks", "Looks at a key.", lambda room: room.looks)
        yield self._per_room("decisions", "Decisions that had actions.", lambda r: r.decisions)
        yield self._per_room("conflicts", "Decisions that were stale.", lambda r: r.conflicts)
        yield self._per_room("failures", "Looks and decisions that failed.", lambda r: r.failures)
        yield self._per_room("retries", "Decisions to be tried again.", lambda r: r.retries)
        yield self._durations("look_seconds", "Time to look and decide.", lambda r: r.look)
        yield self._durations("apply_seconds", "Time to carry a decision out.", lambda r: r.apply)
        yield _total("store_writes", "Writes by the loop.", self._metrics.store_writes)
        yield _total(
            "tasks_launched", "Attempts handed to a runtime.", self._metrics.tasks_launched
        )
        yield _total("tasks_stopped", "Orders to stop an attempt.", self._metrics.tasks_stopped)
        yield _total("tasks_forgotten", "Attempts a runtime forgot.", self._metrics.tasks_forgotten)
        yield from self._due()
        yield from self._live()

    def _per_room(self, name: str, told: str, number: Callable[[RoomMetrics], int]) -> Metric:
        family = CounterMetricFamily(f"interlock_{name}", told, labels=("room",))
        for room, numbers in self._metrics.rooms.items():
            family.add_metric((room,), number(numbers))
        return family

    def _durations(
        self, name: str, told: str, durations: Callable[[RoomMetrics], Durations]
    ) -> Metric:
        family = HistogramMetricFamily(f"interlock_{name}", told, labels=("room",))
        for room, numbers in self._metrics.rooms.items():
            held = durations(numbers)
            family.add_metric((room,), held.buckets(), held.total_s)
        return family

    def _due(self) -> Iterator[Metric]:
        yield _total("scheduled_jobs", "Jobs that schedules made.", self._metrics.due.made)
        told = "From the moment a Job was due until it was made."
        late = HistogramMetricFamily("interlock_due_lateness_seconds", told)
        late.add_metric(
            (), self._metrics.due.lateness.buckets(), self._metrics.due.lateness.total_s
        )
        yield late
        told = "Due times that became no Job."
        skipped = CounterMetricFamily("interlock_due_times_skipped", told, labels=("reason",))
        for reason, count in self._metrics.due.skipped.items():
            skipped.add_metric((reason.value,), count)
        yield skipped

    def _live(self) -> Iterator[Metric]:
        """What is not counted but looked at."""
        if (queue := self._metrics.queue) is not None:
            yield _gauge("queue_depth", "Keys ready to be looked at.", queue.depth)
            yield _gauge("queue_in_work", "Keys being worked on.", queue.in_work)
            yield _gauge("queue_backing_off", "Keys to be tried again.", queue.backing_off)
        if (fence := self._metrics.fence) is not None:
            yield _gauge("leading", "1 while this control plane may write.", fence.is_open)
        if (reports := self._metrics.reports) is not None:
            told = "Attempts that the runtime knows."
            family = GaugeMetricFamily("interlock_tasks", told, labels=("state",))
            for state in ReportState:
                family.add_metric((state.value,), reports.count(state))
            yield family


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(f"interlock_{name}", told, value=float(value))


def _total(name: str, told: str, value: int) -> Metric:
    return CounterMetricFamily(f"interlock_{name}", told, value=value)
