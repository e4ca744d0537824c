"""What is told on JobConfigs and ControlledJobs: Jobs, skips and alarms, each once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.kube.events.jobs import Told
from interlock.kube.events.schedules import config_told, controlled_told
from interlock.resources.controlled_job import (
    ActionRecord,
    ControlledAction,
    ControlledJob,
    ControlledJobStatus,
)
from interlock.resources.job_config import JobConfig, JobConfigStatus, Skip, SkipReason
from interlock.resources.metadata import Condition, ConditionStatus, Trouble
from interlock.resources.schedule import Books, ExpectedJob
from interlock.testing.builders import T0
from interlock.testing.config_builders import a_job_config
from interlock.testing.controlled_builders import a_controlled

SECOND = timedelta(seconds=1)
CONFIG, CONTROLLED = a_job_config("report"), a_controlled()


def config(**status: Any) -> JobConfig:
    return replace(CONFIG, status=JobConfigStatus(**status))


def controlled(**status: Any) -> ControlledJob:
    return replace(CONTROLLED, status=ControlledJobStatus(**status))


def books(*numbers: int) -> Books:
    expected = (
        ExpectedJob(name=f"report-{n}", uid=f"uid-{n}", scheduled_at=T0 + n * SECOND)
        for n in numbers
    )
    return Books(accounted_to=T0, expected=tuple(expected))


def condition(type: str, *, is_so: bool, message: str = "", reason: str = "Because") -> Condition:
    status = ConditionStatus.TRUE if is_so else ConditionStatus.FALSE
    return Condition(
        type=type, status=status, reason=reason, message=message, last_transition_time=T0
    )


def trouble(message: str = "no") -> Trouble:
    return Trouble(room="schedules", message=message, since=T0 + SECOND)


FORBIDDEN = Skip(at=T0, reason=SkipReason.CONCURRENCY, message="job/a runs")
LONGER = replace(FORBIDDEN, until=T0 + SECOND, count=2)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            config(),
            config(books=books(1)),
            [("Normal", "CreatedJob", "job/report-1, due at 2026-01-05T12:00:01Z")],
            id="made",
        ),
        pytest.param(config(books=books(1)), config(books=books()), [], id="let in"),
        pytest.param(
            config(books=books(1)),
            config(books=books(*range(9))),
            [*[("Normal", "CreatedJob", "job/")] * 5, ("Normal", "CreatedJob", "and 3 more Jobs")],
            id="many at once",
        ),
        pytest.param(
            config(),
            config(skips=(FORBIDDEN,)),
            [
                (
                    "Warning",
                    "SkippedSchedule",
                    "due at 2026-01-05T12:00:00Z: Concurrency: job/a runs",
                )
            ],
            id="skipped",
        ),
        pytest.param(
            config(skips=(FORBIDDEN,)),
            config(skips=(LONGER,)),
            [("Warning", "SkippedSchedule", "due since 2026-01-05T12:00:00Z: Concurrency")],
            id="skipped again",
        ),
        pytest.param(
            config(),
            config(skips=(replace(LONGER, reason=SkipReason.TOO_OLD, count=0),)),
            [("Warning", "SkippedSchedule", "too many times to be counted: TooOld")],
            id="a stretch",
        ),
        pytest.param(
            config(),
            config(books=books(), next_schedule=T0, trouble=trouble()),
            [("Warning", "CreateJobFailed", "no")],
            id="what is due could not be made",
        ),
        pytest.param(
            config(),
            config(books=books(), next_schedule=T0 + 60 * SECOND, trouble=trouble()),
            [("Warning", "Trouble", "schedules: no")],
            id="trouble with nothing due",
        ),
        pytest.param(
            config(),
            config(conditions=(condition("Schedulable", is_so=False, reason="CalendarMissing"),)),
            [("Warning", "CalendarMissing", "")],
            id="a calendar is missing",
        ),
        pytest.param(config(), config(active=3, next_schedule=T0), [], id="numbers alone"),
    ],
)
def test_what_is_told_of_a_config(
    before: JobConfig, after: JobConfig, expected: list[tuple[str, str, str]]
) -> None:
    check(config_told(before, after), expected)


def record(kind: ControlledAction, seconds: int = 0, message: str = "") -> ActionRecord:
    return ActionRecord(
        type=kind,
        timestamp=T0 + seconds * SECOND,
        message=message,
        job_name="engine-1-0",
        scheduled_start_time=T0,
    )


STARTED = record(ControlledAction.JOB_STARTED)
STOPPED = record(ControlledAction.JOB_STOPPED, 1, "its window closed")
SWALLOWED = replace(
    record(ControlledAction.SKIPPED, 0, "the start of 2026-03-08T07:00:00Z: clocks skip 02:30"),
    job_name="",
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            controlled(),
            controlled(action_history=(STARTED,)),
            [("Normal", "JobStarted", "job/engine-1-0, for the start at 2026-01-05T12:00:00Z")],
            id="started",
        ),
        pytest.param(
            controlled(),
            controlled(action_history=(STOPPED, STARTED)),
            [
                ("Normal", "JobStarted", "job/engine-1-0"),
                ("Normal", "JobStopped", "job/engine-1-0: its window closed"),
            ],
            id="the oldest first",
        ),
        pytest.param(
            controlled(),
            controlled(action_history=(SWALLOWED,)),
            [("Warning", "Skipped", "the start of 2026-03-08T07:00:00Z")],
            id="swallowed by a change of clocks",
        ),
        pytest.param(
            controlled(action_history=(STARTED,)),
            controlled(action_history=(STARTED,), is_running=True),
            [],
            id="told before",
        ),
        pytest.param(
            controlled(),
            controlled(
                action_history=(record(ControlledAction.FAILED),),
                conditions=(condition("FailedToCreateJob", is_so=True, message="no room"),),
            ),
            [("Warning", "FailedToCreateJob", "no room")],
            id="could not be made",
        ),
        pytest.param(
            controlled(conditions=(condition("DrainOverdue", is_so=False),)),
            controlled(conditions=(condition("DrainOverdue", is_so=True, message="job/a"),)),
            [("Warning", "DrainOverdue", "job/a")],
            id="overdue",
        ),
        pytest.param(
            controlled(conditions=(condition("DrainOverdue", is_so=True, message="job/a"),)),
            controlled(
                conditions=(condition("DrainOverdue", is_so=True, message="job/a"),),
                is_running=True,
            ),
            [],
            id="still overdue",
        ),
        pytest.param(
            controlled(),
            controlled(conditions=(condition("Error", is_so=True, reason="CalendarMissing"),)),
            [("Warning", "CalendarMissing", "")],
            id="a calendar is missing",
        ),
        pytest.param(
            controlled(),
            controlled(trouble=trouble()),
            [("Warning", "Trouble", "schedules: no")],
            id="trouble",
        ),
    ],
)
def test_what_is_told_of_a_controlled_job(
    before: ControlledJob, after: ControlledJob, expected: list[tuple[str, str, str]]
) -> None:
    check(controlled_told(before, after), expected)


def check(told: list[Told], expected: list[tuple[str, str, str]]) -> None:
    assert [(one.type, one.reason) for one in told] == [each[:2] for each in expected]
    for one, (_, _, words) in zip(told, expected, strict=True):
        assert words in one.message


def test_another_of_the_same_name_is_another_story() -> None:
    other = replace(config(books=books(1)), metadata=replace(CONFIG.metadata, uid="other"))
    assert config_told(CONFIG, other) == []
    changed = controlled(action_history=(STARTED,))
    newer = replace(changed, metadata=replace(CONTROLLED.metadata, uid="other"))
    assert controlled_told(CONTROLLED, newer) == []
