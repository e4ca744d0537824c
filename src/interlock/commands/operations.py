"""Orders about operations: go forward again, roll back, say what it came to, let it go."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from interlock.commands.change import By, Change, changed, noted, unchanged
from interlock.commands.errors import OrderRefusedError, conflict
from interlock.resources.job import (
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    OPERATE_REASON_ANNOTATION,
    OPERATED_BY_ANNOTATION,
    Job,
    JobPhase,
    OperateVerb,
    interventions,
    is_operation,
)
from interlock.resources.metadata import Noun
from interlock.resources.rules import Given, Line
from interlock.resources.transitions import has_ended, is_admitted


class Operating(Noun):
    """An order about an operation."""

    #: Why, for people to read.
    reason: Annotated[Line, Given("expected why")]


class Outcome(StrEnum):
    """What a person says that an operation came to."""

    #: It is done.
    SUCCEEDED = "succeeded"
    #: It is not done, and nothing is left behind.
    FAILED = "failed"


class Resolving(Noun):
    """That an operation is over, and what it came to."""

    #: Why this is so.
    reason: Annotated[Line, Given("expected why")]
    outcome: Outcome = Outcome.FAILED


def go_forward(job: Job, how: Operating, by: By) -> Change:
    """Have a stuck operation tried again from where it is stuck, with all its retries."""
    _check(job, how.reason)
    if job.status.phase is not JobPhase.STUCK:
        raise conflict(
            f"job/{job.metadata.name} is {job.status.phase}, not Stuck: it goes on by itself",
            f"interlock why job/{job.metadata.name}",
        )
    return _ordered(job, OperateVerb.RETRY, how.reason, by, "goes on, with all its retries")


def roll_back(job: Job, how: Operating, by: By) -> Change:
    """Have what was done of an operation undone; a stuck rollback is tried again."""
    _check(job, how.reason)
    if job.status.phase is JobPhase.REVERTING:
        return unchanged(job, "is being rolled back already")
    told = "is rolled back; a step that is under way ends first"
    return _ordered(job, OperateVerb.ROLL_BACK, how.reason, by, told)


def resolve(job: Job, how: Resolving, by: By) -> Change:
    """Take a stuck operation as over: a person has seen to what it left."""
    _check(job, how.reason)
    _check_stuck(job)
    verb = OperateVerb(how.outcome.value)
    return _ordered(job, verb, how.reason, by, f"is declared {how.outcome.value}")


def remove(job: Job, how: Operating, by: By) -> Change:
    """Let a stuck operation go once it is deleted, whatever it left behind."""
    _check(job, how.reason)
    _check_stuck(job)
    return _ordered(job, OperateVerb.REMOVE, how.reason, by, "goes once it is deleted")


def _check(job: Job, reason: str) -> None:
    name = job.metadata.name
    if not reason.strip():
        raise OrderRefusedError("is empty", hint="say why", option="reason")
    if not is_operation(job.spec):
        raise conflict(
            f"job/{name} is no operation: it has no steps", f"interlock stop {name} ends it"
        )
    if has_ended(job):
        raise conflict(
            f"job/{name} is over: {job.status.phase}", f"run it again with: interlock retry {name}"
        )
    if not is_admitted(job):
        raise conflict(
            f"job/{name} waits, and nothing of it was done", f"end it with: interlock stop {name}"
        )


def _check_stuck(job: Job) -> None:
    name = job.metadata.name
    if job.status.phase is not JobPhase.STUCK:
        raise conflict(
            f"job/{name} is {job.status.phase}, not Stuck: it comes to its end by itself",
            f"to have it rolled back: interlock op roll-back {name} --reason ...",
        )


def _ordered(job: Job, verb: OperateVerb, reason: str, by: By, told: str) -> Change:
    order: dict[str, str | None] = {
        OPERATE_ANNOTATION: verb.value,
        OPERATE_REASON_ANNOTATION: reason,
        OPERATE_FOR_ANNOTATION: str(interventions(job)),
    }
    if by.who:
        order[OPERATED_BY_ANNOTATION] = by.who
    return changed(job, noted(job, order), told)
