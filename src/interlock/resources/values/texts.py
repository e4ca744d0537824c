"""Text limits: which texts and numbers can be handed to a program, or to a cluster."""

from __future__ import annotations

from typing import Any

from interlock.findings import Findings, type_of
from interlock.resources.values.free_form import MAX_DEPTH, Walk

#: No object is longer, whatever a program could be given.
MAX_OBJECT_BYTES = 1 << 20
#: The kernel takes no longer argument or variable.
MAX_ARGUMENT_BYTES = (1 << 17) - 1

_INT64 = range(-(1 << 63), 1 << 63)


def is_suspect(word: str) -> bool:
    """Whether a text needs a closer look. Paths are dear to make, so few are made for nothing."""
    return "\0" in word or len(word) > MAX_ARGUMENT_BYTES // 4


def check_word(path: str, word: str, to: Findings) -> None:
    """Check one text."""
    if "\0" in word:
        to.add(path, "holds a NUL byte, which no program can be given", word)
    elif len(word) > MAX_ARGUMENT_BYTES // 4 and len(word.encode()) > MAX_ARGUMENT_BYTES:
        to.add(path, f"expected at most {MAX_ARGUMENT_BYTES} bytes", word)


def check_free_form(path: str, data: dict[str, Any], to: Findings) -> None:
    """Check that all of it is JSON that a cluster reads as it was written."""
    walk = Walk(path, data)
    _check_names_in(walk, data, to)
    for value in walk:
        if isinstance(value, str):
            if is_suspect(value):
                check_word(walk.path, value, to)
        elif isinstance(value, (dict, list)):
            _check_holder(walk, value, to)
        elif value is not None and not isinstance(value, bool):
            _check_number(walk, value, to)
        if to.is_full:
            return


def _check_holder(walk: Walk, value: dict[Any, Any] | list[Any], to: Findings) -> None:
    if value and walk.depth >= MAX_DEPTH:
        to.add(walk.path, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        _check_names_in(walk, value, to)


def _check_names_in(walk: Walk, data: dict[Any, Any], to: Findings) -> None:
    for name in data:
        if not isinstance(name, str) or "\0" in name:
            to.add(walk.path, "expected names that are text without NUL bytes", name)


def _check_number(walk: Walk, value: object, to: Findings) -> None:
    if isinstance(value, int):
        if value not in _INT64:
            to.add(walk.path, "expected a whole number of at most 64 bits", value)
    elif not isinstance(value, float):
        to.add(walk.path, f"expected data that JSON knows, found {type_of(value)}", value)
    elif not abs(value) < float(1 << 63):
        to.add(walk.path, "expected a number that is not beyond 64 bits", value)
