"""Schedules: what JobConfigs and ControlledJobs have in common, and their books."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Moment, Noun, Resource
from interlock.resources.naming import MAX_LABEL
from interlock.resources.pods import TemplateMetadata
from interlock.resources.rules import (
    After,
    DnsLabel,
    Items,
    Limit,
    Longest,
    NounRule,
    Reads,
    Unique,
)
from interlock.resources.schedule_limits import MAX_CALENDARS, MAX_KEPT, MAX_ZONE_LENGTH
from interlock.resources.values.cron_lines import CronLines
from interlock.timing.cron import CronFormat
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.zones import find_zone

#: The moment that a Job was made for: a due time, or the start of a window.
SCHEDULED_AT_ANNOTATION = "interlock.dev/scheduled-at"
#: The number of a Job among those of its ControlledJob.
RUN_ID_ANNOTATION = "interlock.dev/job-run-id"
#: What the template was when the Job was made of it.
TEMPLATE_HASH_ANNOTATION = "interlock.dev/job-template-hash"
#: "true" on a Job that a person started: no schedule contradicts it.
MANUAL_ANNOTATION = "interlock.dev/is-manually-scheduled"
#: Why a Job is held back or was stopped; USER_STOP is a person's word.
SUSPEND_REASON_ANNOTATION = "interlock.dev/suspend-reason"
USER_STOP = "user-stop"
#: Why a schedule stopped a Job.
STOPPED_BECAUSE_ANNOTATION = "interlock.dev/stopped-because"
#: How a person's verb begins it; who that was is said apart.
STOPPED = "stopped"
RESTARTED = "restarted"
#: Who stopped it, and who suspended it.
STOPPED_BY_ANNOTATION = "interlock.dev/stopped-by"
SUSPENDED_BY_ANNOTATION = "interlock.dev/suspended-by"
#: How it begins when all went by the plan.
WINDOW_CLOSED = "its window closed"
#: The stop that a ControlledJob planned for the Job: a killAt that differs is a person's.
STOPS_AT_ANNOTATION = "interlock.dev/stops-at"
#: The Job whose place this one takes: the template changed, or a person restarted it.
TAKES_OVER_ANNOTATION = "interlock.dev/takes-over-from"
#: On the same: that a person restarted it and why, which is what the other one is stopped with.
TAKES_OVER_BECAUSE_ANNOTATION = "interlock.dev/takes-over-because"
#: On a Job that stands in for one that a person started, and that a schedule made.
NEEDS_BOOKS_ANNOTATION = "interlock.dev/needs-books"
#: On a JobConfig that comes from elsewhere: what was due up to then was accounted for there.
ACCOUNTED_TO_ANNOTATION = "interlock.dev/accounted-to"
#: The zone of the ControlledJob that made a Job, and what it adds to that.
TIMEZONE_ANNOTATION = "interlock.dev/timezone"
OFFSET_ANNOTATION = "interlock.dev/timezone-offset-seconds"
#: On what is being moved: the context it goes to, for people; and which cluster, and how it was
#: suspended before.
MOVED_TO_ANNOTATION = "interlock.dev/moved-to"
MOVE_ANNOTATION = "interlock.dev/move"
#: On a copy, for good: the uid of its source.
MOVED_FROM_ANNOTATION = "interlock.dev/moved-from"
#: A label of the copy while it is being moved: which server it comes from.
MOVING_LABEL = "interlock.dev/moving"
#: The JobConfig and the ControlledJob that a Job is of, by name.
CONFIG_LABEL = "interlock.dev/job-config"
CONTROLLED_LABEL = "interlock.dev/controlled-job"


Zone = Annotated[str, Longest(MAX_ZONE_LENGTH), Reads(find_zone)]
Calendars = Annotated[
    tuple[Annotated[str, DnsLabel(MAX_LABEL)], ...], Items(0, MAX_CALENDARS, "calendars"), Unique()
]
_Kept = Annotated[int, Limit(0, MAX_KEPT)]


class ScheduleSpec(Noun):
    """When something is due, by the clock on a wall."""

    RULES: ClassVar[tuple[NounRule, ...]] = (
        After(
            *("not_after", "not_before"),
            expected="expected a moment that is not before notBefore",
            or_at=True,
        ),
    )

    #: A cron line, or a list of them; `H` stands for a value that is the config's own.
    cron: CronLines
    #: How lines of six fields are meant.
    format: CronFormat | None = None
    #: A zone such as Europe/London, or a fixed offset such as UTC+2.
    timezone: Zone = "UTC"
    #: Nothing is due before this moment.
    not_before: Moment | None = None
    #: Nothing is due after this moment.
    not_after: Moment | None = None
    #: While true this schedule is never due.
    disabled: bool = False
    on_gap: OnGap = OnGap.RUN_AFTER
    on_repeat: OnRepeat = OnRepeat.FIRST
    #: Calendars whose days are left out.
    exclude: Calendars = ()
    #: Calendars that a day must be in.
    only: Calendars = ()


class JobTemplate(Noun):
    """What Jobs are made of."""

    spec: JobSpec
    #: Labels and annotations that the Jobs get.
    metadata: TemplateMetadata = TemplateMetadata()


class HistoryLimits(Noun):
    """How many ended Jobs are kept; older ones are deleted."""

    succeeded: _Kept = 10
    #: Jobs that ended in any other way.
    failed: _Kept = 10


class JobReference(Noun):
    """A Job by name and identity."""

    name: str
    uid: str


class ExpectedJob(Noun):
    """A Job that the schedule made and wrote down: the admission room lets in no other."""

    name: str
    uid: str
    #: What it was made for.
    scheduled_at: Moment
    #: The version it had when it was written down: who has heard all up to it, and does not find
    #: the Job, knows that it is gone.
    job_version: int = 0


class Books(Noun):
    """What a schedule has accounted for. A Job that is not in the books does not start.

    A Job is made first and written down after. Whoever made one from an old view finds
    that its write of the books fails, and the Job it made is never let in: so a due time is run
    once, whoever leads and however late a write lands.
    """

    #: What the schedule was when it was last looked at; a change of it never fires the past.
    schedule_hash: str = ""
    #: Since when the schedule is as it is.
    since: Moment | None = None
    #: Everything that was due up to this moment became a Job or a skip.
    accounted_to: Moment | None = None
    #: Jobs that may start and were not seen to have started.
    expected: tuple[ExpectedJob, ...] = ()
    #: The generation that all this is about.
    observed_generation: int = 0
    #: The edition of the time zones that moments to come were worked out with.
    zones: str = ""


def is_of_schedule(job: Job) -> bool:
    """Whether a schedule made the Job, so that it must be in the books before it starts."""
    annotations = job.metadata.annotations
    if is_manual(job) and NEEDS_BOOKS_ANNOTATION not in annotations:
        return False
    # A JobConfig's Jobs without a due time were asked for by a person.
    kinds = ("ControlledJob", "JobConfig")[: 2 if SCHEDULED_AT_ANNOTATION in annotations else 1]
    return any(owner.controller and owner.kind in kinds for owner in job.metadata.owner_references)


def controlled_lock(name: str) -> str:
    """The key of the lock that at most one Job of a ControlledJob holds at a time."""
    return f"controlledjob/{name}"


def is_manual(job: Job) -> bool:
    """Whether a person started the Job."""
    return job.metadata.annotations.get(MANUAL_ANNOTATION, "").lower() == "true"


def scheduled_at(job: Job) -> datetime | None:
    """What the Job was made for, as its annotation says; None if it says nothing that can be read.

    Anybody may write annotations: a text that is no moment counts as none.
    """
    return moment_of(job, SCHEDULED_AT_ANNOTATION)


def moment_of(resource: Resource, annotation: str) -> datetime | None:
    """The moment that an annotation names; None if it names none."""
    text = resource.metadata.annotations.get(annotation)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def why_told_to_stop(job: Job) -> str:
    """Who wants a Job to stop at its killAt, as far as the Job says."""
    annotations = job.metadata.annotations
    because = annotations.get(STOPPED_BECAUSE_ANNOTATION, "")
    who = annotations.get(STOPPED_BY_ANNOTATION, "")
    verb, colon, reason = because.partition(":")
    if verb in (STOPPED, RESTARTED):
        return f"{verb} by {who or 'a person'}{colon}{reason}"
    if because:
        return because
    if annotations.get(SUSPEND_REASON_ANNOTATION) == USER_STOP:
        return f"{STOPPED} by {who}" if who else "a person stopped it"
    if who and job.spec.kill_at != moment_of(job, STOPS_AT_ANNOTATION):
        return f"{STOPPED} by {who}"
    if job.spec.kill_at is not None and job.spec.kill_at == moment_of(job, STOPS_AT_ANNOTATION):
        return WINDOW_CLOSED
    return "the time set for its end (killAt) has come"


def written_moment(at: datetime) -> str:
    """A moment as Jobs carry it: RFC 3339, in UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
