"""Paths into an object, in the small part of jq that expectations need.

.status.active                         a field; what is not there is null
.metadata.labels["example.org/x"]      a field whose name is no plain word
.status.skips[0].reason                an element; [-1] is the last one
.status.conditions[type=Ready].status  the first element with that field
.items[].metadata.name                 that of every element, as a list
.items|length                          how many; also of a text or an object
"""

from __future__ import annotations

import json
import re
from typing import Any

_STEP = re.compile(
    r"\.(?P<name>[A-Za-z0-9_$-]+)"
    r"|\.?\[\"(?P<quoted>[^\"]+)\"\]"
    r"|\.?\[(?P<index>-?[0-9]+)\]"
    r"|\.?\[(?P<all>)\]"
    r"|\.?\[(?P<field>[A-Za-z0-9_]+)=(?P<wanted>\"[^\"]*\"|[^\]\"]*)\]"
    r"|(?P<length>\s*\|\s*length)"
)

EXPECTED = (
    "expected a path such as .status.active, .status.skips[0].reason, "
    ".status.conditions[type=Ready].status or .items|length"
)


def read_path(text: str) -> tuple[re.Match[str], ...]:
    """Read a path.

    Raises:
        ValueError: It is none.
    """
    steps = []
    place = 0
    if text != ".":
        while place < len(text):
            step = _STEP.match(text, place)
            if step is None:
                raise ValueError(f"{EXPECTED}; cannot read {text[place:]!r}")
            steps.append(step)
            place = step.end()
    if not text.startswith((".", "|", "[")):
        raise ValueError(EXPECTED)
    return tuple(steps)


def find(steps: tuple[re.Match[str], ...], value: Any) -> Any:
    """What a path leads to; None where it leads nowhere."""
    for place, step in enumerate(steps):
        if step["all"] is not None:
            rest = steps[place + 1 :]
            if rest and rest[-1]["length"]:
                return len(_each(rest[:-1], value))
            return _each(rest, value)
        value = _follow(step, value)
    return value


def _each(steps: tuple[re.Match[str], ...], value: Any) -> list[Any]:
    inside = value if isinstance(value, list) else []
    return [find(steps, one) for one in inside]


def _follow(step: re.Match[str], value: Any) -> Any:
    if step["length"]:
        return len(value) if isinstance(value, list | dict | str) else 0
    if step["index"]:
        index = int(step["index"])
        fits = isinstance(value, list) and -len(value) <= index < len(value)
        return value[index] if fits else None
    if step["field"]:
        return _with_field(value, step["field"], step["wanted"])
    name = step["quoted"] or step["name"]
    return value.get(name) if isinstance(value, dict) else None


def _with_field(value: Any, field: str, wanted: str) -> Any:
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict) and _written(one.get(field)) == wanted.strip('"'):
            return one
    return None


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
