"""What the answers to "why" of JobConfigs and ControlledJobs have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from interlock.reporting.why import Waiting
from interlock.resources.job import Job, JobPhase
from interlock.resources.metadata import Condition, ConditionStatus, Trouble
from interlock.resources.schedule import SUSPEND_REASON_ANNOTATION, SUSPENDED_BY_ANNOTATION
from interlock.resources.words import since
from interlock.timing.local_time import told_at, told_in
from interlock.timing.zones import Zone

#: A label and a text, to be shown in this order.
Detail = tuple[str, str]


class ScheduleWhy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The whole answer. Times in texts are those of the schedule's own clock."""

    kind: str
    name: str
    namespace: str
    #: One word: a JobConfig's state; of a ControlledJob Running, Stopping, Waiting or Idle.
    state: str
    summary: str
    #: What keeps it from running, each with who can change it.
    waits: tuple[Waiting, ...] = ()
    #: When it starts next by itself.
    next_start: datetime | None = None
    #: When it is stopped next by itself; of a ControlledJob.
    next_stop: datetime | None = None
    #: Further lines, each a label and a text, in the order to be shown.
    details: tuple[Detail, ...] = ()


class Times:
    """Tells moments on the clock of a schedule."""

    def __init__(self, zone: Zone, now: datetime) -> None:
        self.zone = zone
        self.now = now

    def __call__(self, moment: datetime) -> str:
        return told_at(moment, self.zone, self.now)

    def in_text(self, text: str) -> str:
        """A stored text, with its moments on this clock."""
        return told_in(text, self.zone, self.now)


def job_told(job: Job, now: datetime) -> str:
    """A Job that is not over: what it does, and since when."""
    name, phase = job.metadata.name, job.status.phase
    begun = job.status.execution.started_at or job.metadata.creation_timestamp
    return f"job/{name} {_DOES.get(phase, phase.value.lower())} ({since(begun, now)})"


_DOES = {
    JobPhase.QUEUED: "waits",
    JobPhase.STARTING: "is about to start",
    JobPhase.PENDING: "is starting",
    JobPhase.RUNNING: "runs",
    JobPhase.RETRYING: "is starting another attempt",
    JobPhase.RETRY_BACKOFF: "waits to try again",
    JobPhase.TERMINATING: "is being stopped",
    JobPhase.KILLING: "is being stopped",
    JobPhase.EVICTING: "is being put back",
    JobPhase.UNKNOWN: "is in an unknown state and keeps its locks",
}


def jobs_told(jobs: Iterable[Job], now: datetime, most: int = 5) -> Iterator[Detail]:
    """Jobs that are not over, a line each, the first with what to ask about it."""
    listed = sorted(jobs, key=lambda job: job.metadata.name)
    for job in listed[:most]:
        label = "waiting" if job.status.phase is JobPhase.QUEUED else "running"
        asks = f"; why: interlock why job/{job.metadata.name}" if label == "waiting" else ""
        yield label, f"{job_told(job, now)}{asks}"
    if len(listed) > most:
        yield "", f"and {len(listed) - most} more"


def suspended(kind: str, name: str, annotations: dict[str, str]) -> Waiting:
    """That a person suspended it."""
    reason = annotations.get(SUSPEND_REASON_ANNOTATION, "")
    who = annotations.get(SUSPENDED_BY_ANNOTATION, "")
    because = f" by {who}" if who else ""
    because += f": {reason}" if reason else ""
    return Waiting(
        reason="Suspended",
        message=f"it is suspended{because}; let it go with: interlock resume {kind}/{name}",
    )


def conditions_told(conditions: Iterable[Condition], alarms: frozenset[str]) -> Iterator[Detail]:
    """The conditions that say that something is wrong, in their own words."""
    for condition in conditions:
        if condition.type in alarms and condition.status is ConditionStatus.TRUE:
            yield "alarm", f"{condition.type}: {condition.message or condition.reason}"


def trouble_told(trouble: Trouble | None, times: Times) -> Iterator[Detail]:
    """That the last look at it went wrong."""
    if trouble is not None:
        yield "trouble", f"{trouble.room}: {trouble.message} (since {times(trouble.since)})"
