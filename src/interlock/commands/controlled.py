"""A ControlledJob as orders need it: its plan on its own clock, its Jobs, and words for both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from interlock.commands.errors import OrderRefusedError
from interlock.commands.limits import LONGEST_S
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob, Override, WindowOutcome
from interlock.resources.job import Job
from interlock.resources.schedule import RUN_ID_ANNOTATION
from interlock.resources.transitions import has_ended
from interlock.schedules.calendars import read_calendar
from interlock.schedules.controlled.plan import Timetable, timetable_of
from interlock.timing.flaws import UnreadableError
from interlock.timing.local_time import day_at, told_at, told_day, told_time
from interlock.timing.zones import Zone

#: No exception is made for longer than ten years.
LONGEST = timedelta(seconds=LONGEST_S)
#: Longer numbers were not given by us.
_DIGITS = 15
_FORTNIGHT = timedelta(days=14)
_SECOND = timedelta(seconds=1)

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


class ControlledView:
    """What is stored about one, and what time it is."""

    def __init__(
        self,
        noun: ControlledJob,
        calendars: Iterable[Calendar],
        jobs: Iterable[Job],
        now: datetime,
        *,
        passed_over: int = 0,
    ) -> None:
        """Take what was read.

        `jobs` are all of its namespace that carry its label: those of another with the same name
        are not its own. `passed_over` numbers are left out, for Jobs that are no concern of its
        have names with them.
        """
        self.noun = noun
        self.now = now
        self._calendars = {
            stored.metadata.name: calendar
            for stored in calendars
            if (calendar := read_calendar(stored).calendar) is not None
        }
        own = [job for job in jobs if _owner(job) == noun.metadata.uid]
        #: Its Jobs that are not over.
        self.jobs = [job for job in own if not has_ended(job)]
        #: The number that its next Job gets.
        self.next_number = max((noun.status.last_run_id, *map(_number, own))) + 1 + passed_over
        self.plan = self.plan_with(noun.spec.overrides)

    @property
    def name(self) -> str:
        """Its name."""
        return self.noun.metadata.name

    @property
    def word(self) -> str:
        """How it is written in answers."""
        return f"controlledjob/{self.name}"

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
            raise OrderRefusedError(f"{self.word}: {error}") from None

    @property
    def running(self) -> list[Job]:
        """Its Jobs that run or wait to, and were not told to stop."""
        return [job for job in self.jobs if not _is_stopping(job, self.now)]

    @property
    def done_with(self) -> str:
        """Why nothing more is started in the window that is open; empty when something may be."""
        record = self.noun.status.window
        if record is None or self.running or self.plan.state_at(self.now).window is None:
            return ""
        is_open = record.start <= self.now and (record.stop is None or self.now < record.stop)
        return _DONE_WITH.get(record.outcome, "") if is_open else ""

    # In words, on its own clock

    def told(self, moment: datetime) -> str:
        """A moment for people."""
        return told_at(moment, self.zone, self.now)

    def day_told(self, moment: datetime) -> str:
        """The day of a moment, within a line."""
        return told_day(day_at(moment, self.zone), day_at(self.now, self.zone))

    def day_of(self, moment: datetime) -> str:
        """The day of a moment, for the beginning of a line: "Fri 27"; further ahead, the month."""
        day, today = day_at(moment, self.zone), day_at(self.now, self.zone)
        return f"{day:%a} {day.day}" if day - today < _FORTNIGHT else told_day(day, today)

    def coming(self, overrides: tuple[Override, ...], after: datetime) -> str:
        """When it runs next at or after a moment, with these exceptions."""
        plan = self.plan_with(overrides)
        state = plan.state_at(after)
        if state.is_inside:
            stop = f" until {self.told(state.next_stop)}" if state.next_stop else ""
            is_same = plan.state_at(self.now).start == state.start
            if not is_same or not self.done_with:
                return f"its window is open{stop}: it runs"
            return (
                f"its window is open{stop}, and {self.done_with}: start it again with:"
                f" interlock start {self.name}"
            )
        window = next(windows_of(plan, after), None)
        if window is None:
            return "nothing starts after that"
        return f"it starts {self.told(window.start)}{self._until(window)}"

    def _until(self, window: Window) -> str:
        """The end of a window, as the end of a line."""
        if window.stop is None:
            return ""
        if day_at(window.stop, self.zone) == day_at(window.start, self.zone):
            return f", until {told_time(window.stop, self.zone, named=False)}"
        return f", until {self.told(window.stop)}"


def windows_of(plan: Timetable, after: datetime) -> Iterator[Window]:
    """The windows that open after a moment, in order; what lies between is not walked through."""
    while (start := plan.state_at(after).next_start) is not None:
        yield Window(start, plan.state_at(start).next_stop)
        after = start


def windows_from(plan: Timetable, moment: datetime) -> Iterator[Window]:
    """The windows that open at or after a moment."""
    return windows_of(plan, moment - _SECOND)


def _is_stopping(job: Job, now: datetime) -> bool:
    """Whether the Job was told to stop, or is being deleted."""
    return job.is_going or (job.spec.kill_at is not None and job.spec.kill_at <= now)


def _owner(job: Job) -> str:
    owners = job.metadata.owner_references
    return next((owner.uid for owner in owners if owner.controller), "")


def _number(job: Job) -> int:
    text = job.metadata.annotations.get(RUN_ID_ANNOTATION, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else -1
