"""An audit of writes: what a person did to a resource, in words for its history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from interlock.resources.controlled_job import ControlledJob, Override
from interlock.resources.job import (
    CREATOR_ANNOTATION,
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    OPERATE_REASON_ANNOTATION,
    RELEASE_ANNOTATION,
    REQUEUE_ANNOTATION,
    REQUEUE_ROUND_ANNOTATION,
    Job,
)
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Resource
from interlock.resources.schedule import (
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
    written_moment,
)

_NOBODY_KNOWN = "somebody whom the server does not know"


def deed_of(old: Resource, new: Resource, person: str, now: datetime) -> str:
    """What a change of a resource was, and whose; empty when it changed nothing.

    `person` is who is proven to have asked; without that nobody is named.
    """
    told = list(_changes(old, new, person, now))
    if told:
        return "; ".join(told)
    about = replace(old.metadata, resource_version="", generation=0)
    is_same = about == replace(new.metadata, resource_version="", generation=0)
    if is_same and getattr(old, "spec", None) == getattr(new, "spec", None):
        return ""
    return f"changed by {_who(person)}"


def deletion_of(gone: Resource, person: str) -> str:
    """That a resource was deleted, by whom; and who had made it, which goes with it."""
    creator = gone.metadata.annotations.get(CREATOR_ANNOTATION, "")
    made = f" (created by {creator})" if creator else ""
    return f"deleted by {_who(person)}{made}"


def _who(person: str) -> str:
    return person or _NOBODY_KNOWN


def _changes(old: Resource, new: Resource, person: str, now: datetime) -> Iterator[str]:
    if isinstance(old, Job) and isinstance(new, Job):
        yield from _stop(old, new, person, now)
        yield from _release(old, new, person)
        yield from _requeue(old, new, person)
        yield from _operating(old, new, person)
    if isinstance(old, Job | JobConfig | ControlledJob) and isinstance(
        new, Job | JobConfig | ControlledJob
    ):
        yield from _suspension(old, new, person)
    if isinstance(old, ControlledJob) and isinstance(new, ControlledJob):
        yield from _exceptions(old, new, person)


def _stop(old: Job, new: Job, person: str, now: datetime) -> Iterator[str]:
    before, after = old.spec.kill_at, new.spec.kill_at
    who = _who(person)
    if before != after:
        if after is None:
            yield f"its stop was taken back by {_who(person)}"
            return
        when = "" if after <= now else f", from {written_moment(after)} on"
        yield f"stopped by {who}{when}"
    if after is not None and new.spec.grace_period < old.spec.grace_period:
        yield f"given {new.spec.grace_period} to stop by {who}"


def _release(old: Job, new: Job, person: str) -> Iterator[str]:
    reason = new.metadata.annotations.get(RELEASE_ANNOTATION)
    if reason is not None and reason != old.metadata.annotations.get(RELEASE_ANNOTATION):
        yield f"released by {_who(person)}: {reason}"


def _requeue(old: Job, new: Job, person: str) -> Iterator[str]:
    was, now = old.metadata.annotations, new.metadata.annotations
    order = (REQUEUE_ANNOTATION, REQUEUE_ROUND_ANNOTATION)
    if REQUEUE_ANNOTATION in now and any(was.get(name) != now.get(name) for name in order):
        reason = now[REQUEUE_ANNOTATION]
        yield f"requeued by {_who(person)}: {reason}"


def _operating(old: Job, new: Job, person: str) -> Iterator[str]:
    was, now = old.metadata.annotations, new.metadata.annotations
    order = (OPERATE_ANNOTATION, OPERATE_FOR_ANNOTATION)
    if OPERATE_ANNOTATION in now and any(was.get(name) != now.get(name) for name in order):
        who, reason = _who(person), now.get(OPERATE_REASON_ANNOTATION)
        yield f"{now[OPERATE_ANNOTATION]} ordered by {who}: {reason or 'no reason given'}"


def _suspension(
    old: Job | JobConfig | ControlledJob, new: Job | JobConfig | ControlledJob, person: str
) -> Iterator[str]:
    reason = _reason(new)
    if not new.spec.suspend:
        if old.spec.suspend:
            yield f"resumed by {_who(person)}"
        return
    if old.spec.suspend and reason == _reason(old):
        return
    because = f": {reason}" if reason else ""
    yield f"suspended by {_who(person)}{because}"


def _reason(held: Job | JobConfig | ControlledJob) -> str:
    """Why it is held back."""
    noted = held.metadata.annotations.get(SUSPEND_REASON_ANNOTATION, "")
    if isinstance(held, Job):
        return held.spec.suspend_reason or ("" if noted == USER_STOP else noted)
    return noted


def _exceptions(old: ControlledJob, new: ControlledJob, person: str) -> Iterator[str]:
    before, after = _unsigned(old.spec.overrides), _unsigned(new.spec.overrides)
    for one in new.spec.overrides:
        if replace(one, by="") not in before:
            because = f": {one.reason}" if one.reason else ""
            yield f"{_exception(one)} asked for by {_who(person)}{because}"
    for one in old.spec.overrides:
        if replace(one, by="") not in after:
            yield f"{_exception(one)} taken back by {_who(person)}"


def _unsigned(overrides: tuple[Override, ...]) -> list[Override]:
    return [replace(one, by="") for one in overrides]


def _exception(one: Override) -> str:
    return f"{one.action.value} {written_moment(one.begin)} to {written_moment(one.until)}"
