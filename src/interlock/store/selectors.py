"""Selectors: which resources a label or field selector means, as Kubernetes reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import lru_cache

import msgspec

from interlock.errors import BadRequestError
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Resource
from interlock.store.contract import Selection

Matcher = Callable[[Resource], bool]
_LabelTest = Callable[[Mapping[str, str]], bool]

#: A selector is read again for every list and watch; nobody needs one longer than this.
MAX_SELECTOR_LENGTH = 8192

_KEY = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_EQUALS = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*({_VALUE})\s*")
_IN_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_ONE_VALUE = re.compile(_VALUE)
#: A comma that does not stand inside parentheses.
_COMMA = re.compile(r",(?![^()]*\))")
_FIELD = re.compile(r"\s*([A-Za-z][A-Za-z0-9.]*)\s*(==|=|!=)\s*([^=!]*?)\s*")


def matcher_for(kind: str, selection: Selection | None) -> Matcher | None:
    """A test for what the selection means, or None when it means everything.

    Raises:
        BadRequestError: A selector that cannot be read.
    """
    if selection is None:
        return None
    return _matcher(kind, selection.namespace, selection.labels, selection.fields)


@lru_cache(maxsize=256)
def _matcher(kind: str, namespace: str | None, labels: str, fields: str) -> Matcher | None:
    tests = [*_label_tests(labels), *_field_tests(kind, fields)]
    if namespace is not None:
        tests.insert(0, lambda resource: resource.metadata.namespace == namespace)
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda resource: all(test(resource) for test in tests)


def _check_length(selector: str, what: str) -> None:
    if len(selector) > MAX_SELECTOR_LENGTH:
        raise BadRequestError(
            f"the {what} selector has {len(selector)} characters, "
            f"expected at most {MAX_SELECTOR_LENGTH}"
        )


def _label_tests(selector: str) -> list[Matcher]:
    _check_length(selector, "label")
    if not selector.strip():
        return []
    return [_on_labels(_label_test(part)) for part in _COMMA.split(selector)]


def _on_labels(test: _LabelTest) -> Matcher:
    return lambda resource: test(resource.metadata.labels)


def _label_test(part: str) -> _LabelTest:
    if found := _EXISTS.fullmatch(part):
        absent, key = found.groups()
        return (lambda labels: key not in labels) if absent else (lambda labels: key in labels)
    if found := _EQUALS.fullmatch(part):
        key, operator, value = found.groups()
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _IN_SET.fullmatch(part):
        key, operator, listed = found.groups()
        values = _values(part, listed)
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    raise BadRequestError(
        f"label selector: {part.strip()!r} cannot be read; expected key, !key, key=value, "
        "key!=value, key in (a,b) or key notin (a,b)"
    )


def _values(part: str, listed: str) -> frozenset[str]:
    values = frozenset(value.strip() for value in listed.split(","))
    for value in values:
        if not _ONE_VALUE.fullmatch(value):
            raise BadRequestError(f"label selector: {part.strip()!r}: {value!r} is no label value")
    return values


def _field_tests(kind: str, selector: str) -> list[Matcher]:
    _check_length(selector, "field")
    if not selector.strip():
        return []
    return [_field_test(kind, part) for part in selector.split(",")]


def _field_test(kind: str, part: str) -> Matcher:
    found = _FIELD.fullmatch(part)
    if found is None:
        raise BadRequestError(
            f"field selector: {part.strip()!r} cannot be read; expected field=value or field!=value"
        )
    path, operator, value = found.groups()
    attributes = _attributes(kind, path)
    if operator == "!=":
        return lambda resource: _read(resource, attributes) != value
    return lambda resource: _read(resource, attributes) == value


def _attributes(kind: str, path: str) -> tuple[str, ...]:
    """The attributes that lead to a field; they were checked to exist and to end in a scalar."""
    known: object = KINDS[kind].type if kind in KINDS else None
    names = []
    for part in path.split("."):
        fields = {f.encode_name: f for f in _fields_of(known)}
        if part not in fields:
            raise BadRequestError(f"field selector: {kind} has no field {path!r}")
        names.append(fields[part].name)
        known = fields[part].type
    if _fields_of(known) or names[0] not in ("metadata", "spec", "status"):
        raise BadRequestError(f"field selector: {path!r} of {kind} is no single value")
    return tuple(names)


def _fields_of(known: object) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a struct type, also of an optional one; nothing for other types."""
    for candidate in (known, *getattr(known, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, msgspec.Struct):
            return msgspec.structs.fields(candidate)
    return ()


def _read(resource: Resource, attributes: tuple[str, ...]) -> str:
    value: object = resource
    for name in attributes:
        if value is None:
            break
        value = getattr(value, name)
    return _as_text(value)


def _as_text(value: object) -> str:
    """A value as it stands in JSON, without quotes; nothing is the empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)
