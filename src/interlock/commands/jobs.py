"""Orders to Jobs: stop, kill, requeue, release, retry."""

from __future__ import annotations

from typing import Annotated

from msgspec.structs import replace

from interlock.commands.change import By, Change, Write, changed, noted, unchanged
from interlock.commands.errors import OrderRefusedError, conflict
from interlock.resources.job import (
    CREATOR_ANNOTATION,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    REQUEUE_ANNOTATION,
    REQUEUE_ROUND_ANNOTATION,
    REQUEUED_BY_ANNOTATION,
    RETRY_OF_ANNOTATION,
    Job,
    JobPhase,
    JobSpec,
    keeps_its_turn,
    unknown_attempts,
)
from interlock.resources.metadata import Metadata, Noun
from interlock.resources.naming import GENERATED, MAX_JOB_NAME
from interlock.resources.rules import Given, Line
from interlock.resources.schedule import (
    RESTARTED,
    STOPPED,
    STOPPED_BECAUSE_ANNOTATION,
    STOPPED_BY_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
)
from interlock.resources.transitions import has_ended, is_admitted, is_evicting
from interlock.resources.values.durations import Duration

_RETRY = "-retry-"
#: A kill gives no time.
_AT_ONCE = Duration()
_USUAL_GRACE = JobSpec().grace_period


class Stopping(Noun):
    """How to end a Job."""

    #: Why, for people to read.
    reason: Line = ""


class Releasing(Noun):
    """That the tasks of a Job are gone whose fate cannot be proven."""

    #: Why this is sure.
    reason: Annotated[str, Given("expected why it is sure that they are gone")]


class Requeuing(Noun):
    """How to put a Job back."""

    #: Why, for people to read.
    reason: Annotated[Line, Given("expected why it is put back")]


class Retrying(Noun):
    """How to run a Job again."""


def stop(job: Job, how: Stopping, by: By) -> Change:
    """End a Job gracefully, from now on; one that is over stays as it is."""
    return _ended(job, how, by, "stopping")


def kill(job: Job, how: Stopping, by: By) -> Change:
    """End a Job at once, from now on; one that is over stays as it is."""
    return _ended(job, how, by, "being killed", grace=_AT_ONCE)


def _ended(job: Job, how: Stopping, by: By, word: str, grace: Duration | None = None) -> Change:
    if has_ended(job):
        return unchanged(job, f"already {job.status.phase.value.lower()}")
    after = job if grace is None else replace(job, spec=replace(job.spec, grace_period=grace))
    if is_of_controlled(job):
        after = stopped_by_person(after, by, how.reason)
    elif not _is_told(job, by):
        # Of a Job that is told already, whoever told it first is the one to name.
        after = told_to_end(after, by, STOPPED, how.reason)
    if job.status.phase is JobPhase.UNKNOWN:
        out = f"if it is surely gone: interlock release {job.metadata.name} --reason …"
        word = f"{word}; what became of it is not known: {out}"
    if job.status.phase is JobPhase.STUCK:
        verbs = f"interlock op roll-back | resolve {job.metadata.name} --reason …"
        word = f"{word} once somebody has seen to it, for it is stuck: {verbs}"
    return changed(job, after, word)


def told_to_end(job: Job, by: By, verb: str, reason: str = "") -> Job:
    """The Job that is to end from now on, and why; a stop that is due stays as it is."""
    assert verb in (STOPPED, RESTARTED), f"{verb} ends nothing"
    notes = {STOPPED_BECAUSE_ANNOTATION: because(verb, reason)}
    if by.who:
        notes[STOPPED_BY_ANNOTATION] = by.who
    after = noted(job, notes)
    if _is_told(job, by):
        return after
    return replace(after, spec=replace(after.spec, kill_at=by.now))


def because(verb: str, reason: str) -> str:
    """Why a Job was told to end, as it carries it; who that was is said apart."""
    return f"{verb}: {reason}" if reason else verb


def stopped_by_person(job: Job, by: By, reason: str = "") -> Job:
    """A Job of a ControlledJob that is to end: it makes no other in this window."""
    return noted(told_to_end(job, by, STOPPED, reason), {SUSPEND_REASON_ANNOTATION: USER_STOP})


def _is_told(job: Job, by: By) -> bool:
    """Whether its stop is due already."""
    return job.spec.kill_at is not None and job.spec.kill_at <= by.now


def is_of_controlled(job: Job) -> bool:
    """Whether a ControlledJob made the Job and manages it."""
    owners = job.metadata.owner_references
    return any(owner.controller and owner.kind == "ControlledJob" for owner in owners)


def release(job: Job, how: Releasing, by: By) -> Change:  # noqa: ARG001
    """Take a person's word that the tasks are gone whose fate is unknown: the Job ends.

    The word is about what is unknown now, and is not taken for anything that comes later. Who
    gave it, the door records.
    """
    name, phase = job.metadata.name, job.status.phase
    if not how.reason.strip():
        hint = "say why you are sure that it is gone"
        raise OrderRefusedError("is empty", hint=hint, option="reason")
    if phase is not JobPhase.UNKNOWN:
        raise conflict(
            f"job/{name} is {phase}, not Unknown: its fate needs nobody's word",
            "it is over, and holds nothing"
            if has_ended(job)
            else f"what it holds passes on when it ends; stop it with: interlock stop {name}",
        )
    attempts = ",".join(sorted(unknown_attempts(job)))
    word = {RELEASE_ANNOTATION: how.reason, RELEASED_ATTEMPTS_ANNOTATION: attempts}
    return changed(job, noted(job, word), "released")


def requeue(job: Job, how: Requeuing, by: By) -> Change:
    """Put a Job back that was let in: it is stopped, gives everything back, and waits again.

    The order is for the round that the Job is in, and is not taken for anything that comes later.
    """
    name = job.metadata.name
    if not how.reason.strip():
        raise OrderRefusedError("is empty", hint="say why it is put back", option="reason")
    if has_ended(job):
        raise conflict(
            f"job/{name} is over: {job.status.phase}", f"run it again with: interlock retry {name}"
        )
    if job.is_going or _is_told(job, by) or job.status.execution.stopping_for is not None:
        raise conflict(f"job/{name} is about to end", "what ends is not put back")
    if keeps_its_turn(job.spec):
        told = f"job/{name} keeps its turn: what comes after it must not overtake it"
        raise conflict(told, f"end it with: interlock stop {name}")
    if not is_admitted(job):
        return unchanged(job, "waits already")
    round = str(job.status.execution.round)
    if is_evicting(job) or job.metadata.annotations.get(REQUEUE_ROUND_ANNOTATION) == round:
        return unchanged(job, "is being put back already")
    order = {REQUEUE_ANNOTATION: how.reason, REQUEUE_ROUND_ANNOTATION: round}
    if by.who:
        order[REQUEUED_BY_ANNOTATION] = by.who
    held = ", ".join(f"lock {grant.key}" for grant in job.status.admission.grants)
    gives = f"gives back {held}, then" if held else "then"
    return changed(job, noted(job, order), f"is being stopped; {gives} waits again, behind others")


def retry(job: Job, how: Retrying, by: By) -> Change:  # noqa: ARG001
    """Run a Job again, as a new Job with the same definition.

    Moments of the old one are left out: it starts as soon as it may. A kill may have shortened
    the grace period: that is forgotten.
    """
    name, spec = job.metadata.name, job.spec
    grace = spec.grace_period
    if spec.kill_at is not None and not grace:
        grace = _USUAL_GRACE
    base = name[: MAX_JOB_NAME - len(_RETRY) - GENERATED].rstrip("-")
    again = Job(
        metadata=Metadata(
            generate_name=f"{base}{_RETRY}",
            namespace=job.metadata.namespace,
            labels=job.metadata.labels,
            annotations=created_by({RETRY_OF_ANNOTATION: name}, by),
        ),
        spec=replace(
            spec,
            kill_at=None,
            start_after=None,
            start_by=None,
            suspend=False,
            suspend_reason="",
            grace_period=grace,
        ),
    )
    return Change(made="created", writes=(Write(again),))


def created_by(notes: dict[str, str], by: By) -> dict[str, str]:
    """The annotations of something new, with whoever made it."""
    return {**notes, CREATOR_ANNOTATION: by.who} if by.who else notes
