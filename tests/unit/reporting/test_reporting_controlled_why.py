"""Why a ControlledJob is, or is not, running: the first line answers, the rest names who can."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.control.caches import Caches
from interlock.errors import NotFoundError
from interlock.reporting.schedule_reader import BY_OWNER, ScheduleReader, owner_uids
from interlock.reporting.schedule_why import ScheduleWhy
from interlock.resources.controlled_job import (
    ControlledJob,
    ControlledJobSpec,
    ControlledJobStatus,
    EventSpec,
    Override,
    OverrideAction,
    TimezoneSpec,
    WindowOutcome,
    WindowRecord,
    WindowSpec,
)
from interlock.resources.job import Job, JobPhase, JobSpec, JobStatus
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import (
    Condition,
    ConditionStatus,
    Metadata,
    OwnerReference,
    Trouble,
)
from interlock.resources.process import NoopSpec
from interlock.resources.schedule import STOPPED_BY_ANNOTATION, JobReference, JobTemplate
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0, a_job
from interlock.timing.cron import CronFormat
from interlock.timing.plans import Action

#: A Monday at noon in London, and at 07:00 in New York.
LONDON, NEW_YORK = TimezoneSpec(name="Europe/London"), TimezoneSpec(name="America/New_York")
HOUR = timedelta(hours=1)


def an_engine(
    zone: TimezoneSpec = LONDON,
    *overrides: Override,
    status: ControlledJobStatus | None = None,
    **spec: Any,
) -> ControlledJob:
    spec.setdefault("windows", (WindowSpec(begin="09:00", end="17:30", days="MON-FRI"),))
    return ControlledJob(
        metadata=Metadata(
            name="engine",
            namespace="default",
            uid="uid-engine",
            resource_version="1",
            creation_timestamp=T0,
        ),
        spec=ControlledJobSpec(
            job_template=JobTemplate(spec=JobSpec(noop=NoopSpec())),
            timezone=zone,
            overrides=overrides,
            **spec,
        ),
        status=status or ControlledJobStatus(),
    )


def its_job(phase: JobPhase = JobPhase.RUNNING, **spec: Any) -> Job:
    owner = OwnerReference(
        api_version="interlock.dev/v1alpha1",
        kind="ControlledJob",
        name="engine",
        uid="uid-engine",
        controller=True,
    )
    status = JobStatus(phase=phase, execution=ExecutionStatus(total=1, started_at=T0 - HOUR))
    return a_job("engine-1-0", status=status, metadata={"owner_references": (owner,)}, **spec)


def why(engine: ControlledJob, *jobs: Job, now: datetime = T0) -> ScheduleWhy:
    caches = Caches(KINDS.values(), indexes=({Job: {BY_OWNER: owner_uids}},))
    for held in (engine, *jobs):
        caches[held.kind].note(held)
    reader = ScheduleReader(caches)
    with pytest.raises(NotFoundError):
        reader.why_controlled("default", "other", now)
    return reader.why_controlled("default", "engine", now)


def details(answer: ScheduleWhy, label: str) -> list[str]:
    return [text for name, text in answer.details if name == label]


def test_one_that_runs_tells_until_when() -> None:
    answer = why(an_engine(), its_job())

    assert answer.state == "Running"
    assert answer.summary == ("engine is running: job/engine-1-0 (1 h); it stops today 17:30 GMT")
    assert answer.waits == ()
    assert answer.next_stop == T0 + 5.5 * HOUR


def test_outside_its_hours_it_tells_when_it_starts_on_its_own_clock() -> None:
    answer = why(an_engine(NEW_YORK))

    assert answer.state == "Idle"
    assert answer.summary == (
        "engine is not running: it is outside its hours; it starts today 09:00 EST"
    )
    (wait,) = answer.waits
    assert wait.until == T0 + 2 * HOUR
    assert "interlock start engine" in wait.message
    assert details(answer, "next") == ["start today 09:00 EST"]


def test_a_plan_with_a_start_every_second_is_told_without_walking_through_them() -> None:
    starts = EventSpec(action=Action.START, cron="* * * * * *", format=CronFormat.SECONDS_FIRST)
    stops = EventSpec(action=Action.STOP, cron="0 0 29 2 *")
    answer = why(an_engine(windows=(), events=(starts, stops)))

    assert details(answer, "next") == ["stop Tue 29 Feb 2028 00:00 GMT"]
    assert details(answer, "then")[0] == "start Tue 29 Feb 2028 00:00 GMT"


def test_a_stop_that_ends_nothing_is_not_told() -> None:
    skip = Override(action=OverrideAction.SKIP, begin=T0, until=T0 + 24 * HOUR)
    answer = why(an_engine(NEW_YORK, skip))

    assert details(answer, "next") == ["start tomorrow 09:00 EST"]
    stops = EventSpec(action=Action.STOP, cron="0 * * * *")
    assert details(why(an_engine(windows=(), events=(stops,))), "next") == []


def a_window(outcome: WindowOutcome, message: str = "") -> ControlledJobStatus:
    job = JobReference(name="engine-1-0", uid="u")
    record = WindowRecord(start=T0 - 3 * HOUR, outcome=outcome, job=job, message=message)
    return ControlledJobStatus(window=record)


@pytest.mark.parametrize(
    ("outcome", "summary", "message"),
    [
        pytest.param(
            WindowOutcome.FINISHED,
            "it has done its work in this window",
            "its Job engine-1-0 ended well, and does not run twice in one window",
            id="finished",
        ),
        pytest.param(
            WindowOutcome.FAILED,
            "its Job failed",
            "its Job engine-1-0 failed, and is not repeated in the same window",
            id="failed",
        ),
        pytest.param(
            WindowOutcome.STOPPED_BY_USER,
            "a person stopped it",
            "a person stopped its Job engine-1-0",
            id="stopped by a person",
        ),
        pytest.param(
            WindowOutcome.TOO_LATE,
            "it could not be started in time",
            "no Job could be made within spec.startBy",
            id="too late",
        ),
    ],
)
def test_why_an_open_window_is_empty(outcome: WindowOutcome, summary: str, message: str) -> None:
    answer = why(an_engine(status=a_window(outcome)))

    assert answer.summary == f"engine is not running: {summary}; it starts tomorrow 09:00 GMT"
    (wait,) = answer.waits
    assert (wait.reason, wait.message) == (
        outcome.value,
        f"{message}; start it again with: interlock start engine",
    )


def test_whoever_stopped_the_job_of_a_window_is_named() -> None:
    stopped = its_job(JobPhase.KILLED)
    stopped.metadata.annotations[STOPPED_BY_ANNOTATION] = "ann"
    ended = replace(stopped.status.execution, ended_at=T0, result=JobResult.KILLED)
    stopped = replace(stopped, status=replace(stopped.status, execution=ended))
    window = a_window(WindowOutcome.STOPPED_BY_USER).window
    assert window is not None
    its = JobReference(name="engine-1-0", uid=stopped.metadata.uid)
    status = ControlledJobStatus(window=replace(window, job=its))
    answer = why(an_engine(status=status), stopped)

    assert answer.summary.startswith("engine is not running: it was stopped by ann;")
    assert answer.waits[0].message.startswith("its Job engine-1-0 was stopped by ann;")


@pytest.mark.parametrize(
    ("hold", "until"),
    [
        pytest.param((), "today 13:00 GMT", id="from its start"),
        pytest.param(
            (Override(action=OverrideAction.HOLD, begin=T0 - 4 * HOUR, until=T0 - HOUR),),
            "today 15:00 GMT",
            id="from the end of the hold that kept it",
        ),
    ],
)
def test_a_window_without_a_job_tells_until_when_one_may_start(
    hold: tuple[Override, ...], until: str
) -> None:
    record = WindowRecord(start=T0 - 3 * HOUR, message="calendar x does not exist")
    status = ControlledJobStatus(window=record)
    answer = why(an_engine(LONDON, *hold, status=status, start_by=Duration(hours=4)))

    (wait,) = answer.waits
    assert wait.message == (
        "its window is open, and no Job was made yet (calendar x does not exist);"
        f" it can start until {until}: spec.startBy"
    )


@pytest.mark.parametrize("outcome", WindowOutcome)
def test_every_outcome_of_a_window_has_words(outcome: WindowOutcome) -> None:
    answer = why(an_engine(status=a_window(outcome, "told so")))

    assert answer.waits[0].message
    assert outcome.value in details(answer, "window")[0]
    assert "told so" in details(answer, "window")[0]


def test_a_hold_is_told_with_who_and_why_and_the_way_out() -> None:
    held = Override(
        action=OverrideAction.HOLD, begin=T0 - HOUR, until=T0 + 24 * HOUR, by="ops", reason="audit"
    )
    answer = why(an_engine(LONDON, held))

    assert answer.summary == ("engine is not running: it is on hold; it starts tomorrow 12:00 GMT")
    (wait,) = answer.waits
    assert wait.message == (
        "it is held until tomorrow 12:00 GMT, set by ops (audit); take that back with:"
        " interlock hold engine --cancel"
    )
    assert wait.until == held.until


def test_exceptions_to_come_are_told() -> None:
    skip = Override(action=OverrideAction.SKIP, begin=T0 + 12 * HOUR, until=T0 + 36 * HOUR)
    longer = Override(action=OverrideAction.EXTEND, begin=T0, until=T0 + 7 * HOUR, by="ops")
    over = Override(action=OverrideAction.HOLD, begin=T0 - 9 * HOUR, until=T0 - 8 * HOUR)
    answer = why(an_engine(LONDON, skip, longer, over), its_job())

    assert answer.summary.endswith("it stops today 19:00 GMT")
    assert details(answer, "exception") == [
        "no start from tomorrow 00:00 GMT to Wed 7 Jan 00:00 GMT; it goes by itself then",
        "it ends today 19:00 GMT and not earlier, set by ops; it goes by itself then",
    ]
    assert details(answer, "next") == ["stop today 19:00 GMT"]
    assert details(answer, "then") == [
        "start Wed 7 Jan 09:00 GMT",
        "stop Wed 7 Jan 17:30 GMT",
    ]


def test_a_suspended_one_tells_how_to_let_it_go() -> None:
    answer = why(an_engine(suspend=True))

    assert details(answer, "next") == []
    assert answer.summary == (
        "engine is not running: it is suspended; it does not start while it is suspended"
    )
    assert "interlock resume controlledjob/engine" in answer.waits[0].message


def test_one_that_is_being_stopped_is_named_as_what_the_next_waits_for() -> None:
    answer = why(an_engine(NEW_YORK), its_job(JobPhase.KILLING, kill_at=T0 - HOUR))

    assert answer.state == "Stopping"
    assert answer.summary == (
        "engine is being stopped: job/engine-1-0 is being stopped (1 h); it starts today 09:00 EST"
    )
    assert [wait.reason for wait in answer.waits] == ["OutsideItsHours", "Draining"]


def test_a_missing_calendar_and_a_plan_that_cannot_be_read_are_told() -> None:
    missing = why(
        an_engine(windows=(WindowSpec(begin="09:00", end="17:00", exclude=("holidays",)),))
    )
    assert "calendar holidays does not exist" in missing.waits[0].message
    assert missing.summary == (
        "engine is not running: a calendar is missing; nothing starts until it is there"
    )
    assert details(missing, "next") == [
        "start tomorrow 09:00 GMT  skipped: calendar holidays does not exist"
    ]

    broken = why(an_engine(windows=(WindowSpec(begin="soon", end="17:00"),)), its_job())
    assert broken.summary == "engine runs on (job/engine-1-0), and its plan cannot be read"
    assert '"soon"' in broken.waits[0].message


def test_alarms_and_troubles_are_told() -> None:
    alarm = Condition(
        type="DrainOverdue",
        status=ConditionStatus.TRUE,
        reason="DrainOverdue",
        message="job/engine-1-0 was told to stop 20 m ago",
        last_transition_time=T0,
    )
    fine = Condition(
        type="Error", status=ConditionStatus.FALSE, reason="NoError", last_transition_time=T0
    )
    status = ControlledJobStatus(
        conditions=(alarm, fine), trouble=Trouble(room="schedules", message="no", since=T0)
    )
    answer = why(an_engine(status=status))

    assert details(answer, "alarm") == ["DrainOverdue: job/engine-1-0 was told to stop 20 m ago"]
    assert details(answer, "trouble") == ["schedules: no (since today 12:00 GMT)"]
