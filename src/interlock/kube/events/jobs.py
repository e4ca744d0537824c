"""Events of Jobs: what a change is worth telling, pure, from one status to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec import Struct

from interlock.control.troubles import status_of
from interlock.resources.admission import AdmissionPhase, Eviction
from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.resources.tasks import EndedTask, JobResult, TaskResult, TaskState
from interlock.resources.waits import event_words

NORMAL, WARNING = "Normal", "Warning"
#: So many tasks are told of one by one; a Job may have thousands.
_TOLD = 3
#: A message is cut here; an API server takes no more than 1024 bytes.
LONGEST = 900

_BAD_ENDS = (JobResult.FAILED, JobResult.FINISHED_UNKNOWN)
_GOOD_TASKS = (TaskResult.SUCCEEDED, TaskResult.KILLED)


class Told(Struct, frozen=True):
    """One line for people: whether it worries, a word for it, and a sentence."""

    type: str
    reason: str
    message: str


def worth_telling(before: Job, after: Job) -> list[Told]:
    """What happened to a Job between two of its states, in the order it happened.

    Two Jobs of one name have nothing to do with each other, so nothing happened between them.
    """
    if before.metadata.uid != after.metadata.uid or before.status == after.status:
        return []
    told = chain(
        _admission(before, after), _execution(before, after), trouble_between(before, after)
    )
    return [Told(each.type, each.reason, each.message[:LONGEST]) for each in told]


def _admission(before: Job, after: Job) -> Iterator[Told]:
    was, now = before.status.admission, after.status.admission
    if now.phase is AdmissionPhase.REFUSED and was.phase is not now.phase:
        why = f": {now.message}" if now.message else ""
        yield Told(WARNING, "Refused", f"{now.refusal}{why}")
    elif now.phase is AdmissionPhase.WAITING and now.waits and now.waits != was.waits:
        waits = "; ".join(event_words(wait, after) for wait in now.waits)
        yield Told(NORMAL, "Held", f"waits: {waits}")
    if now.eviction is not None and now.eviction != was.eviction:
        yield _put_back(now.eviction)


def _put_back(eviction: Eviction) -> Told:
    who = f" by {eviction.by}" if eviction.by else ""
    why = f": {eviction.message}" if eviction.message else ""
    if eviction.ended_at is None:
        return Told(NORMAL, "Evicting", f"{eviction.reason.value}{who}{why}")
    return Told(
        NORMAL, "Evicted", f"waits again, everything given back; {eviction.reason}{who}{why}"
    )


def _execution(before: Job, after: Job) -> Iterator[Told]:
    was, now = before.status.execution, after.status.execution
    if now.started_at is not None and was.started_at is None:
        yield Told(NORMAL, "Started", _started(after))
    yield from _ended(before, after)
    yield from _retrying(before, after)
    yield from _unknown(before, after)
    if now.stopping_for is not None and was.stopping_for is None and now.result is None:
        yield Told(NORMAL, "Stopping", f"{now.stopping_for}: tasks that run are told to stop")
    if now.result is not None and was.result is None:
        told = now.message or str(now.reason or "")
        done = f"{len(now.succeeded)} of {now.total} tasks succeeded"
        kind = WARNING if now.result in _BAD_ENDS else NORMAL
        yield Told(kind, now.result.value, f"{told}: {done}" if told else done)


def _started(job: Job) -> str:
    total = job.status.execution.total
    tasks = "1 task" if total == 1 else f"{total} tasks"
    grants = job.status.admission.grants
    held = ", ".join(f"{grant.key} (fence {grant.token})" for grant in grants)
    return f"{tasks}, holds {held}" if held else tasks


def _ended(before: Job, after: Job) -> Iterator[Told]:
    known = {(task.index, task.attempt) for task in before.status.execution.ended}
    ended = [
        task
        for task in after.status.execution.ended
        if (task.index, task.attempt) not in known and task.result not in _GOOD_TASKS
    ]
    lines = [f"{task.name}: {_fate(task)}" for task in ended]
    yield from _some(WARNING, "TaskFailed", lines)


def _fate(task: EndedTask) -> str:
    parts = [task.result.value]
    if task.stop_cause is not None:
        parts.append(task.stop_cause.value)
    if task.exit_code is not None:
        parts.append(f"exit code {task.exit_code}")
    if task.signal is not None:
        parts.append(f"signal {task.signal}")
    if task.message:
        parts.append(task.message)
    return ", ".join(parts)


def _retrying(before: Job, after: Job) -> Iterator[Told]:
    known = {(wait.index, wait.attempt) for wait in before.status.execution.retrying}
    lines = [
        f"task {wait.index}: attempt {wait.attempt} not before {wait.not_before.isoformat()}"
        for wait in after.status.execution.retrying
        if (wait.index, wait.attempt) not in known
    ]
    yield from _some(NORMAL, "Retrying", lines)


def _unknown(before: Job, after: Job) -> Iterator[Told]:
    known = {t.name for t in before.status.execution.active if t.state is TaskState.UNKNOWN}
    lines = [
        f"{task.name}: {task.message or 'what became of it cannot be proven'}"
        for task in after.status.execution.active
        if task.state is TaskState.UNKNOWN and task.name not in known
    ]
    yield from _some(WARNING, "TaskUnknown", lines)


def trouble_between(before: Resource, after: Resource) -> Iterator[Told]:
    """What troubles an object of any kind now, and did not before."""
    was, now = status_of(before), status_of(after)
    known = was.trouble if was is not None else None
    trouble = now.trouble if now is not None else None
    if trouble is not None and (known is None or known.message != trouble.message):
        yield Told(WARNING, "Trouble", f"{trouble.room}: {trouble.message}")


def trouble_told(before: Resource, after: Resource) -> list[Told]:
    """What is told of any kind that has nothing else to tell."""
    if before.metadata.uid != after.metadata.uid:
        return []
    told = trouble_between(before, after)
    return [Told(each.type, each.reason, each.message[:LONGEST]) for each in told]


def _some(type: str, reason: str, lines: Sequence[str]) -> Iterator[Told]:
    if not lines:
        return
    shown = "; ".join(lines[:_TOLD])
    left = len(lines) - _TOLD
    yield Told(type, reason, f"{shown}; and {left} more" if left > 0 else shown)
