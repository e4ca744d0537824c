"""The scenarios of Kueue's own test of its scheduler, and what its CI measured with them.

Their generator makes for each queue Jobs of three classes, one every so often, and the Jobs do
nothing but last: numbers and figures are those of `test/performance/scheduler` there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Class(NamedTuple):
    """Jobs of one size in each queue."""

    name: str
    number: int
    cpu: int
    runs_s: float
    priority: int
    every_s: float


class Published(NamedTuple):
    """What Kueue's CI measured, in the mean."""

    total_s: float
    use: float
    #: From creation to admission, by class.
    admission_s: dict[str, float]


class Scenario(NamedTuple):
    """Cohorts of queues, and who comes to each of them."""

    name: str
    cohorts: int
    queues: int
    classes: tuple[Class, ...]
    published: Published
    nominal: int = 20
    borrowing: int = 100
    #: Whether the queues of a cohort lend each other what they do not use.
    shares: bool = True

    @property
    def jobs(self) -> int:
        """How many Jobs there are in all."""
        return self.cohorts * self.queues * sum(each.number for each in self.classes)

    @property
    def least_s(self) -> float:
        """How long the quota alone lets it take, at best."""
        work = sum(each.number * each.cpu * each.runs_s for each in self.classes)
        return work / self.nominal

    @property
    def arrives_s(self) -> float:
        """When the last Job comes."""
        return max(each.number * each.every_s for each in self.classes)

    def cohort_of(self, queue: str) -> str:
        """The cohort of a queue; the queue itself where nothing is shared."""
        return queue.partition("-")[0] if self.shares else queue

    def queue_names(self) -> Iterator[str]:
        """All queues."""
        for cohort in range(self.cohorts):
            for queue in range(self.queues):
                yield f"c{cohort}-q{queue}"

    def most_of(self, queue: str) -> int:
        """How much a queue may hold at a time: its own and what it may borrow."""
        return self.nominal + (self.borrowing if self.cohort_of(queue) != queue else 0)

    def most_of_cohort(self) -> int:
        """How much the queues of a cohort may hold together."""
        return self.nominal * (self.queues if self.shares else 1)

    def queue_spec(self, queue: str) -> dict[str, Any]:
        """What a queue is created with."""
        spec: dict[str, Any] = {
            "resources": {"cpu": self.nominal},
            "preemption": {"withinQueue": "LowerPriority"},
        }
        if self.shares:
            spec["cohort"] = self.cohort_of(queue)
            spec["borrowingLimit"] = {"cpu": self.borrowing}
            spec["preemption"]["reclaimWithinCohort"] = "Any"
        return spec

    def arrivals(self) -> list[tuple[float, str, dict[str, Any]]]:
        """When each Job comes, what it is called, and what it is created with."""
        found = [
            (number * each.every_s, name_of(queue, each.name, number), _job_spec(queue, each))
            for queue in self.queue_names()
            for each in self.classes
            for number in range(each.number)
        ]
        return sorted(found, key=lambda one: one[0])

    def class_of(self, job: str) -> Class:
        """The class that the name of a Job tells."""
        name = job.split("-")[2]
        return next(each for each in self.classes if each.name == name)


def name_of(queue: str, name: str, number: int) -> str:
    """What a Job is called."""
    return f"{queue}-{name}-{number}"


def queue_of(job: str) -> str:
    """The queue that the name of a Job tells."""
    return "-".join(job.split("-", 2)[:2])


def _job_spec(queue: str, each: Class) -> dict[str, Any]:
    return {
        "queue": queue,
        "priority": each.priority,
        "resources": {"cpu": each.cpu},
        "process": {"command": ["sleep", str(each.runs_s)]},
    }


BASELINE = Scenario(
    "baseline",
    cohorts=5,
    queues=6,
    classes=(
        Class("small", 350, 1, 0.2, 50, 0.1),
        Class("medium", 100, 5, 0.5, 100, 0.5),
        Class("large", 50, 20, 1.0, 200, 1.2),
    ),
    published=Published(351.0, 0.559, {"small": 215.0, "medium": 76.8, "large": 16.5}),
)
LARGE = Scenario(
    "large",
    cohorts=10,
    queues=100,
    classes=(
        Class("small", 35, 1, 0.15, 50, 0.1),
        Class("medium", 11, 5, 0.35, 100, 0.5),
        Class("large", 4, 20, 0.7, 200, 1.2),
    ),
    published=Published(1179.0, 0.386, {"small": 700.0, "medium": 256.0, "large": 105.6}),
)
SCENARIOS = {each.name: each for each in (BASELINE, LARGE)}


def alone(scenario: Scenario) -> Scenario:
    """The same with queues that share nothing."""
    return scenario._replace(shares=False)


def quick(scenario: Scenario) -> Scenario:
    """A tenth of it."""
    fewer = tuple(each._replace(number=max(1, each.number // 10)) for each in scenario.classes)
    return scenario._replace(classes=fewer, queues=max(3, scenario.queues // 4))
