"""One ControlledJob as verbs need it: its plan on its own clock, and its Jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from interlock.modes.cli.errors import BAD_INPUT, CommandError
from interlock.modes.cli.finding import found
from interlock.modes.cli.kinds import CONTROLLED_JOBS, JOBS, parse_name
from interlock.modes.cli.moments import parse_moment, server_now
from interlock.modes.cli.outcomes import has_ended
from interlock.modes.cli.schedules import read_calendars, read_one
from interlock.modes.cli.session import Session
from interlock.resources.controlled_job import ControlledJob, Override, WindowOutcome
from interlock.resources.metadata import Resource
from interlock.resources.schedule import CONTROLLED_LABEL, RUN_ID_ANNOTATION
from interlock.resources.timing.calendars import Calendar
from interlock.resources.timing.flaws import UnreadableError
from interlock.resources.timing.local_time import told_at
from interlock.resources.timing.zones import Zone
from interlock.schedules.calendars import read_calendar
from interlock.schedules.controlled.plan import Timetable, timetable_of

Job = dict[str, Any]
#: Longer numbers were not given by us.
_DIGITS = 15


#: What keeps a window that is open from having another Job.
_DONE_WITH = {
    WindowOutcome.FINISHED: "its Job has ended well",
    WindowOutcome.FAILED: "its Job failed",
    WindowOutcome.STOPPED_BY_USER: "a person stopped it",
    WindowOutcome.TOO_LATE: "it could not be started in time",
}


class Window(NamedTuple):
    """A period in which its Job is to run."""

    start: datetime
    #: None when it never ends.
    stop: datetime | None


class Controlled:
    """What is stored about one, and what time it is."""

    def __init__(
        self,
        noun: ControlledJob,
        calendars: Mapping[str, Calendar],
        jobs: list[Job],
        now: datetime,
    ) -> None:
        self.noun = noun
        self.now = now
        self._calendars = calendars
        #: Its Jobs that are not over.
        self.jobs = [job for job in jobs if not has_ended(job)]
        #: The highest number that a Job of it has had.
        self.last_number = max((noun.status.last_run_id, *map(_number, jobs)))
        self.plan = self.plan_with(noun.spec.overrides)

    @property
    def name(self) -> str:
        """Its name."""
        return self.noun.metadata.name

    @property
    def word(self) -> str:
        """How it is written in answers."""
        return f"{CONTROLLED_JOBS.singular}/{self.name}"

    @property
    def zone(self) -> Zone:
        """The clock that its times are read on."""
        return self.plan.zone

    def plan_with(self, overrides: tuple[Override, ...]) -> Timetable:
        """What the plan would be with these exceptions, and not suspended."""
        spec = replace(self.noun.spec, overrides=overrides, suspend=False)
        try:
            return timetable_of(replace(self.noun, spec=spec), self._calendars)
        except UnreadableError as error:
            raise CommandError(f"{self.word}: {error}", code=BAD_INPUT) from None

    @property
    def running(self) -> list[Job]:
        """Its Jobs that run or wait to, and were not told to stop."""
        return [job for job in self.jobs if not is_stopping(job, self.now)]

    @property
    def done_with(self) -> str:
        """Why nothing more is started in the window that is open; empty when something may be."""
        record = self.noun.status.window
        if record is None or self.running or self.plan.state_at(self.now).window is None:
            return ""
        is_open = record.start <= self.now and (record.stop is None or self.now < record.stop)
        return _DONE_WITH.get(record.outcome, "") if is_open else ""

    def told(self, moment: datetime) -> str:
        """A moment on its own clock, for people."""
        return told_at(moment, self.zone, self.now)


def is_stopping(job: Job, now: datetime) -> bool:
    """Whether the Job was told to stop, or is being deleted."""
    kill_at = parse_moment((job.get("spec") or {}).get("killAt"))
    return bool(job["metadata"].get("deletionTimestamp")) or (
        kill_at is not None and kill_at <= now
    )


def windows_of(plan: Timetable, after: datetime) -> Iterator[Window]:
    """The windows that open after a moment, in order; what lies between is not walked through."""
    while (start := plan.state_at(after).next_start) is not None:
        yield Window(start, plan.state_at(start).next_stop)
        after = start


def read_controlled(session: Session, word: str, *, verb: str = "") -> Controlled:
    """Read a ControlledJob, its calendars and its Jobs."""
    _, name = parse_name(word, CONTROLLED_JOBS, verb=verb)
    with found(session, CONTROLLED_JOBS, name):
        noun = read_one(session.api, CONTROLLED_JOBS, session.namespace, name)
    return controlled_of(session, noun)


def controlled_of(session: Session, noun: Resource) -> Controlled:
    """A ControlledJob that was read, with what goes with it."""
    assert isinstance(noun, ControlledJob)
    calendars = {
        stored.metadata.name: calendar
        for stored in read_calendars(session.api, noun)
        if (calendar := read_calendar(stored).calendar) is not None
    }
    jobs = _jobs(session, noun)
    return Controlled(noun, calendars, jobs, server_now(session.api))


def _jobs(session: Session, noun: ControlledJob) -> list[Job]:
    """Its Jobs, over or not; those of another with the same name are not its own."""
    labels = f"{CONTROLLED_LABEL}={noun.metadata.name}"
    return [
        {"apiVersion": JOBS.api_version, "kind": JOBS.name, **job}
        for page in session.api.pages(JOBS, session.namespace, labels=labels)
        for job in page["items"]
        if _owner(job) == noun.metadata.uid
    ]


def _owner(job: Job) -> str:
    owners = job["metadata"].get("ownerReferences") or []
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _number(job: Job) -> int:
    text = str((job["metadata"].get("annotations") or {}).get(RUN_ID_ANNOTATION, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else -1
