"""Preemption: who has to make room for whom, and who may use what comes free."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.admission.eviction import decide_eviction
from interlock.resources.actions import RecordAdmission
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, EvictionReason
from interlock.resources.job import Job
from interlock.resources.queue import Preemption, PreemptionPolicy, Queue, QueueOrder
from interlock.resources.steps import Target
from interlock.resources.transitions import with_admission
from interlock.testing.builders import T0
from support.queue_desk import Desk, a_queue, a_record, newer, runs, waits

LOWER, NEWER = PreemptionPolicy.LOWER_PRIORITY, PreemptionPolicy.LOWER_OR_NEWER_EQUAL_PRIORITY


def a_strong_queue(
    policy: PreemptionPolicy = LOWER, order: QueueOrder = QueueOrder.BEST_EFFORT_FIFO
) -> Queue:
    queue = a_queue(order)
    return replace(queue, spec=replace(queue.spec, preemption=Preemption(within_queue=policy)))


def desk_with(queue: Queue, running: list[Job], waiting: list[Job]) -> Desk:
    """A Queue in which some Jobs run, let in one after the other, and others wait."""
    desk = Desk(queue, a_record())
    for job in running:
        desk.put(job)
        assert desk.grants()
        token = desk.record().status.last_token
        tasks = job.spec.parallelism.count or 1 if job.spec.parallelism else 1
        desk.put(runs(job, tasks, token=token))
    for job in waiting:
        desk.put(job)
    return desk


def victims(desk: Desk) -> list[str]:
    """Who is put back by one look."""
    found = []
    for action in desk.look().actions:
        if isinstance(action, RecordAdmission):
            assert action.admission.phase is AdmissionPhase.EVICTING
            assert action.admission.eviction is not None
            assert action.admission.eviction.reason is EvictionReason.PREEMPTED
            found.append(action.job.metadata.name)
            status = with_admission(action.job, action.admission, T0)
            desk.put(newer(action.job, status))
    return found


CASES: list[tuple[str, Queue, list[Job], list[Job], list[str]]] = [
    (
        "the lowest priority first",
        a_strong_queue(),
        [waits("a", 1, 2, priority=1), waits("b", 2, 2)],
        [waits("c", 3, 2, priority=5)],
        ["b"],
    ),
    (
        "of equals whoever was let in last",
        a_strong_queue(),
        [waits("a", 1, 2), waits("b", 2, 2)],
        [waits("c", 3, 2, priority=5)],
        ["b"],
    ),
    (
        "as many as are needed",
        a_strong_queue(),
        [waits("a", 1, 2), waits("b", 2, 2)],
        [waits("c", 3, 4, priority=5)],
        ["b", "a"],
    ),
    (
        "and none in vain",
        a_strong_queue(),
        [waits("a", 1, 3, priority=1), waits("b", 2)],
        [waits("c", 3, 3, priority=5)],
        ["a"],
    ),
    (
        "nobody where it would not be enough",
        a_strong_queue(),
        [waits("a", 1, 2, priority=9), waits("b", 2, 2)],
        [waits("c", 3, 3, priority=5)],
        [],
    ),
    (
        "nobody of the same priority",
        a_strong_queue(),
        [waits("a", 2, 4)],
        [waits("c", 1, 4)],
        [],
    ),
    (
        "but one that came later, where the queue says so",
        a_strong_queue(NEWER),
        [waits("a", 2, 4)],
        [waits("c", 1, 4)],
        ["a"],
    ),
    (
        "nobody that came before",
        a_strong_queue(NEWER),
        [waits("a", 1, 4)],
        [waits("c", 2, 4)],
        [],
    ),
    (
        "nobody where the queue does not say so",
        a_queue(),
        [waits("a", 1, 4)],
        [waits("c", 2, 4, priority=5)],
        [],
    ),
    (
        "nobody that keeps its turn",
        a_strong_queue(),
        [waits("a", 1, 4, target=Target(path="x"))],
        [waits("c", 2, 4, priority=5)],
        [],
    ),
    (
        "nobody for what finds room",
        a_strong_queue(),
        [waits("a", 1, 2)],
        [waits("c", 2, 2, priority=5)],
        [],
    ),
    (
        "for all its tasks, though it would start with fewer",
        a_strong_queue(),
        [waits("a", 1, 2)],
        [waits("c", 2, 1, 4, min_parallelism=1, priority=5)],
        ["a"],
    ),
]


@pytest.mark.parametrize(
    ("queue", "running", "waiting", "put_back"),
    [row[1:] for row in CASES],
    ids=[row[0] for row in CASES],
)
def test_those_who_come_last_make_room(
    queue: Queue, running: list[Job], waiting: list[Job], put_back: list[str]
) -> None:
    assert victims(desk_with(queue, running, waiting)) == put_back


def test_nobody_is_put_back_twice_for_the_same_room() -> None:
    desk = desk_with(
        a_strong_queue(),
        [waits("a", 1, 2), waits("b", 2, 2)],
        [waits("c", 3, 2, priority=5)],
    )
    assert victims(desk) == ["b"]
    assert victims(desk) == []
    assert not desk.look().actions


def test_what_comes_free_is_kept_for_whom_it_comes_free() -> None:
    """Two small ones behind a large one would take it piece by piece for ever."""
    desk = desk_with(
        a_strong_queue(),
        [waits("a", 1), waits("b", 2, 2)],
        [waits("c", 3, 4, priority=5), waits("d", 4, priority=1)],
    )
    assert victims(desk) == ["b", "a"]
    # One of four is free all the time, and d would fit.
    assert desk.grants() == []


def test_what_is_left_beside_goes_to_others() -> None:
    desk = desk_with(
        a_strong_queue(),
        [waits("b", 2, 3)],
        [waits("c", 3, 2, priority=5), waits("d", 4, priority=1), waits("e", 5, 1)],
    )
    assert victims(desk) == ["b"]
    assert desk.grants() == ["dx1"]


def test_whoever_has_to_make_way_keeps_its_place() -> None:
    admission = AdmissionStatus(sequence=7, phase=AdmissionPhase.ADMITTED)
    job = waits("a", 7)
    desk = desk_with(a_strong_queue(), [replace(job)], [waits("c", 9, 4, priority=5)])
    assert victims(desk) == ["a"]
    evicting = desk.caches["Job"].get(job.key)
    assert evicting is not None
    [action] = decide_eviction(evicting, T0).actions
    assert isinstance(action, RecordAdmission)
    assert action.admission.phase is AdmissionPhase.WAITING
    assert action.admission.sequence == admission.sequence
    assert action.admission.epoch == evicting.status.admission.epoch + 1
