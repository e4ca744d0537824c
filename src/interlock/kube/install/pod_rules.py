"""CEL rules for pods and batch Jobs that are written inside a Job.

Their fields are Kubernetes' own and stay as they are written; of those that matter to us enough is
said here to refuse what would never end or never start. An API server compares all of them
when it is asked whether a Job changed, those that it was told nothing about too.
"""

from __future__ import annotations

from typing import Any

from interlock.resources.checks.pod_fields import REFUSED_IN_BATCH_JOB, REFUSED_IN_POD
from interlock.resources.checks.pods import MAX_CONTAINERS
from interlock.resources.metadata import GROUP
from interlock.resources.naming import LABEL, MAX_LABEL

Schema = dict[str, Any]

_VALIDATIONS = "x-kubernetes-validations"
_FREE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXT: Schema = {"type": "string"}
_WORDS: Schema = {"type": "array", "items": _TEXT | {"pattern": r"^[^\x00]*$"}}
_QUALIFIED = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_MAX_NAMES = 1_000
_ENDING: Schema = {"type": "string", "enum": ["Never", "OnFailure"]}
#: The types of the fields that are refused: a rule can only speak of fields that it knows.
_REFUSED_TYPES: dict[str, Schema] = {
    "nodeName": _TEXT,
    "ephemeralContainers": {"type": "array", "items": _FREE},
    "suspend": {"type": "boolean"},
    "selector": _FREE,
    "manualSelector": {"type": "boolean"},
    "managedBy": _TEXT,
    "ttlSecondsAfterFinished": {"type": "integer", "format": "int32"},
}


def _rule(expression: str, message: str, **more: str) -> Schema:
    return {"rule": expression, "message": message, **more}


def _refused(reasons: dict[str, str]) -> list[Schema]:
    return [
        _rule(f"!has(self.{name})", reason, fieldPath=f".{name}")
        for name, reason in reasons.items()
    ]


def _types_of(reasons: dict[str, str]) -> dict[str, Schema]:
    return {name: _REFUSED_TYPES[name] for name in reasons}


_CONTAINER: Schema = _FREE | {
    "required": ["name", "image"],
    "properties": {
        "name": _TEXT | {"maxLength": MAX_LABEL, "pattern": f"^(?:{LABEL})$"},
        "image": _TEXT | {"pattern": r"^\S(?:[\s\S]*\S)?$"},
        "command": _WORDS,
        "args": _WORDS,
    },
}
#: One that runs before the others may restart for ever: it ends with them.
_MAIN_CONTAINER: Schema = _CONTAINER | {
    "properties": _CONTAINER["properties"] | {"restartPolicy": _ENDING}
}
_ONCE = "self.{these}.all(one, self.{these}.exists_one(other, other.name == one.name))"

POD_SPEC: Schema = {
    "required": ["containers"],
    "properties": {
        "containers": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_CONTAINERS,
            "items": _MAIN_CONTAINER,
        },
        "initContainers": {"type": "array", "maxItems": MAX_CONTAINERS, "items": _CONTAINER},
        "restartPolicy": _ENDING,
        **_types_of(REFUSED_IN_POD),
    },
    _VALIDATIONS: [
        *_refused(REFUSED_IN_POD),
        _rule(_ONCE.format(these="containers"), "a container's name is there twice"),
        _rule(
            f"!has(self.initContainers) || {_ONCE.format(these='initContainers')}"
            " && self.initContainers.all(one,"
            " !self.containers.exists(other, other.name == one.name))",
            "a container's name is there twice",
        ),
    ],
}


def _own_names(message: str, pattern: str) -> Schema:
    return {
        "maxProperties": _MAX_NAMES,
        _VALIDATIONS: [
            _rule(f"self.all(name, name.matches('^(?:{pattern})$'))", message),
            _rule(
                f"self.all(name, !name.startsWith('{GROUP}/'))",
                f"names with {GROUP}/ are Interlock's own",
            ),
        ],
    }


_NAMES = _own_names(
    "bad name: expected letters, digits, '-', '_' and '.', perhaps behind a DNS name and '/'",
    f"(?:[a-z0-9.-]{{1,253}}/)?{_QUALIFIED}",
)
_LABEL_VALUE: Schema = {
    # What the value of a variable comes to is known when a task starts.
    "pattern": rf"^(?:(?:{_QUALIFIED})?|[\s\S]*\$\{{[\s\S]*)$",
}
#: By the path below the template of a pod or a batch Job.
METADATA: dict[str, Schema] = {
    "metadata.labels": _NAMES,
    "metadata.labels{}": _LABEL_VALUE,
    "metadata.annotations": _NAMES,
}

_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}

BATCH_JOB_SPEC: Schema = {
    "required": ["template"],
    "properties": {
        "template": _FREE
        | {
            "required": ["spec"],
            "properties": {
                "metadata": _FREE
                | {
                    "properties": {
                        "labels": _TEXTS | _NAMES | {"additionalProperties": _TEXT | _LABEL_VALUE},
                        "annotations": _TEXTS | _NAMES,
                    }
                },
                "spec": _FREE | POD_SPEC | {"required": ["containers", "restartPolicy"]},
            },
        },
        **_types_of(REFUSED_IN_BATCH_JOB),
    },
    _VALIDATIONS: _refused(REFUSED_IN_BATCH_JOB),
}
