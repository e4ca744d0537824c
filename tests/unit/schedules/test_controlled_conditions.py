"""What is told about a ControlledJob, and that it is so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.codec import encode
from interlock.resources.controlled_job import ControlledJob, ControlledJobStatus
from interlock.schedules.controlled.decide import decide_controlled
from interlock.testing.controlled_builders import (
    OLD_HASH,
    a_controlled,
    a_run,
    a_view,
    an_event,
    conditions_of,
    moment,
    so,
    status_in,
)
from support.controlled_desk import ControlledDesk

SUN, MON = "2026-01-04", "2026-01-05"
OUTSIDE, INSIDE = moment(f"{MON} 08:30"), moment(f"{MON} 12:00")
W = a_controlled()
VERDICTS = {
    "RunningExpectedly": "RE",
    "RunningUnexpectedly": "RU",
    "NotRunningExpectedly": "NE",
    "NotRunningUnexpectedly": "NU",
}


def told(controlled: ControlledJob, *jobs: Any, inside: bool = True, **more: Any) -> Any:
    now = INSIDE if inside else OUTSIDE
    status = status_in(decide_controlled(a_view(controlled, *jobs, **more), now))
    assert status is not None
    return status


def verdict(status: ControlledJobStatus) -> str:
    said = so(status, VERDICTS)
    assert sorted(said.values()) == ["False", "False", "False", "True"]
    return next(VERDICTS[kind] for kind, value in said.items() if value == "True")


def test_c1_outside_without_a_job_it_is_expected_that_nothing_runs() -> None:
    assert verdict(told(W, inside=False)) == "NE"


def test_c1_inside_without_a_job_one_is_made_and_no_alarm_flashes() -> None:
    """Defect 31: the verdict is told when the Job is there, not before acting."""
    desk = ControlledDesk(W, at=moment(f"{MON} 08:00"))
    seen: list[str] = []
    desk.settle()
    desk.at(moment(f"{MON} 09:00"))
    for _ in range(6):
        desk.look()
        desk.plane.admit(desk.now)
        desk.work()
        seen.append(verdict(desk.controlled.status))

    assert "NU" not in seen
    assert seen[-1] == "RE"


@pytest.mark.parametrize(
    ("state", "running", "inside"),
    [
        pytest.param("Starting", "False", "RE", id="C2 starting"),
        pytest.param("Running", "True", "RE", id="C3 running"),
        pytest.param("Succeeded", "False", "NE", id="C4 complete: not running, and that is right"),
        pytest.param("Failed", "False", "NU", id="C5 failed"),
    ],
)
def test_c_inside_a_window(state: str, running: str, inside: str) -> None:
    status = told(W, a_run(W, f"{MON} 09:00", 0, state))

    assert so(status, ["JobRunning", "JobComplete", "JobFailed"]) == {
        "JobRunning": running,
        "JobComplete": "True" if state == "Succeeded" else "False",
        "JobFailed": "True" if state == "Failed" else "False",
    }
    assert verdict(status) == inside
    assert status.is_running is (state in ("Starting", "Running"))


@pytest.mark.parametrize(
    ("state", "outside", "reason"),
    [
        pytest.param("Starting", "RE", "Stopping", id="C2 starting: told to stop at this look"),
        pytest.param("Running", "RE", "Stopping", id="C3 running: told to stop at this look"),
        pytest.param("Succeeded", "NE", "NotRunningExpectedly", id="C4 complete"),
        pytest.param("Failed", "NE", "NotRunningExpectedly", id="C5 failed"),
    ],
)
def test_c_outside_a_window(state: str, outside: str, reason: str) -> None:
    """Defect 31: what has just been told to stop is not running unexpectedly."""
    status = told(W, a_run(W, f"{MON} 06:00", 0, state), inside=False)

    assert verdict(status) == outside
    so_it_is = next(each for each in VERDICTS if VERDICTS[each] == outside)
    assert conditions_of(status)[so_it_is].reason == reason


@pytest.mark.parametrize(
    ("jobs", "inside"),
    [
        pytest.param([("Running", {})], True, id="running"),
        pytest.param([("Waiting", {})], True, id="waiting"),
        pytest.param([("Failed", {})], True, id="failed"),
        pytest.param([("Stopping", {})], False, id="stopping"),
        pytest.param([], False, id="none"),
    ],
)
def test_c6_two_looks_at_the_same_things_tell_the_same_byte_for_byte(
    jobs: list[tuple[str, dict[str, Any]]], inside: bool
) -> None:
    runs = [
        a_run(W, f"{MON} 09:00", at, state, stop=f"{MON} 17:00", **more)
        for at, (state, more) in enumerate(jobs)
    ]
    now = INSIDE if inside else OUTSIDE
    first = status_in(decide_controlled(a_view(W, *runs), now))
    assert first is not None
    written = replace(W, status=first)
    later = decide_controlled(a_view(written, *runs), now + timedelta(seconds=2))

    again = status_in(later) or written.status
    assert encode(again) == encode(first)
    assert status_in(later) is None


@pytest.mark.parametrize(
    ("controlled", "status", "reason"),
    [
        pytest.param(W, "True", "InsideRunPeriod", id="inside"),
        pytest.param(a_controlled(an_event("stop", "17:00")), "Unknown", "NoStartEvent", id="none"),
        pytest.param(a_controlled(suspend=True), "False", "Suspended", id="suspended"),
    ],
)
def test_should_be_running(controlled: ControlledJob, status: str, reason: str) -> None:
    found = conditions_of(told(controlled, a_run(controlled, f"{MON} 09:00")))["ShouldBeRunning"]

    assert (found.status, found.reason) == (status, reason)


@pytest.mark.parametrize(
    ("job", "policy", "status", "reason"),
    [
        pytest.param({}, "Recreate", "False", "NotOutOfDate", id="as it is"),
        pytest.param({"template": ""}, "Recreate", "False", "NotOutOfDate", id="does not say"),
        pytest.param({"template": OLD_HASH}, "Ignore", "True", "ShouldNotAutoRestart", id="Ignore"),
        pytest.param({"template": OLD_HASH, "state": "Succeeded"}, "Recreate", "True",
                     "JobIsNotRunning", id="done"),
        pytest.param({"template": OLD_HASH, "going": True}, "Recreate", "True",
                     "JobIsBeingDeleted", id="being deleted"),
        pytest.param({"template": OLD_HASH, "state": "Stopping", "user_stop": True},
                     "Recreate", "True", "JobIsBeingDeleted", id="stops, Recreate"),
        pytest.param({"template": OLD_HASH, "state": "Stopping", "user_stop": True},
                     "Ignore", "True", "JobIsBeingDeleted", id="stops, Ignore"),
        pytest.param({"state": "Stopping", "user_stop": True}, "Recreate", "False",
                     "NotOutOfDate", id="stops, of the template as it is"),
        pytest.param({"template": OLD_HASH, "state": "Finishing", "ended": f"{MON} 11:59"},
                     "Ignore", "True", "ShouldNotAutoRestart", id="ends by itself"),
    ],
)  # fmt: skip
def test_out_of_date(job: dict[str, Any], policy: str, status: str, reason: str) -> None:
    controlled = a_controlled(policy=policy)
    found = conditions_of(told(controlled, a_run(controlled, f"{MON} 09:00", **job)))["OutOfDate"]

    assert (found.status, found.reason) == (status, reason)


def test_a_job_that_is_to_be_replaced_and_cannot_be_is_out_of_date() -> None:
    controlled = a_controlled(policy="Recreate")
    old = a_run(controlled, f"{MON} 09:00", template=OLD_HASH)
    found = conditions_of(told(controlled, old, calendar_problem="calendar x does not exist"))

    assert (found["OutOfDate"].status, found["OutOfDate"].reason) == ("True", "ToBeReplaced")


def test_conditions_of_jobs_are_unknown_without_one_and_false_when_false() -> None:
    without = told(W, inside=False)
    kinds = ["JobRunning", "JobComplete", "JobFailed", "JobSuspended", "JobStoppedByUser"]

    assert set(so(without, kinds).values()) == {"Unknown"}
    running = told(W, a_run(W, f"{MON} 09:00"))
    assert so(running, kinds) == {
        "JobRunning": "True", "JobComplete": "False", "JobFailed": "False",
        "JobSuspended": "False", "JobStoppedByUser": "False",
    }  # fmt: skip


def test_a_transition_moves_its_time_only_when_the_status_changes() -> None:
    running = a_run(W, f"{MON} 09:00", stop=f"{MON} 17:00")
    first = told(W, running)
    failed = a_run(W, f"{MON} 09:00", 0, "Failed")
    later = decide_controlled(
        a_view(replace(W, status=first), failed), INSIDE + timedelta(minutes=5)
    )

    status = status_in(later)
    assert status is not None
    before, after = conditions_of(first), conditions_of(status)
    assert after["ShouldBeRunning"].last_transition_time == INSIDE
    assert after["JobFailed"].last_transition_time == INSIDE + timedelta(minutes=5)
    assert before["JobFailed"].status == "False"


def test_defect_9_the_last_start_is_never_to_come_and_the_next_is_told() -> None:
    status = told(a_controlled(created=f"{MON} 08:00"), inside=False)

    assert status.last_scheduled_start_time is None
    assert status.next_start == moment(f"{MON} 09:00")
    assert status.next_stop == moment(f"{MON} 17:00")


def test_defect_31_a_job_that_only_waits_is_not_running() -> None:
    status = told(W, a_run(W, f"{MON} 09:00", 0, "Waiting"))

    assert not status.is_running
    assert verdict(status) == "NE"
    assert conditions_of(status)["NotRunningExpectedly"].reason == "JobStarting"


def test_active_lists_everyone_who_is_not_over() -> None:
    jobs = [a_run(W, f"{SUN} 09:00", 0), a_run(W, f"{MON} 09:00", 1),
            a_run(W, f"{MON} 09:00", 2, "Failed")]  # fmt: skip

    status = told(W, *jobs)

    assert [each.name for each in status.active] == [job.metadata.name for job in jobs[:2]]


def test_h3_of_the_actions_the_newest_sixteen_are_kept_and_none_is_told_twice() -> None:
    desk = ControlledDesk(W, at=moment(f"{MON} 08:00"))
    for day in range(10):
        desk.run_through(moment(f"{MON} 18:00") + timedelta(days=day))
    history = desk.controlled.status.action_history

    assert len(history) == 16
    assert [each.type.value for each in history] == ["JobStopped", "JobStarted"] * 8
    assert history[0].timestamp > history[-1].timestamp
    assert history[0].job_index == 9
    assert desk.controlled.status.most_recent_action == history[0]
    assert desk.settle().actions == ()


def test_defect_18_nothing_is_told_to_have_failed_that_did_not() -> None:
    desk = ControlledDesk(W, at=moment(f"{MON} 09:00"))
    desk.settle()
    (name,) = desk.live
    desk.revise(name, suspend=True)
    desk.settle()
    desk.run_through(moment(f"{MON} 18:00"))

    failed = [
        each for each in desk.controlled.status.conditions if each.type.startswith("FailedTo")
    ]
    assert {each.status.value for each in failed} == {"False"}


def test_a_status_is_written_a_few_times_a_run_and_no_more() -> None:
    desk = ControlledDesk(W, at=moment(f"{MON} 08:00"))
    desk.settle()
    writes = 0
    for moment_text in ("09:00", "12:00", "17:00", "18:00"):
        desk.at(moment(f"{MON} {moment_text}"))
        for _ in range(6):
            writes += status_in(desk.look()) is not None
            desk.plane.admit(desk.now)
            desk.work()

    assert writes <= 5
