"""Validation of Job templates: all that their Jobs must keep to.

Problems are told at their place in the template. What the schedule decides itself is refused, so
that nobody wonders why it does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.findings import Findings, child
from interlock.resources.checks.jobs import check_rest_of_job
from interlock.resources.job import JobSpec
from interlock.resources.metadata import GROUP
from interlock.resources.naming import check_annotations, check_labels
from interlock.resources.pods import TemplateMetadata
from interlock.resources.schedule import JobTemplate

#: What a template may not say, by the names in JSON, and why.
REFUSED = {
    "killAt": "one moment cannot hold for every Job: give a timeout",
    "startAfter": "one moment cannot hold for every Job: the schedule says when a Job starts",
    "startBy": "one moment cannot hold for every Job: the schedule says when a Job is too late",
}
#: The locks that Jobs are given by what made them.
OWN_LOCKS = ("jobconfig/", "controlledjob/")

_ATTRIBUTES = {"killAt": "kill_at", "startAfter": "start_after", "startBy": "start_by"}


def check_template(
    path: str, template: JobTemplate, to: Findings, values: Mapping[str, int] = {}
) -> None:
    """Check what the rules do not say of a template; `values` are variables its Jobs have."""
    _check_metadata(f"{path}.metadata", template.metadata, to)
    found = Findings()
    check_rest_of_job(template.spec, found, values)
    _check_refused(template.spec, found)
    for problem in found.problems:
        place = problem.path.removeprefix("spec")
        where = problem.path if place == problem.path else f"{path}.spec{place}"
        to.add(where, problem.message, problem.found)


def _check_refused(spec: JobSpec, to: Findings) -> None:
    for name, reason in REFUSED.items():
        moment = getattr(spec, _ATTRIBUTES[name])
        if moment is not None:
            to.add(f"spec.{name}", reason, moment.isoformat())
    for at, lock in enumerate(spec.locks):
        if lock.key.startswith(OWN_LOCKS):
            prefix = next(own for own in OWN_LOCKS if lock.key.startswith(own))
            to.add(f"spec.locks[{at}].key", f"locks with {prefix} are Interlock's own", lock.key)


def _check_metadata(path: str, metadata: TemplateMetadata, to: Findings) -> None:
    for part, names in (("labels", metadata.labels), ("annotations", metadata.annotations)):
        for name in names:
            if name.startswith(f"{GROUP}/"):
                message = f"names with {GROUP}/ are Interlock's own"
                to.add(child(f"{path}.{part}", name), message, name)
    check_labels(f"{path}.labels", metadata.labels, to)
    check_annotations(f"{path}.annotations", metadata.annotations, to)
