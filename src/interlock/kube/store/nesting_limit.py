"""A nesting limit for objects: an API server stores ten thousand levels.

Python gives up at a thousand, in the decoder and wherever two values are compared, so what comes
near is not read at all. Nothing here calls itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Raw

from interlock.resources.kinds import Kind
from interlock.resources.values.free_form import is_deeper
from interlock.resources.work_types import parts_of, types_of

#: Far beyond what a Job may have, far below what we can carry.
MAX_DEPTH = 200
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
#: Where an identity is looked for, the rest may be cut off a little deeper.
_CUT_AT = MAX_DEPTH + 20
_SIGNS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)

_T = TypeVar("_T")


def bounded(kind: Kind) -> Callable[[_T], _T]:
    """What lets a spec of a kind through that runs something, unless it is too deep for us."""

    def let_through(spec: _T) -> _T:
        work = kind.work_in(spec)
        assert work is not None
        for _, part in parts_of(work):
            for type in types_of(part):
                others = type.free_form(type.given(part)) if type.free_form is not None else {}
                if is_deeper(others, MAX_DEPTH):
                    raise msgspec.ValidationError(_TOO_DEEP)
        return spec

    return let_through


def decode_any(decoder: msgspec.json.Decoder[_T], data: bytes | Raw) -> _T:
    """Decode what may be too deep, with what is too deep cut off.

    What was cut is still deeper than MAX_DEPTH, so that nobody takes it for the whole.
    """
    try:
        return decoder.decode(data)
    except RecursionError:
        return decoder.decode(cut(bytes(data)))


def cut(data: bytes) -> bytes:
    """The same JSON with null for every object and list that is too deep."""
    parts: list[bytes] = []
    depth = kept_from = 0
    for found in _SIGNS.finditer(data):
        sign = data[found.start()]
        if sign in b"[{":
            depth += 1
            if depth == _CUT_AT:
                parts += (data[kept_from : found.start()], b"null")
        elif sign in b"]}":
            if depth == _CUT_AT:
                kept_from = found.end()
            depth -= 1
    return b"".join((*parts, data[kept_from:]))
