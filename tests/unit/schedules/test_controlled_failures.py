"""What is broken harms itself: stops happen, it is told, and nothing spins."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.actions import CreateJob, RecordStatus, ReviseJob
from interlock.resources.calendar import Calendar, CalendarDay, CalendarSpec
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Metadata, Reference, Trouble
from interlock.resources.process import ProcessSpec
from interlock.resources.schedule import JobTemplate
from interlock.schedules.controlled.decide import decide_controlled
from interlock.testing.controlled_builders import (
    a_controlled,
    a_run,
    a_view,
    a_window,
    an_event,
    conditions_of,
    made,
    moment,
    status_in,
    told_to_stop,
    written,
)
from support.controlled_desk import ControlledDesk

SUN, MON, TUE = "2026-01-04", "2026-01-05", "2026-01-06"
NOON = moment(f"{MON} 12:00")
BAD = JobTemplate(spec=JobSpec(process=ProcessSpec(command=())))
GOOD = JobTemplate(spec=JobSpec(process=ProcessSpec(command=("serve",))))


def in_trouble(controlled: ControlledJob, message: str, about: Job | None = None) -> ControlledJob:
    job = Reference(kind="Job", name=about.metadata.name, namespace="default") if about else None
    trouble = Trouble(room="schedules", message=message, since=NOON, about=job)
    return replace(controlled, status=replace(controlled.status, trouble=trouble))


def test_a_template_that_no_job_can_be_made_of_is_told_and_stops_go_on() -> None:
    controlled = a_controlled(template=BAD)
    old = a_run(a_controlled(), f"{SUN} 09:00", 0)

    decision = decide_controlled(a_view(controlled, old), NOON)

    assert told_to_stop(decision) == [old.metadata.name]
    assert made(decision) == []
    status = status_in(decision)
    assert status is not None
    failed = conditions_of(status)["FailedToCreateJob"]
    assert (failed.status, "spec.process.command" in failed.message) == ("True", True)
    assert conditions_of(status)["NotRunningUnexpectedly"].reason == "NoJobExists"
    assert status.window is not None
    assert status.window.message == failed.message
    assert status.action_history[0].type == "Failed"
    assert decision.wake_at == moment(f"{MON} 17:00")


def test_a_bad_template_is_no_hot_loop_and_is_tried_again_when_it_is_changed() -> None:
    desk = ControlledDesk(a_controlled(template=BAD), at=NOON)
    decision = desk.settle()
    assert (decision.actions, desk.jobs) == ((), {})

    desk.edit(job_template=GOOD)
    desk.settle()

    assert len(desk.live) == 1
    assert conditions_of(desk.controlled.status)["FailedToCreateJob"].status == "False"


def test_under_recreate_a_bad_template_leaves_the_running_job_alone() -> None:
    desk = ControlledDesk(a_controlled(policy="Recreate"), at=NOON)
    desk.settle()
    running = desk.live

    desk.edit(job_template=BAD)
    desk.settle()

    assert desk.live == running
    assert conditions_of(desk.controlled.status)["FailedToCreateJob"].status == "True"


def test_a_job_that_the_store_refuses_is_told_before_it_is_tried_again() -> None:
    message = "InvalidError: Job engine-1767603600-0 is invalid: quota"
    controlled = in_trouble(a_controlled(), message)

    first = decide_controlled(a_view(controlled), NOON)

    assert [type(action) for action in first.actions] == [RecordStatus, CreateJob]
    status = status_in(first)
    assert status is not None
    assert conditions_of(status)["FailedToCreateJob"].message == message
    # The same failure again is not written again: the loop's own delay is all there is.
    second = decide_controlled(a_view(written(controlled, first)), NOON)
    assert [type(action) for action in second.actions] == [CreateJob]


def test_once_the_store_takes_it_the_failure_is_over() -> None:
    controlled = in_trouble(a_controlled(), "ForbiddenError: no")
    failing = written(controlled, decide_controlled(a_view(controlled), NOON))
    job = a_run(failing, f"{MON} 09:00", 0, "Waiting")

    status = status_in(decide_controlled(a_view(failing, job), NOON))

    assert status is not None
    assert conditions_of(status)["FailedToCreateJob"].reason == "CreatedJob"


def test_defect_19_a_job_that_cannot_be_stopped_is_not_in_the_way_of_the_others() -> None:
    stuck, other = (a_run(a_controlled(), f"{SUN} 09:00", number) for number in (0, 1))
    message = "ForbiddenError: an admission webhook says no"
    controlled = in_trouble(a_controlled(), message, stuck)

    decision = decide_controlled(a_view(controlled, stuck, other), NOON)

    revised = [a.job.metadata.name for a in decision.actions if isinstance(a, ReviseJob)]
    assert revised == [other.metadata.name, stuck.metadata.name]
    kinds = [type(action) for action in decision.actions]
    assert kinds.index(CreateJob) < len(kinds) - 1
    assert kinds[-1] is ReviseJob


def test_a_job_that_a_message_only_quotes_is_not_to_blame() -> None:
    first, second = (a_run(a_controlled(), f"{SUN} 09:00", number) for number in (0, 1))
    controlled = in_trouble(a_controlled(), f"ForbiddenError: {first.metadata.name}", second)

    decision = decide_controlled(a_view(controlled, first, second), NOON)

    assert told_to_stop(decision) == [first.metadata.name, second.metadata.name]


def test_defect_16_a_stop_that_failed_is_told_in_the_status() -> None:
    stuck = a_run(a_controlled(), f"{SUN} 09:00", 0)
    message = "ForbiddenError: an admission webhook says no"
    controlled = in_trouble(a_controlled(), message, stuck)

    decision = decide_controlled(a_view(controlled, stuck), moment(f"{MON} 07:00"))

    status = status_in(decision)
    assert status is not None
    assert conditions_of(status)["FailedToDeleteJob"].message == message
    assert [type(action) for action in decision.actions] == [RecordStatus, ReviseJob]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"zone": "Mars/Olympus"}, id="no such zone"),
        pytest.param({"windows": (a_window("25:00-26:00"),)}, id="no such time"),
        pytest.param({"events": (an_event("start", "x x"),)}, id="defect 10: no such cron line"),
        pytest.param({"events": (an_event("start", "@every 5m"),)}, id="defect 10: @every"),
        pytest.param({"events": (an_event("start", "TZ=Zone x"),)}, id="defect 10: TZ="),
    ],
)
def test_a_plan_that_cannot_be_read_starts_nothing_and_stops_nothing_and_is_told(
    broken: dict[str, Any],
) -> None:
    """What runs carries its stop already."""
    desk = ControlledDesk(a_controlled(), at=NOON)
    desk.settle()
    running = desk.live
    if zone := broken.pop("zone", None):
        broken["timezone"] = replace(desk.controlled.spec.timezone, name=zone)
    desk.edit(**broken)

    desk.settle()

    assert desk.live == running
    error = conditions_of(desk.controlled.status)["Error"]
    assert (error.status, error.reason) == ("True", "ScheduleUnreadable")
    desk.settle_at(moment(f"{MON} 17:00"))
    assert desk.live == []
    desk.settle_at(moment(f"{TUE} 12:00"))
    assert desk.live == []


def test_defect_10_an_event_with_neither_form_is_told_too() -> None:
    event = replace(an_event("start", "09:00"), schedule=None)
    desk = ControlledDesk(a_controlled(event, a_window()), at=NOON)

    desk.settle()

    assert conditions_of(desk.controlled.status)["Error"].status == "True"


def test_a_suspended_object_stops_its_job_though_its_plan_cannot_be_read() -> None:
    desk = ControlledDesk(a_controlled(), at=NOON)
    desk.settle()
    desk.edit(windows=(a_window("25:00-26:00"),), suspend=True)

    desk.settle()

    assert desk.live == []


def a_calendar(*days: str) -> Calendar:
    return Calendar(
        metadata=Metadata(name="holidays", namespace="default"),
        spec=CalendarSpec(days=tuple(CalendarDay(day=day) for day in days)),
    )


def test_with_a_calendar_missing_nothing_new_starts_and_it_is_told() -> None:
    desk = ControlledDesk(a_controlled(a_window(exclude=("holidays",))), at=NOON)
    desk.settle()

    assert desk.jobs == {}
    error = conditions_of(desk.controlled.status)["Error"]
    assert (error.reason, "holidays" in error.message) == ("CalendarMissing", True)
    window = desk.controlled.status.window
    assert window is not None
    assert (window.outcome, "holidays" in window.message) == ("NeverStarted", True)

    desk.put(a_calendar("2026-12-25"))
    desk.settle()
    assert len(desk.live) == 1
    assert conditions_of(desk.controlled.status)["Error"].status == "False"


def test_with_a_calendar_missing_what_runs_goes_on_and_is_stopped_as_planned() -> None:
    desk = ControlledDesk(a_controlled(), at=NOON)
    desk.settle()
    running = desk.live
    desk.edit(windows=(a_window("09:00-16:00", exclude=("holidays",)),))
    desk.settle()
    assert desk.live == running

    desk.settle_at(moment(f"{MON} 16:00"))

    assert desk.live == []


def test_a_day_that_a_calendar_closes_has_no_window() -> None:
    desk = ControlledDesk(
        a_controlled(a_window(exclude=("holidays",))), a_calendar(MON), at=NOON,
    )  # fmt: skip
    desk.settle()

    assert desk.jobs == {}
    assert conditions_of(desk.controlled.status)["NotRunningExpectedly"].status == "True"


def test_a_day_that_is_closed_while_its_window_is_open_stops_its_job() -> None:
    desk = ControlledDesk(
        a_controlled(a_window(exclude=("holidays",))), a_calendar("2026-12-25"), at=NOON,
    )  # fmt: skip
    desk.settle()
    assert len(desk.live) == 1
    stored = desk.plane.calendars.get(a_calendar().key)
    assert stored is not None
    from interlock.forecast.rehearsal.simulated_loop import run_now

    closed = replace(stored, spec=a_calendar(MON).spec)
    run_now(desk.store.update(closed))

    desk.settle()

    assert desk.live == []


def test_a_refused_definition_is_replaced_once_the_template_is_changed_even_under_ignore() -> None:
    """It never ran: there is nothing to be left alone."""
    controlled = a_controlled()
    job = a_run(controlled, f"{MON} 09:00", 0, "Invalid", template="0" * 64)

    (new,) = made(decide_controlled(a_view(controlled, job), NOON))

    assert new.metadata.name.endswith("-1")


def test_an_object_that_is_being_deleted_makes_nothing_and_still_stops() -> None:
    going = a_controlled(suspend=True)
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOON))
    job = a_run(going, f"{MON} 09:00", 0)

    decision = decide_controlled(a_view(going, job), NOON)

    assert told_to_stop(decision) == [job.metadata.name]
    assert [type(action) for action in decision.actions] == [ReviseJob]
    bare = decide_controlled(a_view(replace(going, spec=replace(going.spec, suspend=False))), NOON)
    assert bare.actions == ()
