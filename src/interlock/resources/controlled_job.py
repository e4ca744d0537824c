"""A ControlledJob: one Job kept running inside windows, exactly one at a time."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from interlock.resources.metadata import Condition, Moment, Noun, Resource, Status
from interlock.resources.rules import (
    After,
    ExactlyOne,
    Items,
    Limit,
    Line,
    NounRule,
    Reads,
    SomeTime,
    whole,
)
from interlock.resources.schedule import (
    Books,
    Calendars,
    HistoryLimits,
    JobReference,
    JobTemplate,
    Zone,
)
from interlock.resources.schedule_limits import (
    MAX_EVENTS,
    MAX_OFFSET_S,
    MAX_OVERRIDES,
    MAX_WINDOWS,
)
from interlock.resources.values.durations import Duration
from interlock.timing.cron import CronFormat
from interlock.timing.day_texts import read_weekdays
from interlock.timing.plans import Action
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.windows import read_time_of_day

_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?"
_TimeOfDay = Annotated[str, Reads(read_time_of_day, {"maxLength": 8, "pattern": whole(_TIME)})]
_EndOfDay = Annotated[
    str,
    Reads(
        lambda text: read_time_of_day(text, is_end=True),
        {"maxLength": 8, "pattern": whole(f"{_TIME}|24:00(?::00)?")},
    ),
]
_Weekdays = Annotated[
    str,
    Reads(read_weekdays, {"minLength": 1, "maxLength": 200, "pattern": "^[0-9A-Za-z*,-]+$"}),
]


class TimezoneSpec(Noun):
    """The clock that all times are read on."""

    #: A zone such as Europe/London, or a fixed offset such as UTC+2.
    name: Zone = "UTC"
    #: Seconds that are added to the zone's own offset: with 60, everything is a minute earlier.
    offset: Annotated[int, Limit(-MAX_OFFSET_S, MAX_OFFSET_S)] = 0


class EventTime(Noun):
    """A time on some weekdays."""

    #: HH:MM or HH:MM:SS.
    time_of_day: _TimeOfDay
    #: MON-FRI, SAT-SUN, FRI-MON or MON,WED; * is every day.
    days_of_week: _Weekdays = "*"


class EventSpec(Noun):
    """A start or a stop: exactly one of `schedule` and `cron`."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("schedule", "cron"),)

    action: Action
    schedule: EventTime | None = None
    #: A cron line.
    cron: str = ""
    #: How a line of six fields is meant.
    format: CronFormat | None = None
    #: Calendars on whose days it does not happen.
    exclude: Calendars = ()
    #: Calendars that the day must be in.
    only: Calendars = ()


class WindowSpec(Noun):
    """Hours of some days; the day is that of the start."""

    #: HH:MM or HH:MM:SS.
    begin: _TimeOfDay = field(name="from")
    #: When it is over; not later than `from` means the next day.
    end: _EndOfDay = field(name="to")
    #: MON-FRI, SAT-SUN, FRI-MON or MON,WED; * is every day.
    days: _Weekdays = "*"
    #: Calendars on whose days it does not start.
    exclude: Calendars = ()
    #: Calendars that the day must be in.
    only: Calendars = ()


class SpecChangePolicy(StrEnum):
    """What a change of the template does to a Job that runs."""

    #: Nothing: the next window takes the new template.
    IGNORE = "Ignore"
    #: The Job is stopped, and one of the new template takes its place.
    RECREATE = "Recreate"


class RestartStrategy(Noun):
    """When a running Job is replaced."""

    spec_change_policy: SpecChangePolicy = SpecChangePolicy.IGNORE


class OverrideAction(StrEnum):
    """What an override does."""

    #: Windows that start between `from` and `until` are left out.
    SKIP = "Skip"
    #: The window that is open at `from` closes at `until`, not earlier.
    EXTEND = "Extend"
    #: Nothing runs from `from` to `until`.
    HOLD = "Hold"


class Override(Noun):
    """An exception to the plan that ends by itself. It is removed once it is over."""

    RULES: ClassVar[tuple[NounRule, ...]] = (
        After("until", "begin", expected="expected a moment after from"),
    )

    action: OverrideAction
    begin: Moment = field(name="from")
    until: Moment
    #: Who said so, and why.
    by: Line = ""
    reason: Line = ""


class ControlledJobSpec(Noun):
    """What the owner asks for. Only the owner writes it; overrides that are over are removed."""

    job_template: JobTemplate
    timezone: TimezoneSpec = TimezoneSpec()
    events: Annotated[tuple[EventSpec, ...], Items(0, MAX_EVENTS, "events")] = ()
    windows: Annotated[tuple[WindowSpec, ...], Items(0, MAX_WINDOWS, "windows")] = ()
    #: What becomes of events when clocks change; windows always follow the one rule.
    on_gap: OnGap = OnGap.RUN_AFTER
    on_repeat: OnRepeat = OnRepeat.FIRST
    #: No Job is made later than this after its window opened. Stops are never late.
    start_by: SomeTime | None = None
    restart_strategy: RestartStrategy = RestartStrategy()
    #: While true no Job runs.
    suspend: bool = False
    #: A Job that was told to stop and is not gone after this time raises an alarm, though not
    #: before its own grace period is over.
    drain_limit: SomeTime = Duration(minutes=15)
    overrides: Annotated[tuple[Override, ...], Items(0, MAX_OVERRIDES, "overrides")] = ()
    history: HistoryLimits = HistoryLimits()


class WindowOutcome(StrEnum):
    """What became of a window."""

    #: No Job was made.
    NEVER_STARTED = "NeverStarted"
    #: Its Job runs, or waits to.
    STARTED = "Started"
    #: Its Job ended by itself, well.
    FINISHED = "Finished"
    #: Its Job ended by itself, not well.
    FAILED = "Failed"
    #: The window closed, and its Job was stopped.
    STOPPED = "Stopped"
    #: A person stopped its Job.
    STOPPED_BY_USER = "StoppedByUser"
    #: A person deleted its Job.
    REMOVED_BY_USER = "RemovedByUser"
    #: No Job was made in time: spec.startBy.
    TOO_LATE = "TooLate"


class WindowRecord(Noun):
    """What is known of one window: why there is, or is not, a Job."""

    #: When the window opened: what its Jobs carry as their scheduled time.
    start: Moment
    #: When it closes or closed; None is never.
    stop: Moment | None = None
    outcome: WindowOutcome = WindowOutcome.NEVER_STARTED
    #: The newest Job of the window, its number, and what template it was made of.
    job: JobReference | None = None
    run_id: int = -1
    template_hash: str = ""
    #: The version the Job had when it was written down: who has heard all up to it, and does not
    #: find the Job, knows that it is gone.
    job_version: int = 0
    #: How many Jobs it has had.
    runs: int = 0
    message: str = ""


class ControlledAction(StrEnum):
    """What was done."""

    #: A Job was made.
    JOB_STARTED = "JobStarted"
    #: A Job was told to stop.
    JOB_STOPPED = "JobStopped"
    #: A Job was replaced, because the template changed.
    JOB_RESTARTED = "JobRestarted"
    #: A start or a stop did not happen: clocks skip its time, and spec.onGap is Skip.
    SKIPPED = "Skipped"
    #: Something could not be done.
    FAILED = "Failed"


class ActionRecord(Noun):
    """One thing that was done, and why."""

    type: ControlledAction
    timestamp: Moment
    message: str = ""
    job_name: str = ""
    job_index: int = 0
    scheduled_start_time: Moment | None = None


class ControlledJobStatus(Status):
    """How it is going. Written by the schedules room alone."""

    books: Books = Books()
    #: Jobs that are not over, the ones being stopped included.
    active: tuple[JobReference, ...] = ()
    #: When the window opened that is open, or was last.
    last_scheduled_start_time: Moment | None = None
    next_start: Moment | None = None
    next_stop: Moment | None = None
    should_be_running: bool = field(default_factory=lambda: False)
    is_running: bool = field(default_factory=lambda: False)
    is_suspended: bool = field(default_factory=lambda: False)
    #: The number of the newest Job; it only rises.
    last_run_id: int = -1
    #: The window that is open, or was last, and those before it, newest first.
    window: WindowRecord | None = None
    past_windows: tuple[WindowRecord, ...] = ()
    most_recent_action: ActionRecord | None = None
    #: The newest first, at most 16.
    action_history: tuple[ActionRecord, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ControlledJob(Resource, tag="ControlledJob", kw_only=True):
    """A template kept running inside time windows, exactly one Job at a time."""

    spec: ControlledJobSpec
    status: ControlledJobStatus = ControlledJobStatus()
