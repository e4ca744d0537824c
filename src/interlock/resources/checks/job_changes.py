"""Update validation of Jobs: what of one may change, and until when."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.findings import Findings
from interlock.resources.job import JOB_FINALIZER, Job, JobSpec
from interlock.resources.metadata import Resource
from interlock.resources.transitions import has_ended, was_admitted
from interlock.resources.work_types import work_types

#: Fields that tasks were, or may have been, started with. Of locks only the keys count.
FROZEN_ONCE_ADMITTED = (
    *(type.path for type in work_types()),
    "target",
    "parent",
    "idempotencyKey",
    "parallelism",
    "queue",
    "resources",
    "minParallelism",
    "completion",
    "startAfter",
    "args",
    "substitutions",
)
#: The one field that may still change when a Job has ended.
FREE_ONCE_ENDED = "ttlAfterFinished"


def check_job_change(old: Job, new: Job, to: Findings) -> None:
    """Refuse what a change of a Job asks for that is not possible.

    Before a Job is admitted everything may change. From then on, what its tasks are made of may
    not, also while it waits again; once it has ended, only how long it is kept.
    """
    if old.spec != new.spec:
        if has_ended(old):
            _refuse_after_end(old.spec, new.spec, to)
        elif was_admitted(old):
            _refuse_after_admission(old.spec, new.spec, to)
    if not has_ended(old) and _lets_go(old, new):
        message = f"{JOB_FINALIZER} stays until the Job's tasks are proven gone"
        to.add("metadata.finalizers", message, list(new.metadata.finalizers))


def _lets_go(old: Resource, new: Resource) -> bool:
    """Whether a change would take the hold off a Job that may still have tasks."""
    held, kept = old.metadata.finalizers, new.metadata.finalizers
    return JOB_FINALIZER in held and JOB_FINALIZER not in kept


def _refuse_after_admission(old: JobSpec, new: JobSpec, to: Findings) -> None:
    for path in _changed(old, new):
        if path in FROZEN_ONCE_ADMITTED:
            to.add(f"spec.{path}", "may not change once the Job is admitted")
    if {lock.key for lock in old.locks} != {lock.key for lock in new.locks}:
        to.add("spec.locks", "keys may not change once the Job is admitted")


def _refuse_after_end(old: JobSpec, new: JobSpec, to: Findings) -> None:
    for path in _changed(old, new):
        if path != FREE_ONCE_ENDED:
            to.add(f"spec.{path}", "may not change once the Job has ended")


def _changed(old: JobSpec, new: JobSpec) -> Iterator[str]:
    """The fields that differ, by their names in JSON."""
    for name, path in zip(old.__struct_fields__, old.__struct_encode_fields__, strict=True):
        if getattr(old, name) != getattr(new, name):
            yield path
