"""A JobConfig: Jobs by the clock, or on demand, of one template."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import field

from interlock.resources.job import WhenTaken
from interlock.resources.metadata import Condition, Moment, Noun, Resource, Status
from interlock.resources.options import OptionSpec
from interlock.resources.rules import ASecondOrMore, Items, Limit, SomeTime, Unique
from interlock.resources.schedule import (
    Books,
    HistoryLimits,
    JobReference,
    JobTemplate,
    ScheduleSpec,
)
from interlock.resources.schedule_limits import (
    MAX_CATCH_UP,
    MAX_CONCURRENCY,
    MAX_OPTIONS,
    MAX_QUEUED,
    MAX_SCHEDULES,
)
from interlock.resources.values.durations import Duration


class Concurrency(Noun):
    """How many Jobs of the config may run at a time, and what becomes of more."""

    #: What a Job does when `maxConcurrency` run already.
    policy: WhenTaken = WhenTaken.ENQUEUE
    max_concurrency: Annotated[int, Limit(1, MAX_CONCURRENCY)] = 1
    #: No further Job is taken while so many wait.
    max_queued: Annotated[int, Limit(0, MAX_QUEUED)] = 20


class CatchUpPolicy(StrEnum):
    """What becomes of due times that were missed."""

    #: They are run, the oldest first, within `atMost` and `notOlderThan`.
    OLDEST_FIRST = "OldestFirst"
    #: The newest is run, if it is not older than `notOlderThan`.
    ONLY_NEWEST = "OnlyNewest"
    #: None is run.
    SKIP_ALL = "SkipAll"


class CatchUp(Noun):
    """What becomes of due times that were missed. Skips are recorded."""

    policy: CatchUpPolicy = CatchUpPolicy.OLDEST_FIRST
    #: At most this many of those found at one look are run; with 0 none that was missed.
    at_most: Annotated[int, Limit(0, MAX_CATCH_UP)] = 5
    #: None that was missed and is older is run.
    not_older_than: SomeTime = Duration(minutes=5)
    #: A due time was missed when it is found so long after its moment or later, or when a later
    #: one has come by then. The one that was not missed is run with every policy; OldestFirst
    #: counts it in `atMost`, as the newest. Looking takes some time, so it is not less than 1s.
    missed_after: ASecondOrMore = Duration(minutes=1)


class JobConfigSpec(Noun):
    """What the owner asks for. Only the owner writes it."""

    template: JobTemplate
    schedules: Annotated[tuple[ScheduleSpec, ...], Items(0, MAX_SCHEDULES, "schedules")] = ()
    concurrency: Concurrency = Concurrency()
    catch_up: CatchUp = CatchUp()
    options: Annotated[
        tuple[OptionSpec, ...], Items(0, MAX_OPTIONS, "options"), Unique("name")
    ] = ()
    history: HistoryLimits = HistoryLimits()
    #: While true nothing is due. Runs on demand go on.
    suspend: bool = False


class JobConfigState(StrEnum):
    """One word for people."""

    #: Has no schedule.
    READY = "Ready"
    #: Waits for its next due time.
    READY_ENABLED = "ReadyEnabled"
    #: Has schedules, and all of them are disabled or the config is suspended.
    READY_DISABLED = "ReadyDisabled"
    #: Nothing is due: none of its schedules can be read.
    UNREADABLE = "Unreadable"
    #: Jobs wait, none runs.
    JOB_QUEUED = "JobQueued"
    #: Jobs run.
    EXECUTING = "Executing"


class SkipReason(StrEnum):
    """Why a due time became no Job."""

    #: A calendar closes the day.
    CALENDAR = "Calendar"
    #: A calendar that the schedule names does not exist.
    CALENDAR_MISSING = "CalendarMissing"
    #: Clocks skip its time, and the schedule says onGap: Skip.
    CLOCK_CHANGE = "ClockChange"
    #: It was found later than catchUp.notOlderThan allows.
    TOO_OLD = "TooOld"
    #: catchUp.atMost others were run instead.
    TOO_MANY_MISSED = "TooManyMissed"
    #: catchUp says to run a newer one, or none that was missed.
    MISSED = "Missed"
    #: The policy is Forbid, and as many Jobs run as may.
    CONCURRENCY = "Concurrency"
    #: concurrency.maxQueued Jobs wait already.
    QUEUE_FULL = "QueueFull"
    #: An option has no value, or the Job would not be good.
    INVALID = "Invalid"
    #: The schedule was changed before the due time was looked at.
    SCHEDULE_CHANGED = "ScheduleChanged"


class Skip(Noun):
    """Due times that became no Job, and why."""

    #: The due time, or the first of several.
    at: Moment
    reason: SkipReason
    message: str = ""
    #: The last of several.
    until: Moment | None = None
    #: How many; 0 when there were too many to be counted.
    count: int = 1


class JobConfigStatus(Status):
    """How the config is going. Written by the schedules room alone."""

    state: JobConfigState = field(default_factory=lambda: JobConfigState.READY)
    #: What was accounted for, and which Jobs may start.
    books: Books = Books()
    #: Jobs that wait, and Jobs that run.
    queued: int = field(default_factory=lambda: 0)
    active: int = field(default_factory=lambda: 0)
    queued_jobs: tuple[JobReference, ...] = ()
    active_jobs: tuple[JobReference, ...] = ()
    #: The newest due time that became a Job, and the next one to come.
    last_scheduled: Moment | None = None
    next_schedule: Moment | None = None
    #: When a Job of the config last started, by the clock or on demand.
    last_executed: Moment | None = None
    last_success: Moment | None = None
    last_failure: Moment | None = None
    #: The newest skips, newest last, and how many there were in all.
    skips: tuple[Skip, ...] = ()
    skipped: int = 0
    #: When the numbers above were last brought up to date.
    counted_at: Moment | None = None
    conditions: tuple[Condition, ...] = ()


class JobConfig(Resource, tag="JobConfig", kw_only=True):
    """A template for Jobs with schedules, options and a rule about running at once."""

    spec: JobConfigSpec
    status: JobConfigStatus = JobConfigStatus()
