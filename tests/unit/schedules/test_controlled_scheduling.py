"""Who is made and who is told to stop, row by row of the reference's own scenarios.

"Deleted" there is "told to stop" here: the Job and its end stay to be looked at.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.resources.actions import ReviseJob
from interlock.resources.controlled_job import (
    ControlledJob,
    Override,
    OverrideAction,
    WindowOutcome,
)
from interlock.resources.job import CREATOR_ANNOTATION, JOB_FINALIZER, Job, WhenTaken
from interlock.resources.schedule import (
    RUN_ID_ANNOTATION,
    SCHEDULED_AT_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    STOPPED_BY_ANNOTATION,
    TAKES_OVER_ANNOTATION,
    TAKES_OVER_BECAUSE_ANNOTATION,
    controlled_lock,
)
from interlock.schedules.controlled.decide import decide_controlled
from interlock.testing.controlled_builders import (
    OLD_HASH,
    a_controlled,
    a_run,
    a_view,
    a_window,
    an_event,
    conditions_of,
    in_books,
    made,
    moment,
    moved,
    removed,
    status_in,
    told_to_stop,
)

SUN, MON, TUE = "2026-01-04", "2026-01-05", "2026-01-06"
W = a_controlled()
RECREATE = a_controlled(policy="Recreate")
NO_EVENTS = replace(W, spec=replace(W.spec, windows=()))
STOP_ONLY = a_controlled(an_event("stop", "17:00", "MON-FRI"))
TORONTO = a_controlled(a_window("09:00-17:00", "MON-FRI"), zone="America/Toronto")


def test_s1_outside_a_window_nothing_is_made() -> None:
    decision = decide_controlled(a_view(W), moment(f"{MON} 07:12"))

    assert made(decision) == []
    assert told_to_stop(decision) == []
    assert decision.wake_at == moment(f"{MON} 09:00")


def test_s2_outside_a_window_only_what_a_person_started_since_the_stop_is_left_alone() -> None:
    before = a_run(W, f"{SUN} 09:00", 0)
    after = a_run(W, f"{SUN} 20:00", 1)
    manual = a_run(W, f"{MON} 06:00", 2, manual=True)

    decision = decide_controlled(a_view(W, before, after, manual), moment(f"{MON} 07:12"))

    assert told_to_stop(decision) == sorted([before.metadata.name, after.metadata.name])
    assert made(decision) == []
    # It goes on until the next stop, whoever looks.
    assert moved(decision)[manual.metadata.name].kill_at == moment(f"{MON} 17:00")


def test_s3_exactly_at_the_start_a_job_is_made_as_the_template_says() -> None:
    (job,) = made(decide_controlled(a_view(W), moment(f"{MON} 09:00")))

    at = int(moment(f"{MON} 09:00").timestamp())
    assert job.metadata.name == f"engine-{at}-0"
    assert job.metadata.annotations[SCHEDULED_AT_ANNOTATION] == "2026-01-05T09:00:00Z"
    assert job.metadata.annotations[RUN_ID_ANNOTATION] == "0"
    (owner,) = job.metadata.owner_references
    assert (owner.kind, owner.uid) == ("ControlledJob", W.metadata.uid)
    assert owner.controller is owner.block_owner_deletion is True
    assert job.metadata.finalizers == (JOB_FINALIZER,)
    template = W.spec.job_template.spec
    assert replace(job.spec, kill_at=None, locks=()) == template
    assert not job.spec.suspend
    (lock,) = job.spec.locks
    assert (lock.key, lock.limit, lock.when_taken) == (
        controlled_lock("engine"), 1, WhenTaken.ENQUEUE,
    )  # fmt: skip
    # The stop is kept even if nobody ever looks again.
    assert job.spec.kill_at == moment(f"{MON} 17:00")


def test_s4_within_the_deadline_a_job_is_made_and_it_is_told_that_it_is_in_time() -> None:
    controlled = a_controlled(start_by="30s")
    now = moment(f"{MON} 09:00:15")

    (job,) = made(decide_controlled(a_view(controlled), now))
    stored = replace(job, metadata=replace(job.metadata, uid="uid-0", resource_version="5"))
    status = status_in(decide_controlled(a_view(controlled, stored), now))

    assert status is not None
    assert conditions_of(status)["StartingDeadlineExceeded"].status == "False"


@pytest.mark.parametrize(
    ("offset", "starts", "wakes"),
    [
        pytest.param(0, ["2022-04-22T13:00:00Z"], "2022-04-22 21:00", id="Z1 Toronto"),
        pytest.param(-120, [], "2022-04-22 13:02", id="Z2 two minutes later"),
    ],
)
def test_z_the_zone_says_when_it_starts_and_when_to_look_again(
    offset: int, starts: list[str], wakes: str
) -> None:
    zone = replace(TORONTO.spec.timezone, offset=offset)
    controlled = replace(TORONTO, spec=replace(TORONTO.spec, timezone=zone))

    decision = decide_controlled(a_view(controlled), moment("2022-04-22 13:01"))

    found = [job.metadata.annotations[SCHEDULED_AT_ANNOTATION] for job in made(decision)]
    assert found == starts
    assert decision.wake_at == moment(wakes)


@pytest.mark.parametrize(
    ("controlled", "start", "manual", "now", "stops"),
    [
        pytest.param(NO_EVENTS, f"{MON} 00:00", False, f"{MON} 09:00", True, id="M1 no events"),
        pytest.param(NO_EVENTS, f"{MON} 00:00", True, f"{MON} 09:00", False, id="M2 manual"),
        pytest.param(STOP_ONLY, f"{MON} 00:00", False, f"{MON} 09:00", True, id="M3 stop only"),
        pytest.param(STOP_ONLY, f"{MON} 00:00", True, f"{MON} 09:00", False, id="M4 manual"),
        pytest.param(STOP_ONLY, f"{MON} 00:00", True, f"{TUE} 00:00", True, id="M5 after the stop"),
    ],
)
def test_m_without_starts_only_what_a_person_started_goes_on_and_only_until_the_stop(
    controlled: ControlledJob, start: str, manual: bool, now: str, stops: bool
) -> None:
    job = a_run(controlled, start, manual=manual)

    decision = decide_controlled(a_view(controlled, job), moment(now))

    assert bool(told_to_stop(decision)) is stops
    assert made(decision) == []


@pytest.mark.parametrize(
    ("controlled", "template"),
    [
        pytest.param(W, None, id="L1 of the template"),
        pytest.param(W, OLD_HASH, id="L2 of an older one under Ignore"),
        pytest.param(RECREATE, OLD_HASH, id="L3 of an older one under Recreate"),
    ],
)
def test_a_job_that_is_suspended_stays_so_without_a_word_of_why(
    controlled: ControlledJob, template: str | None
) -> None:
    """The reference holds Jobs back itself, and lets those go that do not say otherwise.

    Here the lock holds them back: whoever is suspended was so by a person.
    """
    job = a_run(controlled, f"{MON} 09:00", template=template, suspend=True, stop=f"{MON} 17:00")

    decision = decide_controlled(a_view(controlled, job), moment(f"{MON} 12:12"))

    assert (made(decision), told_to_stop(decision), moved(decision)) == ([], [], {})
    status = status_in(decision)
    assert status is not None
    assert conditions_of(status)["JobStoppedByUser"].status == "True"


def test_r2_a_changed_template_replaces_the_job_and_the_old_one_stops_after_that() -> None:
    """The new one waits for the lock, not for a flag; a template that no Job can be made of
    stops nothing.
    """
    old = a_run(RECREATE, f"{MON} 09:00", 1, template=OLD_HASH)
    now = moment(f"{MON} 12:12")

    first = decide_controlled(a_view(RECREATE, old), now)

    (new,) = made(first)
    assert told_to_stop(first) == []
    assert new.metadata.name.endswith("-2")
    assert new.metadata.annotations[SCHEDULED_AT_ANNOTATION] == "2026-01-05T09:00:00Z"
    stored = replace(new, metadata=replace(new.metadata, uid="uid-new", resource_version="7"))
    second = decide_controlled(a_view(RECREATE, old, stored), now)
    assert told_to_stop(second) == [old.metadata.name]
    assert made(second) == []
    status = status_in(second)
    assert status is not None
    assert [each.uid for each in status.books.expected] == ["uid-new"]
    assert status.action_history[0].type == "JobRestarted"


def test_l4_a_job_that_is_being_deleted_is_not_told_again_and_not_replaced_before_it_is_gone() -> (
    None
):
    job = a_run(W, f"{MON} 09:00", going=True)

    decision = decide_controlled(a_view(W, job), moment(f"{MON} 12:12"))

    assert (made(decision), told_to_stop(decision), removed(decision)) == ([], [], [])


def test_l5_a_job_that_a_person_holds_back_is_left_alone_and_not_replaced() -> None:
    """The reference's own test forgets to set suspend; this one does not."""
    job = a_run(W, f"{MON} 09:00", suspend=True, user_stop=True, stop=f"{MON} 17:00")

    decision = decide_controlled(a_view(W, job), moment(f"{MON} 12:12"))

    assert (made(decision), told_to_stop(decision), moved(decision)) == ([], [], {})


def test_a_job_that_a_person_stops_before_it_is_in_the_books_is_not_made_again() -> None:
    """Whoever made it was killed before it was written down (RivalScheduleWorld, seed 43)."""
    job = a_run(W, f"{MON} 09:00", 0, "Waiting", user_stop=True, kill_at=moment(f"{MON} 12:00"))

    decision = decide_controlled(a_view(W, job), moment(f"{MON} 12:12"))

    assert (made(decision), removed(decision)) == ([], [])
    status = status_in(decision)
    assert status is not None
    assert status.window is not None
    assert status.window.outcome is WindowOutcome.STOPPED_BY_USER


def test_a_person_s_stop_holds_for_a_leader_whose_clock_is_behind() -> None:
    """Who takes it for one that is still to come would replace it (ScheduleWorld, seed 5073)."""
    job = a_run(
        RECREATE, f"{MON} 09:00", 0, "Running", template=OLD_HASH, user_stop=True,
        kill_at=moment(f"{MON} 13:00"), stop=f"{MON} 17:00",
    )  # fmt: skip

    decision = decide_controlled(a_view(RECREATE, job), moment(f"{MON} 12:12"))

    assert made(decision) == []


def test_l5_also_when_the_template_changes() -> None:
    job = a_run(
        RECREATE, f"{MON} 09:00", suspend=True, user_stop=True, template=OLD_HASH,
    )  # fmt: skip

    decision = decide_controlled(a_view(RECREATE, job), moment(f"{MON} 12:12"))

    assert (made(decision), told_to_stop(decision)) == ([], [])
    status = status_in(decision)
    assert status is not None
    assert conditions_of(status)["OutOfDate"].reason == "JobIsNotRunning"


def test_l5_also_when_it_is_not_in_the_books_and_a_hold_begins() -> None:
    """Removed as one of which nothing is lost, it would be made again (ScheduleWorld, 60022)."""
    job = a_run(W, f"{MON} 09:00", 0, "Waiting", suspend=True)
    hold = Override(
        action=OverrideAction.HOLD, begin=moment(f"{MON} 12:00"), until=moment(f"{MON} 13:00")
    )

    held = replace(W, spec=replace(W.spec, overrides=(hold,)))

    decision = decide_controlled(a_view(held, job), moment(f"{MON} 12:12"))

    assert removed(decision) == []


def test_l5_also_when_it_fails_while_it_is_held_back_and_the_template_changes() -> None:
    """It ran when a person suspended it, and then longer than it may (ScheduleWorld, seed 43)."""
    job = a_run(RECREATE, f"{MON} 09:00", 0, "Failed", suspend=True, template=OLD_HASH)

    decision = decide_controlled(a_view(RECREATE, job), moment(f"{MON} 12:12"))

    assert made(decision) == []


def test_l6_expired_jobs_that_are_not_over_stop_and_ended_ones_stay_to_be_looked_at() -> None:
    """The reference deletes everything at the stop, and with it what became of it."""
    held = a_run(W, f"{SUN} 09:00", 0, suspend=True)
    running = a_run(W, f"{SUN} 09:00", 1)
    done = a_run(W, f"{SUN} 09:00", 2, "Succeeded")

    decision = decide_controlled(a_view(W, held, running, done), moment(f"{MON} 12:12"))

    assert told_to_stop(decision) == sorted([held.metadata.name, running.metadata.name])
    assert removed(decision) == []


def _runs(*given: tuple[int, str, bool]) -> list[Job]:
    return [
        a_run(W, f"{MON} 09:00", number, template=None if kind == "new" else OLD_HASH, going=going)
        for number, kind, going in given
    ]


@pytest.mark.parametrize(
    ("given", "stopped"),
    [
        pytest.param([(0, "new", False), (1, "new", True)], [], id="L7"),
        pytest.param([(0, "new", False), (1, "old", False)], [1], id="L8"),
        pytest.param([(0, "old", False), (1, "new", True)], [], id="L9"),
        pytest.param(
            [(0, "old", False), (1, "new", True), (2, "new", False), (3, "new", False),
             (4, "new", False), (5, "old", False)], [0, 2, 3, 5], id="L10",
        ),
        pytest.param([(9, "new", False), (10, "new", False)], [9],
                     id="defect 20: the eleventh run is newer than the tenth"),
    ],
)  # fmt: skip
def test_l_one_job_is_chosen_and_the_others_are_told_to_stop(
    given: list[tuple[int, str, bool]], stopped: list[int]
) -> None:
    jobs = _runs(*given)

    decision = decide_controlled(a_view(W, *jobs), moment(f"{MON} 12:12"))

    found = sorted(int(name.rpartition("-")[2]) for name in told_to_stop(decision))
    assert found == stopped
    assert made(decision) == []


@pytest.mark.parametrize(
    ("controlled", "template", "state", "going"),
    [
        pytest.param(RECREATE, None, "Running", False, id="R1 running, as it is"),
        pytest.param(RECREATE, OLD_HASH, "Succeeded", False, id="R3 done"),
        pytest.param(RECREATE, OLD_HASH, "Running", True, id="R4 being deleted"),
        pytest.param(W, None, "Running", False, id="R5 Ignore, as it is"),
        pytest.param(W, OLD_HASH, "Running", False, id="R6 Ignore, changed"),
        pytest.param(W, OLD_HASH, "Succeeded", False, id="R7 Ignore, changed, done"),
    ],
)
def test_r_nothing_is_made_and_nothing_stops(
    controlled: ControlledJob, template: str | None, state: str, going: bool
) -> None:
    job = a_run(controlled, f"{MON} 09:00", 0, state, template=template, going=going)

    decision = decide_controlled(a_view(controlled, job), moment(f"{MON} 12:12"))

    assert (made(decision), told_to_stop(decision)) == ([], [])


def test_defect_20_a_completed_job_with_a_higher_number_does_not_evict_a_running_one() -> None:
    running, done = a_run(W, f"{MON} 09:00", 0), a_run(W, f"{MON} 09:00", 1, "Succeeded")

    decision = decide_controlled(a_view(W, running, done), moment(f"{MON} 12:12"))

    assert (told_to_stop(decision), made(decision)) == ([], [])


def test_defect_20_outside_a_window_a_scheduled_job_does_not_drag_manual_ones_down() -> None:
    manual, late = a_run(W, f"{MON} 06:00", 3, manual=True), a_run(W, f"{MON} 06:30", 4)

    decision = decide_controlled(a_view(W, manual, late), moment(f"{MON} 07:12"))

    assert told_to_stop(decision) == [late.metadata.name]


def test_a_manual_job_inside_a_window_is_the_windows_job() -> None:
    manual = a_run(W, f"{MON} 08:00", 0, manual=True)

    decision = decide_controlled(a_view(W, manual), moment(f"{MON} 09:00"))

    assert made(decision) == []
    status = status_in(decision)
    assert status is not None
    assert status.window is not None
    assert status.window.job is not None
    assert status.window.job.uid == manual.metadata.uid


def test_defect_24_a_manual_job_beside_a_running_one_takes_its_place_and_gets_the_lock() -> None:
    running = a_run(W, f"{MON} 09:00", 0)
    names = {"name": "mine", "uid": "uid-mine"}
    by_hand = a_run(W, f"{MON} 11:00", 0, "Waiting", manual=True, locks=(),
                    notes={RUN_ID_ANNOTATION: "-"}, metadata=names)  # fmt: skip

    decision = decide_controlled(a_view(W, running, by_hand), moment(f"{MON} 12:00"))

    assert told_to_stop(decision) == [running.metadata.name]
    assert [lock.key for lock in moved(decision)["mine"].locks] == [controlled_lock("engine")]


def test_a_manual_job_for_next_year_is_stopped_at_the_next_stop_all_the_same() -> None:
    manual = a_run(W, "2027-01-01 00:00", 0, manual=True,
                   metadata={"creation_timestamp": moment(f"{SUN} 20:00")})  # fmt: skip

    before = decide_controlled(a_view(W, manual), moment(f"{MON} 07:00"))
    after = decide_controlled(a_view(W, manual), moment(f"{MON} 17:30"))

    assert moved(before)[manual.metadata.name].kill_at == moment(f"{MON} 17:00")
    assert told_to_stop(after) == [manual.metadata.name]


@pytest.mark.parametrize(
    ("note", "stops"),
    [
        pytest.param("rubbish", True, id="cannot be read"),
        pytest.param("", True, id="empty"),
        pytest.param("2026-01-05T09:00:00", True, id="without a zone"),
        pytest.param("2026-01-04T17:00:00Z", False, id="exactly the last stop is not before it"),
        pytest.param("2026-01-04T16:59:59Z", True, id="before the last stop"),
    ],
)
def test_a_scheduled_time_that_cannot_be_read_counts_as_before_the_stop(
    note: str, stops: bool
) -> None:
    job = a_run(W, f"{MON} 09:00", notes={SCHEDULED_AT_ANNOTATION: note})

    decision = decide_controlled(a_view(W, job), moment(f"{MON} 12:00"))

    assert bool(told_to_stop(decision)) is stops


def test_defect_25_jobs_of_a_namesake_are_not_taken_for_ones_own() -> None:
    """Ownership is by identity: the view holds nobody else's Jobs, and a name is no obstacle."""
    at = int(moment(f"{MON} 09:00").timestamp())
    view = a_view(W, foreign=frozenset({f"engine-{at}-0"}))

    (job,) = made(decide_controlled(view, moment(f"{MON} 09:00")))

    assert job.metadata.name == f"engine-{at}-1"


def test_a_job_that_waits_in_the_books_when_it_must_stop_is_told_so() -> None:
    job = a_run(W, f"{SUN} 09:00", 0, "Waiting")

    decision = decide_controlled(a_view(in_books(W, job), job), moment(f"{MON} 07:00"))

    assert told_to_stop(decision) == [job.metadata.name]


def test_a_job_that_is_told_to_stop_is_told_why() -> None:
    job = a_run(W, f"{SUN} 09:00", 0)

    decision = decide_controlled(a_view(W, job), moment(f"{MON} 07:00"))

    (action, *_) = decision.actions
    assert action.annotations == {  # type: ignore[union-attr]
        STOPPED_BECAUSE_ANNOTATION: "its window closed at 2026-01-04T17:00:00Z"
    }
    assert decision.reason.startswith(f"stops job/{job.metadata.name}: its window closed")


@pytest.mark.parametrize(
    ("word", "expected", "told"),
    [
        pytest.param(
            "restarted: new data",
            {
                STOPPED_BECAUSE_ANNOTATION: "restarted: new data",
                STOPPED_BY_ANNOTATION: "ann",
            },
            [],
            id="a person restarted it",
        ),
        pytest.param(
            "anything else",
            {STOPPED_BECAUSE_ANNOTATION: "job/engine-1767603600-1 takes its place"},
            ["JobStopped"],
            id="what is no such word is not taken for one",
        ),
    ],
)
def test_a_job_that_a_person_restarts_is_told_so_whoever_tells_it_first(
    word: str, expected: dict[str, str], told: list[str]
) -> None:
    old = a_run(W, f"{MON} 09:00", 0)
    notes = {
        TAKES_OVER_ANNOTATION: old.metadata.name,
        TAKES_OVER_BECAUSE_ANNOTATION: word,
        CREATOR_ANNOTATION: "ann",
    }
    new = a_run(W, f"{MON} 09:00", 1, "Waiting", manual=True, notes=notes)

    decision = decide_controlled(a_view(in_books(W, old), old, new), moment(f"{MON} 12:00"))

    stop = decision.actions[0]
    assert isinstance(stop, ReviseJob)
    assert (stop.job, stop.annotations) == (old, expected)
    # What a person did stands on the Job, and is no deed of the schedule.
    status = status_in(decision)
    assert status is not None
    assert [each.type for each in status.action_history if each.job_name == old.metadata.name] == (
        told
    )


def test_defect_14_down_over_a_stop_and_past_the_deadline_the_old_job_is_stopped_all_the_same() -> (
    None
):
    controlled = a_controlled(start_by="5m")
    job = a_run(controlled, f"{SUN} 09:00", 0)

    decision = decide_controlled(a_view(controlled, job), moment(f"{MON} 12:00"))

    assert told_to_stop(decision) == [job.metadata.name]
    assert made(decision) == []
    assert decision.wake_at == moment(f"{MON} 17:00")
    status = status_in(decision)
    assert status is not None
    assert status.window is not None
    assert status.window.outcome == "TooLate"
    assert conditions_of(status)["StartingDeadlineExceeded"].status == "True"


def test_down_over_a_stop_and_the_next_start_the_old_job_stops_and_a_new_one_is_made() -> None:
    job = a_run(W, f"{SUN} 09:00", 3)

    decision = decide_controlled(a_view(W, job), moment(f"{MON} 12:00"))

    assert told_to_stop(decision) == [job.metadata.name]
    (new,) = made(decision)
    assert new.metadata.annotations[SCHEDULED_AT_ANNOTATION] == "2026-01-05T09:00:00Z"
    assert new.metadata.annotations[RUN_ID_ANNOTATION] == "4"


def test_defect_17_suspended_everyone_is_told_once_and_then_it_is_quiet() -> None:
    suspended = a_controlled(suspend=True)
    jobs = [a_run(suspended, f"{MON} 09:00", 0), a_run(suspended, f"{MON} 10:00", 1, manual=True)]
    going = a_run(suspended, f"{MON} 11:00", 2, going=True)
    now = moment(f"{MON} 12:00")

    first = decide_controlled(a_view(suspended, *jobs, going), now)

    assert told_to_stop(first) == sorted(job.metadata.name for job in jobs)
    told = [
        replace(job, spec=replace(job.spec, kill_at=now),
                metadata=replace(job.metadata, annotations=job.metadata.annotations
                                 | {STOPPED_BECAUSE_ANNOTATION: "suspended"}))
        for job in jobs
    ]  # fmt: skip
    status = status_in(first)
    assert status is not None
    second = decide_controlled(a_view(replace(suspended, status=status), *told, going), now)
    assert second.actions == ()
