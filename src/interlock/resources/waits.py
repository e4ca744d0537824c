"""Waits in words: what each reason to wait is called, for everyone who reads of it.

A new reason is one entry here. A reason that has none, since a newer version stored it, is told by
its own name: it must not keep the Job that waits from being shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from interlock.resources.admission import Wait, WaitReason
from interlock.resources.job import Job, JobPhase
from interlock.resources.schedule import SUSPENDED_BY_ANNOTATION
from interlock.resources.words import clock_time, format_age, since


class Blocker(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A Job that holds what another waits for."""

    job: str
    phase: str
    #: Since when it holds the lock.
    since: datetime
    token: int
    #: The latest moment at which it is stopped by itself; None when nothing stops it.
    ends_by: datetime | None = None
    #: How much it holds of each resource, where that is what is waited for.
    holds: dict[str, int | str] = {}


class Facts(Struct, frozen=True):
    """What is known as somebody reads of a wait."""

    job: Job
    now: datetime
    #: Who holds what the Job waits for, as far as that was asked.
    blockers: Sequence[Blocker] = ()


class WaitWords(Struct, frozen=True, kw_only=True):
    """The words for one reason to wait."""

    #: What people call the claim that is waited for; empty for a wait that has none.
    noun: str = ""
    #: In the log and the journal, before the claim's name.
    log: str
    #: In a list, after "waits for".
    column: Callable[[Wait, datetime], str]
    #: In an event of the Job, after "waits".
    event: Callable[[Wait, Job], str]
    #: In the answer to "why", with who can change it.
    why: Callable[[Wait, Facts], str]
    #: The system itself ends it at the same moment: nobody's business while all goes well.
    is_brief: bool = False


def log_words(waits: Iterable[Wait]) -> str:
    """What a Job is or does that waits so."""
    return ", ".join(f"{_words(wait).log} {wait.key}".rstrip() for wait in waits) or "is due"


def column_words(wait: Wait, now: datetime) -> str:
    """What a Job waits for, as short as it can be said."""
    return _words(wait).column(wait, now)


def event_words(wait: Wait, job: Job) -> str:
    """Why a Job waits, on the Job itself."""
    return _words(wait).event(wait, job)


def why_words(wait: Wait, facts: Facts) -> str:
    """Why a Job waits, and what can be done about it."""
    return _words(wait).why(wait, facts)


def claim_words(wait: Wait) -> str:
    """The claim that is waited for; empty for a wait that has none."""
    return f"{_words(wait).noun} {wait.key}".strip() if wait.key else ""


def is_brief(wait: Wait) -> bool:
    """Whether a wait is nobody's business while all goes well."""
    return _words(wait).is_brief


def _words(wait: Wait) -> WaitWords:
    return WORDS.get(wait.reason) or _unknown(wait.reason)


def _unknown(reason: WaitReason) -> WaitWords:
    """Words for a reason that this version does not know: its name, and the claim's."""

    def named(wait: Wait, _: object) -> str:
        return f"{reason.value} {wait.key}".rstrip()

    return WaitWords(
        log=f"waits for {reason.value}",
        column=named,
        event=named,
        why=lambda wait, facts: f"it waits for a reason of another version: {named(wait, facts)}",
    )


# Suspended


def _suspended_event(_: Wait, job: Job) -> str:
    why = job.spec.suspend_reason
    return f"suspended ({why})" if why else "suspended"


def _suspended_why(_: Wait, facts: Facts) -> str:
    job = facts.job
    who = job.metadata.annotations.get(SUSPENDED_BY_ANNOTATION, "")
    because = f": {job.spec.suspend_reason}" if job.spec.suspend_reason else ""
    by = f" by {who}" if who else ""
    return f"it is suspended{by}{because}; start it with: interlock resume {job.metadata.name}"


# Not yet due


def _due_column(wait: Wait, now: datetime) -> str:
    if wait.until is None:
        return wait.reason.value
    return f"start in {format_age(max(wait.until - now, timedelta(0)))}"


def _due_why(wait: Wait, facts: Facts) -> str:
    if wait.until is None:
        return "it is not due yet"
    return f"it is not due before {clock_time(wait.until, facts.now)}"


# Not in the books


def _books_why(_: Wait, facts: Facts) -> str:
    """That the one who made the Job has not accounted for it, and who that is."""
    owners = [owner for owner in facts.job.metadata.owner_references if owner.controller]
    whose = f"{owners[0].kind.lower()}/{owners[0].name}" if owners else "its schedule"
    return (
        f"{whose} made it and has not written it down yet, which is a matter of milliseconds;"
        f" if it stays so: interlock why {whose}"
    )


# A lock


def _lock_why(wait: Wait, facts: Facts) -> str:
    if not facts.blockers:
        return f"lock {wait.key} is free; others are before it in the line"
    first, now = facts.blockers[0], facts.now
    others = len(facts.blockers) - 1
    who = f"job/{first.job} and {others} more" if others else f"job/{first.job}"
    held = f"lock {wait.key} is held by {who} ({first.phase}, {since(first.since, now)})"
    if first.phase == JobPhase.UNKNOWN.value:
        way_out = f"interlock release {wait.key} --job {first.job} --reason …"
        return f"{held}; if it is surely gone: {way_out}"
    if first.ends_by is not None and first.ends_by > now:
        return f"{held}; it is stopped at {clock_time(first.ends_by, now)} at the latest"
    return held


# A Queue


def _queue_why(wait: Wait, facts: Facts) -> str:
    return f"queue {wait.key} has no room for {facts.job.metadata.name}, or others are before it"


def _quota_too_small_why(wait: Wait, facts: Facts) -> str:
    resources = facts.job.spec.resources or {}
    asked = ", ".join(f"{name} {amount}" for name, amount in resources.items())
    each = f" ({asked} a task)" if asked else ""
    return (
        f"it asks for more than queue {wait.key} has in all{each}; see: interlock queue {wait.key}"
    )


def _no_queue_why(wait: Wait, _: Facts) -> str:
    return f"there is no queue {wait.key}; make it, or see which there are: interlock queues"


def _not_allowed_why(wait: Wait, facts: Facts) -> str:
    return f"queue {wait.key} is not for Jobs of namespace {facts.job.metadata.namespace}"


def _unknown_namespace_why(wait: Wait, facts: Facts) -> str:
    namespace = facts.job.metadata.namespace
    return (
        f"queue {wait.key} chooses namespaces by their labels, and the controller, which serves"
        f" one namespace alone, may not read those of {namespace}"
    )


def _stopped_why(wait: Wait, _: Facts) -> str:
    return f"queue {wait.key} lets nobody in: its spec.stop says so"


def _gate_why(wait: Wait, _: Facts) -> str:
    return f"queue {wait.key} lets nobody in while a Job of it is not ready, and one is not"


# Slots


def _slots_why(wait: Wait, facts: Facts) -> str:
    asked = _asked(facts.job)
    if not facts.blockers:
        return f"test bed {wait.key} has no room for {asked}, or others are before it in the line"
    first = facts.blockers[0]
    others = len(facts.blockers) - 1
    who = f"job/{first.job} and {others} more" if others else f"job/{first.job}"
    held = f"{who} ({first.phase}, {since(first.since, facts.now)})"
    return f"it waits for {asked} of test bed {wait.key}, held by {held}"


def _asked(job: Job) -> str:
    """The slots that a Job asks for."""
    request = job.spec.slots
    if request is not None and request.ids:
        named = ", ".join(request.ids[:5]) + (", …" if len(request.ids) > 5 else "")
        return f"slot {named}" if len(request.ids) == 1 else f"slots {named}"
    return "its slots"


def _bed_too_small_why(wait: Wait, facts: Facts) -> str:
    return (
        f"test bed {wait.key} has never room for {_asked(facts.job)}, not even when it is empty;"
        f" see: interlock slots {wait.key}"
    )


def _no_bed_why(wait: Wait, _: Facts) -> str:
    return f"there is no test bed {wait.key}; make it, or see which there are: interlock slots"


def _unclaimed_why(_: Wait, facts: Facts) -> str:
    return (
        "its spec.slots names no test bed, and no Scheduling has claimed it: name one in"
        f" spec.slots.testBed of {facts.job.metadata.name}, or list the Job in a Scheduling"
    )


def _backoff_column(wait: Wait, now: datetime) -> str:
    if wait.until is None:
        return wait.reason.value
    return f"its next try in {format_age(max(wait.until - now, timedelta(0)))}"


def _backoff_why(wait: Wait, facts: Facts) -> str:
    requeue = facts.job.status.admission.requeue
    times = f" for the {requeue.count}. time" if requeue is not None else ""
    at = f" before {clock_time(wait.until, facts.now)}" if wait.until is not None else ""
    return f"it was not ready in time{times}, and is not tried again{at}"


def _deactivated_why(_: Wait, facts: Facts) -> str:
    eviction = facts.job.status.admission.eviction
    is_limit = eviction is not None and eviction.cause == "RequeuingLimitExceeded"
    because = "it was not ready in time in any of its tries, and " if is_limit else "it "
    return f"{because}is not active; put it back with: interlock resume {facts.job.metadata.name}"


#: The words for every reason that this version gives.
WORDS: dict[WaitReason, WaitWords] = {
    WaitReason.SUSPENDED: WaitWords(
        log="is suspended",
        column=lambda _, __: "suspended",
        event=_suspended_event,
        why=_suspended_why,
    ),
    WaitReason.NOT_YET_DUE: WaitWords(
        log="is not due yet",
        column=_due_column,
        event=lambda wait, _: f"not before {wait.until.isoformat() if wait.until else 'later'}",
        why=_due_why,
    ),
    WaitReason.NOT_IN_BOOKS: WaitWords(
        log="is not in its schedule's books",
        column=lambda _, __: "its schedule",
        event=lambda _, __: "its schedule has not written it down yet",
        why=_books_why,
        is_brief=True,
    ),
    WaitReason.LOCK_TAKEN: WaitWords(
        noun="lock",
        log="waits for lock",
        column=lambda wait, _: f"lock {wait.key}",
        event=lambda wait, _: f"lock {wait.key} is taken",
        why=_lock_why,
    ),
    WaitReason.QUOTA_TAKEN: WaitWords(
        noun="queue",
        log="waits for room in queue",
        column=lambda wait, _: f"queue {wait.key}",
        event=lambda wait, _: f"queue {wait.key} has no room",
        why=_queue_why,
    ),
    WaitReason.QUOTA_TOO_SMALL: WaitWords(
        noun="queue",
        log="asks for more than there is in queue",
        column=lambda wait, _: f"more than queue {wait.key} has",
        event=lambda wait, _: f"it asks for more than queue {wait.key} has",
        why=_quota_too_small_why,
    ),
    WaitReason.NO_QUEUE: WaitWords(
        noun="queue",
        log="waits for there to be a queue",
        column=lambda wait, _: f"queue {wait.key}, which is not there",
        event=lambda wait, _: f"there is no queue {wait.key}",
        why=_no_queue_why,
    ),
    WaitReason.QUEUE_NOT_ALLOWED: WaitWords(
        noun="queue",
        log="may not use queue",
        column=lambda wait, _: f"queue {wait.key}, which it may not use",
        event=lambda wait, job: f"queue {wait.key} is not for {job.metadata.namespace}",
        why=_not_allowed_why,
    ),
    WaitReason.NAMESPACE_UNKNOWN: WaitWords(
        noun="queue",
        log="cannot tell whether it may use queue",
        column=lambda wait, _: f"queue {wait.key}, which it may perhaps not use",
        event=lambda wait, job: (
            f"nobody can tell whether queue {wait.key} is for {job.metadata.namespace}"
        ),
        why=_unknown_namespace_why,
    ),
    WaitReason.QUEUE_STOPPED: WaitWords(
        noun="queue",
        log="waits for stopped queue",
        column=lambda wait, _: f"queue {wait.key}, which is stopped",
        event=lambda wait, _: f"queue {wait.key} lets nobody in",
        why=_stopped_why,
    ),
    WaitReason.GATE_CLOSED: WaitWords(
        noun="queue",
        log="waits for others to be ready in queue",
        column=lambda wait, _: f"others in queue {wait.key} to be ready",
        event=lambda wait, _: f"queue {wait.key} lets nobody in before others are ready",
        why=_gate_why,
    ),
    WaitReason.SLOTS_TAKEN: WaitWords(
        noun="test bed",
        log="waits for slots of test bed",
        column=lambda wait, _: f"slots of {wait.key}",
        event=lambda wait, _: f"test bed {wait.key} has no slots free for it",
        why=_slots_why,
    ),
    WaitReason.BED_TOO_SMALL: WaitWords(
        noun="test bed",
        log="asks for slots that are not in test bed",
        column=lambda wait, _: f"slots that {wait.key} does not have",
        event=lambda wait, _: f"it asks for slots that test bed {wait.key} does not have",
        why=_bed_too_small_why,
    ),
    WaitReason.NO_TEST_BED: WaitWords(
        noun="test bed",
        log="waits for there to be test bed",
        column=lambda wait, _: f"test bed {wait.key}, which is not there",
        event=lambda wait, _: f"there is no test bed {wait.key}",
        why=_no_bed_why,
    ),
    WaitReason.UNCLAIMED: WaitWords(
        log="waits for a Scheduling to claim it",
        column=lambda _, __: "a Scheduling",
        event=lambda _, __: "no Scheduling has claimed it",
        why=_unclaimed_why,
    ),
    WaitReason.IN_PLAN: WaitWords(
        noun="scheduling",
        log="waits for its turn in scheduling",
        column=lambda wait, _: f"its turn in scheduling {wait.key}",
        event=lambda wait, _: f"scheduling {wait.key} has not given it slots yet",
        why=lambda wait, _: (
            f"scheduling {wait.key} has claimed it and gives it slots when its turn comes;"
            f" see: interlock describe scheduling {wait.key}"
        ),
    ),
    WaitReason.BACKOFF: WaitWords(
        log="waits for its next try",
        column=_backoff_column,
        event=lambda wait, _: f"not before {wait.until.isoformat() if wait.until else 'later'}",
        why=_backoff_why,
    ),
    WaitReason.DEACTIVATED: WaitWords(
        log="is not active",
        column=lambda _, __: "not active",
        event=lambda _, __: "spec.active is false",
        why=_deactivated_why,
    ),
}
