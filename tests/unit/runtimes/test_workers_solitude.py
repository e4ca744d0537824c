"""Suspects: what may have killed its worker is run with nothing beside it, and told apart."""

from __future__ import annotations

import pytest

from interlock.resources.tasks import ReportState, TaskId
from interlock.runtimes.workers.attempts import Worker
from interlock.runtimes.workers.placement import WAITS_AFTER_S
from interlock.runtimes.workers.protocol import Ref
from support.dispatcher_desk import LEASE_S, Desk


def busy(desk: Desk, *tasks: int, name: str = "w", concurrency: int = 4) -> Worker:
    """A worker that is at as many attempts."""
    worker = desk.worker(name, concurrency=concurrency)
    for number in tasks:
        desk.launch(f"beside-{number}")
    return worker


def two_busy(desk: Desk) -> list[Worker]:
    """Two workers that are at something each."""
    workers = [desk.worker(name, concurrency=4) for name in ("a", "b")]
    for number in range(2):
        desk.launch(f"beside-{number}")
    return workers


def test_it_is_told_whether_an_attempt_was_cut_off_beside_others() -> None:
    desk = Desk()
    alone, others = desk.worker("a"), desk.worker("b", "other", concurrency=2)
    one = desk.launch("one")
    two, three = (desk.launch(name, function="other") for name in ("two", "three"))
    desk.leave(alone)
    desk.leave(others)

    assert [desk.told[task].beside_others for task in (one, two, three)] == [False, True, True]


def test_what_is_still_done_there_in_vain_is_beside_it_too() -> None:
    desk = Desk()
    desk.worker("w", concurrency=2)
    first = desk.launch("first")
    desk.wait(LEASE_S / 2)
    second = desk.launch("second")
    desk.wait(LEASE_S)

    assert desk.told[first].interrupted
    assert desk.told[second].beside_others


def test_a_suspect_goes_to_a_worker_that_has_nothing_to_do() -> None:
    desk = Desk()
    at_work = busy(desk, 1)
    idle = desk.worker("idle", concurrency=4)
    task = desk.launch("suspect", alone=True)
    other = desk.launch("other")

    assert desk.has(idle) == [task]
    assert other in desk.has(at_work)
    desk.done(idle, task)
    assert desk.has(idle) == [task]
    last = [desk.launch(f"last-{n}") for n in range(3)]
    assert set(last) & set(desk.has(idle))


def test_a_worker_is_kept_free_until_a_suspect_can_be_alone_there() -> None:
    desk = Desk()
    worker = busy(desk, 1, 2)
    first, second = desk.has(worker)
    task = desk.launch("suspect", alone=True)
    later = desk.launch("later")
    desk.done(worker, first)
    assert desk.has(worker) == [first, second]
    desk.done(worker, second)
    assert desk.has(worker) == [first, second, task]

    desk.done(worker, task, error="no gear")

    assert desk.has(worker)[-1] == later


def test_one_worker_at_a_time_is_kept_free_and_others_if_it_takes_too_long() -> None:
    desk = Desk()
    workers = two_busy(desk)
    held = [desk.has(worker)[0] for worker in workers]
    suspects = [desk.launch(f"suspect-{n}", alone=True) for n in range(2)]
    assert sum(worker.kept_for is not None for worker in workers) == 1

    for _ in range(4):
        desk.wait(LEASE_S / 3)
        for worker, task in zip(workers, held, strict=True):
            desk.touch(worker, task)
    assert all(worker.kept_for is not None for worker in workers)
    desk.done(workers[1], held[1])
    desk.done(workers[0], held[0])

    for worker in workers:
        desk.record(*suspects)
        assert len(set(desk.has(worker)) & set(suspects)) == 1


@pytest.mark.parametrize("stops", [True, False])
def test_nobody_is_kept_free_for_what_goes_elsewhere(stops: bool) -> None:
    desk = Desk()
    worker = busy(desk, 1)
    task = desk.launch("suspect", alone=True)
    waits = desk.launch("waits")
    assert waits not in desk.has(worker)
    if stops:
        desk.stop(task)
    else:
        desk.worker("idle", concurrency=1)

    assert waits in desk.has(worker)
    assert desk.dispatcher.waiting == 0


def test_another_is_kept_free_when_that_worker_is_lost() -> None:
    desk = Desk()
    workers = two_busy(desk)
    desk.launch("suspect", alone=True)
    (kept,) = (worker for worker in workers if worker.kept_for is not None)
    (other,) = (worker for worker in workers if worker is not kept)
    desk.leave(kept)

    assert other.kept_for is not None


def cut_off_together(desk: Desk, name: str = "w") -> list[TaskId]:
    """Two attempts that were at one worker when that was lost."""
    worker = desk.worker(name, concurrency=2)
    tasks = [desk.launch(job) for job in ("one", "two")]
    desk.leave(worker)
    return tasks


@pytest.mark.parametrize("ordered_first", [True, False])
def test_who_comes_again_has_not_died_and_its_steps_need_not_be_alone(
    ordered_first: bool,
) -> None:
    desk = Desk()
    cut = cut_off_together(desk)
    held = tuple(Ref(*task) for task in cut)
    if not ordered_first:
        worker = desk.worker("w", concurrency=4, held=held)
    again = [desk.launch(job, attempt=1, alone=True) for job in ("one", "two")]
    if ordered_first:
        worker = desk.worker("w", concurrency=4, held=held)
    desk.record(*again)

    assert desk.has(worker) == again


def test_a_second_time_they_are_run_alone() -> None:
    """Whatever hangs its process up again and again is found out too."""
    desk = Desk()
    cut_off_together(desk)
    worker = desk.worker("w", concurrency=4)
    for job in ("one", "two"):
        desk.launch(job, attempt=1, alone=True)
    desk.leave(worker)
    worker = desk.worker("w", concurrency=4)
    again = [desk.launch(job, attempt=2, alone=True) for job in ("one", "two")]

    assert desk.has(worker) == again[:1]


def test_why_a_suspect_waits_is_told() -> None:
    desk = Desk()
    busy(desk, 1)
    task = desk.launch("suspect", alone=True)
    desk.wait(WAITS_AFTER_S)

    assert desk.told[task].message == (
        "no worker that has loaded make has nothing else to do: it was cut off beside others,"
        " and is run alone"
    )
    assert desk.state(task) is ReportState.ACCEPTED
