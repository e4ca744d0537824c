"""Serialization of what steps are told and return: as JSON, and back as the annotated type.

Everything that msgspec knows goes both ways: dataclasses, structs, enums, dates, UUIDs, decimals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from interlock.errors import Problem
from interlock.findings import shown
from interlock.resources.tasks import MAX_RETURNED_BYTES
from interlock.sdk.app_errors import NotJsonError

_AT = re.compile(r"(?P<told>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)

EncodeHook = Callable[[Any], Any]


class NotOfTypeError(ValueError):
    """A value is not of the type that is expected."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_as(value: Any, wanted: Any, path: str) -> Any:
    """A value that came as JSON, as the type that is wanted.

    Raises:
        NotOfTypeError: It is not of this type; the problem says where.
    """
    if wanted is Any:
        return value
    try:
        return msgspec.convert(value, wanted, str_keys=True)
    except msgspec.ValidationError as error:
        found = _AT.fullmatch(str(error))
        told = found["told"] if found else str(error)
        where = (found["path"] if found else "") or ""
        message = told[:1].lower() + told[1:].replace("`", "")
        raise NotOfTypeError(Problem(f"{path}{where}", message, shown(value))) from None


def is_readable(wanted: Any) -> str:
    """Why no value can be read as this type; empty when one can."""
    try:
        msgspec.json.Decoder(wanted)
        return _unknown_class(msgspec.inspect.type_info(wanted))
    except (TypeError, NameError) as error:
        return str(error)


def _unknown_class(info: msgspec.inspect.Type) -> str:
    if isinstance(info, msgspec.inspect.CustomType):
        name = getattr(info.cls, "__qualname__", str(info.cls))
        return f"{name} cannot be read from JSON: use a dataclass, a msgspec.Struct or a plain type"
    return ""


def as_tree(value: Any, what: str, hook: EncodeHook | None = None) -> Any:
    """A value as lists, maps and plain values.

    Raises:
        NotJsonError: It cannot be written as JSON.
    """
    try:
        tree = msgspec.to_builtins(value, str_keys=True, enc_hook=hook)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotJsonError(f"{what} cannot be written as JSON: {error}") from None
    if _has_no_number(tree):
        # It would be read back as null.
        raise NotJsonError(f"{what} cannot be written as JSON: it has a number that is none")
    return tree


def result_json(value: Any, step: str) -> str:
    """What a step returned, as JSON; nothing for None.

    Raises:
        NotJsonError: It cannot be written so, or is too long to be kept.
    """
    if value is None:
        return ""
    what = f"what {step} returned ({type(value).__qualname__})"
    written = msgspec.json.encode(as_tree(value, what))
    if len(written) > MAX_RETURNED_BYTES:
        raise NotJsonError(
            f"{what} is {len(written)} bytes as JSON, and {MAX_RETURNED_BYTES} are kept:"
            " store it, and return where it is"
        )
    return written.decode()


def _has_no_number(tree: Any) -> bool:
    """Whether there is an infinite number in it, or one that is no number."""
    left = [tree]
    while left:
        one = left.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return True
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one
    return False
