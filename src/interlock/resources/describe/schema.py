"""The schemas of the kinds, for OpenAPI v3 and for custom resource definitions.

Made from the nouns and their comments when first asked for, and kept.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec import inspect as shape

from interlock.resources.describe.shapes import (
    default_of,
    description_of,
    field_descriptions,
    fields_of,
    member_descriptions,
    plain,
)
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.rules import (
    AtLeastOne,
    ExactlyOne,
    NounRule,
    OnlyWith,
    Rules,
    noun_rules_of,
    rules_of,
    whole,
)
from interlock.resources.values import amounts
from interlock.resources.values.amounts import MOST, Amount
from interlock.resources.values.cron_lines import CronLines
from interlock.resources.values.durations import LONGEST_TEXT, PATTERN, Duration

Schema = dict[str, Any]

#: Where OpenAPI keeps schemas that others refer to.
REFERENCE = "#/components/schemas/{name}"

DURATION: Schema = {"minLength": 1, "maxLength": LONGEST_TEXT, "pattern": whole(PATTERN)}
_WHOLE_AMOUNT: Schema = {"type": "integer", "format": "int64", "minimum": 0, "maximum": MOST}
_AMOUNT_TEXT: Schema = {
    "type": "string",
    "maxLength": amounts.LONGEST_TEXT,
    "pattern": whole(amounts.PATTERN),
}
AMOUNT_CHOICE: Schema = {"oneOf": [_WHOLE_AMOUNT, _AMOUNT_TEXT]}
#: The same in the one way in which a structural schema can say it.
AMOUNT: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    # Each is for one of the two types.
    "minimum": 0,
    "maximum": MOST,
    "maxLength": amounts.LONGEST_TEXT,
    "pattern": whole(amounts.PATTERN),
}
_RANGES = r"^([0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*)?$"
#: Names that Kubernetes' tools know.
_NAMES: dict[type, str] = {Metadata: "ObjectMeta"}


@cache
def components() -> dict[str, Schema]:
    """The schema of every noun of every kind by its name; they refer to each other by REFERENCE."""
    found: dict[str, Schema] = {}
    waiting: list[type[Struct]] = [kind.type for kind in KINDS.values()]
    while waiting:
        cls = waiting.pop()
        if component_name(cls) not in found:
            found[component_name(cls)] = _object(cls, _Referring(waiting))
    return dict(sorted(found.items()))


@cache
def structural(kind: str) -> Schema:
    """The whole schema of a kind without references, as a custom resource definition wants it.

    It has no defaults: an API server would write them into every object, and they could not
    be changed later. Metadata is left to the API server, which knows its own rules.
    """
    made = _object(KINDS[kind].type, _Inline())
    made.pop("x-kubernetes-group-version-kind")
    made["properties"]["metadata"] = {"type": "object"}
    return made


def noun_schema(cls: type[Struct]) -> Schema:
    """The schema of a noun that is no part of a kind and has no nouns in it; it takes no more."""
    waiting: list[type[Struct]] = []
    made = _object(cls, _Referring(waiting))
    assert not waiting, f"{cls.__name__} has nouns in it"
    return made | {"additionalProperties": False}


def component_name(cls: type[Struct]) -> str:
    """What a noun is called among the components."""
    return _NAMES.get(cls, cls.__name__)


class _Inline:
    """Writes nouns where they are used."""

    #: A custom resource definition says defaults and rules in its own words.
    is_whole = False

    def noun(self, cls: type[Struct], description: str) -> Schema:
        made = _object(cls, self)
        return made | {"description": description} if description else made

    def choice(self, choices: tuple[shape.Type, ...]) -> Schema:  # noqa: ARG002 (see below)
        """Leave the type open: a structural schema cannot say that it is one of several."""
        return {"x-kubernetes-preserve-unknown-fields": True}


class _Referring(_Inline):
    """Refers to nouns, and remembers which."""

    is_whole = True

    def __init__(self, waiting: list[type[Struct]]) -> None:
        self._waiting = waiting

    def noun(self, cls: type[Struct], description: str) -> Schema:
        self._waiting.append(cls)
        reference = {"$ref": REFERENCE.format(name=component_name(cls))}
        if not description:
            return reference
        # Beside a plain $ref OpenAPI 3.0 ignores everything else.
        return {"allOf": [reference], "description": description}

    def choice(self, choices: tuple[shape.Type, ...]) -> Schema:
        return {"oneOf": [_schema(one, Rules(), "", self) for one in choices]}


def _object(cls: type[Struct], style: _Inline) -> Schema:
    told = field_descriptions(cls)
    made: Schema = {"type": "object", "description": description_of(cls)}
    properties: dict[str, Schema] = {}
    if issubclass(cls, Resource):
        properties["kind"] = {"type": "string", "description": "The name of the kind."}
        made["x-kubernetes-group-version-kind"] = [_identity(cls)]
    required = []
    for name, field in fields_of(cls).items():
        rules = rules_of(cls)[field.name] if style.is_whole else Rules()
        properties[name] = _property(field, rules, told.get(field.name, ""), style)
        if field.required:
            required.append(name)
    if properties:
        made["properties"] = properties
    for rule in noun_rules_of(cls) if style.is_whole else ():
        together = _together(cls, rule)
        if made.keys() & together.keys():
            made.setdefault("allOf", []).append(together)
        else:
            made |= together
    return made | ({"required": required} if required else {})


def _together(cls: type[Struct], rule: NounRule) -> Schema:
    """What a schema can say of a rule between fields. Null means that a field is not given."""
    fields = {name: fields_of(cls)[name] for name in rule.written(cls)}
    given = [_given(name, field) for name, field in fields.items()]
    match rule:
        case ExactlyOne():
            return {"oneOf": given}
        case AtLeastOne():
            return {"anyOf": given}
        case OnlyWith():
            name, field = next(iter(fields.items()))
            absent = {"properties": {name: {"not": {"type": _type(field)}}}}
            return {"anyOf": [absent, *given[1:]]}
    return {}


def _given(name: str, field: shape.Field) -> Schema:
    """A schema of objects that give a field, and do not leave it empty where that means nothing."""
    filled = {"string": {"minLength": 1}, "array": {"minItems": 1}}
    kind = _type(field)
    may_be_empty = default_of(field) is None
    told = {"type": kind} | ({} if may_be_empty else filled[kind])
    return {"required": [name], "properties": {name: told}}


def _type(field: shape.Field) -> str:
    kind = plain(field.type)[0]
    if isinstance(kind, shape.StructType):
        return "object"
    found: str = _plain_schema(kind, Rules(), _Inline())["type"]
    return found


def _property(field: shape.Field, rules: Rules, description: str, style: _Inline) -> Schema:
    made = _schema(field.type, rules, description, style)
    default = default_of(field)
    if style.is_whole and default not in (None, "", [], {}):
        made["default"] = default
    return made


def _schema(kind: shape.Type, rules: Rules, description: str, style: _Inline) -> Schema:
    kind, may_be_null = plain(kind)
    if isinstance(kind, shape.StructType):
        made = style.noun(kind.cls, description)
        # A reference takes no siblings; null is accepted at the door all the same.
        return made if "$ref" in made or not may_be_null else made | {"nullable": True}
    made = _plain_schema(kind, rules, style)
    for rule in rules.own:
        made |= rule.schema()
    if isinstance(kind, shape.EnumType):
        description = _with_choices(description, kind.cls)
    if description:
        made["description"] = description
    if may_be_null:
        made["nullable"] = True
    return made


def _plain_schema(kind: shape.Type, rules: Rules, style: _Inline) -> Schema:
    inside = rules.items or Rules()
    match kind:
        case shape.StrType():
            return {"type": "string"}
        case shape.BoolType():
            return {"type": "boolean"}
        case shape.IntType():
            return {"type": "integer", "format": "int64"}
        case shape.FloatType():
            return {"type": "number", "format": "double"}
        case shape.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case shape.EnumType(cls=cls):
            return {"type": "string", "enum": [member.value for member in cls]}
        case shape.CustomType(cls=cls):
            return _special(cls, style)
        case shape.VarTupleType(item_type=item):
            return {"type": "array", "items": _schema(item, inside, "", style)}
        case shape.DictType(value_type=shape.AnyType()):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case shape.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value, inside, "", style)}
        case shape.UnionType(types=types):
            return style.choice(types)
    raise NotImplementedError(str(kind))


def _special(cls: type, style: _Inline) -> Schema:
    if cls is CronLines:
        return style.choice((shape.StrType(), shape.VarTupleType(shape.StrType())))
    if cls is Amount:
        return dict(AMOUNT_CHOICE if style.is_whole else AMOUNT)
    return {"type": "string"} | (DURATION if cls is Duration else {"pattern": _RANGES})


def _with_choices(description: str, cls: type) -> str:
    """The description of a field with what each of its values stands for."""
    assert issubclass(cls, StrEnum)
    lines = [description or description_of(cls)]
    lines += [f"{value}: {told}" for value, told in member_descriptions(cls).items() if told]
    return "\n".join(lines)


def _identity(cls: type[Resource]) -> Schema:
    kind = KINDS[str(cls.__struct_config__.tag)]
    return {"group": kind.group, "version": kind.version, "kind": kind.name}
