"""Printer columns of JobConfigs, ControlledJobs and Calendars."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job_config import JobConfig


class Pointer(NamedTuple):
    """Where a definition points for a column: it can point at a value but not compute one."""

    path: str
    #: What it points at, where that is not what the column shows but only the nearest to it.
    nearest: str = ""


#: Its name, its value, what it is, and where an API server finds it.
Told = tuple[str, Callable[[Any], object], str, Pointer]


def _status(field: str) -> Pointer:
    return Pointer(f".status.{field}")


#: Further lines of a schedule are counted and not shown.
_MANY = " (+{})"


def _moment(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _yes(value: bool) -> str:
    return "true" if value else "false"


def _first(values: list[str]) -> str:
    more = len(values) - 1
    return values[0] + (_MANY.format(more) if more else "") if values else ""


def _cron(config: JobConfig) -> str:
    return _first([line for schedule in config.spec.schedules for line in schedule.cron])


def _timezone(config: JobConfig) -> str:
    return _first(list(dict.fromkeys(schedule.timezone for schedule in config.spec.schedules)))


def _zone(controlled: ControlledJob) -> str:
    zone = controlled.spec.timezone
    return f"{zone.name}{zone.offset:+}s" if zone.offset else zone.name


def _overrides(controlled: ControlledJob) -> str:
    return _first([override.action.value for override in controlled.spec.overrides])


def _job(controlled: ControlledJob) -> str:
    """The Job that runs, or the newest of the window."""
    status = controlled.status
    if status.active:
        return _first([reference.name for reference in status.active])
    return status.window.job.name if status.window and status.window.job else ""


def _days(calendar: Calendar) -> str:
    """How many days are written; those of an iCalendar file are not counted."""
    listed = str(len(calendar.spec.days))
    if not calendar.spec.icalendar:
        return listed
    events = calendar.spec.icalendar.upper().count("BEGIN:VEVENT")
    return f"{listed} (+ {events} iCalendar event{'' if events == 1 else 's'})"


CONFIG: tuple[Told, ...] = (
    ("State", lambda one: one.status.state.value, "What the config is doing.", _status("state")),
    ("Active", lambda one: one.status.active, "Jobs that run.", _status("active")),
    ("Queued", lambda one: one.status.queued, "Jobs that wait.", _status("queued")),
    (
        "Last schedule",
        lambda one: _moment(one.status.last_scheduled),
        "Last due time with a Job.",
        _status("lastScheduled"),
    ),
    (
        "Next schedule",
        lambda one: _moment(one.status.next_schedule),
        "When it is due next.",
        _status("nextSchedule"),
    ),
)
CONFIG_WIDE: tuple[Told, ...] = (
    (
        "Cron",
        _cron,
        "When it is due.",
        Pointer(".spec.schedules[0].cron", "When its first schedule is due."),
    ),
    (
        "Timezone",
        _timezone,
        "Whose clock tells the time.",
        Pointer(".spec.schedules[0].timezone", "Whose clock tells its first schedule."),
    ),
    (
        "Last success",
        lambda one: _moment(one.status.last_success),
        "When a Job last succeeded.",
        _status("lastSuccess"),
    ),
    (
        "Last failure",
        lambda one: _moment(one.status.last_failure),
        "When a Job last failed.",
        _status("lastFailure"),
    ),
    (
        "Skipped",
        lambda one: one.status.skipped,
        "Due times that became no Job.",
        _status("skipped"),
    ),
)
CONTROLLED: tuple[Told, ...] = (
    (
        "Running",
        lambda one: _yes(one.status.is_running),
        "Whether its Job runs.",
        _status("isRunning"),
    ),
    (
        "Should be running",
        lambda one: _yes(one.status.should_be_running),
        "Whether a window is open.",
        _status("shouldBeRunning"),
    ),
    (
        "Suspended",
        lambda one: _yes(one.status.is_suspended),
        "Whether it is held back.",
        _status("isSuspended"),
    ),
    (
        "Next start",
        lambda one: _moment(one.status.next_start),
        "When a window opens next.",
        _status("nextStart"),
    ),
    (
        "Next stop",
        lambda one: _moment(one.status.next_stop),
        "When the window closes next.",
        _status("nextStop"),
    ),
    (
        "Last scheduled start",
        lambda one: _moment(one.status.last_scheduled_start_time),
        "When the window opened that is open, or was last.",
        _status("lastScheduledStartTime"),
    ),
)
CONTROLLED_WIDE: tuple[Told, ...] = (
    ("Timezone", _zone, "Whose clock tells the time.", Pointer(".spec.timezone.name")),
    (
        "Overrides",
        _overrides,
        "Exceptions to the plan that are not over.",
        Pointer(".spec.overrides[0].action", "The first exception to the plan."),
    ),
    (
        "Job",
        _job,
        "The Job that runs, or ran last.",
        Pointer(".status.active[0].name", "The Job that runs."),
    ),
)
CALENDAR: tuple[Told, ...] = (
    (
        "Days",
        _days,
        "Entries of the calendar.",
        Pointer(".spec.days[0].day", "The first of its days."),
    ),
)
