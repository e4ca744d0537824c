"""What becomes of windows: with the real door, and work that does as it is told."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from interlock.resources.controlled_job import RestartStrategy, SpecChangePolicy
from interlock.resources.job import JobSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.schedule import (
    MANUAL_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
    HistoryLimits,
    JobTemplate,
)
from interlock.resources.values.durations import Duration
from interlock.schedules.controlled.making import make_job
from interlock.testing.controlled_builders import (
    a_controlled,
    a_window,
    an_event,
    an_override,
    conditions_of,
    moment,
)
from support.controlled_desk import ControlledDesk

MON, TUE, WED = "2026-01-05", "2026-01-06", "2026-01-07"
NEW_TEMPLATE = JobTemplate(spec=JobSpec(process=ProcessSpec(command=("serve", "--new"))))
RECREATE = RestartStrategy(spec_change_policy=SpecChangePolicy.RECREATE)


def at(text: str) -> datetime:
    return moment(f"{MON} {text}" if len(text) <= 8 else text)


def name(start: str, number: int) -> str:
    return f"engine-{int(at(start).timestamp())}-{number}"


def outcome(desk: ControlledDesk) -> str:
    window = desk.controlled.status.window
    assert window is not None
    return window.outcome


@pytest.fixture
def running() -> ControlledDesk:
    """Inside Monday's window, with its Job running."""
    desk = ControlledDesk(a_controlled(), at=at("08:00"))
    desk.settle()
    desk.settle_at(at("09:00"))
    desk.settle_at(at("12:00"))
    assert desk.live == [name("09:00", 0)]
    return desk


def test_a_day_is_a_start_and_a_stop_and_told_as_such(running: ControlledDesk) -> None:
    running.run_through(at("18:00"))

    status = running.controlled.status
    assert running.live == []
    assert outcome(running) == "Stopped"
    assert [each.type for each in status.action_history] == ["JobStopped", "JobStarted"]
    assert status.last_scheduled_start_time == at("09:00")
    assert (status.next_start, status.next_stop) == (moment(f"{TUE} 09:00"), moment(f"{TUE} 17:00"))


def test_the_stop_is_kept_even_if_the_room_never_looks_again(running: ControlledDesk) -> None:
    running.at(at("17:00"))
    running.work()

    assert running.live == []


def test_a_new_object_inside_a_window_starts_at_once_with_the_windows_own_start() -> None:
    desk = ControlledDesk(a_controlled(), at=at("12:00"))

    desk.settle()

    assert desk.live == [name("09:00", 0)]


def test_defect_27_a_finished_job_is_not_run_again_in_its_window_even_when_it_is_deleted(
    running: ControlledDesk,
) -> None:
    running.end(name("09:00", 0))
    running.settle_at(at("12:10"))
    running.delete(name("09:00", 0))
    running.settle_at(at("12:20"))

    assert running.jobs == {}
    assert outcome(running) == "Finished"
    running.settle_at(moment(f"{TUE} 09:00"))
    assert len(running.live) == 1


def test_defect_27_also_when_it_ends_and_goes_between_two_looks(running: ControlledDesk) -> None:
    running.end(name("09:00", 0))
    running.plane.hear()
    running.delete(name("09:00", 0))
    running.work()

    running.settle_at(at("12:10"))

    assert running.jobs == {}
    assert outcome(running) == "Finished"


def test_a_job_that_a_person_removes_while_it_runs_is_made_again_with_the_next_number(
    running: ControlledDesk,
) -> None:
    running.delete(name("09:00", 0))
    running.settle_at(at("12:10"))

    assert running.live == [name("09:00", 1)]
    window = running.controlled.status.window
    assert window is not None
    assert (window.outcome, window.runs) == ("Started", 2)


def test_defect_22_what_was_deleted_and_still_runs_keeps_the_next_one_waiting(
    running: ControlledDesk,
) -> None:
    running.stubborn.add(name("09:00", 0))
    running.delete(name("09:00", 0))
    running.settle_at(at("12:10"))
    assert running.live == [name("09:00", 0)]

    running.stubborn.clear()
    running.settle_at(at("12:20"))

    assert running.live == [name("09:00", 1)]


def test_a_job_that_a_person_stopped_is_not_started_again_in_this_window(
    running: ControlledDesk,
) -> None:
    notes = {SUSPEND_REASON_ANNOTATION: USER_STOP}
    running.revise(name("09:00", 0), notes, kill_at=at("12:00"))
    running.settle_at(at("12:10"))

    assert running.live == []
    assert outcome(running) == "StoppedByUser"
    assert conditions_of(running.controlled.status)["NotRunningExpectedly"].status == "True"
    running.settle_at(moment(f"{TUE} 09:00"))
    assert running.live == [name(f"{TUE} 09:00", 1)]


def test_what_a_person_stopped_and_then_deleted_stays_stopped(running: ControlledDesk) -> None:
    """Deleting alone is the order to make it again; after a stop it is only clearing up."""
    running.stubborn.add(name("09:00", 0))
    running.revise(name("09:00", 0), {SUSPEND_REASON_ANNOTATION: USER_STOP}, kill_at=at("12:00"))
    running.settle_at(at("12:10"))
    running.delete(name("09:00", 0))
    running.settle_at(at("12:20"))
    running.stubborn.clear()
    running.settle_at(at("12:30"))

    assert running.jobs == {}
    assert outcome(running) == "StoppedByUser"


def test_a_bare_kill_by_a_person_counts_as_their_stop_too(running: ControlledDesk) -> None:
    running.revise(name("09:00", 0), kill_at=at("12:00"))
    running.settle_at(at("12:10"))

    assert outcome(running) == "StoppedByUser"


def test_an_earlier_end_that_a_person_gave_the_job_is_not_moved(running: ControlledDesk) -> None:
    running.revise(name("09:00", 0), kill_at=at("15:00"))
    running.settle_at(at("12:10"))

    assert running.jobs[name("09:00", 0)].spec.kill_at == at("15:00")
    running.settle_at(at("15:00"))
    assert (running.live, outcome(running)) == ([], "StoppedByUser")


def test_a_later_end_that_a_person_gave_the_job_does_not_outlast_the_stop(
    running: ControlledDesk,
) -> None:
    running.revise(name("09:00", 0), kill_at=at("23:00"))
    running.settle_at(at("12:10"))

    assert running.jobs[name("09:00", 0)].spec.kill_at == at("17:00")


def test_a_failed_job_stays_failed(running: ControlledDesk) -> None:
    running.end(name("09:00", 0), "Failed")
    running.settle_at(at("12:10"))

    assert (running.live, outcome(running)) == ([], "Failed")
    assert conditions_of(running.controlled.status)["JobFailed"].status == "True"
    assert conditions_of(running.controlled.status)["NotRunningUnexpectedly"].reason == "JobFailed"


@pytest.mark.parametrize("is_deleted", [False, True], ids=["still there", "deleted since"])
def test_defect_28_fixing_the_template_of_a_failed_job_under_recreate_makes_a_new_one(
    running: ControlledDesk, is_deleted: bool
) -> None:
    running.edit(restart_strategy=RECREATE)
    running.end(name("09:00", 0), "Failed")
    running.settle_at(at("12:10"))
    if is_deleted:
        running.delete(name("09:00", 0))
        running.settle_at(at("12:11"))
    assert running.live == []

    running.edit(job_template=NEW_TEMPLATE)
    running.settle_at(at("12:20"))

    assert running.live == [name("09:00", 1)]


def test_a_changed_template_under_recreate_never_has_two_run_at_once(
    running: ControlledDesk,
) -> None:
    running.edit(restart_strategy=RECREATE, job_template=NEW_TEMPLATE)
    running.stubborn.add(name("09:00", 0))
    running.settle_at(at("12:10"))

    assert running.live == [name("09:00", 0)]
    assert name("09:00", 1) in running.jobs
    running.stubborn.clear()
    running.settle_at(at("12:20"))
    assert running.live == [name("09:00", 1)]
    assert running.controlled.status.action_history[0].type == "JobRestarted"


def test_defect_29_a_change_of_labels_restarts_nothing(running: ControlledDesk) -> None:
    template = running.controlled.spec.job_template
    relabelled = replace(template, metadata=replace(template.metadata, labels={"a": "b"}))
    running.edit(restart_strategy=RECREATE, job_template=relabelled)

    running.settle_at(at("12:10"))

    assert running.live == [name("09:00", 0)]


def test_suspending_stops_it_and_resuming_goes_on_with_the_same_window(
    running: ControlledDesk,
) -> None:
    running.edit(suspend=True)
    running.settle_at(at("12:10"))
    assert (running.live, outcome(running)) == ([], "Stopped")
    assert not running.controlled.status.should_be_running
    assert conditions_of(running.controlled.status)["NotRunningExpectedly"].status == "True"

    running.edit(suspend=False)
    running.settle_at(at("12:20"))

    assert running.live == [name("09:00", 1)]


def test_a_hold_stops_it_and_the_window_goes_on_after_it_and_the_hold_is_gone(
    running: ControlledDesk,
) -> None:
    running.edit(overrides=(an_override("Hold", f"{MON} 13:00", f"{MON} 14:00"),))
    running.settle()
    assert running.jobs[name("09:00", 0)].spec.kill_at == at("13:00")

    running.run_through(at("13:30"))
    assert (running.live, outcome(running)) == ([], "Stopped")
    running.run_through(at("14:00"))

    assert running.live == [name("09:00", 1)]
    assert running.controlled.spec.overrides == ()
    assert running.jobs[name("09:00", 1)].spec.kill_at == at("17:00")


def test_a_hold_over_the_start_does_not_make_the_window_too_late() -> None:
    hold = an_override("Hold", f"{MON} 08:00", f"{MON} 10:00")
    desk = ControlledDesk(a_controlled(start_by="5m", overrides=(hold,)), at=at("07:00"))

    desk.run_through(at("10:00"))

    assert desk.live == [name("09:00", 0)]


def test_an_extension_moves_the_stop_of_the_running_job_and_is_gone_after_it(
    running: ControlledDesk,
) -> None:
    running.edit(overrides=(an_override("Extend", f"{MON} 12:00", f"{MON} 19:00"),))
    running.settle()
    assert running.jobs[name("09:00", 0)].spec.kill_at == at("19:00")

    running.run_through(at("18:59"))
    assert running.live == [name("09:00", 0)]
    running.run_through(at("19:00"))

    assert (running.live, running.controlled.spec.overrides) == ([], ())
    assert running.controlled.status.next_start == moment(f"{TUE} 09:00")


def test_a_skip_leaves_out_tomorrow_and_is_gone_after_it(running: ControlledDesk) -> None:
    running.edit(overrides=(an_override("Skip", f"{TUE} 00:00", f"{WED} 00:00"),))
    running.run_through(moment(f"{TUE} 12:00"))
    assert running.live == []
    assert running.controlled.status.next_start == moment(f"{WED} 09:00")

    running.run_through(moment(f"{WED} 12:00"))

    assert running.controlled.spec.overrides == ()
    assert running.live == [name(f"{WED} 09:00", 1)]
    records = (running.controlled.status.window, *running.controlled.status.past_windows)
    assert [record.start for record in records if record] == [
        moment(f"{WED} 09:00"), at("09:00"),
    ]  # fmt: skip


def test_skipping_the_window_that_is_open_stops_its_job(running: ControlledDesk) -> None:
    running.edit(overrides=(an_override("Skip", f"{MON} 00:00", f"{TUE} 00:00"),))
    running.settle_at(at("12:10"))

    assert running.live == []


@pytest.mark.parametrize(
    ("window", "is_running"),
    [
        pytest.param("08:00-17:00", True, id="an earlier start changes nothing"),
        pytest.param("10:00-17:00", True, id="a later start that has come changes nothing"),
        pytest.param("11:30-17:00", True, id="nor does one that came just before"),
        pytest.param("11:30-11:00", True, id="nor does a stop of the new hours that is past"),
        pytest.param("09:00-20:00", True, id="a later stop is carried by the running Job"),
        pytest.param("09:00-11:00", False, id="a stop that has come stops it at once"),
        pytest.param("13:00-17:00", False, id="a start to come stops it until then"),
    ],
)
def test_edits_of_an_open_window(running: ControlledDesk, window: str, is_running: bool) -> None:
    running.edit(windows=(a_window(window),))
    running.settle_at(at("12:10"))

    assert running.live == ([name("09:00", 0)] if is_running else [])
    if is_running:
        hour, minute = map(int, window.rpartition("-")[2].split(":"))
        stop = at("00:00") + timedelta(hours=hour, minutes=minute)
        stop += timedelta(days=stop < at("12:10"))
        assert running.jobs[name("09:00", 0)].spec.kill_at == stop


def test_hours_that_begin_after_the_job_keep_it_and_it_is_still_the_windows_job() -> None:
    """Around the clock since Monday; on Wednesday the hours are given a beginning."""
    desk = ControlledDesk(a_controlled(a_window("00:00-24:00")), at=at("08:00"))
    desk.settle()
    old = desk.live
    desk.run_through(moment(f"{WED} 12:00"))
    desk.edit(windows=(a_window("01:00-24:00"),))
    desk.settle_at(moment(f"{WED} 12:01"))

    assert desk.live == old
    desk.end(old[0])
    desk.settle_at(moment(f"{WED} 12:02"))
    assert desk.live == []
    assert outcome(desk) == "Finished"


def test_a_window_that_is_opened_again_after_its_stop_goes_on(running: ControlledDesk) -> None:
    running.run_through(at("17:05"))
    running.edit(windows=(a_window("09:00-19:00"),))
    running.settle_at(at("17:06"))

    assert running.live == [name("09:00", 1)]


def test_a_finished_window_that_is_moved_later_runs_again_when_it_opens(
    running: ControlledDesk,
) -> None:
    running.end(name("09:00", 0))
    running.settle_at(at("12:10"))
    running.edit(windows=(a_window("13:00-17:00"),))
    running.settle_at(at("12:20"))
    running.settle_at(at("13:00"))

    assert running.live == [name("13:00", 1)]


def test_defect_6_a_daily_restart_starts_the_new_job_once_the_old_one_is_gone() -> None:
    events = (an_event("start", "09:00"), an_event("stop", "09:00"))
    desk = ControlledDesk(a_controlled(*events), at=at("10:00"))
    desk.settle()
    old = name("09:00", 0)
    assert desk.live == [old]
    desk.stubborn.add(old)

    desk.run_through(moment(f"{TUE} 09:00"))
    new = name(f"{TUE} 09:00", 1)
    assert desk.live == [old]
    assert new in desk.jobs
    desk.stubborn.clear()
    desk.settle_at(moment(f"{TUE} 09:01"))

    assert desk.live == [new]


def test_defect_26_a_job_that_does_not_stop_raises_an_alarm_and_never_a_second_run() -> None:
    desk = ControlledDesk(a_controlled(drain_limit=Duration(minutes=10)), at=at("09:00"))
    desk.settle()
    old = name("09:00", 0)
    desk.stubborn.add(old)

    desk.run_through(at("17:09"))
    assert conditions_of(desk.controlled.status)["DrainOverdue"].status == "False"
    assert conditions_of(desk.controlled.status)["RunningUnexpectedly"].status == "False"
    desk.run_through(at("17:10"))
    alarm = conditions_of(desk.controlled.status)["DrainOverdue"]
    assert alarm.status == "True"
    assert old in alarm.message
    assert conditions_of(desk.controlled.status)["RunningUnexpectedly"].reason == "DrainOverdue"
    desk.run_through(moment(f"{TUE} 12:00"))

    assert desk.live == [old]
    desk.stubborn.clear()
    desk.settle_at(moment(f"{TUE} 12:01"))
    assert desk.live == [name(f"{TUE} 09:00", 1)]
    assert conditions_of(desk.controlled.status)["DrainOverdue"].status == "False"


# People's own runs


def a_manual(desk: ControlledDesk, start: str, number: int) -> str:
    job = make_job(desk.controlled, start=at(start), number=number, stop=None, is_manual=True)
    return desk.put(job).metadata.name


def test_a_manual_run_before_the_window_is_its_job_when_it_opens() -> None:
    desk = ControlledDesk(a_controlled(), at=at("08:00"))
    desk.settle()
    mine = a_manual(desk, "08:00", 0)
    desk.settle()
    assert desk.live == [mine]
    assert conditions_of(desk.controlled.status)["RunningExpectedly"].reason == "RunningManually"

    desk.run_through(at("12:00"))
    assert desk.live == [mine]
    desk.run_through(at("17:00"))
    assert desk.live == []


def test_defect_27_a_manual_run_that_is_done_before_the_window_does_not_suppress_it() -> None:
    desk = ControlledDesk(a_controlled(), at=at("08:00"))
    desk.settle()
    mine = a_manual(desk, "08:00", 0)
    desk.settle()
    desk.end(mine)

    desk.run_through(at("09:00"))

    assert desk.live == [name("09:00", 1)]


def test_a_manual_run_that_a_person_stopped_before_the_window_does_not_suppress_it() -> None:
    desk = ControlledDesk(a_controlled(), at=at("08:00"))
    desk.settle()
    mine = a_manual(desk, "08:00", 0)
    desk.settle()
    desk.stubborn.add(mine)
    desk.revise(mine, {SUSPEND_REASON_ANNOTATION: USER_STOP}, kill_at=at("08:30"))
    desk.run_through(at("09:00"))
    desk.stubborn.clear()

    desk.settle_at(at("09:10"))

    assert desk.live == [name("09:00", 1)]


def test_a_manual_start_after_a_stop_by_hand_is_the_windows_job_again(
    running: ControlledDesk,
) -> None:
    running.revise(name("09:00", 0), {SUSPEND_REASON_ANNOTATION: USER_STOP}, kill_at=at("12:00"))
    running.settle_at(at("12:10"))
    mine = a_manual(running, "12:10", 1)

    running.settle_at(at("12:20"))

    assert (running.live, outcome(running)) == ([mine], "Started")
    running.run_through(at("17:00"))
    assert running.live == []


def test_a_second_run_by_hand_that_is_removed_leaves_the_window_as_it_was(
    running: ControlledDesk,
) -> None:
    running.end(name("09:00", 0))
    running.settle_at(at("12:10"))
    mine = a_manual(running, "12:10", 1)
    running.settle()
    assert (running.live, outcome(running)) == ([mine], "Started")

    running.delete(mine)
    running.settle_at(at("12:20"))

    assert (running.live, outcome(running)) == ([], "Finished")


def test_under_recreate_a_manual_run_outside_a_window_is_replaced_by_one_that_is_manual_too() -> (
    None
):
    desk = ControlledDesk(a_controlled(policy="Recreate"), at=at("07:00"))
    desk.settle()
    a_manual(desk, "07:00", 0)
    desk.settle()
    desk.edit(job_template=NEW_TEMPLATE)

    desk.settle_at(at("07:10"))

    (live,) = desk.live
    assert live == name("07:00", 1)
    assert desk.jobs[live].metadata.annotations[MANUAL_ANNOTATION] == "true"


def test_a_paused_job_ends_at_the_stop_and_the_next_window_starts_afresh(
    running: ControlledDesk,
) -> None:
    running.revise(name("09:00", 0), {SUSPEND_REASON_ANNOTATION: USER_STOP}, suspend=True)
    running.settle_at(at("12:10"))
    assert running.jobs[name("09:00", 0)].spec.suspend

    running.run_through(moment(f"{TUE} 09:00"))

    assert running.live == [name(f"{TUE} 09:00", 1)]


def test_a_pause_without_a_reason_stands_until_a_person_or_the_stop_ends_it(
    running: ControlledDesk,
) -> None:
    running.revise(name("09:00", 0), suspend=True)
    running.edit(job_template=NEW_TEMPLATE, restart_strategy=RECREATE)
    running.settle_at(at("12:10"))

    assert running.jobs[name("09:00", 0)].spec.suspend
    assert list(running.jobs) == [name("09:00", 0)]
    running.revise(name("09:00", 0), suspend=False)
    running.settle_at(at("12:20"))
    assert running.live == [name("09:00", 1)]


@pytest.mark.parametrize("how", ["suspend", "hold"])
def test_what_a_person_paused_is_not_started_again_when_all_was_on_hold_in_between(
    running: ControlledDesk, how: str
) -> None:
    running.revise(name("09:00", 0), suspend=True)
    hold = an_override("Hold", f"{MON} 12:10", f"{MON} 12:20")
    running.edit(suspend=how == "suspend", overrides=(hold,) if how == "hold" else ())
    running.settle_at(at("12:10"))
    running.edit(suspend=False)
    running.settle_at(at("12:30"))

    assert (running.live, outcome(running)) == ([], "StoppedByUser")
    running.run_through(moment(f"{TUE} 09:00"))
    assert running.live == [name(f"{TUE} 09:00", 1)]


# Downtime, deadlines, clocks


def test_too_late_is_told_and_the_next_window_starts() -> None:
    desk = ControlledDesk(a_controlled(start_by="30m"), at=at("09:30:01"))
    decision = desk.settle()

    assert (desk.live, outcome(desk)) == ([], "TooLate")
    verdict = conditions_of(desk.controlled.status)["NotRunningUnexpectedly"]
    assert verdict.reason == "StartingDeadlineExceeded"
    until = "it could have started until 2026-01-05T09:30:00Z, 30m after 2026-01-05T09:00:00Z"
    assert verdict.message == until
    assert conditions_of(desk.controlled.status)["StartingDeadlineExceeded"].message == until
    window = desk.controlled.status.window
    assert window is not None
    assert window.message == until
    assert decision.wake_at == at("17:00")
    desk.run_through(moment(f"{TUE} 09:00"))
    assert len(desk.live) == 1


def test_exactly_at_the_deadline_it_is_not_too_late() -> None:
    desk = ControlledDesk(a_controlled(start_by="30m"), at=at("09:30"))
    desk.settle()

    assert len(desk.live) == 1


def test_what_began_in_time_is_made_again_after_the_deadline() -> None:
    desk = ControlledDesk(a_controlled(start_by="30m"), at=at("09:00"))
    desk.settle()
    desk.delete(name("09:00", 0))
    desk.settle_at(at("12:00"))

    assert desk.live == [name("09:00", 1)]


def test_a_window_that_opened_and_closed_while_nobody_looked_is_told(
    running: ControlledDesk,
) -> None:
    running.run_through(at("17:00"))
    running.settle_at(moment(f"{WED} 08:00"))

    window = running.controlled.status.window
    assert window is not None
    assert (window.start, window.outcome) == (moment(f"{TUE} 09:00"), "NeverStarted")
    assert window.message == "it opened and closed, and nobody looked"
    assert running.controlled.status.last_scheduled_start_time == moment(f"{TUE} 09:00")


@pytest.mark.parametrize(
    ("is_edited", "told"),
    [
        pytest.param(False, [(moment(f"{MON} 09:00"), "NeverStarted")], id="as it was made"),
        pytest.param(True, [], id="another plan may have been there then"),
    ],
)
def test_a_window_between_the_making_and_the_first_look_is_told(
    is_edited: bool, told: list[tuple[datetime, str]]
) -> None:
    desk = ControlledDesk(a_controlled(), at=at("08:00"))
    if is_edited:
        desk.edit(start_by=Duration(hours=1))
    desk.settle_at(moment(f"{TUE} 08:00"))

    window = desk.controlled.status.window
    assert [(each.start, each.outcome) for each in (window,) if each is not None] == told
    assert desk.controlled.status.past_windows == ()


@pytest.mark.parametrize(
    ("start_by", "until"),
    [
        pytest.param("30m", "; it could have started until 2026-01-06T09:30:00Z", id="within"),
        pytest.param("10h", "", id="longer than the window: its stop says as much"),
    ],
)
def test_a_start_that_nobody_looked_at_is_told_with_its_deadline(start_by: str, until: str) -> None:
    desk = ControlledDesk(a_controlled(start_by=start_by), at=at("08:00"))
    desk.run_through(at("17:00"))
    desk.settle_at(moment(f"{WED} 08:00"))

    window = desk.controlled.status.window
    assert window is not None
    assert window.message == f"it opened and closed, and nobody looked{until}"


def test_down_over_a_stop_and_a_start_the_old_job_stops_and_the_new_one_follows(
    running: ControlledDesk,
) -> None:
    running.stubborn.add(name("09:00", 0))
    running.settle_at(moment(f"{TUE} 12:00"))
    assert running.live == [name("09:00", 0)]

    running.stubborn.clear()
    running.settle_at(moment(f"{TUE} 12:01"))

    assert running.live == [name(f"{TUE} 09:00", 1)]
    (past,) = running.controlled.status.past_windows
    assert (past.start, past.outcome) == (at("09:00"), "Stopped")


@pytest.mark.parametrize("back_to", ["08:00", "09:30", "2026-01-04 12:00", "2026-01-03 20:00"])
def test_clocks_that_are_set_back_never_lead_to_two_runs_or_a_number_used_twice(
    running: ControlledDesk, back_to: str
) -> None:
    running.settle_at(at(back_to))
    assert len(running.live) <= 1
    status = running.controlled.status
    assert status.last_scheduled_start_time is None or status.last_scheduled_start_time <= at(
        back_to
    )

    running.run_through(at("12:00"))

    assert len(running.live) == 1
    numbers = [
        job.metadata.annotations["interlock.dev/job-run-id"] for job in running.jobs.values()
    ]
    assert len(set(numbers)) == len(numbers)


def test_a_clock_that_jumps_ahead_and_back_over_the_stop_goes_on_with_the_window(
    running: ControlledDesk,
) -> None:
    running.settle_at(at("17:30"))
    assert running.live == []

    running.settle_at(at("12:30"))

    assert running.live == [name("09:00", 1)]


@pytest.mark.parametrize(
    ("hold", "before", "turn"),
    [
        pytest.param((), "08:30", "09:00", id="a start"),
        pytest.param((), "12:00", "17:00", id="a stop"),
        pytest.param(("13:00", "14:00"), "12:00", "13:00", id="a hold begins"),
        pytest.param(("13:00", "14:00"), "13:30", "14:00", id="a hold ends"),
        pytest.param((), "17:00", "17:15", id="a Job is overdue"),
    ],
)
def test_two_leaders_whose_clocks_differ_do_not_take_back_what_the_other_told(
    hold: tuple[str, ...], before: str, turn: str
) -> None:
    overrides = (an_override("Hold", *(f"{MON} {edge}" for edge in hold)),) if hold else ()
    desk = ControlledDesk(a_controlled(overrides=overrides), at=at("08:00"))
    desk.stubborn |= {name("09:00", number) for number in range(3)}
    desk.run_through(at(before))
    desk.run_through(at(turn))
    told, live = desk.controlled.status, desk.live
    desk.settle_at(at(turn) - timedelta(seconds=30))

    assert desk.controlled.status == told
    assert desk.live == live


def test_a_clock_that_is_behind_the_stores_does_not_forget_what_a_person_stopped() -> None:
    """Around the clock it began when it was made, which is to come by the clock of this one."""
    desk = ControlledDesk(a_controlled(a_window("00:00-24:00")), at=at("12:00"))
    desk.at(at("11:00"))
    desk.settle()
    (job,) = desk.live
    desk.revise(job, {SUSPEND_REASON_ANNOTATION: USER_STOP}, kill_at=at("11:00"))
    desk.settle_at(at("11:01"))
    desk.delete(job)
    desk.settle_at(at("11:02"))

    assert (desk.live, outcome(desk)) == ([], "StoppedByUser")
    assert desk.controlled.status.past_windows == ()


@pytest.mark.parametrize("told", ["StoppedByUser", "Finished", "Failed"])
def test_what_became_of_a_window_is_kept_by_a_clock_that_is_set_back_before_it(
    running: ControlledDesk, told: str
) -> None:
    """Its Job is gone when it opens once more."""
    job = name("09:00", 0)
    if told == "StoppedByUser":
        running.revise(job, {SUSPEND_REASON_ANNOTATION: USER_STOP}, kill_at=at("08:00"))
        running.at(at("08:00"))
        running.work()
    else:
        running.end(job, "Succeeded" if told == "Finished" else "Failed")
    running.settle_at(at("08:00"))
    running.delete(job)
    running.run_through(at("12:30"))

    assert (running.live, outcome(running)) == ([], told)


def test_defect_30_ended_jobs_stay_within_the_limits_oldest_gone_first() -> None:
    limits = HistoryLimits(succeeded=2, failed=1)
    desk = ControlledDesk(a_controlled(history=limits), at=at("08:00"))
    desk.settle()
    ends = ["Succeeded", "Failed", "Succeeded", "Failed", "Succeeded"]
    for day, result in enumerate(ends):
        start = at("09:00") + timedelta(days=day)
        desk.run_through(start)
        desk.end(desk.live[0], result)
        desk.settle_at(start + timedelta(hours=1))
        desk.work()

    assert sorted(int(each.rpartition("-")[2]) for each in desk.jobs) == [2, 3, 4]


def test_over_a_change_of_clocks_every_day_has_one_start_and_one_stop_by_the_wall() -> None:
    desk = ControlledDesk(
        a_controlled(zone="Europe/London", history=HistoryLimits(succeeded=0, failed=0)),
        at=moment("2026-03-20 00:00"),
    )
    desk.run_through(moment("2026-04-10 00:00"))

    assert desk.controlled.status.last_run_id == 20
    assert {record.outcome.value for record in desk.controlled.status.past_windows} == {"Stopped"}
    assert {record.start.hour for record in desk.controlled.status.past_windows} == {8}
