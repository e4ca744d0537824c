"""The schema of a kind as a custom resource definition wants it: structural, with its rules.

It begins with what the types tell (`interlock.resources.schema`) and adds defaults and limits.
Defaults are written into each new Job, so a Job keeps those it was created with. Null means "not
given", as at our own door: no field is nullable, and the API server then leaves nulls out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import inspect as shape

from interlock.kube.freezing import job_change
from interlock.kube.rules import DURATION, DURATION_RULES, MOMENT, VALIDATIONS, Schema
from interlock.kube.schedule_rules import RULES
from interlock.resources.durations import Duration
from interlock.resources.job import JobStatus
from interlock.resources.kinds import KINDS
from interlock.resources.schema import structural
from interlock.resources.shapes import default_of, fields_of, plain

#: What a part holds when it is missing altogether. People see a phase from the first moment on.
_MISSING: dict[str, dict[str, Schema]] = {"Job": {"status": {"phase": JobStatus().phase.value}}}


@cache
def schema_of(kind: str) -> Schema:
    """The whole schema of one of our kinds."""
    made = structural(kind)
    rules, missing = RULES[kind], _MISSING.get(kind, {})
    properties = dict(made["properties"])
    properties["metadata"] = properties["metadata"] | rules["metadata"]
    if not KINDS[kind].has_status:
        del properties["status"]
    for part in properties.keys() & {"spec", "status"}:
        field = fields_of(KINDS[kind].type)[part]
        properties[part] = _refined(properties[part], field.type, part, rules)
        if part in missing:
            properties[part]["default"] = missing[part]
    made = made | {"properties": properties}
    return made | {VALIDATIONS: [job_change()]} if kind == "Job" else made


def _refined(made: Schema, kind: shape.Type, path: str, rules: Mapping[str, Schema]) -> Schema:
    kind = plain(kind)[0]
    made = {name: value for name, value in made.items() if name != "nullable"}
    match kind:
        case shape.StructType(cls=cls) if fields_of(cls):
            made["properties"] = {
                name: _field(made["properties"][name], field, f"{path}.{name}", rules)
                for name, field in fields_of(cls).items()
            }
        case shape.VarTupleType(item_type=item):
            made["items"] = _refined(made["items"], item, f"{path}[]", rules)
        case shape.DictType(value_type=value) if not isinstance(value, shape.AnyType):
            inner = _refined(made["additionalProperties"], value, f"{path}{{}}", rules)
            made["additionalProperties"] = inner
        case shape.DateTimeType():
            made |= MOMENT
        case shape.CustomType(cls=cls) if cls is Duration:
            made |= DURATION
            if path.startswith("spec."):
                made[VALIDATIONS] = DURATION_RULES
    return _limited(made, rules.get(path, {}))


def _field(made: Schema, field: shape.Field, path: str, rules: Mapping[str, Schema]) -> Schema:
    made = _refined(made, field.type, path, rules)
    default = default_of(field)
    # A status is written by us, and says everything that matters. Empty means not given. And a
    # default of 0 that is no integer is not the 0 that an API server reads back: the spec would
    # seem to change with every write.
    is_told = default not in (None, "", (), {}) and not isinstance(default, float)
    if is_told and path.startswith("spec."):
        made["default"] = default
    return made


def _limited(made: Schema, limits: Schema) -> Schema:
    """The schema with the limits; rules of both are kept."""
    both = [*made.get(VALIDATIONS, ()), *limits.get(VALIDATIONS, ())]
    return made | limits | ({VALIDATIONS: both} if both else {})
