"""Phase gauges: how many Jobs there are in each phase, for those who watch a server."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from interlock.reporting.job_index import JobIndex
from interlock.resources.job import JobPhase


class JobsByPhase(Collector):
    """How many Jobs are in each phase, counted when somebody asks."""

    def __init__(self, roster: JobIndex) -> None:
        self._roster = roster

    def collect(self) -> Iterator[Metric]:
        """One number for each phase."""
        gauge = GaugeMetricFamily("interlock_jobs", "Jobs in each phase.", labels=("phase",))
        for phase in JobPhase:
            gauge.add_metric((phase.value,), self._roster.count(phase.value))
        yield gauge
