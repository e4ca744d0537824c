"""The sweeper: operations that nobody looks at although it is time, and those that are stuck.

What wakes an operation is kept in memory: the moment of a retry, a change, a report. Should one of
these be lost, the sweeper finds the operation by what is stored of it, and has it looked at. It
never runs anything: whoever looks decides as ever, so a wake-up too many changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from interlock.execution.operations import specs_of, undo_delay
from interlock.resources.job import Job, is_operation, order_of_acceptance
from interlock.resources.operation import OperationStatus
from interlock.resources.steps import Step, is_at_or_below
from interlock.resources.transitions import has_ended, is_admitted

#: How long an operation is left alone beyond the delay that it waits for anyhow.
USUAL_AGE = timedelta(minutes=10)


class Lost(StrEnum):
    """Why an operation is woken."""

    #: It was stored, and nobody has looked at it.
    NEVER_SEEN = "NeverSeen"
    #: It was let in or waits to be, and nothing was written of it for too long.
    UNTOUCHED = "Untouched"
    #: A step failed, and the moment of its retry is long over.
    RETRY_OVERDUE = "RetryOverdue"
    #: The same for what is undone.
    UNDO_OVERDUE = "UndoOverdue"


class SweepView(Struct, frozen=True, kw_only=True):
    """What a sweep may depend on."""

    #: All Jobs that are not over; others count for nothing.
    jobs: tuple[Job, ...]
    #: The uids of those with an attempt under way under a live lease, as far as anybody knows.
    under_way: frozenset[str] = frozenset()
    #: When an operation was last woken by a sweep, by its uid.
    woken: Mapping[str, datetime] = {}
    #: Sweep only what is done to this target, or to one below it; empty sweeps all.
    target: str = ""


class WakeUp(Struct, frozen=True):
    """An operation to be looked at, and why."""

    job: Job
    reason: Lost
    #: When anything was last done about it.
    since: datetime


class Sweep(Struct, frozen=True, kw_only=True):
    """What a sweep found."""

    #: How many operations are not over.
    operations: int
    #: Of them, those with an attempt under way.
    under_way: int
    wake_ups: tuple[WakeUp, ...]
    #: Operations that nobody acts on but a person, longest first.
    stuck: tuple[Job, ...]


def sweep(view: SweepView, now: datetime, older_than: timedelta = USUAL_AGE) -> Sweep:
    """Say which operations to wake, and which are stuck.

    A stuck one is told of and never touched; then come those that are left alone however old they
    are: with an attempt under way, held back on purpose, or behind another one on their target.
    Zero for `older_than` asks for all others at once, whatever their age.
    """
    open_jobs = [job for job in view.jobs if is_operation(job.spec) and not has_ended(job)]
    firsts = _firsts(open_jobs)
    swept = [job for job in open_jobs if is_at_or_below(_path(job), view.target)]
    stuck = [job for job in swept if stuck_since(job) is not None]
    found: list[WakeUp] = []
    for job in swept:
        uid = job.metadata.uid
        if stuck_since(job) is not None or uid in view.under_way or _is_held_back(job, now):
            continue
        if firsts.get(_place(job), uid) != uid and job.status.admission.sequence:
            continue
        wake_up = _wake_up(job, view.woken.get(uid), now, older_than)
        if wake_up is not None:
            found.append(wake_up)
    return Sweep(
        operations=len(swept),
        under_way=sum(job.metadata.uid in view.under_way for job in swept),
        wake_ups=tuple(found),
        stuck=tuple(sorted(stuck, key=lambda job: stuck_since(job) or now)),
    )


def stuck_since(job: Job) -> datetime | None:
    """Since when nobody acts on an operation but a person."""
    operation = job.status.execution.operation
    return None if operation is None else operation.stuck_at


def _wake_up(
    job: Job, woken: datetime | None, now: datetime, older_than: timedelta
) -> WakeUp | None:
    reason, delay = _lost(job)
    touched = _touched(job, now)
    if reason is Lost.NEVER_SEEN and woken is None:
        # There is nothing that could be under way.
        return WakeUp(job, reason, touched)
    last = touched if woken is None else max(woken, touched)
    is_overdue = now - last > delay + older_than or not older_than
    return WakeUp(job, reason, touched) if is_overdue else None


def _lost(job: Job) -> tuple[Lost, timedelta]:
    """What would be lost, and for how long the operation waits anyhow: its delay times retries."""
    operation = job.status.execution.operation
    if job.status.admission.sequence == 0:
        return Lost.NEVER_SEEN, timedelta()
    if operation is None or operation.next_attempt_at is None:
        return Lost.UNTOUCHED, timedelta()
    if operation.reverting:
        return Lost.UNDO_OVERDUE, _delay(job, operation) * operation.rollback_retry_count
    return Lost.RETRY_OVERDUE, _delay(job, operation) * operation.retry_count


def _delay(job: Job, operation: OperationStatus) -> timedelta:
    """The longest delay of the steps that wait for a retry, as it is for one retry made."""
    specs = specs_of(job, operation)
    waiting = [at for at, step in enumerate(operation.steps) if step.not_before is not None]
    given = undo_delay if operation.reverting else _run_delay
    return max((given(specs[at]) for at in waiting if at < len(specs)), default=timedelta())


def _run_delay(spec: Step) -> timedelta:
    return spec.retries.delay


def _touched(job: Job, now: datetime) -> datetime:
    operation, created = job.status.execution.operation, job.metadata.creation_timestamp
    written = operation.updated_at if operation is not None else None
    known = (written, job.status.admission.admitted_at, created)
    return max((moment for moment in known if moment is not None), default=now)


def _is_held_back(job: Job, now: datetime) -> bool:
    """Whether somebody said that nothing is to be done now."""
    was_begun = job.status.execution.operation is not None
    later = job.spec.start_after is not None and job.spec.start_after > now
    return job.spec.suspend or (later and not was_begun)


def _firsts(jobs: Iterable[Job]) -> dict[tuple[str, str], str]:
    """The operation whose turn it is, of each target: those behind it wait for it."""
    firsts: dict[tuple[str, str], Job] = {}
    for job in jobs:
        if not _path(job):
            continue
        first = firsts.setdefault(_place(job), job)
        if _rank(job) < _rank(first):
            firsts[_place(job)] = job
    return {place: job.metadata.uid for place, job in firsts.items()}


def _rank(job: Job) -> tuple[bool, int]:
    return not is_admitted(job), order_of_acceptance(job)


def _place(job: Job) -> tuple[str, str]:
    return job.metadata.namespace, _path(job)


def _path(job: Job) -> str:
    return job.spec.target.path if job.spec.target is not None else ""
