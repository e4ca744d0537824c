"""Free-form data, whose fields are not ours: kept to the letter, walked with care.

Pod and Job specifications belong to Kubernetes, so they are plain objects and lists here. Whoever
writes them chooses how deep they are: nothing in this module calls itself deeper than MAX_DEPTH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

from interlock.findings import child

#: Objects and lists inside each other. Kubernetes' own specifications need about fifteen.
MAX_DEPTH = 50


class Walk:
    """Goes through every value inside an object, each after the one that holds it.

    While it stands at a value, `path` tells where that is; a path is dear to make, and so is made
    only when asked for. It stands at values that are too deep, and goes into none of them.
    """

    def __init__(self, field: str, data: Mapping[str, Any]) -> None:
        self._field = field
        self._data = data
        self._steps: list[str | int] = []

    def __iter__(self) -> Iterator[object]:
        steps = self._steps = [""]
        inside: list[Iterator[tuple[Any, object]]] = [iter(self._data.items())]
        while inside:
            for step, value in inside[-1]:
                steps[-1] = step
                yield value
                if isinstance(value, (dict, list)) and value and len(inside) < MAX_DEPTH:
                    inside.append(_inside(value))
                    steps.append("")
                    break
            else:
                inside.pop()
                steps.pop()

    @property
    def path(self) -> str:
        """Where the walk stands, as a person would write it."""
        return reduce(child, self._steps, self._field)

    @property
    def depth(self) -> int:
        """How many objects and lists are around the value."""
        return len(self._steps)

    @property
    def texts(self) -> Iterator[str]:
        """Every value that is text; the names of fields are not."""
        return (value for value in self if isinstance(value, str))


def _inside(value: dict[Any, Any] | list[Any]) -> Iterator[tuple[Any, object]]:
    """What an object or a list holds, by name or place."""
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def is_deeper(data: Mapping[str, Any], levels: int) -> bool:
    """Whether an object has more objects and lists inside each other, itself included."""
    level: list[Any] = [data]
    for _ in range(levels):
        level = [
            one
            for held in level
            for one in (held if isinstance(held, list) else held.values())
            if isinstance(one, (dict, list))
        ]
        if not level:
            return False
    return True


def with_texts(data: dict[str, Any], put: Callable[[str], str]) -> dict[str, Any]:
    """A copy of an object with every text in it replaced; names of fields stay."""
    return {name: _with_texts(value, put, 1) for name, value in data.items()}


def _with_texts(value: object, put: Callable[[str], str], depth: int) -> object:
    if isinstance(value, str):
        return put(value)
    if depth >= MAX_DEPTH:
        # Refused long before it is ordered; what is this deep must never end us.
        return value
    if isinstance(value, dict):
        return {name: _with_texts(one, put, depth + 1) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_texts(one, put, depth + 1) for one in value]
    return value
