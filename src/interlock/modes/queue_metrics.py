"""Metrics of Queues: who waits, how much of each quota is held, and how it went for whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from interlock.control.metrics import Durations
from interlock.reporting.queue_lines import QueueReader
from interlock.reporting.queue_moves import QueueMoves


class QueueMetrics(Collector):
    """Numbers of each Queue, read from what is known when somebody asks."""

    def __init__(self, queues: QueueReader) -> None:
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        """Everything there is to tell, in Prometheus' words."""
        pending = _family("pending_jobs", "Jobs that wait for room in a queue.")
        admitted = _family("admitted_jobs", "Jobs that hold a part of a queue's quota.")
        quota = _family("quota", "How much of a resource a queue allows.", "resource")
        used = _family("quota_used", "How much of it is held.", "resource")
        for one in self._queues.levels():
            pending.add_metric((one.queue,), one.waiting)
            admitted.add_metric((one.queue,), one.admitted)
            for resource, milli in one.limits.items():
                quota.add_metric((one.queue, resource), milli / 1000)
                used.add_metric((one.queue, resource), one.used[resource] / 1000)
        yield from (pending, admitted, quota, used)


def _family(name: str, told: str, *more: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"interlock_queue_{name}", told, labels=("queue", *more))


class QueueMoveMetrics(Collector):
    """How often Jobs were put back, and how long they waited for what: as it was counted."""

    def __init__(self, moves: QueueMoves) -> None:
        self._moves = moves

    def collect(self) -> Iterator[Metric]:
        """Everything that was counted, in Prometheus' words."""
        moves, of = self._moves, ("queue", "priority")
        why = ("queue", "reason", "cause")
        told = "From when a Job could be let in until it was."
        yield _times("admission_wait_seconds", told, of, moves.let_in)
        told = "From when a Job could be let in until it was ready."
        yield _times("ready_wait_seconds", told, of, moves.ready)
        told = "From when a Job was let in until it was ready."
        yield _times("admitted_until_ready_seconds", told, of, moves.ready_after_let_in)
        told = "Jobs that were put back."
        yield _counts("evicted_jobs", told, (*why, "priority"), moves.evicted)
        told = "The same, each Job once for a reason and cause."
        yield _counts("evicted_jobs_once", told, (*why, "priority"), moves.evicted_once)
        told = "From when a Job was ready until it was put back."
        yield _times("ready_to_evicted_seconds", told, why, moves.ready_to_evicted)
        told = "From when a Job is put back until it has given everything back."
        yield _times("eviction_latency_seconds", told, ("queue", "reason"), moves.released)


def _times(
    name: str,
    told: str,
    labels: tuple[str, ...],
    found: Mapping[tuple[str, ...], Durations],
) -> Metric:
    family = HistogramMetricFamily(f"interlock_queue_{name}", told, labels=labels)
    for values, durations in tuple(found.items()):
        family.add_metric(values, durations.buckets(), durations.total_s)
    return family


def _counts(
    name: str, told: str, labels: tuple[str, ...], found: Mapping[tuple[str, ...], int]
) -> Metric:
    family = CounterMetricFamily(f"interlock_queue_{name}", told, labels=labels)
    for values, count in tuple(found.items()):
        family.add_metric(values, count)
    return family
