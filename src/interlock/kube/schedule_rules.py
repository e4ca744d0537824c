"""What an API server can be told about JobConfigs, ControlledJobs and Calendars.

Whether a cron line, a zone or an option makes sense only our own door can say, through the
webhook; without one, the schedules room says it in the object's status.
"""

from __future__ import annotations

from interlock.kube.pod_rules import METADATA
from interlock.kube.rules import (
    AT_LEAST_A_SECOND,
    CONDITIONS,
    JOB_RULES,
    JOB_SPEC,
    LABEL,
    ONE_LINE,
    POSITIVE,
    SET,
    VALIDATIONS,
    Schema,
    below,
    names_up_to,
    rule,
    whole,
)
from interlock.resources import schedule_limits as limits
from interlock.resources.job_checks import MAX_LINE
from interlock.resources.naming import MAX_CONFIG_NAME, MAX_CONTROLLED_NAME, MAX_LABEL
from interlock.resources.template_checks import OWN_LOCKS, REFUSED

_SECOND = "(?::[0-5][0-9])?"
_TIME = f"(?:[01][0-9]|2[0-3]):[0-5][0-9]{_SECOND}"
_TIME_OF_DAY: Schema = {"maxLength": 8, "pattern": whole(_TIME)}
_END_OF_DAY: Schema = {"maxLength": 8, "pattern": whole(f"{_TIME}|24:00(?::00)?")}
_WEEKDAYS: Schema = {"minLength": 1, "maxLength": 200, "pattern": r"^[0-9A-Za-z*,-]+$"}
_ZONE: Schema = {"maxLength": limits.MAX_ZONE_LENGTH}
_PEOPLE: Schema = {"maxLength": MAX_LINE, "pattern": ONE_LINE}
_CALENDARS: dict[str, Schema] = {
    name: told
    for field in ("exclude", "only")
    for name, told in (
        (field, {"maxItems": limits.MAX_CALENDARS} | SET),
        (f"{field}[]", {"maxLength": MAX_LABEL, "pattern": whole(LABEL)}),
    )
}
_HISTORY: dict[str, Schema] = {
    "history.succeeded": {"minimum": 0, "maximum": limits.MAX_KEPT},
    "history.failed": {"minimum": 0, "maximum": limits.MAX_KEPT},
}


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
    top = made[f"{path}.spec"]
    made[f"{path}.spec"] = top | {VALIDATIONS: [*top[VALIDATIONS], *refused, locks]}
    return made


_SCHEDULE: dict[str, Schema] = {
    "": {
        VALIDATIONS: [
            rule(
                "!has(self.notBefore) || !has(self.notAfter) || self.notBefore <= self.notAfter",
                "expected a moment that is not before notBefore",
                fieldPath=".notAfter",
            )
        ]
    },
    "timezone": _ZONE,
    **_CALENDARS,
}
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
    "name": {"maxLength": limits.MAX_OPTION_NAME, "pattern": r"^[A-Za-z0-9_.-]+$"},
    "description": _PEOPLE,
    "values": {"maxItems": limits.MAX_VALUES} | SET,
    "values[]": {"minLength": 1, "maxLength": limits.MAX_VALUE_LENGTH},
    "delimiter": {"maxLength": limits.MAX_VALUE_LENGTH},
    "format": {"maxLength": limits.MAX_VALUE_LENGTH},
    "trueValue": {"maxLength": limits.MAX_VALUE_LENGTH},
    "falseValue": {"maxLength": limits.MAX_VALUE_LENGTH},
}
_CONFIG: dict[str, Schema] = {
    **_template("template"),
    "schedules": {"maxItems": limits.MAX_SCHEDULES},
    **below("schedules[]", _SCHEDULE),
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
    "concurrency.maxConcurrency": {"minimum": 1, "maximum": limits.MAX_CONCURRENCY},
    "concurrency.maxQueued": {"minimum": 0, "maximum": limits.MAX_QUEUED},
    "catchUp.atMost": {"minimum": 0, "maximum": limits.MAX_CATCH_UP},
    "catchUp.notOlderThan": POSITIVE,
    "catchUp.missedAfter": AT_LEAST_A_SECOND,
    "options": {
        "maxItems": limits.MAX_OPTIONS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    **below("options[]", _OPTION),
    **_HISTORY,
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
    "timezone.name": _ZONE,
    "timezone.offset": {"minimum": -limits.MAX_OFFSET_S, "maximum": limits.MAX_OFFSET_S},
    "events": {"maxItems": limits.MAX_EVENTS},
    "events[]": {
        VALIDATIONS: [
            rule(
                "has(self.schedule) != (has(self.cron) && self.cron != '')",
                "expected exactly one of schedule and cron",
            )
        ]
    },
    "events[].schedule.timeOfDay": _TIME_OF_DAY,
    "events[].schedule.daysOfWeek": _WEEKDAYS,
    "events[].cron": {"maxLength": limits.MAX_LINE_LENGTH},
    **below("events[]", _CALENDARS),
    "windows": {"maxItems": limits.MAX_WINDOWS},
    "windows[].from": _TIME_OF_DAY,
    "windows[].to": _END_OF_DAY,
    "windows[].days": _WEEKDAYS,
    **below("windows[]", _CALENDARS),
    "startBy": POSITIVE,
    "drainLimit": POSITIVE,
    "overrides": {"maxItems": limits.MAX_OVERRIDES},
    "overrides[]": {
        VALIDATIONS: [
            rule(
                "self.until > self.from",
                "expected a moment after from",
                fieldPath=".until",
            )
        ]
    },
    "overrides[].by": _PEOPLE,
    "overrides[].reason": _PEOPLE,
    **_HISTORY,
}

_CALENDAR: dict[str, Schema] = {
    "": {
        VALIDATIONS: [
            rule(
                "has(self.days) && size(self.days) > 0"
                " || has(self.icalendar) && self.icalendar != ''",
                "expected days, or an icalendar text",
            )
        ]
    },
    "days": {"maxItems": limits.MAX_DAYS},
    "days[].day": {"minLength": 1, "maxLength": limits.MAX_DAY_LENGTH},
    "days[].name": _PEOPLE,
    "icalendar": {"maxLength": limits.MAX_ICALENDAR_BYTES},
}

#: What is demanded of each field, by kind and path.
RULES: dict[str, dict[str, Schema]] = {
    **JOB_RULES,
    "JobConfig": {
        "metadata": names_up_to(MAX_CONFIG_NAME),
        **below("spec", _CONFIG),
        "status.conditions": CONDITIONS,
    },
    "ControlledJob": {
        "metadata": names_up_to(MAX_CONTROLLED_NAME),
        **below("spec", _CONTROLLED),
        "status.conditions": CONDITIONS,
    },
    "Calendar": {"metadata": names_up_to(MAX_LABEL), **below("spec", _CALENDAR)},
}
