"""Validation beyond the types, by kind, and of changes.

Everything here is a pure function of the resource. Typical objects pay for what they use: a part
that is not given is not looked at.
"""

from __future__ import annotations

from datetime import datetime

from interlock.errors import Problem
from interlock.findings import Findings, shown
from interlock.resources.checks.jobs import check_job
from interlock.resources.job import Job, JobSpec
from interlock.resources.kinds import KINDS
from interlock.resources.marks import check_marks
from interlock.resources.metadata import Resource
from interlock.resources.naming import check_metadata
from interlock.resources.transitions import has_ended


def problems_of(resource: Resource) -> tuple[Problem, ...]:
    """Everything that is wrong with a resource, in the order of its fields."""
    found = Findings()
    kind = KINDS[resource.kind]
    if resource.api_version != kind.api_version:
        found.add("apiVersion", f"expected {kind.api_version}", resource.api_version)
    check_metadata(resource.metadata, kind.longest_name, dotted=kind.dotted_names, to=found)
    kind.check(resource, found)
    return found.problems if len(found) else ()


def doubts_about(resource: Resource) -> tuple[str, ...]:
    """What of a good resource may mean something else than its author thinks; mostly nothing."""
    return KINDS[resource.kind].doubts(resource)


def problems_of_spec(spec: JobSpec) -> tuple[Problem, ...]:
    """What is wrong with what a Job asks for, its names left out."""
    found = Findings()
    check_job(spec, found)
    return found.problems if len(found) else ()


def check_update(old: Resource, new: Resource) -> tuple[Problem, ...]:
    """What a change asks for that is not possible. Of the metadata our hold and our marks count."""
    found = Findings()
    if type(old) is type(new):
        KINDS[old.kind].check_change(old, new, found)
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
