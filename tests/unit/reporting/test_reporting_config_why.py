"""Why a JobConfig does, or does not, run: the first line answers, the rest names who can help."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from interlock.reporting.config_why import ConfigView, explain_config
from interlock.reporting.schedule_why import ScheduleWhy
from interlock.resources.job import Job, JobPhase, JobSpec, JobStatus, WhenTaken
from interlock.resources.job_config import (
    Concurrency,
    JobConfig,
    JobConfigSpec,
    JobConfigStatus,
    Skip,
    SkipReason,
)
from interlock.resources.metadata import Metadata
from interlock.resources.options import OptionSpec
from interlock.resources.process import NoopSpec
from interlock.resources.schedule import (
    SUSPEND_REASON_ANNOTATION,
    JobTemplate,
    ScheduleSpec,
)
from interlock.resources.tasks import ExecutionStatus
from interlock.resources.values.cron_lines import CronLines
from interlock.schedules.calendars import FoundCalendar
from interlock.schedules.configs.reading import read_timing
from interlock.testing.builders import T0, a_job
from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.day_texts import read_days

NOW = T0
TWELVE_FIVE = CronLines("5 12 * * *")


def a_config(
    *schedules: ScheduleSpec,
    status: JobConfigStatus | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> JobConfig:
    return JobConfig(
        metadata=Metadata(
            name="nightly",
            namespace="default",
            uid="uid-nightly",
            creation_timestamp=T0,
            annotations=annotations or {},
        ),
        spec=JobConfigSpec(
            template=JobTemplate(spec=JobSpec(noop=NoopSpec())), schedules=schedules, **spec
        ),
        status=status or JobConfigStatus(),
    )


def find(name: str) -> FoundCalendar:
    if name != "holidays":
        return FoundCalendar(None, "", f"calendar {name} does not exist")
    day = NamedDays(read_days("2026-01-06"), "Epiphany")
    return FoundCalendar(Calendar(name, [day]), "1")


def why(config: JobConfig, *jobs: Job) -> ScheduleWhy:
    view = ConfigView(config=config, timing=read_timing(config, find), jobs=jobs)
    return explain_config(view, NOW)


def running(name: str) -> Job:
    status = JobStatus(phase=JobPhase.RUNNING, execution=ExecutionStatus(total=1, started_at=T0))
    return a_job(name, status=status)


def details(answer: ScheduleWhy, label: str) -> list[str]:
    return [text for name, text in answer.details if name == label]


def test_a_config_that_waits_tells_its_next_run_on_its_own_clock() -> None:
    answer = why(a_config(ScheduleSpec(cron=TWELVE_FIVE, timezone="America/New_York")))

    assert answer.summary == "nightly is not running; the next run is today 12:05 EST"
    assert answer.waits == ()
    assert answer.next_start == T0 + timedelta(hours=5, minutes=5)
    assert details(answer, "next") == ["today 12:05 EST"]


def test_each_due_time_is_told_on_the_clock_of_its_schedule() -> None:
    answer = why(
        a_config(
            ScheduleSpec(cron=CronLines("0 13 * * *"), timezone="America/New_York"),
            ScheduleSpec(cron=TWELVE_FIVE, timezone="Europe/London", exclude=("holidays",)),
        )
    )

    assert answer.summary == "nightly is not running; the next run is today 12:05 GMT"
    assert details(answer, "next") == ["today 12:05 GMT"]
    assert details(answer, "then") == [
        "today 13:00 EST",
        "tomorrow 12:05 GMT  skipped: calendar holidays: Epiphany",
    ]


@pytest.mark.parametrize(
    ("config", "summary", "reasons"),
    [
        pytest.param(
            a_config(),
            "nightly is not running; it has no schedule: run it with: interlock run nightly",
            {},
            id="no schedule",
        ),
        pytest.param(
            a_config(
                ScheduleSpec(cron=TWELVE_FIVE),
                suspend=True,
                annotations={SUSPEND_REASON_ANNOTATION: "month end"},
            ),
            "nightly is not running; nothing is due while it is suspended",
            {
                "Suspended": "it is suspended: month end; let it go with:"
                " interlock resume jobconfig/nightly"
            },
            id="suspended",
        ),
        pytest.param(
            a_config(ScheduleSpec(cron=TWELVE_FIVE, disabled=True)),
            "nightly is not running; its schedules are disabled",
            {
                "Disabled": "its schedules are disabled; switch them on with:"
                " interlock enable nightly"
            },
            id="disabled",
        ),
        pytest.param(
            a_config(ScheduleSpec(cron=TWELVE_FIVE), ScheduleSpec(cron=TWELVE_FIVE, disabled=True)),
            "nightly is not running; the next run is today 12:05 UTC",
            {
                "Disabled": "schedule 1 is disabled; switch it on with:"
                " interlock enable nightly --schedule 1"
            },
            id="one of two is disabled",
        ),
        pytest.param(
            a_config(ScheduleSpec(cron=TWELVE_FIVE, not_after=T0)),
            "nightly is not running; nothing is due any more",
            {"NeverDue": "no time to come fits its cron lines, calendars, notBefore and notAfter"},
            id="over",
        ),
        pytest.param(
            a_config(ScheduleSpec(cron=TWELVE_FIVE, exclude=("gone",))),
            "nightly is not running; what is due is skipped while a calendar is missing",
            {
                "CalendarMissing": "calendar gone does not exist: what is due by it is skipped"
                " until it is there"
            },
            id="a calendar is missing",
        ),
        pytest.param(
            a_config(
                ScheduleSpec(cron=TWELVE_FIVE), options=(OptionSpec(name="day", required=True),)
            ),
            "nightly is not running; the next run is today 12:05 UTC",
            {
                "Invalid": "options.day: is required; what is due by the clock is skipped until"
                " that is corrected"
            },
            id="an option without a value",
        ),
    ],
)
def test_what_is_in_the_way_is_told_with_the_way_out(
    config: JobConfig, summary: str, reasons: dict[str, str]
) -> None:
    answer = why(config)

    assert answer.summary == summary
    assert {wait.reason: wait.message for wait in answer.waits} == reasons


def test_a_schedule_that_cannot_be_read_is_told_and_the_others_go_on() -> None:
    answer = why(a_config(ScheduleSpec(cron=CronLines("often")), ScheduleSpec(cron=TWELVE_FIVE)))

    (wait,) = answer.waits
    assert wait.reason == "Unreadable"
    assert "spec.schedules[0]" in wait.message
    assert answer.summary.endswith("the next run is today 12:05 UTC")


def test_one_of_which_nothing_can_be_read_says_so_and_not_that_nothing_is_due() -> None:
    answer = why(a_config(ScheduleSpec(cron=CronLines("often"))))

    assert answer.summary == "nightly is not running; nothing is due: its schedule cannot be read"


def test_jobs_that_run_and_wait_are_named() -> None:
    answer = why(a_config(ScheduleSpec(cron=TWELVE_FIVE)), running("a"), a_job("b"))

    assert answer.summary == (
        "nightly is running: job/a, 1 more in line; the next run is today 12:05 UTC"
    )
    assert details(answer, "running") == ["job/a runs (0.00 s)"]
    assert details(answer, "waiting") == ["job/b waits (0.00 s); why: interlock why job/b"]


def test_forbid_tells_that_the_next_run_would_be_skipped() -> None:
    config = a_config(
        ScheduleSpec(cron=TWELVE_FIVE), concurrency=Concurrency(policy=WhenTaken.FORBID)
    )

    (wait,) = why(config, running("a")).waits

    assert wait.reason == "Concurrency"
    assert wait.message == (
        "1 Job of it runs, as many as may, and the policy is Forbid: what is due meanwhile is"
        " skipped"
    )


def test_the_newest_skips_are_told_with_their_reasons() -> None:
    early = T0 - timedelta(hours=3)
    skips = (
        Skip(at=early, reason=SkipReason.TOO_OLD, until=early + timedelta(hours=1), count=0),
        Skip(at=early + timedelta(hours=2), reason=SkipReason.CALENDAR, message="Epiphany"),
    )
    config = a_config(
        ScheduleSpec(cron=TWELVE_FIVE), status=JobConfigStatus(skips=skips, skipped=2)
    )

    assert details(why(config), "skipped") == [
        "today 11:00 UTC: Epiphany",
        "today 09:00 UTC to today 10:00 UTC (too often to be counted): TooOld",
    ]
