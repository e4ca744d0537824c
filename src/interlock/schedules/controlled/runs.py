"""What a Job of a ControlledJob is to it: for which window, of which number, and what became of it.

Anybody may write annotations, so whatever cannot be read counts as not said.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum, auto

from msgspec import Struct

from interlock.resources.admission import RefusalReason
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.schedule import (
    RESTARTED,
    RUN_ID_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    STOPS_AT_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    TAKES_OVER_ANNOTATION,
    TAKES_OVER_BECAUSE_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
    USER_STOP,
    is_manual,
    is_of_schedule,
    scheduled_at,
)
from interlock.resources.tasks import ExecutionReason, JobResult
from interlock.resources.transitions import ended_at, has_ended, is_admitted, was_admitted

_LONGEST_NUMBER = 15
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

#: Which of two Jobs is newer.
Rank = tuple[int, datetime, str]


class Fate(Enum):
    """What became of a Job, or is about to."""

    #: It runs, or waits to, and nobody has told it to stop; or it is about to end by itself.
    ALIVE = auto()
    #: Somebody deleted it before it was over.
    DELETED = auto()
    #: It did its work.
    FINISHED = auto()
    #: It ended by itself, not well.
    FAILED = auto()
    #: Its schedule told it to stop.
    STOPPED = auto()
    #: A person told it to stop.
    STOPPED_BY_USER = auto()


class Run(Struct, frozen=True, kw_only=True):
    """A Job, as its ControlledJob sees it."""

    job: Job
    name: str
    uid: str
    #: The moment it was made for; None if it does not say.
    nominal: datetime | None
    #: Its number; -1 if it has none.
    number: int
    template_hash: str
    is_manual: bool
    fate: Fate
    #: Whether nothing of it runs or will run.
    is_over: bool
    #: Whether it is in the books, or needs not be.
    in_books: bool
    #: Which of two is newer: by number; one that a person made without a number is newest.
    rank: Rank

    @property
    def is_admitted(self) -> bool:
        """Whether it is let in, and may be doing something."""
        return is_admitted(self.job)

    @property
    def was_admitted(self) -> bool:
        """Whether it was ever let in, also if it waits again."""
        return was_admitted(self.job)

    @property
    def is_alive(self) -> bool:
        """Whether it can be the Job that runs, or waits to."""
        return self.fate is Fate.ALIVE

    @property
    def is_paused(self) -> bool:
        """Whether a person holds it back: no schedule ever does, so whoever is suspended is."""
        return self.job.spec.suspend

    @property
    def is_unwritten(self) -> bool:
        """Whether it is not in the books and cannot have begun: nothing is lost if it goes.

        Once a person has stopped it or holds it back there is: their word, about the window.
        """
        if self.in_books or self.was_admitted or self.is_over:
            return False
        return self.fate is not Fate.STOPPED_BY_USER and not self.is_paused

    @property
    def ended_at(self) -> datetime | None:
        """When it was over."""
        return ended_at(self.job)

    @property
    def left_at(self) -> datetime | None:
        """When it was over, or was told to be; None while it goes on."""
        return self.ended_at or (None if self.is_alive else told_at(self.job))

    @property
    def takes_over_from(self) -> str:
        """The Job whose place it takes: the template changed, or a person restarted it."""
        return self.job.metadata.annotations.get(TAKES_OVER_ANNOTATION, "")

    @property
    def restarts_because(self) -> str:
        """That a person had it take that place, and why; empty when it was the template."""
        said = self.job.metadata.annotations.get(TAKES_OVER_BECAUSE_ANNOTATION, "")
        return said if said.partition(":")[0] == RESTARTED else ""

    def is_expired(self, last_stop: datetime | None) -> bool:
        """Whether it was made for a time before the last stop."""
        return last_stop is not None and (self.nominal is None or self.nominal < last_stop)

    def differs_from(self, template_hash: str) -> bool:
        """Whether it was made of another template; one that does not say was not."""
        return bool(self.template_hash) and self.template_hash != template_hash


def run_of(job: Job, controlled: ControlledJob, now: datetime) -> Run:
    """See a Job as a run. Of one that is over it matters neither who asks nor when."""
    metadata, manual, is_over = job.metadata, is_manual(job), has_ended(job)
    number = _number(metadata.annotations.get(RUN_ID_ANNOTATION, ""))
    ranked = 10**_LONGEST_NUMBER if manual and number < 0 else number
    return Run(
        job=job,
        name=metadata.name,
        uid=metadata.uid,
        nominal=_manual_start(job) if manual else scheduled_at(job),
        number=number,
        template_hash=metadata.annotations.get(TEMPLATE_HASH_ANNOTATION, ""),
        is_manual=manual,
        fate=fate_of(job, now),
        is_over=is_over,
        in_books=is_over
        or not is_of_schedule(job)
        or any(each.uid == metadata.uid for each in controlled.status.books.expected),
        rank=(ranked, metadata.creation_timestamp or _LONG_AGO, metadata.name),
    )


def fate_of(job: Job, now: datetime) -> Fate:
    """What became of a Job, or will by itself."""
    execution = job.status.execution
    if has_ended(job):
        return _end_of(job, now)
    if job.is_going:
        return _deleted(job, now)
    if execution.stopping_for in _BY_ITSELF:
        return Fate.ALIVE
    if execution.stopping_for is not None or is_told(job, now):
        return _whose_stop(job)
    return Fate.ALIVE


def is_told(job: Job, now: datetime) -> bool:
    """Whether the Job was told to stop. What was said once holds, also if clocks are set back."""
    kill_at, annotations = job.spec.kill_at, job.metadata.annotations
    if STOPPED_BECAUSE_ANNOTATION in annotations:
        return True
    if annotations.get(SUSPEND_REASON_ANNOTATION) == USER_STOP and is_kill_of_person(job):
        return True
    return kill_at is not None and kill_at <= now


def told_at(job: Job) -> datetime | None:
    """When a Job that is leaving was told to: when the waiting for its end began."""
    told = (job.status.execution.stopping_at, job.metadata.deletion_timestamp, job.spec.kill_at)
    return min((moment for moment in told if moment is not None), default=None)


def planned_stop(job: Job) -> datetime | None:
    """The stop that its schedule wrote on the Job; None if it wrote none, or nobody can tell."""
    text = job.metadata.annotations.get(STOPS_AT_ANNOTATION, "")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def is_kill_of_person(job: Job) -> bool:
    """Whether the moment at which the Job is stopped is somebody else's wish."""
    return job.spec.kill_at is not None and job.spec.kill_at != planned_stop(job)


_BY_ITSELF = frozenset(
    {
        ExecutionReason.COMPLETED,
        ExecutionReason.TASK_FAILED,
        ExecutionReason.TIMEOUT,
        ExecutionReason.RELEASED,
        ExecutionReason.REPLACED,
    }
)


def _end_of(job: Job, now: datetime) -> Fate:
    execution, refusal = job.status.execution, job.status.admission.refusal
    if execution.result is JobResult.SUCCEEDED:
        return Fate.FINISHED
    if execution.reason is ExecutionReason.DELETED or refusal is RefusalReason.DELETED_BEFORE_START:
        return _deleted(job, ended_at(job) or now)
    if execution.reason is ExecutionReason.KILLED or refusal is RefusalReason.KILLED_BEFORE_START:
        return _whose_stop(job)
    # What fails in the hands of a person who held it back is theirs: no other takes its place.
    if job.spec.suspend and refusal is not RefusalReason.INVALID:
        return Fate.STOPPED_BY_USER
    # What fails as it is told to stop was stopped.
    is_stopped = is_told(job, ended_at(job) or now) and _whose_stop(job) is Fate.STOPPED_BY_USER
    return Fate.STOPPED_BY_USER if is_stopped else Fate.FAILED


def _deleted(job: Job, at: datetime) -> Fate:
    """Somebody deleted it; if a person had stopped it before, then that is what they want."""
    if is_told(job, at) and _whose_stop(job) is Fate.STOPPED_BY_USER:
        return Fate.STOPPED_BY_USER
    return Fate.DELETED


def _whose_stop(job: Job) -> Fate:
    """Who stopped it. What a person held back is not made again either, whoever then stopped it."""
    annotations = job.metadata.annotations
    if job.spec.suspend or annotations.get(SUSPEND_REASON_ANNOTATION) == USER_STOP:
        return Fate.STOPPED_BY_USER
    if STOPPED_BECAUSE_ANNOTATION in annotations or not is_kill_of_person(job):
        return Fate.STOPPED
    return Fate.STOPPED_BY_USER


def _number(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else -1


def _manual_start(job: Job) -> datetime | None:
    """What a person's Job is for: no later than it begins, whatever it says.

    Otherwise one that says next year would outlive every stop until then.
    """
    said, created = scheduled_at(job), job.metadata.creation_timestamp
    begins = max((m for m in (created, job.spec.start_after) if m is not None), default=None)
    return min((m for m in (said, begins) if m is not None), default=None)
