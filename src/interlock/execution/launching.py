"""Which attempts come next: tasks whose retry is due, then tasks that were never tried."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from interlock.execution.orders import part_of
from interlock.resources.job import Job, JobSpec, steps_of
from interlock.resources.steps import StepWork
from interlock.resources.tasks import (
    MOST_AT_ONCE,
    ExecutionStatus,
    RetryWait,
    TaskState,
    TaskStatus,
    first_attempt,
    task_name,
)
from interlock.resources.work_types import type_of


class Chosen(NamedTuple):
    """Attempts to start now."""

    #: Task number and attempt, in the order in which they start.
    attempts: tuple[tuple[int, int], ...] = ()
    #: Whether more would start if there were room on the machine.
    starved: bool = False


def choose(job: Job, execution: ExecutionStatus, capacity: int, now: datetime) -> Chosen:
    """Take as many attempts as the Job may have and the machine has room for."""
    if not execution.retrying and _tried(execution) >= execution.total:
        return Chosen()
    allowed = MOST_AT_ONCE
    parallelism = job.spec.parallelism
    if parallelism is not None and parallelism.at_once is not None:
        allowed = min(allowed, parallelism.at_once)
    quota = job.status.admission.quota
    if quota is not None:
        allowed = min(allowed, quota.tasks)
    slots = job.status.admission.slots
    if slots is not None:
        allowed = min(allowed, len(slots.ids))
    allowed -= len(execution.active)
    capacity = max(0, capacity)
    taken = tuple(islice(_candidates(execution, now), max(0, min(allowed, capacity + 1))))
    return Chosen(taken[:capacity], starved=len(taken) > capacity)


def _candidates(execution: ExecutionStatus, now: datetime) -> Iterator[tuple[int, int]]:
    for wait in execution.retrying:
        if wait.not_before <= now:
            yield wait.index, wait.attempt
    held = len(execution.active) + len(execution.retrying)
    first = first_attempt(execution.round)
    for index in islice(_never_tried(execution), max(0, MOST_AT_ONCE - held)):
        yield index, first


def _never_tried(execution: ExecutionStatus) -> Iterator[int]:
    """Task numbers that no attempt was made of in this round.

    Tasks are first tried in order, so in the first round these begin after as many as were tried;
    the check below is for later rounds, and for a status that a person has edited.
    """
    current = {task.index for task in execution.active}
    current.update(wait.index for wait in execution.retrying)
    begin = 0 if execution.round else _tried(execution)
    for index in execution.succeeded.missing(begin, execution.total):
        if index not in current and index not in execution.failed:
            yield index


def _tried(execution: ExecutionStatus) -> int:
    """How many tasks had an attempt: each of them is in exactly one of these."""
    done = len(execution.succeeded) + len(execution.failed)
    return done + len(execution.active) + len(execution.retrying)


def with_attempts(
    job: Job, execution: ExecutionStatus, attempts: tuple[tuple[int, int], ...], now: datetime
) -> ExecutionStatus:
    """The status with new attempts in it."""
    name = job.metadata.name
    slots = _free_slots(job, execution)
    new = tuple(
        TaskStatus(
            name=task_name(name, index, attempt),
            index=index,
            attempt=attempt,
            state=TaskState.STARTING,
            created_at=now,
            runtime=runtime_of(job, index),
            slot=next(slots, ""),
        )
        for index, attempt in attempts
    )
    return replace(
        execution,
        started_at=execution.started_at or now,
        active=execution.active + new,
        retrying=_without(execution.retrying, attempts),
        attempts=execution.attempts + len(new),
    )


def _free_slots(job: Job, execution: ExecutionStatus) -> Iterator[str]:
    """The slots of a Job that no attempt of it is in; as many at least as attempts are chosen."""
    grant = job.status.admission.slots
    if grant is None:
        return iter(())
    taken = {task.slot for task in execution.active}
    return (slot for slot in grant.ids if slot not in taken)


def runtime_of(job: Job, index: int) -> str:
    """The runtime that a task goes to."""
    type = type_of(part_of(job, index))
    return "" if type is None else type.runtime


def runtimes_of(job: Job) -> frozenset[str]:
    """Every runtime that tasks of a Job may go to."""
    parts: list[JobSpec | StepWork] = [job.spec]
    for step in steps_of(job):
        parts += [step.run] if step.undo is None else [step.run, step.undo]
    types = (type_of(part) for part in parts)
    return frozenset(type.runtime for type in types if type is not None)


def _without(
    retrying: tuple[RetryWait, ...], attempts: tuple[tuple[int, int], ...]
) -> tuple[RetryWait, ...]:
    if not retrying:
        return retrying
    begun = set(attempts)
    return tuple(wait for wait in retrying if (wait.index, wait.attempt) not in begun)
