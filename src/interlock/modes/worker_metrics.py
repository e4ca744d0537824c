"""Metrics of workers: how many there are, what waits for them, and what was lost with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from interlock.runtimes.workers.attempts import WorkerInfo
from interlock.runtimes.workers.terms import WorkerTerms


class WorkerMetrics(Collector):
    """Numbers that the dispatcher keeps, told when somebody asks."""

    def __init__(self, terms: WorkerTerms) -> None:
        self._terms = terms

    def collect(self) -> Iterator[Metric]:
        """Everything that was counted, in Prometheus' words."""
        runtime, counts = self._terms.runtime, self._terms.counts
        workers = () if runtime is None or runtime.is_over else runtime.workers()
        waiting = 0 if runtime is None or runtime.is_over else runtime.dispatcher.waiting
        yield _now("workers_connected", "Workers that are connected.", len(workers))
        yield _now("worker_room", "Attempts that they take at a time.", _room(workers))
        at_work = sum(worker.at_work for worker in workers)
        yield _now("worker_attempts", "Attempts that workers are at.", at_work)
        yield _now("worker_orders_waiting", "Orders that wait for a worker.", waiting)
        given, cut, refused = counts.handed_out, counts.cut_off, counts.refused
        yield _total("worker_orders", "Orders that were given to workers.", given)
        told = "Attempts whose worker was lost, or silent for too long."
        yield _total("worker_leases_lost", told, cut)
        yield _total("worker_words_refused", "Results and touches that did not count.", refused)


def _room(workers: Sequence[WorkerInfo]) -> int:
    return sum(worker.concurrency for worker in workers if not worker.draining)


def _now(name: str, told: str, value: int) -> Metric:
    return GaugeMetricFamily(f"interlock_{name}", told, value=value)


def _total(name: str, told: str, value: int) -> Metric:
    return CounterMetricFamily(f"interlock_{name}", told, value=value)
