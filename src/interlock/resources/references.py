"""References: where in the arguments of a step stands what another step returned.

`{"$result": "reserve"}` stands for the result of step `reserve`, `{"$literal": ...}` for what is in
it as it is: so a value that looks like a reference can be written too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import json

RESULT = "$result"
LITERAL = "$literal"
#: Deeper than this nothing is looked at; what is stored is never as deep.
_DEEPEST = 64


def resolve(value: Any, results: Mapping[str, str], depth: int = 0) -> Any:
    """The value with every reference replaced by its result; null for a step that returned none."""
    if depth >= _DEEPEST:
        return value
    if isinstance(value, list):
        return [resolve(one, results, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (name, inside), *_ = value.items()
        if name == LITERAL:
            return inside
        if name == RESULT and isinstance(inside, str):
            text = results.get(inside, "")
            return json.decode(text) if text else None
    return {name: resolve(one, results, depth + 1) for name, one in value.items()}


def resolved_json(text: str, results: Mapping[str, str]) -> str:
    """The same for JSON as it is stored; nothing when there is none."""
    return json.encode(resolve(json.decode(text), results)).decode() if text else ""
