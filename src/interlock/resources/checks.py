"""What a resource must keep to beyond its types, and what of it may change later.

Everything here is a pure function of the resource. Typical objects pay for what they use: a part
that is not given is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from interlock.resources.calendar import Calendar
from interlock.resources.calendar_checks import calendar_doubts, check_calendar
from interlock.resources.cluster import Lease
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.errors import Problem
from interlock.resources.job import JOB_FINALIZER, Job, JobSpec
from interlock.resources.job_checks import WORK, check_job
from interlock.resources.job_config import JobConfig
from interlock.resources.kinds import KINDS
from interlock.resources.lock import Lock
from interlock.resources.marks import check_marks
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.naming import (
    MAX_CONFIG_NAME,
    MAX_CONTROLLED_NAME,
    MAX_JOB_NAME,
    MAX_LABEL,
    MAX_SUBDOMAIN,
    SUBDOMAIN,
    SUBDOMAIN_RULE,
    check_metadata,
)
from interlock.resources.rule_checks import check_rules
from interlock.resources.rules import DnsLabel, Matches
from interlock.resources.schedule_checks import check_controlled_job, check_job_config
from interlock.resources.suggestions import Findings, shown
from interlock.resources.transitions import has_ended, is_admitted
from interlock.resources.weekday_doubts import weekday_doubts

_API_VERSIONS = {kind.type: kind.api_version for kind in KINDS.values()}


#: How long a name may be, for kinds whose names are part of other names.
_LONGEST: dict[type[Resource], int] = {
    Job: MAX_JOB_NAME,
    JobConfig: MAX_CONFIG_NAME,
    ControlledJob: MAX_CONTROLLED_NAME,
    Lease: MAX_SUBDOMAIN,
}


def name_rule(cls: type[Resource]) -> Matches:
    """What the names of a kind must keep to."""
    longest = _LONGEST.get(cls, MAX_LABEL)
    if cls is Lease:
        return Matches(SUBDOMAIN, SUBDOMAIN_RULE, longest=longest)
    return DnsLabel(longest)


def problems_of(resource: Resource) -> tuple[Problem, ...]:
    """Everything that is wrong with a resource, in the order of its fields."""
    found = Findings()
    api_version = _API_VERSIONS[type(resource)]
    if resource.api_version != api_version:
        found.add("apiVersion", f"expected {api_version}", resource.api_version)
    _check_names(type(resource), resource.metadata, found)
    if isinstance(resource, Job):
        check_job(resource.spec, found)
    elif isinstance(resource, JobConfig):
        check_job_config(resource.spec, _identity(resource), found)
    elif isinstance(resource, ControlledJob):
        check_controlled_job(resource.spec, _identity(resource), found)
    elif isinstance(resource, Calendar):
        check_calendar(resource.spec, found)
    elif isinstance(resource, Lock):
        check_rules("spec", resource.spec, found)
    return found.problems if len(found) else ()


def _identity(resource: Resource) -> str:
    """What decides where an `H` falls; good for one is good for all, so a guess will do."""
    return f"{resource.metadata.namespace}/{resource.metadata.name}"


def doubts_about(resource: Resource) -> tuple[str, ...]:
    """What of a good resource may mean something else than its author thinks; mostly nothing."""
    if isinstance(resource, Calendar):
        return calendar_doubts(resource.spec)
    return weekday_doubts(resource)


def problems_of_spec(spec: JobSpec) -> tuple[Problem, ...]:
    """What is wrong with what a Job asks for, its names left out."""
    found = Findings()
    check_job(spec, found)
    return found.problems if len(found) else ()


def _check_names(cls: type[Resource], metadata: Metadata, to: Findings) -> None:
    dotted = cls is Lease
    check_metadata(metadata, _LONGEST.get(cls, MAX_LABEL), dotted=dotted, to=to)


#: Fields that tasks were, or may have been, started with. Of locks only the keys count.
FROZEN_ONCE_ADMITTED = (
    *WORK.values(),
    "parallelism",
    "completion",
    "startAfter",
    "args",
    "substitutions",
)
#: The one field that may still change when a Job has ended.
FREE_ONCE_ENDED = "ttlAfterFinished"


def check_update(old: Resource, new: Resource) -> tuple[Problem, ...]:
    """What a change asks for that is not possible. Of the metadata our hold and our marks count.

    Before a Job is admitted everything may change. From then on, what its tasks are made of may
    not; once it has ended, only how long it is kept.
    """
    found = Findings()
    if isinstance(old, Job) and isinstance(new, Job) and old.spec != new.spec:
        if has_ended(old):
            _refuse_after_end(old.spec, new.spec, found)
        elif is_admitted(old):
            _refuse_after_admission(old.spec, new.spec, found)
    if isinstance(old, Job) and not has_ended(old) and _lets_go(old, new):
        message = f"{JOB_FINALIZER} stays until the Job's tasks are proven gone"
        found.add("metadata.finalizers", message, list(new.metadata.finalizers))
    if isinstance(old, Lock) and isinstance(new, Lock) and old.spec.key != new.spec.key:
        found.add("spec.key", "may not change", new.spec.key)
    check_marks(old, new, found)
    return found.problems


def check_new(new: Resource) -> tuple[Problem, ...]:
    """What something new may not say of itself, beside what `problems_of` finds."""
    found = Findings()
    check_marks(None, new, found)
    return found.problems


def check_due(old: Resource, new: Resource, now: datetime) -> tuple[Problem, ...]:
    """What a change would take back although its moment has come: a stop that is due is fixed.

    Nobody may have looked since, so what is stored is all that is known of the order. It may be
    given again, as everyone does who stops what is told to stop.
    """
    if not isinstance(old, Job) or not isinstance(new, Job) or has_ended(old):
        return ()
    was, wanted = old.spec.kill_at, new.spec.kill_at
    if was is None or was > now or (wanted is not None and wanted <= now):
        return ()
    message = f"may not be taken back: {was:%Y-%m-%dT%H:%M:%SZ} has passed, and the Job is stopped"
    return (Problem("spec.killAt", message, shown(wanted)),)


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
