"""Metrics of Queues: who waits, who was let in, and how much of each quota is held."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from interlock.reporting.queue_lines import QueueReader


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
