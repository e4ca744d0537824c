"""What is forgotten about lines: room that is there, whose turn it is, whose part is least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mutation import Seam, mutation

from interlock.resources.job import JobSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.queue import FairSharing, Queue, QueueSpec
from interlock.resources.values.amounts import Amount
from support.simulation.faults import CALM
from support.simulation.queue_world import FairWorld
from support.simulation.script import ApplyQueue, CreateJob, Step

ADMITTED = "Who could be let in is let in, once nothing happens any more."
TURNS = "Of Queues of a cohort the one goes first that need not borrow, then the higher priority."
SHARES = "What is lent goes to the Queue that has the smallest part of it, by weight."


def _queue(name: str, weight: int | None = None) -> Step:
    fair = None if weight is None else FairSharing(weight=Amount.read(weight))
    spec = QueueSpec(resources={"gpu": Amount.read(1)}, cohort="lab", fair_sharing=fair)
    return Step(1.0, ApplyQueue(name, spec))


def _job(at: float, name: str, queue: str, gpu: int, seconds: float) -> Step:
    spec = JobSpec(
        process=ProcessSpec(command=("work", f"{seconds}")),
        queue=queue,
        resources={"gpu": Amount.read(gpu)},
    )
    return Step(at, CreateJob(name=name, spec=spec))


#: Blue runs on what it has and on what it has borrowed; as that comes back, red wants its own.
BORROWED = (
    _queue("blue"),
    _queue("red"),
    _job(60.0, "own", "blue", 1, 900.0),
    _job(70.0, "borrowed", "blue", 1, 100.0),
    _job(80.0, "more", "blue", 1, 5.0),
    _job(90.0, "back", "red", 1, 5.0),
)
#: Both want all there is, and so as much beyond their own; red counts for three times as much.
WEIGHED = (
    _queue("blue", 1),
    _queue("red", 3),
    _job(60.0, "before", "red", 2, 100.0),
    _job(70.0, "light", "blue", 2, 5.0),
    _job(80.0, "heavy", "red", 2, 5.0),
)


@mutation(
    ADMITTED,
    Seam("interlock.admission.queues.ledger", "Ledger._free_of"),
    caught_by="NobodyStarves",
    in_worlds=FairWorld,
)
def nothing_is_lent(_: Any) -> Any:
    return lambda _, terms, name, used: max(0, terms.has[name] - used)


@mutation(
    "In a strict line nobody is let in before the first.",
    Seam("interlock.admission.queues.cycle", "_held_up"),
    caught_by="StrictlyInLine",
    in_worlds=FairWorld,
)
def a_strict_line_of_a_cohort_lets_others_pass(_: Any) -> Any:
    return lambda _, other: other


@mutation(
    TURNS,
    Seam("interlock.admission.queues.ledger", "Ledger.borrows"),
    caught_by="CohortInOrder",
    in_worlds=lambda seed: FairWorld(seed, BORROWED, CALM),
)
def who_borrows_comes_before_who_need_not(_: Callable[..., bool]) -> Any:
    return lambda *_: False


@mutation(
    SHARES,
    Seam("interlock.admission.queues.cycle", "_weight"),
    caught_by="SharedByWeight",
    in_worlds=lambda seed: FairWorld(seed, WEIGHED, CALM),
)
def weights_are_ignored(_: Any) -> Any:
    def weight(queue: Queue | None) -> int | None:
        return None if queue is None or queue.spec.fair_sharing is None else 1000

    return weight
