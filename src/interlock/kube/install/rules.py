"""Rules in CEL and structural schemas: what a field must keep to, as an API server understands it.

What the nouns say of their own fields (`interlock.resources.rules`) is translated. What else our
door checks stands here by the path of the field, as far as it can be said: `[]` is an item of a
list, `{}` a value of a map. What cannot be said at all is listed in the tests, with reasons.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from msgspec import Struct

from interlock.kube.install.pod_rules import BATCH_JOB_SPEC, METADATA, POD_SPEC
from interlock.resources.describe.shapes import default_of, fields_of
from interlock.resources.job import (
    ARG_NAME,
    ASKED_BY_ALL,
    ASKED_BY_ALL_TOLD,
    MAX_TASKS,
    JobStatus,
)
from interlock.resources.kinds import Kind
from interlock.resources.naming import LABEL, LABEL_RULE, SUBDOMAIN, SUBDOMAIN_RULE
from interlock.resources.rules import (
    After,
    AtLeast,
    AtLeastOne,
    ExactlyOne,
    FirstGiven,
    MoreThanNothing,
    Names,
    NounRule,
    OneLine,
    OnlyWith,
    Quantity,
    Rule,
    Unique,
    noun_rules_of,
    whole,
)
from interlock.resources.values.amounts import MOST
from interlock.resources.values.texts import MAX_OBJECT_BYTES
from interlock.resources.variables import PREFIXES

Schema = dict[str, Any]

#: Where an API server looks for rules in CEL.
VALIDATIONS = "x-kubernetes-validations"

#: More names than any Job has; the API server wants to know how long a rule can take.
MAX_NAMES = 1_000
_MOST_NAMES = "maxProperties"
_MAX_CODES = 1_000

_ONE_LINE = r"^(?: |[^\pC\pZ])*$"

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


def of_rules(rules: Iterable[Rule]) -> Schema:
    """What a definition says of the rules of one field."""
    made: Schema = {}
    for one in rules:
        made = limited(made, _of_rule(one))
    return made


def limited(made: Schema, limits: Schema) -> Schema:
    """The schema with the limits; rules in CEL of both are kept, and the lower number of names."""
    both = [*made.get(VALIDATIONS, ()), *limits.get(VALIDATIONS, ())]
    more: Schema = {VALIDATIONS: both} if both else {}
    if made.keys() & limits.keys() & {_MOST_NAMES}:
        more[_MOST_NAMES] = min(made[_MOST_NAMES], limits[_MOST_NAMES])
    return made | limits | more


def _of_rule(given: Rule) -> Schema:
    match given:
        case Unique(by=""):
            return {"x-kubernetes-list-type": "set"}
        case Unique(by=key):
            return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
        case OneLine():
            return given.schema() | {"pattern": _ONE_LINE}
        case AtLeast(least=least):
            enough = least / timedelta(milliseconds=1) - 0.5
            return {VALIDATIONS: [rule(f"{_MILLISECONDS} >= {enough}", given.expected)]}
        case MoreThanNothing():
            return {VALIDATIONS: [rule(f"{_MILLISECONDS} > 0.5", given.expected)]}
        case FirstGiven():
            return {VALIDATIONS: [rule("self.size() == 0 || self[0] != ''", given.expected)]}
        case Names(pattern=pattern):
            return _names(pattern, given.expected)
        case Quantity():
            return given.schema() | {VALIDATIONS: [_AMOUNT]}
    return given.schema()


#: Whole numbers, and what the pattern leaves out, are bounded without a rule.
AMOUNT_RULES: list[Schema] = [
    rule(
        "type(self) != string || !isQuantity(self)"
        f" || quantity(self).compareTo(quantity('{MOST}')) <= 0",
        f"expected at most {MOST}",
    )
]
#: What is beyond 2^63 - 1 is read as just that.
_AMOUNT = rule(
    "!isQuantity(self) || quantity(self).isGreaterThan(quantity('0')) &&"
    " quantity(self).isLessThan(quantity('9223372036854775807'))",
    "expected more than nothing, and less than 2^63 - 1 (about 8Ei)",
)


def _names(pattern: str, message: str) -> Schema:
    """A rule for the names in a map, which no schema can say."""
    return {
        "maxProperties": MAX_NAMES,
        VALIDATIONS: [rule(f"self.all(name, name.matches('{whole(pattern)}'))", message)],
    }


def of_noun(cls: type[Struct]) -> Schema:
    """What a definition says of the rules between the fields of a noun."""
    rules = [_of_noun_rule(one, cls) for one in noun_rules_of(cls)]
    return {VALIDATIONS: rules} if rules else {}


def _of_noun_rule(given: NounRule, cls: type[Struct]) -> Schema:
    names, expected = given.written(cls), given.expected(cls)
    match given:
        case ExactlyOne():
            count = f"[{', '.join(_given(cls, name) for name in names)}].filter(one, one).size()"
            return rule(f"{count} == 1", expected)
        case AtLeastOne():
            return rule(" || ".join(_given(cls, name) for name in names), expected)
        case OnlyWith():
            field, *others = names
            some = " || ".join(f"has(self.{other})" for other in others)
            return rule(f"!has(self.{field}) || {some}", expected, fieldPath=f".{field}")
        case After(or_at=or_at):
            last, first = names
            later = f"self.{last} {'>=' if or_at else '>'} self.{first}"
            missing = [f"!has(self.{name})" for name in names if not fields_of(cls)[name].required]
            return rule(" || ".join([*missing, later]), expected, fieldPath=f".{last}")
    raise NotImplementedError(type(given).__name__)


def _given(cls: type[Struct], name: str) -> str:
    """Whether a field is there and, where empty means nothing, not empty."""
    default = default_of(fields_of(cls)[name])
    if default is None:
        return f"has(self.{name})"
    return f"has(self.{name}) && size(self.{name}) > 0"


def of_names(kind: Kind) -> Schema:
    """The metadata of a kind: an API server lets a definition speak of names only."""
    longest = kind.longest_name
    pattern, told = (SUBDOMAIN, SUBDOMAIN_RULE) if kind.dotted_names else (LABEL, LABEL_RULE)
    name = {"type": "string", "maxLength": longest, "pattern": whole(pattern)}
    name["description"] = f"At most {longest} characters: {told}."
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

_JOB_SPEC: dict[str, Schema] = {
    "process.stdin": {"maxLength": MAX_OBJECT_BYTES},
    "parallelism.matrix": {
        VALIDATIONS: [rule(_COMBINATIONS, f"expected at most {MAX_TASKS} combinations")]
    },
    "parallelism.matrix{}": {"maxItems": MAX_TASKS},
    "retries": {
        VALIDATIONS: [
            rule(
                "!has(self.retryExitCodes) || !has(self.failExitCodes)"
                " || !self.failExitCodes.exists(code, code in self.retryExitCodes)",
                "an exit code is among both retryExitCodes and failExitCodes",
                fieldPath=".failExitCodes",
            )
        ]
    },
    "retries.retryExitCodes": {"maxItems": _MAX_CODES},
    "retries.failExitCodes": {"maxItems": _MAX_CODES},
    "resources": {
        VALIDATIONS: [rule(f"!('{ASKED_BY_ALL}' in self)", ASKED_BY_ALL_TOLD)],
    },
    "substitutions": _names(
        f"(?:{'|'.join(sorted(PREFIXES))})[.]{ARG_NAME}",
        'expected the full name of a variable, such as "option.region"',
    ),
}


def below(path: str, fields: dict[str, Schema]) -> dict[str, Schema]:
    """The same rules for fields that are below a path."""
    return {f"{path}.{field}" if field else path: told for field, told in fields.items()}


#: What else is demanded of the spec of a Job, by the path below it.
JOB_SPEC: dict[str, Schema] = {
    **_JOB_SPEC,
    "pod.spec": POD_SPEC,
    **below("pod", METADATA),
    "batchJob.spec": BATCH_JOB_SPEC,
    **below("batchJob", METADATA),
}
#: A list of conditions, one of each type.
CONDITIONS: Schema = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
#: What else is demanded of the fields of a Job and of a Lock, by path.
JOB: dict[str, Schema] = {
    **below("spec", JOB_SPEC),
    # People see a phase from the first moment on.
    "status": {"default": {"phase": JobStatus().phase.value}},
}
LOCK: dict[str, Schema] = {"spec.key": {VALIDATIONS: [rule("self == oldSelf", "may not change")]}}
