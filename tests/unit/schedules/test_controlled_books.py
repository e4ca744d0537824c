"""A Job that is not in the books never starts; crashes, late writes and rivals change nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from interlock.resources.actions import CreateJob, RecordStatus
from interlock.resources.job import WhenTaken
from interlock.resources.schedule import RUN_ID_ANNOTATION, controlled_lock
from interlock.resources.transitions import is_admitted
from interlock.schedules.controlled.decide import decide_controlled
from interlock.schedules.controlled.making import make_job
from interlock.testing.builders import a_job
from interlock.testing.controlled_builders import (
    a_controlled,
    a_run,
    a_view,
    a_window,
    in_books,
    made,
    moment,
    removed,
    status_in,
    told_to_stop,
)
from support.controlled_desk import ControlledDesk

MON, TUE = "2026-01-05", "2026-01-06"
START = moment(f"{MON} 09:00")
W = a_controlled()


def name(number: int) -> str:
    return f"engine-{int(START.timestamp())}-{number}"


@pytest.fixture
def desk() -> ControlledDesk:
    desk = ControlledDesk(W, at=moment(f"{MON} 08:00"))
    desk.settle()
    desk.at(START)
    return desk


def test_a_job_is_made_first_and_starts_once_it_is_written_down(desk: ControlledDesk) -> None:
    first = desk.look()
    desk.plane.admit(desk.now)

    assert [type(action) for action in first.actions] == [CreateJob]
    assert desk.live == []
    second = desk.look()
    desk.plane.admit(desk.now)
    assert RecordStatus in [type(action) for action in second.actions]
    assert desk.live == [name(0)]


def test_a_crash_between_the_job_and_the_books_makes_no_second_job(desk: ControlledDesk) -> None:
    desk.look()
    restarted = desk.a_plane()
    desk.plane = restarted

    desk.settle()

    assert list(desk.jobs) == [name(0)]
    assert desk.live == [name(0)]


def test_two_planes_that_both_decide_make_one_job(desk: ControlledDesk) -> None:
    rival = desk.a_plane()
    rival.hear()
    decision = rival.look(desk.now)
    desk.look()

    assert rival.apply(decision) is False
    desk.settle()
    assert list(desk.jobs) == [name(0)]


def test_a_late_create_of_an_old_view_never_runs_and_is_cleared_away(desk: ControlledDesk) -> None:
    rival = desk.a_plane()
    rival.hear()
    late = rival.look(desk.now)
    desk.settle()
    desk.end(name(0))
    desk.settle()
    desk.delete(name(0))
    desk.settle()

    assert rival.apply(late) is True
    assert list(desk.jobs) == [name(0)]
    desk.plane.admit(desk.now)
    assert desk.live == []
    desk.settle()

    assert desk.jobs == {}
    window = desk.controlled.status.window
    assert window is not None
    assert window.outcome == "Finished"


def test_a_job_made_from_a_view_that_did_not_know_the_end_does_not_run_the_window_again(
    desk: ControlledDesk,
) -> None:
    """The rival sees that the Job is gone, and not that it had finished."""
    desk.settle()
    desk.end(name(0))
    desk.plane.hear()
    desk.delete(name(0))
    desk.work()
    rival = desk.a_plane()
    rival.hear()
    late = rival.look(desk.now)
    assert [job.metadata.name for job in made(late)] == [name(1)]
    desk.settle()

    assert rival.apply(late)
    desk.settle()

    assert (desk.live, desk.jobs) == ([], {})


def test_a_job_made_from_an_old_view_does_not_take_the_place_of_one_that_runs(
    desk: ControlledDesk,
) -> None:
    desk.settle()
    desk.put(make_job(desk.controlled, start=START, number=9, stop=None))

    desk.settle()

    assert desk.live == [name(0)]
    assert list(desk.jobs) == [name(0)]


def test_a_late_create_for_a_window_that_closed_is_cleared_away(desk: ControlledDesk) -> None:
    desk.look()
    desk.at(moment(f"{MON} 17:00"))

    desk.settle()

    assert desk.jobs == {}
    # Its number is not used again.
    desk.settle_at(moment(f"{TUE} 09:00"))
    (job,) = desk.jobs.values()
    assert job.metadata.annotations[RUN_ID_ANNOTATION] == "1"


def test_numbers_are_never_used_again_even_when_what_had_them_never_ran(
    desk: ControlledDesk,
) -> None:
    desk.look()
    desk.edit(suspend=True)
    desk.settle()
    assert desk.jobs == {}
    desk.edit(suspend=False)
    desk.settle()

    assert desk.live == [name(1)]


def test_somebody_elses_job_of_the_name_does_not_take_the_windows_place(
    desk: ControlledDesk,
) -> None:
    desk.put(a_job(name(0)))

    desk.settle()

    assert [each for each in desk.live if each != name(0)] == [name(1)]


def test_an_entry_leaves_the_books_once_its_job_was_let_in(desk: ControlledDesk) -> None:
    desk.settle()

    assert desk.controlled.status.books.expected == ()


def test_a_job_that_was_not_heard_of_yet_is_not_taken_for_gone() -> None:
    """A new leader may hear of the books before it hears of the Job."""
    job = a_run(W, f"{MON} 09:00", 0, "Waiting")
    first = decide_controlled(a_view(W, job), START)
    status = status_in(first)
    assert status is not None
    knowing = replace(W, status=status)

    blind = decide_controlled(a_view(knowing, heard_to=99), START)
    sure = decide_controlled(a_view(knowing, heard_to=100), START)

    assert made(blind) == []
    assert status_in(blind) is None
    assert blind.wake_at == START + timedelta(seconds=1)
    assert [each.metadata.name for each in made(sure)] == [name(1)]


def test_a_stray_is_deleted_after_its_number_is_written_down() -> None:
    stray = a_run(W, f"{MON} 09:00", 7, "Waiting")
    outside = moment(f"{MON} 18:00")

    decision = decide_controlled(a_view(W, stray), outside)

    assert removed(decision) == [stray.metadata.name]
    assert told_to_stop(decision) == []
    status = status_in(decision)
    assert status is not None
    assert status.last_run_id == 7
    kinds = [type(action).__name__ for action in decision.actions]
    assert kinds.index("RecordStatus") < kinds.index("DeleteResource")


def test_two_unwritten_jobs_of_one_number_come_to_one() -> None:
    """Two planes with different plans may make Jobs of the same number and other names."""
    mine, other = (a_run(W, f"{MON} {hour}", 0, "Waiting") for hour in ("09:00", "08:00"))

    decision = decide_controlled(a_view(W, mine, other), START)

    status = status_in(decision)
    assert status is not None
    (expected,) = status.books.expected
    assert removed(decision) == sorted({mine.metadata.name, other.metadata.name} - {expected.name})


def test_a_job_in_the_books_that_waits_is_no_stray() -> None:
    job = a_run(W, f"{MON} 09:00", 0, "Waiting", stop=f"{MON} 17:00")
    controlled = in_books(W, job)
    known = replace(controlled, status=replace(controlled.status, last_run_id=0))

    decision = decide_controlled(a_view(known, job), START)

    assert removed(decision) == []
    assert made(decision) == []


def test_defect_24_a_job_put_together_by_hand_waits_until_it_has_the_lock(
    desk: ControlledDesk,
) -> None:
    desk.settle()
    by_hand = make_job(desk.controlled, start=START, number=5, stop=None, is_manual=True)
    by_hand = replace(
        by_hand,
        metadata=replace(by_hand.metadata, name="mine"),
        spec=replace(by_hand.spec, locks=()),
    )
    desk.put(by_hand)
    desk.plane.admit(desk.now)
    assert not is_admitted(desk.jobs["mine"])

    desk.stubborn.add(name(0))
    desk.settle()
    assert desk.live == [name(0)]
    desk.stubborn.clear()
    desk.settle()

    assert desk.live == ["mine"]
    (lock,) = desk.jobs["mine"].spec.locks
    assert (lock.key, lock.when_taken) == (controlled_lock("engine"), WhenTaken.ENQUEUE)


def test_defect_25_a_namesake_that_was_deleted_leaves_no_run_to_its_successor(
    desk: ControlledDesk,
) -> None:
    desk.settle()
    orphan = desk.jobs[name(0)]
    metadata = replace(W.metadata, name="engine")
    heir = replace(W, metadata=replace(metadata, uid="uid-heir"))

    (new,) = made(decide_controlled(a_view(heir, foreign=frozenset({name(0)})), START))

    assert new.metadata.name == name(1)
    # It still waits for what its namesake left running: they share the lock.
    assert new.spec.locks == orphan.spec.locks


def test_an_edit_between_the_job_and_the_books_leaves_nothing_behind(
    desk: ControlledDesk,
) -> None:
    desk.look()
    desk.edit(windows=(a_window("13:00-17:00"),))
    desk.settle()

    assert desk.jobs == {}
    desk.settle_at(moment(f"{MON} 13:00"))
    assert len(desk.live) == 1
