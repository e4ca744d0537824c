"""What the loop counts and measures, in a registry of its own.

The loop counts in plain numbers, because it does so several times per decision; they are put in
Prometheus' words only when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

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
from interlock.resources.tasks import ReportState

#: The upper ends of the buckets that durations are counted in, in seconds.
_ENDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1.0, 5.0)


class Durations:
    """How often something took how long."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(_ENDS) + 1)
        self.total_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(_ENDS, seconds)] += 1
        self.total_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many were at most as long as the end of each bucket."""
        so_far, ends = 0, []
        for end, count in zip((*map(str, _ENDS), "+Inf"), self.counts, strict=True):
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
