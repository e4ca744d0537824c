"""CEL rules for JobConfigs, ControlledJobs and Calendars.

Whether a cron line, a zone or an option makes sense only our own door can say, through the
webhook; without one, the schedules room says it in the object's status.
"""

from __future__ import annotations

from interlock.kube.install.immutable_fields import job_change
from interlock.kube.install.pod_rules import METADATA
from interlock.kube.install.rules import (
    JOB,
    JOB_SPEC,
    LOCK,
    VALIDATIONS,
    Schema,
    below,
    rule,
)
from interlock.resources import schedule_limits as limits
from interlock.resources.checks.templates import OWN_LOCKS, REFUSED
from interlock.resources.naming import MAX_LABEL

#: Unlike those of pods they hold no variables.
_LABEL_VALUES: dict[str, Schema] = {
    "metadata.labels{}": {
        "maxLength": MAX_LABEL,
        "pattern": r"^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
    }
}


def _template(path: str) -> dict[str, Schema]:
    """The rules of a Job for the Jobs that are made of a template, and what those may not say."""
    made = below(f"{path}.spec", JOB_SPEC) | below(path, METADATA | _LABEL_VALUES)
    refused = [
        rule(f"!has(self.{name})", reason, fieldPath=f".{name}") for name, reason in REFUSED.items()
    ]
    free = " && ".join(f"!lock.key.startsWith('{prefix}')" for prefix in OWN_LOCKS)
    locks = rule(
        f"!has(self.locks) || self.locks.all(lock, {free})",
        f"locks with {' and '.join(OWN_LOCKS)} are Interlock's own",
        fieldPath=".locks",
    )
    return made | {f"{path}.spec": {VALIDATIONS: [*refused, locks]}}


_CHOOSES = "self.type in ['Select', 'Multi']"
_OPTION: dict[str, Schema] = {
    "": {
        VALIDATIONS: [
            rule(
                "self.type != 'Bool' || !has(self.required) || !self.required",
                "a Bool that is not given is false",
                fieldPath=".required",
            ),
            rule(
                f"({_CHOOSES}) == (has(self.values) && size(self.values) > 0)",
                "expected values for Select and Multi, and for no other type",
                fieldPath=".values",
            ),
        ]
    },
}
_CONFIG: dict[str, Schema] = {
    **_template("template"),
    "concurrency": {
        VALIDATIONS: [
            rule(
                "!has(self.policy) || self.policy != 'Allow'"
                " || !has(self.maxConcurrency) || self.maxConcurrency == 1",
                "has no meaning with the policy Allow, which sets no limit",
                fieldPath=".maxConcurrency",
            )
        ]
    },
    **below("options[]", _OPTION),
}

_CONTROLLED: dict[str, Schema] = {
    "": {
        VALIDATIONS: [
            rule(
                "!has(self.events) || !self.events.exists(one, one.action == 'start')"
                " || self.events.exists(one, one.action == 'stop')"
                " || has(self.windows) && size(self.windows) > 0",
                "starts alone would never end: add a stop",
                fieldPath=".events",
            )
        ]
    },
    **_template("jobTemplate"),
    "events[].cron": {"maxLength": limits.MAX_LINE_LENGTH},
}

#: What else is demanded of each field, by kind and path, of the kinds whose nouns cannot say it.
RULES: dict[str, dict[str, Schema]] = {
    "Job": {"": {VALIDATIONS: [job_change()]}, **JOB},
    "Lock": LOCK,
    "JobConfig": below("spec", _CONFIG),
    "ControlledJob": below("spec", _CONTROLLED),
    "Calendar": {"spec.icalendar": {"maxLength": limits.MAX_ICALENDAR_BYTES}},
}
