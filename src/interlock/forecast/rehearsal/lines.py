"""The history of a rehearsal: what happened to Jobs and due times, one line for each thing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from interlock.forecast.rehearsal.operation_lines import of_operation
from interlock.forecast.rehearsal.queue_lines import of_queue
from interlock.forecast.rehearsal.scenario import LineMatch
from interlock.forecast.rehearsal.slot_lines import of_claims, of_plan, of_seated, of_slots
from interlock.resources.admission import AdmissionPhase, Wait
from interlock.resources.controlled_job import ControlledJob, WindowOutcome, WindowRecord
from interlock.resources.job import Job, is_operation
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Condition, ConditionStatus, Key, Resource
from interlock.resources.readiness import PODS_READY, pods_ready, ready_words
from interlock.resources.schedule import SCHEDULED_AT_ANNOTATION, is_manual
from interlock.resources.scheduling import Scheduling, SchedulingClaims
from interlock.resources.tasks import EndedTask, TaskState
from interlock.resources.test_bed import TestBedSlots
from interlock.resources.transitions import has_ended
from interlock.resources.waits import claim_words, is_brief
from interlock.store.contract import EventType
from interlock.store.watching import Change

_DRAIN_OVERDUE = "DrainOverdue"


class Line(Struct, frozen=True, kw_only=True):
    """One thing that happened."""

    at: datetime
    kind: str
    namespace: str
    name: str
    event: str
    reason: str = ""
    detail: str = ""

    def fits(self, match: LineMatch) -> bool:
        """Whether it is one of those that are meant."""
        return (
            fnmatchcase(self.event, match.event)
            and fnmatchcase(self.kind.lower(), match.kind.lower())
            and fnmatchcase(self.name, match.name)
            and fnmatchcase(self.namespace, match.namespace)
            and fnmatchcase(self.reason, match.reason)
            and fnmatchcase(self.detail, match.detail)
        )

    def data(self) -> dict[str, Any]:
        """The line for programs."""
        return {
            "at": written(self.at),
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "event": self.event,
            "reason": self.reason,
            "detail": self.detail,
        }


#: An event, its reason, and what else is to be said.
_Told = tuple[str, str, str]


def lines_of(change: Change, at: datetime) -> Iterator[Line]:
    """What a committed change tells."""
    after = change.event.resource
    assert after is not None
    is_gone = change.event.type is EventType.DELETED
    key = change.key
    if isinstance(after, TestBedSlots):
        # People know the bed; its record is of the same name.
        key = Key("TestBed", key.namespace, key.name)
    for event, reason, detail in _told(change.before, after, is_gone=is_gone):
        yield line_about(key, at, event, reason, detail)


def line_about(key: Key, at: datetime, event: str, reason: str = "", detail: str = "") -> Line:
    """A line about an object."""
    return Line(
        at=at,
        kind=key.kind,
        namespace=key.namespace,
        name=key.name,
        event=event,
        reason=reason,
        detail=detail,
    )


def written(moment: datetime) -> str:
    """A moment as it is written for programs."""
    return moment.isoformat().replace("+00:00", "Z")


def _told(before: Resource | None, after: Resource, *, is_gone: bool) -> Iterator[_Told]:
    if isinstance(after, Job):
        was = before if isinstance(before, Job) else None
        yield from _of_job(was, after, is_gone=is_gone)
    elif isinstance(after, TestBedSlots):
        yield from of_slots(before if isinstance(before, TestBedSlots) else None, after)
    elif isinstance(after, SchedulingClaims):
        yield from of_claims(before if isinstance(before, SchedulingClaims) else None, after)
    elif isinstance(after, Scheduling):
        yield from _of_definition(before, after, is_gone=is_gone)
        yield from of_plan(before if isinstance(before, Scheduling) else None, after)
        yield from _of_trouble(before, after)
    elif isinstance(after, JobConfig):
        yield from _of_definition(before, after, is_gone=is_gone)
        yield from _of_trouble(before, after)
    elif isinstance(after, ControlledJob):
        yield from _of_definition(before, after, is_gone=is_gone)
        window = before.status.window if isinstance(before, ControlledJob) else None
        yield from _of_window(window, after.status.window)
        yield from _of_drain(before, after)
        yield from _of_trouble(before, after)


def _of_definition(before: Resource | None, after: Resource, *, is_gone: bool) -> Iterator[_Told]:
    if is_gone:
        yield "Deleted", "", ""
    elif before is None:
        yield "Created", "", ""
    elif before.metadata.generation != after.metadata.generation:
        yield "Changed", "", ""


def _of_window(before: WindowRecord | None, after: WindowRecord | None) -> Iterator[_Told]:
    """A window in which no Job may be made any more is a due time that was skipped."""
    if after is None or after.outcome is not WindowOutcome.TOO_LATE:
        return
    if before is None or before.start != after.start or before.outcome is not after.outcome:
        yield (
            "Skipped",
            after.outcome.value,
            f"due {written(after.start)}, {after.message}".rstrip(", "),
        )


def _of_drain(before: Resource | None, after: ControlledJob) -> Iterator[_Told]:
    """A Job that was told to stop and is not gone in time."""
    overdue = _overdue(after)
    was = _overdue(before) if isinstance(before, ControlledJob) else None
    if overdue is not None and (was is None or was.message != overdue.message):
        yield _DRAIN_OVERDUE, overdue.reason, overdue.message


def _overdue(controlled: ControlledJob) -> Condition | None:
    conditions = controlled.status.conditions
    found = (one for one in conditions if one.type == _DRAIN_OVERDUE)
    return next((one for one in found if one.status is ConditionStatus.TRUE), None)


# Jobs


def _of_job(before: Job | None, job: Job, *, is_gone: bool) -> Iterator[_Told]:
    if before is None:
        yield "Created", *_why_created(job)
    elif before.spec.suspend != job.spec.suspend:
        yield "Suspended" if job.spec.suspend else "Resumed", job.spec.suspend_reason, ""
    yield from _of_admission(before, job)
    yield from of_queue(before, job)
    yield from _of_execution(before, job)
    yield from of_seated(before, job)
    yield from _of_readiness(before, job)
    if has_ended(job) and (before is None or not has_ended(before)):
        yield "Finished", job.status.phase.value, _how_finished(job)
    yield from _of_trouble(before, job)
    if is_gone:
        yield "Deleted", "", ""


def _of_trouble(
    before: Resource | None, after: Job | JobConfig | ControlledJob | Scheduling
) -> Iterator[_Told]:
    """What could not be decided or carried out about an object."""
    trouble = after.status.trouble
    was = before.status.trouble if isinstance(before, type(after)) else None
    if trouble is not None and (was is None or was.message != trouble.message):
        yield "Trouble", trouble.room, trouble.message


def _why_created(job: Job) -> tuple[str, str]:
    due = job.metadata.annotations.get(SCHEDULED_AT_ANNOTATION, "")
    if is_manual(job):
        return "Manual", f"for {due}" if due else ""
    return ("Scheduled", f"for {due}") if due else ("", "")


def _of_admission(before: Job | None, job: Job) -> Iterator[_Told]:
    admission = job.status.admission
    if admission.phase is not AdmissionPhase.WAITING or job.is_going:
        return
    known = before.status.admission.waits if before is not None else ()
    for wait in _news(known, admission.waits):
        until = f"until {written(wait.until)}" if wait.until else ""
        yield "Held", wait.reason.value, " ".join(filter(None, (claim_words(wait), until)))


def _news(before: tuple[Wait, ...], after: tuple[Wait, ...]) -> list[Wait]:
    known = {(wait.reason, wait.key) for wait in before}
    # Waits that the system itself ends at the same moment are nobody's business.
    return [wait for wait in after if not is_brief(wait) and (wait.reason, wait.key) not in known]


def _of_execution(before: Job | None, job: Job) -> Iterator[_Told]:
    execution = job.status.execution
    was = before.status.execution if before is not None else None
    if execution.started_at is not None and (was is None or was.started_at is None):
        tokens = ", ".join(f"{one.key}#{one.token}" for one in job.status.admission.grants)
        yield "Started", "", f"fence {tokens}" if tokens else ""
    yield from of_operation(before, job)
    known_ends = set(was.ended) if was is not None else set()
    # Those of an operation are told as what they are: steps, and undos.
    has_tasks = execution.total > 1 and not is_operation(job.spec)
    for ended in execution.ended:
        if ended not in known_ends and has_tasks:
            yield "TaskEnded", ended.result.value, f"task {ended.index} {_how_ended(ended)}"
    known_waits = set(was.retrying) if was is not None else set()
    for wait in execution.retrying:
        if wait not in known_waits:
            how = f"task {wait.index} attempt {wait.attempt} from {written(wait.not_before)}"
            yield "Retrying", "TaskFailed", how
    if execution.stopping_for is not None and (was is None or was.stopping_for is None):
        yield "Stopping", execution.stopping_for.value, execution.message
    if _is_unknown(job) and (before is None or not _is_unknown(before)):
        yield "Unknown", "", "what became of a task cannot be proven"


def _of_readiness(before: Job | None, job: Job) -> Iterator[_Told]:
    """That a Job became ready, or is not any more; that it is not at its begin goes without."""
    now = pods_ready(job)
    was = pods_ready(before) if before is not None else None
    if now is None or (was is not None and was.reason == now.reason):
        return
    if was is not None or now.status is ConditionStatus.TRUE:
        yield PODS_READY, now.reason, ready_words(job)


def _is_unknown(job: Job) -> bool:
    return any(task.state is TaskState.UNKNOWN for task in job.status.execution.active)


def _how_finished(job: Job) -> str:
    admission, execution = job.status.admission, job.status.execution
    if admission.refusal is not None:
        return f"{admission.refusal.value}: {admission.message}".rstrip(": ")
    parts = [execution.reason.value if execution.reason else ""]
    if execution.total == 1 and execution.ended and not is_operation(job.spec):
        parts.append(_how_ended(execution.ended[-1]))
    # What a person said of a task that was written off is told of the task and of the Job.
    if execution.message not in parts[-1]:
        parts.append(execution.message)
    return ", ".join(filter(None, parts))


def _how_ended(task: EndedTask) -> str:
    if task.exit_code is not None:
        return f"exit {task.exit_code}"
    return f"signal {task.signal}" if task.signal else task.message
