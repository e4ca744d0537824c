"""Queues of a cohort: who is let in, who makes room, and how a Queue moves."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.queue import (
    BorrowPolicy,
    BorrowWithinCohort,
    FairSharing,
    Preemption,
    PreemptionPolicy,
    Queue,
    ReclaimPolicy,
    StopPolicy,
)
from interlock.resources.ready_gate import BlockScope, WaitForPodsReady
from interlock.resources.values.amounts import Amount
from support.cohort_desk import CohortDesk, asks, lends
from support.queue_desk import over

RECLAIMS = Preemption(reclaim_within_cohort=ReclaimPolicy.ANY)
RECLAIMS_LOWER = Preemption(reclaim_within_cohort=ReclaimPolicy.LOWER_PRIORITY)
WITHIN = Preemption(within_queue=PreemptionPolicy.LOWER_PRIORITY)


def borrows_from_lower(most: int | None = None) -> Preemption:
    policy = BorrowPolicy.LOWER_PRIORITY
    return Preemption(
        borrow_within_cohort=BorrowWithinCohort(policy=policy, max_priority_threshold=most)
    )


def shares(weight: int) -> FairSharing:
    return FairSharing(weight=Amount.read(weight))


BLUE, RED = lends("blue", 4), lends("red", 4)
LET_IN: list[tuple[str, tuple[Queue, ...], list[Job], list[str]]] = [
    ("what others do not use", (BLUE, RED), [asks("a", "blue", 8)], ["a"]),
    ("no more than there is", (BLUE, RED), [asks("a", "blue", 9)], []),
    (
        "no more than others lend",
        (BLUE, lends("red", 4, lending_limit=1)),
        [asks("a", "blue", 6)],
        [],
    ),
    (
        "no more than it may borrow",
        (lends("blue", 4, borrowing_limit=1), RED),
        [asks("a", "blue", 6)],
        [],
    ),
    ("not of another cohort", (BLUE, lends("red", 4, "den")), [asks("a", "blue", 5)], []),
    ("nor of one without", (BLUE, lends("red", 4, None)), [asks("a", "blue", 5)], []),
    (
        "whoever asks for its own before one that borrows",
        (BLUE, RED),
        [asks("a", "blue", 5), asks("b", "red", 4)],
        ["b"],
    ),
    (
        "then the older",
        (BLUE, RED),
        [asks("a", "blue", 3), asks("b", "red", 3)],
        ["a", "b"],
    ),
    (
        "the higher priority of a Job",
        (BLUE, RED),
        [asks("a", "blue", 3), asks("b", "red", 3, priority=1)],
        ["b", "a"],
    ),
    (
        "before it that of its Queue",
        (BLUE, lends("red", 4, priority=1)),
        [asks("a", "blue", 3, priority=9), asks("b", "red", 3)],
        ["b", "a"],
    ),
    (
        "not of one that is stopped; what it has is lent all the same",
        (BLUE, lends("red", 4, stop=StopPolicy.HOLD)),
        [asks("a", "blue", 8), asks("b", "red", 1)],
        ["a"],
    ),
    (
        "by weight: in turns while each has as large a part",
        (lends("blue", 0, fair_sharing=shares(1)), lends("red", 0), lends("pool", 4)),
        [*(asks(f"a{n}", "blue") for n in range(4)), *(asks(f"b{n}", "red") for n in range(4))],
        ["a0", "b0", "a1", "b1"],
    ),
    (
        "twice as much for twice the weight",
        (lends("blue", 0, fair_sharing=shares(2)), lends("red", 0), lends("pool", 6)),
        [*(asks(f"a{n}", "blue") for n in range(6)), *(asks(f"b{n}", "red") for n in range(6))],
        ["a0", "a1", "b0", "a2", "a3", "b1"],
    ),
    (
        "what is left for a weight of nothing",
        (lends("blue", 0, fair_sharing=shares(0)), lends("red", 0), lends("pool", 3)),
        [*(asks(f"a{n}", "blue") for n in range(3)), *(asks(f"b{n}", "red") for n in range(2))],
        ["b0", "b1", "a0"],
    ),
]


@pytest.mark.parametrize(
    ("queues", "jobs", "granted"), [row[1:] for row in LET_IN], ids=[row[0] for row in LET_IN]
)
def test_who_is_let_in(queues: tuple[Queue, ...], jobs: list[Job], granted: list[str]) -> None:
    assert CohortDesk(*queues).ask(*jobs) == granted


ROOM: list[tuple[str, tuple[Queue, ...], list[Job], Job, list[str]]] = [
    (
        "what was lent is taken back",
        (lends("blue", 4, preemption=RECLAIMS), RED),
        [asks("r1", "red", 4, priority=9), asks("r2", "red", 4, priority=9)],
        asks("a", "blue", 4),
        ["r2"],
    ),
    (
        "only as much as is its own",
        (lends("blue", 4, preemption=RECLAIMS), RED),
        [asks("r1", "red", 4), asks("r2", "red", 4)],
        asks("a", "blue", 5),
        [],
    ),
    (
        "of a lower priority, where it says so",
        (lends("blue", 4, preemption=RECLAIMS_LOWER), RED),
        [asks("r1", "red", 4), asks("r2", "red", 4, priority=5)],
        asks("a", "blue", 4, priority=5),
        ["r1"],
    ),
    (
        "nobody where it does not say so",
        (BLUE, RED),
        [asks("r1", "red", 4), asks("r2", "red", 4)],
        asks("a", "blue", 4, priority=5),
        [],
    ),
    (
        "nobody of one that uses its own alone",
        (lends("blue", 4, preemption=RECLAIMS), RED),
        [asks("r1", "red", 4), asks("a1", "blue", 4)],
        asks("a", "blue", 4, priority=5),
        [],
    ),
    (
        "those of others before its own",
        (
            lends(
                "blue",
                4,
                preemption=Preemption(
                    within_queue=PreemptionPolicy.LOWER_PRIORITY,
                    reclaim_within_cohort=ReclaimPolicy.ANY,
                ),
            ),
            RED,
        ),
        [asks("a1", "blue", 2), asks("r1", "red", 4), asks("r2", "red", 2, priority=7)],
        asks("a", "blue", 2, priority=5),
        ["r1"],
    ),
    (
        "its own, and then it may still borrow",
        (lends("blue", 4, preemption=WITHIN), RED),
        [asks("a1", "blue", 6), asks("r1", "red", 2)],
        asks("a", "blue", 6, priority=5),
        ["a1"],
    ),
    (
        "those of others for one that borrows, where it says so",
        (lends("blue", 2, preemption=borrows_from_lower()), lends("red", 2), lends("pool", 4)),
        [asks("r1", "red", 6), asks("a1", "blue", 2)],
        asks("a", "blue", 2, priority=5),
        ["r1"],
    ),
    (
        "but none of a priority above the threshold",
        (lends("blue", 2, preemption=borrows_from_lower(3)), lends("red", 2), lends("pool", 4)),
        [asks("r1", "red", 6, priority=4), asks("a1", "blue", 2)],
        asks("a", "blue", 2, priority=5),
        [],
    ),
    (
        "by weight: of whom has the larger part",
        (
            lends("blue", 0, fair_sharing=shares(1), preemption=RECLAIMS),
            lends("red", 0),
            lends("pool", 4),
        ),
        [asks(f"r{n}", "red") for n in range(4)],
        asks("a", "blue"),
        ["r3"],
    ),
    (
        "by weight: of nobody whose part would be the smaller",
        (
            lends("blue", 0, fair_sharing=shares(1), preemption=RECLAIMS),
            lends("red", 0),
            lends("pool", 4),
        ),
        [asks("r0", "red", 2), asks("a0", "blue", 2)],
        asks("a", "blue", 2),
        [],
    ),
]


@pytest.mark.parametrize(
    ("queues", "running", "comer", "victims"),
    [row[1:] for row in ROOM],
    ids=[row[0] for row in ROOM],
)
def test_who_makes_room(
    queues: tuple[Queue, ...], running: list[Job], comer: Job, victims: list[str]
) -> None:
    desk = CohortDesk(*queues)
    desk.run(*running)
    assert desk.ask(comer) == []
    assert desk.evicted == victims


GATES: list[tuple[str, BlockScope | None, list[str]]] = [
    ("the Queue alone", None, ["b", "d"]),
    ("the Queue alone, in a word", BlockScope.QUEUE, ["b", "d"]),
    ("all of its cohort", BlockScope.COHORT, ["b"]),
    ("all there are", BlockScope.SYSTEM, ["b"]),
]


@pytest.mark.parametrize(
    ("scope", "granted"), [row[1:] for row in GATES], ids=[row[0] for row in GATES]
)
def test_whose_jobs_have_to_be_ready(scope: BlockScope | None, granted: list[str]) -> None:
    """One of red is not ready; blue asks that of whom its scope says, and green of nobody."""
    waits = WaitForPodsReady(enable=True, block_admission=True, block_scope=scope)
    red = lends("red", 4, wait_for_pods_ready=WaitForPodsReady(enable=True))
    desk = CohortDesk(lends("blue", 4, wait_for_pods_ready=waits), red, lends("green", 4, None))
    desk.run(asks("c", "red"))
    found = desk.ask(asks("d", "blue"), asks("e", "blue"), asks("b", "green"))
    assert sorted(found) == granted


def test_a_gate_for_all_is_closed_by_a_queue_of_another_cohort() -> None:
    gate = WaitForPodsReady(enable=True, block_admission=True, block_scope=BlockScope.SYSTEM)
    red = lends("red", 4, None, wait_for_pods_ready=WaitForPodsReady(enable=True))
    desk = CohortDesk(lends("blue", 4, wait_for_pods_ready=gate), red)
    desk.run(asks("c", "red"))
    assert desk.ask(asks("d", "blue")) == []


def test_a_closed_gate_lets_room_be_made_for_whoever_comes_first() -> None:
    gate = WaitForPodsReady(enable=True, block_admission=True)
    desk = CohortDesk(lends("blue", 4, None, wait_for_pods_ready=gate, preemption=WITHIN))
    desk.run(asks("low", "blue", 4))
    assert desk.ask(asks("high", "blue", 4, priority=5)) == []
    assert desk.evicted == ["low"]


# Moving


def test_a_queue_of_a_cohort_is_granted_from_the_record_of_that_alone() -> None:
    desk = CohortDesk(BLUE, RED, lends("lone", 1, None))
    desk.ask(asks("a", "lone"))
    assert [desk.home(name) for name in ("blue", "red", "lone")] == [
        ["cohort.lab"],
        ["cohort.lab"],
        ["queue.lone"],
    ]


MOVES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("into a cohort", {"cohort": None}, {"cohort": "lab"}, "cohort.lab"),
    ("out of one", {"cohort": "lab"}, {"cohort": None}, "queue.blue"),
    ("from one to another", {"cohort": "lab"}, {"cohort": "den"}, "cohort.den"),
]


@pytest.mark.parametrize(
    ("before", "after", "home"), [row[1:] for row in MOVES], ids=[row[0] for row in MOVES]
)
def test_a_queue_that_moves_takes_its_jobs_along(
    before: dict[str, Any], after: dict[str, Any], home: str
) -> None:
    desk = CohortDesk(lends("blue", 4, **before))
    desk.run(asks("a", "blue", 3))
    desk.put(lends("blue", 4, **after))
    assert desk.ask(asks("b", "blue", 2), asks("c", "blue", 1)) == ["c"]
    assert desk.home("blue") == [home]
    holding = [r.metadata.name for r in desk.quotas for h in r.status.holders if h.job == "a"]
    assert holding == [home]


def test_the_record_of_a_cohort_goes_with_the_last_who_hold_by_it() -> None:
    """Their copies are dropped last, and nothing else is heard of it after that."""
    desk = CohortDesk(lends("blue", 2), lends("red", 1))
    desk.run(asks("b", "blue"), asks("r", "red"))

    desk.put(lends("blue", 2, "den"), lends("red", 1, "den"))
    desk.settle()

    names = {record.metadata.name for record in desk.quotas}
    assert names == {"cohort.den", "queue.blue", "queue.red"}
    assert set(desk.holders()) == {"b", "r"}


def test_a_queue_that_moves_on_before_it_arrived_takes_everybody_along() -> None:
    """Whatever step of the first move is the last before the second."""
    for steps in range(12):
        desk = CohortDesk(lends("blue", 4, None))
        desk.run(asks("a", "blue", 3))
        desk.put(lends("blue", 4, "lab"))
        for _ in range(steps):
            desk.step()
        desk.put(lends("blue", 4, "den"))
        assert desk.ask(asks("b", "blue", 2), asks("c", "blue", 1)) == ["c"], steps
        assert desk.home("blue") == ["cohort.den"], steps


def test_a_queue_that_goes_back_is_where_it_was() -> None:
    desk = CohortDesk(BLUE, RED)
    desk.run(asks("a", "blue", 3))
    desk.put(lends("blue", 4, None))
    desk.settle()
    desk.put(lends("blue", 4))
    assert desk.ask(asks("b", "blue", 6), asks("c", "blue", 5)) == ["c"]
    assert desk.home("blue") == ["cohort.lab"]


def test_a_queue_that_is_made_anew_comes_back_into_its_cohort() -> None:
    """Simulation, CohortWorld seed 31: it was marked as gone, and nobody took it in again."""
    desk = CohortDesk(BLUE, RED)
    desk.run(asks("a", "blue", 3))
    desk.remove("blue")
    desk.settle()
    assert desk.home("blue") == []
    desk.put(BLUE)
    assert desk.ask(asks("b", "blue", 6), asks("c", "blue", 5)) == ["c"]
    assert desk.home("blue") == ["cohort.lab"]


def test_jobs_of_a_queue_that_is_gone_use_what_the_others_lend() -> None:
    desk = CohortDesk(BLUE, RED)
    desk.run(asks("a", "blue", 3))
    desk.remove("blue")
    desk.settle()
    assert desk.ask(asks("b", "red", 2), asks("c", "red", 1)) == ["c"]


def test_what_is_held_is_found_as_long_as_it_is_when_the_queue_is_gone() -> None:
    """Simulation, RivalCohortWorld seed 1065: its own record went, which says where that is."""
    desk = CohortDesk(BLUE, RED)
    desk.run(asks("a", "blue", 3))
    desk.remove("blue")
    desk.settle()
    assert desk.quotas.get(Key("QueueQuota", "", "queue.blue")) is not None
    running = desk.jobs.get(asks("a", "blue").key)
    assert running is not None
    desk.put(replace(running, status=over(running).status))
    desk.settle_later()
    assert sorted(record.metadata.name for record in desk.quotas) == ["cohort.lab", "queue.red"]


def test_a_queue_whose_own_record_was_removed_comes_back() -> None:
    """Simulation, CohortWorld seed 1015: granted from a record of which its own knew nothing."""
    desk = CohortDesk(BLUE, RED)
    desk.run(asks("a", "blue", 3))
    desk.forget("queue.blue")
    assert desk.ask(asks("b", "blue", 6), asks("c", "blue", 5)) == ["c"]
    assert desk.home("blue") == ["cohort.lab"]


def test_the_record_of_a_cohort_goes_with_its_last_queue() -> None:
    desk = CohortDesk(BLUE, RED)
    desk.put(lends("blue", 4, None), lends("red", 4, "den"))
    desk.settle()
    assert sorted(record.metadata.name for record in desk.quotas) == [
        "cohort.den",
        "queue.blue",
        "queue.red",
    ]


def test_who_had_too_little_is_looked_at_when_the_cohort_has_more() -> None:
    desk = CohortDesk(BLUE)
    assert desk.ask(asks("a", "blue", 6)) == []
    desk.put(RED)
    desk.settle()
    assert desk.granted == ["a"]
