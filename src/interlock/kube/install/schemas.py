"""The schema of a kind as a custom resource definition wants it: structural, with its rules.

It begins with what the types tell (`resources.describe.schema`) and adds defaults and limits.
Defaults are written into each new Job, so a Job keeps those it was created with. Null means "not
given", as at our own door: no field is nullable, and the API server then leaves nulls out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct
from msgspec import inspect as shape

from interlock.kube.install.rules import (
    AMOUNT_RULES,
    CONDITIONS,
    DURATION_RULES,
    MOMENT,
    VALIDATIONS,
    Schema,
    limited,
    of_names,
    of_noun,
    of_rules,
)
from interlock.kube.install.schedule_rules import RULES
from interlock.resources.describe.schema import structural
from interlock.resources.describe.shapes import default_of, fields_of, plain
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Condition
from interlock.resources.rules import Rules, rules_of
from interlock.resources.steps import ChildRequest, Step
from interlock.resources.values.amounts import Amount
from interlock.resources.values.durations import Duration


@cache
def schema_of(kind: str) -> Schema:
    """The whole schema of one of our kinds."""
    made = structural(kind)
    more = RULES.get(kind, {})
    properties = dict(made["properties"])
    properties["metadata"] = properties["metadata"] | of_names(KINDS[kind])
    if not KINDS[kind].has_status:
        del properties["status"]
    for part in properties.keys() & {"spec", "status"}:
        field = fields_of(KINDS[kind].type)[part]
        properties[part] = _refined(properties[part], field.type, part, Rules(), more)
    return limited(made | {"properties": properties}, more.get("", {}))


def _refined(
    made: Schema, kind: shape.Type, path: str, rules: Rules, more: Mapping[str, Schema]
) -> Schema:
    """The schema of a value with its rules; `more` are those by path that no noun says."""
    kind = plain(kind)[0]
    made = {name: value for name, value in made.items() if name != "nullable"}
    match kind:
        case shape.StructType(cls=cls) if cls in (Step, ChildRequest):
            made = _open(made, cls, path, more)
        case shape.StructType(cls=cls):
            made = _noun(made, cls, path, more)
        case shape.VarTupleType(item_type=item):
            inside = rules.items or Rules()
            made["items"] = _refined(made["items"], item, f"{path}[]", inside, more)
            if isinstance(item, shape.StructType) and item.cls is Condition:
                made |= CONDITIONS
        case shape.DictType(value_type=value) if not isinstance(value, shape.AnyType):
            inside = rules.items or Rules()
            inner = _refined(made["additionalProperties"], value, f"{path}{{}}", inside, more)
            made["additionalProperties"] = inner
        case shape.DateTimeType():
            made |= MOMENT
        case shape.CustomType(cls=cls) if cls is Duration:
            if path.startswith("spec."):
                made[VALIDATIONS] = DURATION_RULES
        case shape.CustomType(cls=cls) if cls is Amount:
            if path.startswith("spec."):
                made[VALIDATIONS] = AMOUNT_RULES
    return limited(limited(made, of_rules(rules.own)), more.get(path, {}))


def _noun(made: Schema, cls: type[Struct], path: str, more: Mapping[str, Schema]) -> Schema:
    rules = rules_of(cls)
    if fields_of(cls):
        made["properties"] = {
            name: _field(made["properties"][name], field, f"{path}.{name}", rules, more)
            for name, field in fields_of(cls).items()
        }
    return limited(made, of_noun(cls))


def _open(made: Schema, cls: type[Struct], path: str, more: Mapping[str, Schema]) -> Schema:
    """A noun of which a definition knows the name alone, if it has one; a webhook checks the rest.

    An API server adds up what all rules of a definition might cost. Those of a step, for as many
    as an operation may have and for what runs each and undoes it, are far beyond what it allows.
    """
    kept: Schema = {key: made[key] for key in made if key in ("type", "description")}
    kept["x-kubernetes-preserve-unknown-fields"] = True
    if "name" not in fields_of(cls):
        return kept
    field = fields_of(cls)["name"]
    name = _field(made["properties"]["name"], field, f"{path}.name", rules_of(cls), more)
    return kept | {"properties": {"name": name}, "required": ["name"]}


def _field(
    made: Schema,
    field: shape.Field,
    path: str,
    rules: Mapping[str, Rules],
    more: Mapping[str, Schema],
) -> Schema:
    made = _refined(made, field.type, path, rules[field.name], more)
    default = default_of(field)
    # A status is written by us, and says everything that matters. Empty means not given. And a
    # default of 0 that is no integer is not the 0 that an API server reads back: the spec would
    # seem to change with every write.
    is_told = default not in (None, "", (), {}) and not isinstance(default, float)
    if is_told and path.startswith("spec."):
        made["default"] = default
    return made
