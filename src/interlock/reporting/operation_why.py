"""Why an operation is where it is: its steps, what is tried again when, and what it is stuck at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from interlock.resources.job import Job, JobPhase, steps_of
from interlock.resources.operation import StepState, StepStatus
from interlock.resources.steps import Step
from interlock.resources.transitions import has_ended
from interlock.resources.words import clock_time, plural, since

#: So many of the parts that are not over are named.
_NAMED = 3

_WORDS = {
    StepState.WAITS: "waits",
    StepState.RUNNING: "runs",
    StepState.DONE: "done",
    StepState.FAILED: "failed",
    StepState.TO_UNDO: "done, to be undone",
    StepState.UNDOING: "is being undone",
    StepState.UNDO_FAILED: "could not be undone",
    StepState.UNDONE: "undone",
}


def operation_words(job: Job, now: datetime) -> dict[JobPhase, str]:
    """What is said of an operation in the phases that operations alone have, and in some others."""
    operation = job.status.execution.operation
    if operation is None:
        return {}
    name = job.metadata.name
    done = sum(step.state is StepState.DONE for step in operation.steps)
    so_far = f"{done} of {len(operation.steps)} steps done"
    because = f": {operation.error}" if operation.error else ""
    return {
        JobPhase.RUNNING: f"{name} is executing: {so_far}",
        JobPhase.RETRYING: f"{name} tries a step again: {so_far}",
        JobPhase.RETRY_BACKOFF: f"{name} waits to try a step again: {so_far}",
        JobPhase.REVERTING: f"{name} is being rolled back{because}",
        JobPhase.STUCK: f"{name} is stuck ({since(operation.stuck_at, now)}):"
        f" {operation.stuck_message}",
    }


def step_waits(job: Job, now: datetime) -> Iterable[tuple[str, datetime]]:
    """That a step is tried again, or undone again, in words, and when."""
    operation = job.status.execution.operation
    if operation is None or has_ended(job):
        return
    for at, step in enumerate(operation.steps):
        if step.not_before is None:
            continue
        spec = _spec(job, at)
        if operation.reverting:
            limit = spec.undo_retries.limit if spec is not None and spec.undo_retries else 0
            what, number = f"undo of {step.name}", step.undo_retries
        else:
            limit = spec.retries.limit if spec is not None else 0
            what, number = step.name, step.retries
        again = "goes on" if step.interrupted else f"is tried again, retry {number + 1} of {limit},"
        message = f"{what} {again} at {clock_time(step.not_before, now)}: {step.message}"
        yield message, step.not_before


def part_words(children: Sequence[Job]) -> str:
    """Which parts an operation waits for, those first that wait for a person; empty when none."""
    left = [child for child in children if not has_ended(child)]
    if not left:
        return ""
    left.sort(key=lambda child: child.status.phase is not JobPhase.STUCK)
    named = ", ".join(f"job/{one.metadata.name} ({one.status.phase})" for one in left[:_NAMED])
    more = ", ..." if len(left) > _NAMED else ""
    verb = "is" if len(left) == 1 else "are"
    return f"{len(left)} of {plural(len(children), 'part')} {verb} not over: {named}{more}"


def step_details(job: Job) -> Iterable[tuple[str, str]]:
    """Every step and how it is going; and what a person can do where nobody else acts."""
    operation = job.status.execution.operation
    if operation is None or has_ended(job):
        return
    for step in operation.steps:
        yield "step", step_words(step)
    if operation.stuck_at is not None:
        orders = f"interlock op retry | roll-back | resolve | remove {job.metadata.name}"
        yield "way out", f"nobody acts but you: {orders} --reason ..."


def step_words(step: StepStatus) -> str:
    """A step in words."""
    told = f"{step.name} {_WORDS[step.state]}"
    tries = step.undos if step.state in (StepState.UNDOING, StepState.UNDO_FAILED) else step.runs
    if tries > 1:
        told += f", tried {tries} times"
    return f"{told}: {step.message}" if step.message else told


def _spec(job: Job, at: int) -> Step | None:
    steps = steps_of(job)
    return steps[at] if at < len(steps) else None
