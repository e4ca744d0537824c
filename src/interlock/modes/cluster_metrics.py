"""Metrics of a controller beside its loop: its lease, its requests, its events."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from interlock.control.lease import Election
from interlock.kube.client.api_client import Client
from interlock.kube.events.recorder import Events


class ClusterMetrics(Collector):
    """Numbers that others keep, told when somebody asks. Who leads is told by the loop's own."""

    def __init__(self, client: Client, election: Election, events: Events) -> None:
        self._client = client
        self._election = election
        self._events = events

    def collect(self) -> Iterator[Metric]:
        """Everything that was counted, in Prometheus' words."""
        yield _total("takeovers", "How often this controller began to lead.", self._election.terms)
        requests = CounterMetricFamily(
            "interlock_kube_requests",
            "Answers of the API server; the code is 0 when there was none.",
            labels=("kind", "method", "code"),
        )
        for (kind, method, code), number in sorted(self._client.answers.items()):
            requests.add_metric((kind, method, str(code)), number)
        yield requests
        resumed = CounterMetricFamily(
            "interlock_kube_watches_resumed", "Watches that had to be resumed.", labels=("kind",)
        )
        for kind, number in sorted(self._client.resumed.items()):
            resumed.add_metric((kind,), number)
        yield resumed
        events = self._events
        yield _total("events_written", "Events written about Jobs.", events.written)
        yield _total("events_dropped", "Events that were not written.", events.dropped)


def _total(name: str, told: str, value: int) -> Metric:
    return CounterMetricFamily(f"interlock_{name}", told, value=value)
