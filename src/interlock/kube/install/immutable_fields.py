"""Immutable fields: which changes of a Job an API server refuses once it is admitted.

The same as `check_update` in `interlock.resources.door.checking`. Fields are compared as our types
compare them: a field that is left out equals one that holds its default, so that no Job is
refused for being written back by a program that leaves defaults out.
"""

from __future__ import annotations

import json

from msgspec import inspect as shape

from interlock.kube.install.rules import Schema, rule
from interlock.resources.checks.job_changes import FREE_ONCE_ENDED, FROZEN_ONCE_ADMITTED
from interlock.resources.describe.shapes import default_of, fields_of, plain
from interlock.resources.job import JobSpec

_PHASE = "oldSelf.?status.?admission.?phase.orValue('Waiting')"
#: One that was put back waits too, and was let in.
_NEVER_LET_IN = f"({_PHASE} == 'Waiting' && oldSelf.?status.?admission.?evictions.orValue(0) == 0)"
#: Whoever writes a status cannot change the spec, and whoever writes the rest cannot change the
#: status: where the phases differ, the specs are the same.
_STATUS_WRITTEN = "self.status.phase != oldSelf.status.phase"
_ENDED = f"({_PHASE} == 'Refused' || oldSelf.?status.?execution.?result.hasValue())"
#: Every lock, or step, of the one is among those of the other, by its name.
_AMONG = (
    "(!has({one}.spec.{field}) || {one}.spec.{field}.all(each, has({other}.spec.{field})"
    " && {other}.spec.{field}.exists(found, found.{name} == each.{name})))"
)
_AFTER_ADMISSION = (
    f"{', '.join(FROZEN_ONCE_ADMITTED)} and the keys of locks"
    " may not change once the Job is admitted"
)
_AFTER_END = f"nothing but {FREE_ONCE_ENDED} may change once the Job has ended"


def job_change() -> Schema:
    """The rule for a whole Job; it looks at the status that the Job had before the change.

    It is one rule, because an API server evaluates it with every write of a status too, and every
    look at a field of a large object is dear there. Most writes of a status change the phase and
    end at the first comparison; to compare the specs takes a third of such a write.
    """
    same = f"({_ENDED} ? {_after_end()} : {_after_admission()})"
    return rule(
        f"{_STATUS_WRITTEN} || {_NEVER_LET_IN} || self.spec == oldSelf.spec || {same}",
        "may not change like this any more",
        messageExpression=f"{_ENDED} ? '{_AFTER_END}' : '{_AFTER_ADMISSION}'",
        fieldPath=".spec",
    )


def _after_admission() -> str:
    fields = [fields_of(JobSpec)[name] for name in FROZEN_ONCE_ADMITTED]
    same = [_comparison(field, "spec", ()) for field in fields]
    same.append(_same_names("locks", "key"))
    return f"({' && '.join(same)})"


def _same_names(field: str, name: str) -> str:
    both = (("oldSelf", "self"), ("self", "oldSelf"))
    return " && ".join(
        _AMONG.format(one=one, other=other, field=field, name=name) for one, other in both
    )


def _after_end() -> str:
    fields = [field for name, field in fields_of(JobSpec).items() if name != FREE_ONCE_ENDED]
    return f"({' && '.join(_comparison(field, 'spec', ()) for field in fields)})"


def _comparison(field: shape.Field, above: str, unsure: tuple[str, ...]) -> str:
    """Whether a field is the same, in CEL; `unsure` are the parts above that may be missing.

    It is put together from plain comparisons of fields: of anything that was computed an API
    server does not know the size, and refuses the rule for what it might cost.
    """
    kind, may_be_missing = plain(field.type)
    path = f"{above}.{field.encode_name}"
    if path == "spec.python":
        # Nobody knows how large its arguments are: an API server will not compare them.
        return f"has(self.{path}) == has(oldSelf.{path})"
    if path == "spec.steps":
        # What is in a step a definition does not know: the webhook compares the rest.
        return _same_names("steps", "name")
    if path == "spec.adopted":
        # The controller makes them: the webhook compares the rest of what others write.
        new, old = (_given(one, (path,)) for one in ("self", "oldSelf"))
        return f"{new} == {old} && (!{new} || self.{path}.uid == oldSelf.{path}.uid)"
    if path == "spec.process.readinessProbe":
        # A cluster runs no processes: that would be much to look at for nothing.
        new, old = (_given(one, (*unsure, path)) for one in ("self", "oldSelf"))
        return f"{new} == {old}"
    if not isinstance(kind, shape.StructType):
        return _comparison_of_values(field, path, unsure)
    inner = fields_of(kind.cls).values()
    if not may_be_missing:
        # Left out it is the same as empty, so each field inside may be missing twice over.
        return " && ".join(_comparison(one, path, (*unsure, path)) for one in inner)
    same = f"has(self.{path}) == has(oldSelf.{path})"
    if not inner:
        return same
    parts = " && ".join(_comparison(one, path, unsure) for one in inner)
    return f"{same} && (!has(self.{path}) || {parts})"


def _comparison_of_values(field: shape.Field, path: str, unsure: tuple[str, ...]) -> str:
    equal = f"self.{path} == oldSelf.{path}"
    if field.required:
        return equal
    new, old = _given("self", (*unsure, path)), _given("oldSelf", (*unsure, path))
    default = default_of(field)
    if default is None:
        return f"{new} == {old} && (!{new} || {equal})"
    plain_new, plain_old = (f"{one}.{path} == {json.dumps(default)}" for one in ("self", "oldSelf"))
    as_usual = f"(!{new} || {plain_new}) && (!{old} || {plain_old})"
    return f"({as_usual} || {new} && {old} && {equal})"


def _given(which: str, paths: tuple[str, ...]) -> str:
    has = " && ".join(f"has({which}.{path})" for path in paths)
    return f"({has})" if len(paths) > 1 else has
