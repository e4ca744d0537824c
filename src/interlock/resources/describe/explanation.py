"""Field explanations: type, default, values, and what is inside."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct
from msgspec import inspect as shape

from interlock.errors import BadRequestError
from interlock.findings import did_you_mean, shortened
from interlock.resources.describe.shapes import (
    default_of,
    description_of,
    enum_of,
    field_descriptions,
    fields_of,
    member_descriptions,
    struct_of,
    type_name,
)
from interlock.resources.kinds import KINDS
from interlock.resources.rules import noun_rules_of, rules_of

#: The type of data whose fields are not ours.
_FREE_FORM = "object"


class Explanation(NamedTuple):
    """Everything there is to say about one field, or about a kind when the path is empty."""

    #: From the top of the kind: `spec.retries.delay`. Empty for the kind itself.
    path: str
    #: What a person would call the type: `list of string`, `duration`, `JobSpec`.
    type: str
    description: str
    required: bool = False
    #: As it is written; empty when there is none.
    default: str = ""
    #: What a value must keep to beyond its type; empty when there is nothing to say.
    rule: str = ""
    #: The values it may have, each with what it stands for; empty when they are not numbered.
    values: tuple[tuple[str, str], ...] = ()
    #: The fields inside it, without those inside them.
    children: tuple[Explanation, ...] = ()

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


def explain(kind: str, path: str = "") -> Explanation:
    """Explain a field of a kind; positions in lists may be given and do not matter.

    Raises:
        BadRequestError: There is no such kind or field.
    """
    if kind not in KINDS:
        raise BadRequestError(f"{shortened(kind)}: unknown kind{did_you_mean(kind, KINDS)}")
    cls: type[Struct] | None = KINDS[kind].type
    found = Explanation("", kind, description_of(KINDS[kind].type))
    walked = ""
    for name in filter(None, re.sub(r"\[[^\]]*\]", "", path).split(".")):
        field = fields_of(cls).get(name) if cls else None
        if cls is None and found.type == _FREE_FORM:
            raise BadRequestError(f"{walked}: its fields are not ours. {found.description}")
        if cls is None or field is None:
            known = fields_of(cls) if cls else ()
            where = f"{walked}.{shortened(name)}".lstrip(".")
            raise BadRequestError(f"{where}: {kind} has no such field{did_you_mean(name, known)}")
        walked = f"{walked}.{name}".lstrip(".")
        found = _explained(walked, field, cls)
        cls = struct_of(field.type)
    return found._replace(children=_children(walked, cls))


def _children(path: str, cls: type[Struct] | None) -> tuple[Explanation, ...]:
    if cls is None:
        return ()
    return tuple(
        _explained(f"{path}.{name}".lstrip("."), field, cls)
        for name, field in fields_of(cls).items()
    )


def _explained(path: str, field: shape.Field, cls: type[Struct]) -> Explanation:
    inner = struct_of(field.type)
    choices = enum_of(field.type)
    told = field_descriptions(cls).get(field.name, "")
    if not told and (noun := inner or choices):
        told = description_of(noun)
    return Explanation(
        path=path,
        type=type_name(field.type),
        description=told,
        required=field.required,
        default=_written(default_of(field)),
        rule=_rule(field, cls, inner),
        values=tuple(member_descriptions(choices).items()) if choices else (),
    )


def _rule(field: shape.Field, cls: type[Struct], inner: type[Struct] | None) -> str:
    """The rules of a field, and those between the fields of the noun that it holds."""
    told = [rules_of(cls)[field.name].words]
    told += [rule.words(inner) for rule in noun_rules_of(inner)] if inner is not None else []
    return "; ".join(filter(None, told))


def _written(default: object) -> str:
    if default in (None, "", [], {}, ()):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
