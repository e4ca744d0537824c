"""What wakes a config, and what is remembered of it."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.garbage import INDEXES
from interlock.control.reconciler import Change
from interlock.resources.calendar import Calendar
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key, Resource
from interlock.schedules.calendars import KEPT as CALENDARS_KEPT
from interlock.schedules.calendars import Calendars
from interlock.schedules.configs import reading
from interlock.schedules.configs.reading import Timings
from interlock.schedules.configs.reconciler import ConfigSide
from interlock.testing.builders import T0, a_job
from interlock.testing.config_builders import (
    a_calendar,
    a_job_config,
    a_schedule,
    a_template,
    admitted,
    ended,
    made_for,
    moment,
)

KEY = Key("JobConfig", "default", "report")
CONFIG = a_job_config("report")
JOB = made_for(CONFIG, moment("2026-01-05 12:01"))


def at(time: str) -> datetime:
    return moment(f"2026-01-05 {time}")


def a_side() -> ConfigSide:
    jobs: Cache[Job] = Cache("Job", INDEXES)
    configs: Cache[JobConfig] = Cache("JobConfig", INDEXES)
    return ConfigSide(jobs, configs, Cache("Calendar", INDEXES))


def _newer(config: JobConfig, **more: object) -> JobConfig:
    return replace(config, metadata=replace(config.metadata, **more))


def _running(job: Job) -> Job:
    execution = replace(job.status.execution, started_at=T0, total=1)
    return replace(job, status=replace(job.status, execution=execution))


@pytest.mark.parametrize(
    ("before", "after", "is_woken"),
    [
        pytest.param(None, CONFIG, True, id="a new config"),
        pytest.param(CONFIG, _newer(CONFIG, generation=2), True, id="an edit"),
        pytest.param(CONFIG, _newer(CONFIG, deletion_timestamp=T0), True, id="a deletion"),
        pytest.param(CONFIG, _newer(CONFIG, uid="other"), True, id="another of the name"),
        pytest.param(
            CONFIG,
            replace(CONFIG, status=replace(CONFIG.status, queued=3)),
            False,
            id="its own status",
        ),
        pytest.param(CONFIG, _newer(CONFIG, labels={"a": "b"}), False, id="a label"),
        pytest.param(CONFIG, None, False, id="it is gone"),
        pytest.param(None, JOB, True, id="a Job came"),
        pytest.param(JOB, None, True, id="a Job went"),
        pytest.param(JOB, admitted(JOB), True, id="a Job was let in"),
        pytest.param(admitted(JOB), ended(JOB), True, id="a Job ended"),
        pytest.param(admitted(JOB), _running(admitted(JOB)), False, id="a Job's tasks began"),
        pytest.param(None, a_job("plain"), False, id="a Job of nobody"),
        pytest.param(None, a_calendar("holidays"), False, id="a calendar that nobody names"),
    ],
)
def test_what_wakes_a_config(
    before: Resource | None, after: Resource | None, is_woken: bool
) -> None:
    assert list(a_side().wakes(Change(before, after))) == ([KEY] if is_woken else [])


def test_a_calendar_wakes_those_who_name_it_and_no_longer_than_they_do() -> None:
    side = a_side()
    names = a_job_config("report", a_schedule(exclude=("holidays",), only=("trading",)))
    side.wakes(Change(None, names))

    for calendar in ("holidays", "trading"):
        assert list(side.wakes(Change(None, a_calendar(calendar)))) == [KEY]

    without = replace(_newer(CONFIG, generation=2), spec=CONFIG.spec)
    side.wakes(Change(names, without))
    assert list(side.wakes(Change(None, a_calendar("holidays")))) == []

    side.wakes(Change(None, names))
    side.wakes(Change(names, None))
    assert list(side.wakes(Change(a_calendar("trading"), None))) == []


def test_a_key_that_is_not_there_needs_nothing() -> None:
    assert a_side().look(KEY, T0).actions == ()


def test_a_config_is_read_once_for_each_generation_and_calendar_and_few_are_kept() -> None:
    calendars: Cache[Calendar] = Cache("Calendar", INDEXES)
    calendars.note(a_calendar("holidays", "12-25"))
    timings = Timings(Calendars(calendars.get))
    config = a_job_config("report", a_schedule(exclude=("holidays",)))
    first = timings.of(config)

    assert timings.of(replace(config, status=replace(config.status, queued=1))) is first
    assert timings.of(_newer(config, generation=2)) is not first
    calendars.note(a_calendar("holidays", "12-26", version=2))
    assert timings.of(config) is not first

    for number in range(reading.KEPT + 10):
        timings.of(a_job_config(f"other-{number}"))
    assert len(timings._read) == reading.KEPT


def test_few_calendars_are_kept() -> None:
    cache: Cache[Calendar] = Cache("Calendar", INDEXES)
    calendars = Calendars(cache.get)
    for number in range(CALENDARS_KEPT + 10):
        cache.note(a_calendar(f"c-{number}", "12-25"))
        assert calendars.find("default", f"c-{number}").calendar is not None
    assert len(calendars._read) == CALENDARS_KEPT


@pytest.mark.parametrize("day", ["2026-13-01", "someday", "5th MON of NEVER"])
def test_a_calendar_that_cannot_be_read_is_as_good_as_none_and_says_why(day: str) -> None:
    cache: Cache[Calendar] = Cache("Calendar", INDEXES)
    cache.note(a_calendar("holidays", "12-25", day))

    found = Calendars(cache.get).find("default", "holidays")

    assert found.calendar is None
    assert "spec.days[1]" in found.problem


def test_an_edit_of_the_template_alone_is_no_new_timing() -> None:
    timings = Timings(Calendars(lambda _: None))
    edited = replace(
        _newer(CONFIG, generation=2), spec=replace(CONFIG.spec, template=a_template("false"))
    )

    assert timings.of(edited).digest == timings.of(CONFIG).digest
