"""What a Job of a ControlledJob looks like."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields, replace

from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import JOB_FINALIZER, Job, JobSpec, LockRequest
from interlock.resources.metadata import API_VERSION, GROUP, Metadata, OwnerReference
from interlock.resources.naming import MAX_JOB_NAME, cut_name
from interlock.resources.schedule import (
    CONTROLLED_LABEL,
    MANUAL_ANNOTATION,
    NEEDS_BOOKS_ANNOTATION,
    OFFSET_ANNOTATION,
    RUN_ID_ANNOTATION,
    SCHEDULED_AT_ANNOTATION,
    STOPS_AT_ANNOTATION,
    TAKES_OVER_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
    TIMEZONE_ANNOTATION,
    controlled_lock,
    written_moment,
)
from interlock.resources.values.durations import Duration, format_duration


def template_hash(spec: JobSpec) -> str:
    """What tells one template from another: what its Jobs do, and nothing else.

    Whether Jobs are held back is not a part of it, nor how a length of time is written, nor
    whether a default is: so a newer version that knows more fields makes the same of it.
    """
    plain = replace(spec, suspend=False, suspend_reason="")
    return sha256(json.dumps(_plainly(plain), sort_keys=True).encode()).hexdigest()


def _plainly(value: object) -> object:
    """A noun as dictionaries and lists, without what has its default."""
    if isinstance(value, Struct):
        given = ((field, getattr(value, field.name)) for field in _fields(type(value)))
        return {
            field.encode_name: _plainly(part) for field, part in given if part != _default(field)
        }
    if isinstance(value, tuple | list):
        return [_plainly(part) for part in value]
    if isinstance(value, dict):
        return {name: _plainly(part) for name, part in value.items()}
    if isinstance(value, Duration):
        return format_duration(value)
    return msgspec.to_builtins(value)


@cache
def _fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    """The fields of a noun; finding them out takes longer than all the rest."""
    return fields(kind)


def _default(field: FieldInfo) -> object:
    made = field.default_factory
    return made() if callable(made) else field.default


def job_name(controlled: ControlledJob, start: datetime, number: int) -> str:
    """The name of the Job of that number for the window that opened at `start`.

    The numbers rise for ever; once they leave the name too little room, it is cut, and what is
    cut off is stood for by a digest.
    """
    ending = f"-{int(start.timestamp())}-{number}"
    return cut_name(controlled.metadata.name, MAX_JOB_NAME - len(ending)) + ending


def make_job(
    controlled: ControlledJob,
    *,
    start: datetime,
    number: int,
    stop: datetime | None,
    is_manual: bool = False,
    takes_over_from: str = "",
) -> Job:
    """A Job of the template: for the window that opened at `start`, to be stopped at `stop`."""
    metadata = controlled.metadata
    notes = {
        SCHEDULED_AT_ANNOTATION: written_moment(start),
        RUN_ID_ANNOTATION: str(number),
        TEMPLATE_HASH_ANNOTATION: template_hash(controlled.spec.job_template.spec),
        **_zone_notes(controlled),
        **stop_note(stop),
    }
    if is_manual:
        notes[MANUAL_ANNOTATION] = "true"
    if takes_over_from:
        notes[TAKES_OVER_ANNOTATION] = takes_over_from
    given = controlled.spec.job_template.metadata
    owner = OwnerReference(
        api_version=API_VERSION,
        kind=controlled.kind,
        name=metadata.name,
        uid=metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return Job(
        metadata=Metadata(
            name=job_name(controlled, start, number),
            namespace=metadata.namespace,
            labels=_not_ours(given.labels) | {CONTROLLED_LABEL: metadata.name},
            annotations=_not_ours(given.annotations) | notes,
            finalizers=(JOB_FINALIZER,),
            owner_references=(owner,),
        ),
        spec=_spec(controlled, stop),
    )


def needing_books(job: Job) -> Job:
    """A Job that stands in for one that a person started: it waits for the books all the same."""
    notes = job.metadata.annotations | {NEEDS_BOOKS_ANNOTATION: "true"}
    return replace(job, metadata=replace(job.metadata, annotations=notes))


def stop_note(stop: datetime | None) -> dict[str, str]:
    """How a Job tells the stop that was planned for it; empty for none."""
    return {STOPS_AT_ANNOTATION: stop.isoformat() if stop is not None else ""}


def with_lock(spec: JobSpec, controlled: ControlledJob) -> JobSpec:
    """A Job's spec with the lock that keeps the Jobs of a ControlledJob apart."""
    lock = LockRequest(key=controlled_lock(controlled.metadata.name))
    others = tuple(each for each in spec.locks if each.key != lock.key)
    return replace(spec, locks=(*others, lock))


def _spec(controlled: ControlledJob, stop: datetime | None) -> JobSpec:
    """The template's spec; that a template is held back never holds a Job back."""
    spec = replace(
        controlled.spec.job_template.spec, kill_at=stop, suspend=False, suspend_reason=""
    )
    if spec.ttl_after_finished is not None:
        spec = replace(spec, ttl_after_finished=max(spec.ttl_after_finished, _LEAST_TTL))
    return with_lock(spec, controlled)


#: An ended Job stays at least as long, so that it is written down how it ended: what is gone
#: without a word was removed by a person, and is made again.
_LEAST_TTL = Duration(minutes=1)


def _zone_notes(controlled: ControlledJob) -> dict[str, str]:
    zone = controlled.spec.timezone
    notes = {TIMEZONE_ANNOTATION: zone.name}
    if zone.offset:
        notes[OFFSET_ANNOTATION] = str(zone.offset)
    return notes


def _not_ours(names: dict[str, str]) -> dict[str, str]:
    """Without names that mean something to us: a template must not stop what it makes."""
    return {name: value for name, value in names.items() if not name.startswith(f"{GROUP}/")}
