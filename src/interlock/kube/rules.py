"""What a field must keep to beyond its type, in words that an API server understands.

The same limits as in `interlock.resources.checks`, by the path of the field: `[]` is an item of a
list, `{}` a value of a map. What cannot be said here at all is listed in the tests, with reasons.
"""

from __future__ import annotations

from typing import Any

from interlock.kube.pod_rules import BATCH_JOB_SPEC, METADATA, POD_SPEC
from interlock.resources.job_checks import (
    MAX_LINE,
    MAX_LOCK_LIMIT,
    MAX_LOCKS,
    MAX_OBJECT_BYTES,
    MAX_OPEN_FILES,
    MAX_RETRIES,
    MAX_TASKS,
)
from interlock.resources.naming import LABEL_RULE, MAX_JOB_NAME, MAX_LABEL
from interlock.resources.variables import PREFIXES
from interlock.resources.word_checks import MAX_ARGUMENT_BYTES

Schema = dict[str, Any]

#: Where an API server looks for rules in CEL.
VALIDATIONS = "x-kubernetes-validations"

#: The kernel's bound is in bytes, the schema's in characters: never stricter than the door.
_LONGEST = MAX_ARGUMENT_BYTES
#: More names than any Job has; the API server wants to know how long a rule can take.
MAX_NAMES = 1_000
_MAX_CODES = 1_000

LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LOCK_KEY = "[A-Za-z0-9._/:-]{1,253}"
_ACCOUNT = r"[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_.@-]{0,254}\$?"
_QUANTITY = (
    r"(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3}|[KMGTPE]i|[kMGTPE])?"
)
_NO_NUL = r"^[^\x00]*$"
ONE_LINE = r"^(?: |[^\pC\pZ])*$"

_PART = "[0-9]+(?:[.][0-9]+)?"
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
#: The length of a duration in milliseconds.
_MILLISECONDS = (
    f"self.findAll('{_PART}(?:ms|[dhms])').map(part, part.endsWith('ms')"
    " ? double(part.replace('ms', ''))"
    + "".join(
        f" : part.endsWith('{unit}') ? double(part.replace('{unit}', '')) * {size}.0"
        for unit, size in _UNITS.items()
        if unit != "s"
    )
    + " : double(part.replace('s', '')) * 1000.0).sum()"
)


def rule(expression: str, message: str, **more: str) -> Schema:
    """A rule in CEL, with what is told when it does not hold."""
    return {"rule": expression, "message": message, **more}


def whole(pattern: str) -> str:
    """A pattern for the whole text: a schema's patterns match anywhere."""
    return f"^(?:{pattern})$"


#: A length of time: the largest unit first, each at most once.
DURATION: Schema = {
    "minLength": 1,
    "maxLength": 64,
    "pattern": whole("0|" + "".join(f"(?:{_PART}{unit})?" for unit in ("d", "h", "m", "s", "ms"))),
}
#: Seven characters are never too long a time, and need no arithmetic.
_BOUNDED = rule(
    f"size(self) < 8 || {_MILLISECONDS} <= 86400000000000.0", "expected at most 1000000 days"
)
DURATION_RULES: list[Schema] = [_BOUNDED]
#: A moment with its zone. Not every text that the format lets through can be read.
MOMENT: Schema = {
    "maxLength": 64,
    "pattern": (
        r"^(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
        r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
        r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$"
    ),
}

_WORD: Schema = {"maxLength": _LONGEST, "pattern": _NO_NUL}
_PATH: Schema = _WORD | {"minLength": 1}
_CHOICE: Schema = _WORD | {"minLength": 1}
POSITIVE: Schema = {VALIDATIONS: [rule(f"{_MILLISECONDS} > 0.5", "expected more than 0s")]}
AT_LEAST_A_SECOND: Schema = {
    VALIDATIONS: [rule(f"{_MILLISECONDS} >= 999.5", "expected at least 1s")]
}
_EXIT_CODE: Schema = {"minimum": 0, "maximum": 255}
SET = {"x-kubernetes-list-type": "set"}


def _names(pattern: str, message: str) -> Schema:
    """A rule for the names in a map, which no schema can say."""
    return {
        "maxProperties": MAX_NAMES,
        VALIDATIONS: [rule(f"self.all(name, name.matches('^(?:{pattern})$'))", message)],
    }


def _one_of(*fields: str) -> Schema:
    given = ", ".join(f"has(self.{field})" for field in fields)
    named = ", ".join(fields[:-1]) + f" and {fields[-1]}"
    count = f"[{given}].filter(given, given).size() == 1"
    return {VALIDATIONS: [rule(count, f"expected exactly one of {named}")]}


def names_up_to(longest: int) -> Schema:
    """The metadata of a kind: an API server lets a definition speak of names only."""
    name = {"type": "string", "maxLength": longest, "pattern": whole(LABEL)}
    name["description"] = f"At most {longest} characters: {LABEL_RULE}."
    return {"properties": {"name": name}}


#: A product of more factors than these is beyond all limits, as each is 2 at least.
_FACTORS = MAX_TASKS.bit_length() - 1
#: There is no way to multiply a list. One is the factor of a name that is not there.
_COMBINATIONS = (
    "[self.map(name, size(self[name])).filter(n, n > 1)]"
    f".all(sizes, size(sizes) <= {_FACTORS} && "
    + " * ".join(f"double(size(sizes) > {at} ? sizes[{at}] : 1)" for at in range(_FACTORS))
    + f" <= {MAX_TASKS}.0)"
)

_PROCESS: dict[str, Schema] = {
    "command": {
        "minItems": 1,
        VALIDATIONS: [rule("self.size() == 0 || self[0] != ''", "expected the program to run")],
    },
    "command[]": _WORD,
    "args[]": _WORD,
    "env": _names(
        "[-._A-Za-z][-._A-Za-z0-9]*",
        "bad name: expected letters, digits, '_', '-' and '.', no digit first",
    ),
    "env{}": _WORD,
    "envFrom[].file": _PATH,
    "workingDir": _PATH,
    "stdin": {"maxLength": MAX_OBJECT_BYTES},
    "user": {"maxLength": 256, "pattern": whole(_ACCOUNT)},
    "group": {"maxLength": 256, "pattern": whole(_ACCOUNT)},
    "limits.cpuTime": AT_LEAST_A_SECOND,
    "limits.memory": {
        "maxLength": 72,
        "pattern": whole(_QUANTITY),
        # What is beyond 2^63 - 1 is read as just that.
        VALIDATIONS: [
            rule(
                "!isQuantity(self) || quantity(self).isGreaterThan(quantity('0')) &&"
                " quantity(self).isLessThan(quantity('9223372036854775807'))",
                "expected more than nothing, and less than 2^63 - 1 (about 8Ei)",
            )
        ],
    },
    "limits.openFiles": {"minimum": 1, "maximum": MAX_OPEN_FILES},
    "limits.nice": {"minimum": 0, "maximum": 19},
}

_PARALLELISM: dict[str, Schema] = {
    "": _one_of("count", "keys", "matrix"),
    "count": {"minimum": 1, "maximum": MAX_TASKS},
    "keys": {"minItems": 1, "maxItems": MAX_TASKS} | SET,
    "keys[]": _CHOICE,
    "matrix": {
        "minProperties": 1,
        "maxProperties": MAX_NAMES,
        VALIDATIONS: [
            rule(
                "self.all(name, name.matches('^[a-z0-9_-]{1,63}$'))",
                "bad name: expected lower-case letters, digits, '_' and '-'",
            ),
            rule(_COMBINATIONS, f"expected at most {MAX_TASKS} combinations"),
        ],
    },
    "matrix{}": {"minItems": 1, "maxItems": MAX_TASKS} | SET,
    "matrix{}[]": _CHOICE,
    "atOnce": {"minimum": 1, "maximum": MAX_TASKS},
}

_RETRIES: dict[str, Schema] = {
    "": {
        VALIDATIONS: [
            rule(
                "!has(self.retryExitCodes) || !has(self.failExitCodes)"
                " || !self.failExitCodes.exists(code, code in self.retryExitCodes)",
                "an exit code is among both retryExitCodes and failExitCodes",
                fieldPath=".failExitCodes",
            )
        ]
    },
    "limit": {"minimum": 0, "maximum": MAX_RETRIES},
    "jitter": {"minimum": 0, "maximum": 1},
    "retryExitCodes": {"maxItems": _MAX_CODES},
    "retryExitCodes[]": _EXIT_CODE,
    "failExitCodes": {"maxItems": _MAX_CODES},
    "failExitCodes[]": _EXIT_CODE,
}

_JOB_SPEC: dict[str, Schema] = {
    "": {
        VALIDATIONS: [
            *_one_of("process", "pod", "batchJob", "noop")[VALIDATIONS],
            rule(
                "!has(self.forceDeleteAfter) || has(self.pod) || has(self.batchJob)",
                "is for pods and batch Jobs alone",
                fieldPath=".forceDeleteAfter",
            ),
            rule(
                "!has(self.startAfter) || !has(self.startBy) || self.startBy > self.startAfter",
                "expected a moment after spec.startAfter",
                fieldPath=".startBy",
            ),
        ]
    },
    "taskTimeout": POSITIVE,
    "timeout": POSITIVE,
    "forceDeleteAfter": POSITIVE,
    "priority": {"minimum": -(1 << 31), "maximum": (1 << 31) - 1},
    "title": {"maxLength": MAX_LINE, "pattern": ONE_LINE},
    "suspendReason": {"maxLength": MAX_LINE, "pattern": ONE_LINE},
    "locks": {
        "maxItems": MAX_LOCKS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"],
    },
    "locks[].key": {"maxLength": 253, "pattern": whole(_LOCK_KEY)},
    "locks[].limit": {"minimum": 1, "maximum": MAX_LOCK_LIMIT},
    "locks[].maxWaiting": {"minimum": 0, "maximum": MAX_LOCK_LIMIT},
    "args": _names("[A-Za-z0-9_.-]{1,253}", "bad name: expected letters, digits, '_', '.' and '-'"),
    "args{}": _WORD,
    "substitutions": _names(
        f"(?:{'|'.join(sorted(PREFIXES))})[.][A-Za-z0-9_.-]{{1,253}}",
        'expected the full name of a variable, such as "option.region"',
    ),
    "substitutions{}": _WORD,
}


def below(path: str, fields: dict[str, Schema]) -> dict[str, Schema]:
    """The same rules for fields that are below a path."""
    return {f"{path}.{field}" if field else path: told for field, told in fields.items()}


#: What is demanded of the spec of a Job, by the path below it.
JOB_SPEC: dict[str, Schema] = {
    **_JOB_SPEC,
    **below("process", _PROCESS),
    "pod.spec": POD_SPEC,
    **below("pod", METADATA),
    "batchJob.spec": BATCH_JOB_SPEC,
    **below("batchJob", METADATA),
    **below("parallelism", _PARALLELISM),
    **below("retries", _RETRIES),
}
CONDITIONS: Schema = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
#: What is demanded of each field of a Job and a Lock, by kind and path.
JOB_RULES: dict[str, dict[str, Schema]] = {
    "Job": {
        "metadata": names_up_to(MAX_JOB_NAME),
        **below("spec", JOB_SPEC),
        "status.conditions": CONDITIONS,
    },
    "Lock": {
        "metadata": names_up_to(MAX_LABEL),
        "spec.key": {
            "maxLength": 253,
            "pattern": whole(_LOCK_KEY),
            VALIDATIONS: [rule("self == oldSelf", "may not change")],
        },
    },
}
