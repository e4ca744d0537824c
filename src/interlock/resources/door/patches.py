"""Patches: JSON merge patch (RFC 7386) and JSON patch (RFC 6902), of plain data.

Both give a changed copy and leave what they were given alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import msgspec

from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.findings import did_you_mean, shortened, shown

MAX_OPERATIONS = 10_000
#: What all `copy` operations of one patch may copy: a few of them could double an object often.
MAX_COPIED_BYTES = 3 << 20
#: Paths beyond this many steps lead nowhere in any resource.
MAX_STEPS = 100

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_TILDE = re.compile(r"~(?![01])")
_TOO_DEEP = "the patch is nested too deeply"


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes, objects are merged, everything else replaces.

    Raises:
        BadRequestError: The patch is nested too deeply.
    """
    try:
        return _merged(target, patch)
    except RecursionError as error:
        raise BadRequestError(_TOO_DEEP) from error


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    made = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _merged(made.get(name), value)
    return made


class _Operation(NamedTuple):
    op: str
    path: str
    steps: tuple[str, ...]
    value: Any
    source: tuple[str, ...]


def json_patch(document: Any, operations: Any) -> Any:
    """Apply a JSON patch: all operations in order, or none of them.

    Raises:
        BadRequestError: The patch is not a JSON patch.
        InvalidError: It does not fit the document: a `test` failed, or a path leads nowhere.
    """
    try:
        return _Patching(document).apply([_read(one) for one in _listed(operations)])
    except RecursionError as error:
        raise BadRequestError(_TOO_DEEP) from error


def _listed(operations: Any) -> list[Any]:
    if not isinstance(operations, (list, tuple)):
        raise BadRequestError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequestError(f"a JSON patch has at most {MAX_OPERATIONS} operations")
    return list(operations)


def _read(given: Any) -> _Operation:
    if not isinstance(given, Mapping):
        raise BadRequestError("an operation of a JSON patch is an object")
    op = given.get("op")
    if not isinstance(op, str) or op not in _OPERATIONS:
        known = ", ".join(_OPERATIONS)
        raise BadRequestError(f"op {shown(op)}: expected one of {known}{_meant(op)}")
    path = given.get("path")
    if op in ("add", "replace", "test") and "value" not in given:
        raise BadRequestError(f"op {op} {shown(path)}: value is required")
    source = _steps(given.get("from"), "from") if op in ("move", "copy") else ()
    return _Operation(op, str(path), _steps(path, "path"), given.get("value"), source)


def _meant(op: object) -> str:
    return did_you_mean(op, _OPERATIONS)


def _steps(pointer: Any, name: str) -> tuple[str, ...]:
    """Read a JSON pointer."""
    if not isinstance(pointer, str):
        raise BadRequestError(f"{name} {shown(pointer)}: expected a JSON pointer")
    if pointer and not pointer.startswith("/"):
        raise BadRequestError(f"{name} {shown(pointer)}: a JSON pointer begins with /")
    if _TILDE.search(pointer):
        raise BadRequestError(f"{name} {shown(pointer)}: after ~ comes 0 or 1")
    parts = pointer.split("/")[1:]
    if len(parts) > MAX_STEPS:
        raise BadRequestError(f"{name} {shown(pointer)}: expected at most {MAX_STEPS} steps")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


class _Patching:
    """One document on its way through a patch."""

    def __init__(self, document: Any) -> None:
        self._document = _copied(document)
        self._name = _name_of(document)
        self._copied_bytes = 0
        self._now: _Operation

    def apply(self, operations: list[_Operation]) -> Any:
        for operation in operations:
            self._now = operation
            _OPERATIONS[operation.op](self, operation)
        return self._document

    def test(self, operation: _Operation) -> None:
        found = self._at(operation.steps)
        if not _same(found, operation.value):
            self._fail("the test failed: the value is another one", found)

    def replace(self, operation: _Operation) -> None:
        self._at(operation.steps)
        if not operation.steps:
            self._document = _copied(operation.value)
            return
        parent = self._at(operation.steps[:-1])
        parent[self._place(parent, operation.steps[-1])] = _copied(operation.value)

    def add(self, operation: _Operation) -> None:
        self._put(operation.steps, _copied(operation.value))

    def remove(self, operation: _Operation) -> None:
        self._take(operation.steps)

    def move(self, operation: _Operation) -> None:
        source, target = operation.source, operation.steps
        if source == target:
            self._at(source)
            return
        if target[: len(source)] == source:
            self._fail("a value cannot be moved into itself")
        self._put(target, self._take(source))

    def copy(self, operation: _Operation) -> None:
        value = self._at(operation.source)
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > MAX_COPIED_BYTES:
            self._fail(f"the patch copies more than {MAX_COPIED_BYTES} bytes")
        self._put(operation.steps, _copied(value))

    def _at(self, steps: tuple[str, ...]) -> Any:
        found = self._document
        for step in steps:
            found = found[self._place(found, step)]
        return found

    def _place(self, parent: Any, step: str) -> Any:
        """Where in an object or a list a step leads: to something that is there."""
        if isinstance(parent, dict):
            if step not in parent:
                self._fail(f"there is no {shortened(step)}")
            return step
        if not isinstance(parent, list):
            self._fail(f"there is nothing in which {shortened(step)} could be")
        if not _INDEX.fullmatch(step) or int(step) >= len(parent):
            self._fail(f"the list has no element {shortened(step)}")
        return int(step)

    def _put(self, steps: tuple[str, ...], value: Any) -> None:
        if not steps:
            self._document = value
            return
        parent, last = self._at(steps[:-1]), steps[-1]
        if isinstance(parent, dict):
            parent[last] = value
        elif isinstance(parent, list) and last in ("-", str(len(parent))):
            parent.append(value)
        else:
            place = self._place(parent, last)
            parent.insert(place, value)

    def _take(self, steps: tuple[str, ...]) -> Any:
        if not steps:
            self._fail("the whole document cannot be removed")
        parent = self._at(steps[:-1])
        place = self._place(parent, steps[-1])
        return parent.pop(place)

    def _fail(self, message: str, found: object = None) -> NoReturn:
        operation = self._now
        told = Problem(shortened(operation.path), f"{operation.op}: {message}", shown(found))
        raise InvalidError(*self._name, [told])


_OPERATIONS: dict[str, Callable[[_Patching, _Operation], None]] = {
    "add": _Patching.add,
    "remove": _Patching.remove,
    "replace": _Patching.replace,
    "move": _Patching.move,
    "copy": _Patching.copy,
    "test": _Patching.test,
}


def _name_of(document: Any) -> tuple[str, str]:
    kind = document.get("kind") if isinstance(document, Mapping) else None
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return str(kind or "document"), str(name or "")


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(one) for one in value]
    return value


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes one of the other. Lists are replaced whole."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        held = before.get(name)
        if isinstance(value, Mapping) and isinstance(held, Mapping):
            if inner := patch_between(held, value):
                patch[name] = inner
        elif name not in before or held != value:
            patch[name] = value
    return patch
