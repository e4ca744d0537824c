"""Metrics of the API itself."""

from __future__ import annotations

from collections.abc import Sized
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Measures:
    """Requests by verb and code, and how long they took."""

    def __init__(self, registry: CollectorRegistry, watches: Sized) -> None:
        self._requests = Counter(
            "interlock_http_requests", "Requests answered.", ("verb", "code"), registry=registry
        )
        self._seconds = Histogram(
            "interlock_http_request_seconds",
            "From a request to its answer, watches left out.",
            ("verb",),
            buckets=_BUCKETS,
            registry=registry,
        )
        open_watches = Gauge("interlock_http_watches", "Watches that are open.", registry=registry)
        open_watches.set_function(partial(len, watches))
        #: Finding a labelled child is dear; there are only a few of them.
        self._counters: dict[tuple[str, int], Counter] = {}
        self._histograms: dict[str, Histogram] = {}

    def note(self, verb: str, code: int, seconds: float | None) -> None:
        """Count a request; an empty verb is anything that is not about resources."""
        verb = verb or "other"
        counter = self._counters.get((verb, code))
        if counter is None:
            counter = self._counters[verb, code] = self._requests.labels(verb, str(code))
        counter.inc()
        if seconds is not None:
            histogram = self._histograms.get(verb)
            if histogram is None:
                histogram = self._histograms[verb] = self._seconds.labels(verb)
            histogram.observe(seconds)
