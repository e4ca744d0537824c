"""The cycle: who of a line is granted room, on one view."""

from __future__ import annotations

import pytest

from interlock.admission.queues.cycle import MOST_GRANTS
from interlock.admission.queues.desk import QueueDesk
from interlock.admission.queues.record import KEPT_ON_RECORD
from interlock.control.cache import Cache
from interlock.resources.actions import CreateResource, DeleteResource
from interlock.resources.job import Job
from interlock.resources.lock import Lock
from interlock.resources.metadata import Key
from interlock.resources.namespace_selector import NamespaceSelector
from interlock.resources.queue import (
    Queue,
    QueueOrder,
    StopPolicy,
)
from interlock.resources.steps import Target
from interlock.resources.values.amounts import Amount
from interlock.testing.builders import T0, a_holder, a_job, a_lock, a_request
from support.queue_desk import BLUE, Desk, a_queue, a_record, newer, over, runs, waits

STRICT, BEST = QueueOrder.STRICT_FIFO, QueueOrder.BEST_EFFORT_FIFO


LINES: list[tuple[str, Queue, list[Job], list[str]]] = [
    ("one that fits", a_queue(), [waits("a", 1)], ["ax1"]),
    (
        "many in one write",
        a_queue(),
        [waits(n, i) for i, n in enumerate("abc", 1)],
        ["ax1", "bx1", "cx1"],
    ),
    ("all tasks of one", a_queue(), [waits("a", 1, tasks=4)], ["ax4"]),
    ("not a part of its tasks", a_queue(), [waits("a", 1, tasks=5)], []),
    ("a part, where it says so", a_queue(), [waits("a", 1, tasks=6, min_parallelism=2)], ["ax4"]),
    ("but not too small a part", a_queue(), [waits("a", 1, tasks=6, min_parallelism=5)], []),
    (
        "to a thousandth",
        a_queue(gpu="1500m"),
        [waits("a", 1, "500m", 3), waits("b", 2, "1m")],
        ["ax3"],
    ),
    ("the older first", a_queue(gpu=1), [waits("b", 2), waits("a", 1)], ["ax1"]),
    (
        "a higher priority first",
        a_queue(gpu=1),
        [waits("a", 1), waits("b", 2, priority=5)],
        ["bx1"],
    ),
    (
        "strict: the large one holds up",
        a_queue(STRICT),
        [waits("a", 1, 3), waits("b", 2, 3), waits("c", 3)],
        ["ax1"],
    ),
    (
        "best effort: the small one goes",
        a_queue(),
        [waits("a", 1, 3), waits("b", 2, 3), waits("c", 3)],
        ["ax1", "cx1"],
    ),
    (
        "strict: what can never fit holds up nobody",
        a_queue(STRICT),
        [waits("a", 1, 9), waits("b", 2)],
        ["bx1"],
    ),
    ("held", a_queue(stop=StopPolicy.HOLD), [waits("a", 1)], []),
    ("drained", a_queue(stop=StopPolicy.HOLD_AND_DRAIN), [waits("a", 1)], []),
    (
        "not for its namespace",
        a_queue(selector=NamespaceSelector(match_names=("x",))),
        [waits("a", 1)],
        [],
    ),
    (
        "for its namespace",
        a_queue(selector=NamespaceSelector(match_names=("default",))),
        [waits("a", 1)],
        ["ax1"],
    ),
    ("a resource that is not there", a_queue(cpu=4), [waits("a", 1)], []),
    (
        "tasks are counted",
        a_queue(tasks=2),
        [waits(n, i, 0) for i, n in enumerate("abc", 1)],
        ["ax1", "bx1"],
    ),
    ("tasks are free where nobody counts them", a_queue(), [waits("a", 1, 0, tasks=99)], ["ax99"]),
    (
        "one that is suspended",
        a_queue(gpu=1),
        [waits("a", 1, suspend=True), waits("b", 2)],
        ["bx1"],
    ),
    (
        "one that is not active",
        a_queue(gpu=1),
        [waits("a", 1, active=False), waits("b", 2)],
        ["bx1"],
    ),
    (
        "a lock is promised once",
        a_queue(),
        [waits(n, i, locks=(a_request(),)) for i, n in enumerate("ab", 1)],
        ["ax1"],
    ),
    (
        "as often as it has room",
        a_queue(),
        [waits(n, i, locks=(a_request(limit=2),)) for i, n in enumerate("abc", 1)],
        ["ax1", "bx1"],
    ),
]


@pytest.mark.parametrize(
    ("queue", "jobs", "granted"), [row[1:] for row in LINES], ids=[row[0] for row in LINES]
)
def test_room_goes_to_those_who_fit_in_their_order(
    queue: Queue, jobs: list[Job], granted: list[str]
) -> None:
    assert Desk(queue, a_record(), *jobs).grants() == granted


def test_the_record_is_made_when_somebody_wants_a_part() -> None:
    desk = Desk(a_queue())
    assert not desk.look().actions
    assert BLUE in desk.put(waits("a", 1))
    assert [type(each) for each in desk.look().actions] == [CreateResource]


def test_no_record_is_made_for_a_queue_that_is_not_there() -> None:
    assert not Desk(waits("a", 1)).look().actions


@pytest.mark.parametrize(
    ("tasks", "done", "granted"), [(4, 0, []), (4, 1, ["bx1"]), (4, 3, ["bx1", "cx1", "dx1"])]
)
def test_room_comes_free_as_tasks_of_a_wide_job_end(
    tasks: int, done: int, granted: list[str]
) -> None:
    wide = waits("a", 1, tasks=tasks)
    desk = Desk(a_queue(), a_record(), wide)
    assert desk.grants() == ["ax4"]
    desk.put(runs(wide, tasks))
    for at, name in enumerate("bcd", 2):
        desk.put(waits(name, at))
    assert desk.grants() == []

    woken = desk.put(newer(runs(wide, tasks), runs(wide, tasks, done).status))
    assert (BLUE in woken) is (done > 0)
    assert desk.grants() == granted


def test_who_is_over_makes_room_and_leaves_the_record_in_the_same_write() -> None:
    first = waits("a", 1, 4)
    desk = Desk(a_queue(), a_record(), first, waits("b", 2, 4))
    assert desk.grants() == ["ax1"]
    assert BLUE in desk.put(over(first))
    assert desk.grants() == ["bx1"]
    assert [holder.job for holder in desk.record().status.holders] == ["b"]


def test_who_is_over_leaves_the_record_a_moment_later_where_nobody_wants_the_room() -> None:
    first = waits("a", 1)
    desk = Desk(a_queue(), a_record(), first)
    desk.grants()
    desk.put(over(first))
    assert desk.look().wake_at == T0 + KEPT_ON_RECORD
    desk.put(newer(over(first), over(first, ended=5).status))
    assert desk.grants() == []
    assert desk.record().status.holders == ()


def test_a_job_that_nothing_is_heard_of_holds() -> None:
    first = waits("a", 1, 4)
    desk = Desk(a_queue(), a_record(), first, waits("b", 2))
    desk.grants()
    jobs = desk.caches["Job"]
    jobs.drop(first.key, 5)
    jobs.version = 0
    assert desk.look().wake_at is not None
    assert desk.grants() == []


def test_a_lock_that_is_taken_keeps_alike_jobs_waiting_and_nobody_else() -> None:
    holder = a_job("other", locks=(a_request(),))
    lock = a_lock(holders=(a_holder(holder),))
    locked = [waits(n, i, locks=(a_request(),)) for i, n in enumerate("ab", 1)]
    desk = Desk(a_queue(STRICT), a_record(), holder, lock, *locked, waits("c", 3))
    assert desk.grants() == ["cx1"]


def test_a_lock_that_comes_free_wakes_the_queue() -> None:
    holder = a_job("other", locks=(a_request(),))
    lock = a_lock(holders=(a_holder(holder),), version=2)
    desk = Desk(a_queue(), a_record(), holder, lock, waits("a", 1, locks=(a_request(),)))
    assert desk.grants() == []
    free: Lock = a_lock(version=2000)
    assert BLUE in desk.put(free)
    assert desk.grants() == ["ax1"]


def test_an_older_queue_than_the_record_knows_lets_nobody_in() -> None:
    desk = Desk(a_queue(version=7), a_record(), waits("a", 1))
    assert desk.grants() == ["ax1"]
    assert desk.record().status.members[0].version == 7

    behind = Desk(a_queue(version=6), desk.record(), waits("b", 2))
    assert behind.grants() == []
    assert behind.record().status.members[0].version == 7


def test_what_a_queue_allows_now_is_written_at_once() -> None:
    desk = Desk(a_queue(), a_record(), waits("a", 1))
    desk.grants()
    assert BLUE in desk.put(a_queue(version=9, gpu=1))
    assert desk.grants() == []
    assert desk.record().status.members[0].limits == {"gpu": Amount.read(1)}


def test_less_than_is_held_lets_nobody_in_until_enough_is_gone() -> None:
    held = [waits(name, at) for at, name in enumerate("abcd", 1)]
    desk = Desk(a_queue(), a_record(), *held)
    assert len(desk.grants()) == 4
    desk.put(a_queue(version=9, gpu=2))
    desk.put(waits("e", 5))
    for job in held[:2]:
        desk.put(over(job))
        assert desk.grants() == []
    desk.put(over(held[2]))
    assert desk.grants() == ["ex1"]


def test_a_long_line_is_let_in_part_by_part() -> None:
    many = [waits(f"j{at:04}", at) for at in range(1, MOST_GRANTS + 10)]
    desk = Desk(a_queue(gpu=9999), a_record(), *many)
    assert desk.look().wake_at == T0
    assert len(desk.grants()) == MOST_GRANTS
    assert len(desk.grants()) == 9


def test_tokens_rise() -> None:
    first = waits("a", 1)
    desk = Desk(a_queue(gpu=2), a_record(), first, waits("b", 2))
    desk.grants()
    tokens = [holder.token for holder in desk.record().status.holders]
    desk.put(over(first))
    desk.put(waits("c", 3))
    desk.grants()
    tokens += [holder.token for holder in desk.record().status.holders if holder.job == "c"]
    assert tokens == sorted(set(tokens))


def test_the_record_goes_with_its_queue_once_nobody_holds_any() -> None:
    desk = Desk(a_queue(), a_record())
    queues = desk.caches["Queue"]
    queues.drop(Key("Queue", "", "blue"), 2000)
    assert [type(each) for each in desk.look().actions] == [DeleteResource]


def test_of_other_namespaces_nothing_is_proven_where_one_is_known() -> None:
    """A control plane that hears of one namespace alone takes nobody else off the record."""
    desk = Desk(a_queue(), a_record(), waits("a", 1, 4))
    desk.grants()
    quotas = desk.caches["QueueQuota"]
    alone = QueueDesk(Cache("Job"), desk.caches["Queue"], quotas, "elsewhere")
    alone._known.jobs.settle(10_000)  # type: ignore[attr-defined]
    assert not alone.decide(BLUE, lambda _, __: True, T0).actions


def test_the_line_of_a_target_is_looked_at_once_room_is_granted() -> None:
    """It stood in that line before, so nothing else would be news to it."""
    desk = Desk(a_queue(), a_record(), waits("a", 1, target=Target(path="orders/20")))
    assert desk.grants() == ["ax1"]
    assert "Lock" in [key.kind for key in desk.woken]
