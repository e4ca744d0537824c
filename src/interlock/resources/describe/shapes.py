"""The shape of a kind as data: what fields there are, of which types, and what they are for.

Read from the nouns themselves, comments included, so that the slow reading at the door, the
schemas and the reference docs never tell a different story. Nothing here runs until it is needed.
"""

from __future__ import annotations

import ast
import re
import sys
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec import inspect as shape

from interlock.resources.codec import to_builtins
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Resource
from interlock.resources.values.amounts import Amount
from interlock.resources.values.cron_lines import CronLines
from interlock.resources.values.durations import Duration
from interlock.resources.values.indexes import IndexSet

#: Comments on fields that every kind has, in the words that Kubernetes users know.
_COMMON = {
    "api_version": "The group and version of the kind.",
    "metadata": "Name, labels, owners and bookkeeping.",
    "spec": "What its owner asks for.",
    "status": "What the system observed. Written by the system alone.",
}
#: What to call the types that JSON does not know.
_SPECIAL = {
    Amount: "amount",
    CronLines: "string or list of string",
    Duration: "duration",
    IndexSet: "ranges",
}
_COMMENT = re.compile(r"\s*#:\s?(.*)")


@cache
def shape_of(kind: str) -> shape.StructType:
    """The shape of a kind."""
    found = shape.type_info(KINDS[kind].type)
    assert isinstance(found, shape.StructType)
    return found


def plain(kind: shape.Type) -> tuple[shape.Type, bool]:
    """The type without its "or null", and whether null was one of its choices.

    A type that is one of several stays a union, of the others.
    """
    if isinstance(kind, shape.Metadata):
        return plain(kind.type)
    if not isinstance(kind, shape.UnionType):
        return kind, False
    choices = [one for one in kind.types if not isinstance(one, shape.NoneType)]
    may_be_null = len(choices) < len(kind.types)
    if len(choices) > 1:
        return shape.UnionType(tuple(choices)), may_be_null
    return plain(choices[0])[0], may_be_null


@cache
def fields_of(cls: type[Struct]) -> dict[str, shape.Field]:
    """The fields of a noun, by the names they have in JSON."""
    found = shape.type_info(cls)
    assert isinstance(found, shape.StructType)
    return {field.encode_name: field for field in found.fields}


def type_name(kind: shape.Type) -> str:
    """What to call a type before a person."""
    match plain(kind)[0]:
        case shape.StrType():
            return "string"
        case shape.BoolType():
            return "boolean"
        case shape.IntType():
            return "integer"
        case shape.FloatType():
            return "number"
        case shape.DateTimeType():
            return "moment"
        case shape.EnumType():
            return "string"
        case shape.CustomType(cls=cls):
            return _SPECIAL[cls]
        case shape.VarTupleType(item_type=item):
            return f"list of {type_name(item)}"
        case shape.DictType(value_type=shape.AnyType()):
            return "object"
        case shape.DictType(value_type=value):
            return f"map of {type_name(value)}"
        case shape.StructType(cls=cls):
            return cls.__name__
        case shape.UnionType(types=types):
            return " or ".join(map(type_name, types))
    raise NotImplementedError(str(kind))


def default_of(field: shape.Field) -> Any:
    """The default as plain data; None when there is none worth telling."""
    value: Any = field.default
    if value is NODEFAULT and field.default_factory is not NODEFAULT:
        value = field.default_factory()
    if value is NODEFAULT or value is None:
        return None
    if isinstance(value, Struct):
        return None
    return to_builtins(value)


def description_of(cls: type) -> str:
    """What a noun or an enum is, from its docstring."""
    return " ".join((cls.__doc__ or "").split())


#: The modules of what nouns and enums are made of.
_WITHOUT_COMMENTS = frozenset(one.__module__ for one in (*Struct.__mro__, *StrEnum.__mro__))


def field_descriptions(cls: type) -> dict[str, str]:
    """What the fields of a noun, or the members of an enum, are for, by their Python names."""
    told: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ not in _WITHOUT_COMMENTS:
            told |= _comments_in(base.__module__).get(base.__name__, {})
    return told | _COMMON if issubclass(cls, Resource) else told


def member_descriptions(cls: type[StrEnum]) -> dict[str, str]:
    """The values of an enum, each with what it stands for."""
    told = field_descriptions(cls)
    return {member.value: told.get(member.name, "") for member in cls}


@cache
def _comments_in(module: str) -> dict[str, dict[str, str]]:
    """The `#:` comments of a module: class, then field, then what stands above the field."""
    source = Path(str(sys.modules[module].__file__)).read_text("utf-8")
    lines = source.splitlines()
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {
                name: comment
                for statement in node.body
                if (name := _assigned_name(statement))
                and (comment := _comment_above(lines, statement.lineno - 1))
            }
    return found


def _assigned_name(statement: ast.stmt) -> str:
    target: ast.expr | None = None
    if isinstance(statement, ast.AnnAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _comment_above(lines: list[str], at: int) -> str:
    told: list[str] = []
    while at > 0 and (comment := _COMMENT.fullmatch(lines[at - 1])):
        told.insert(0, comment[1])
        at -= 1
    return " ".join(told)


def struct_of(kind: shape.Type) -> type[Struct] | None:
    """The noun inside a type, through null, lists and maps; None when there is none."""
    found = plain(kind)[0]
    if isinstance(found, shape.VarTupleType):
        return struct_of(found.item_type)
    if isinstance(found, shape.DictType):
        return struct_of(found.value_type)
    return found.cls if isinstance(found, shape.StructType) else None


def enum_of(kind: shape.Type) -> type[StrEnum] | None:
    """The enum inside a type, through null and lists; None when there is none."""
    found = plain(kind)[0]
    if isinstance(found, shape.VarTupleType):
        return enum_of(found.item_type)
    if isinstance(found, shape.EnumType) and issubclass(found.cls, StrEnum):
        return found.cls
    return None
