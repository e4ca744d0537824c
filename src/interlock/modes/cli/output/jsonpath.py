"""The part of kubectl's JSONPath that scripts use: {.a.b}, {.items[*].c}, {[0]}, {"\\n"}, range."""

from __future__ import annotations

import json
import re
from typing import Any

from interlock.client.errors import BAD_INPUT, CommandError

_STEP = re.compile(
    r"\.(?P<name>(?:[^.\[\]{}\\]|\\.)+)|\['(?P<quoted>[^']+)'\]|\[(?P<index>-?\d+)\]|\[(?P<all>\*)\]|(?P<star>\.\*)"
)
_PART = re.compile(r"\{([^{}]*)\}")


def check(template: str) -> None:
    """Refuse a template that cannot be read, before anything is done whose result it would show."""
    render(template, None)


def render(template: str, value: Any) -> str:
    """The template with every {...} replaced by what it finds."""
    if not template:
        raise CommandError(
            "jsonpath needs a template",
            hint="write it as -o jsonpath='{.status.phase}'",
            code=BAD_INPUT,
        )
    if "{" not in template:
        template = "{" + template + "}"
    parts = _PART.split(template)
    for text in parts[::2]:
        for brace, other in (("{", "}"), ("}", "{")):
            if brace in text:
                told = f"jsonpath: {brace} without {other} in {template!r}"
                raise CommandError(told, hint="write it as {.status.phase}", code=BAD_INPUT)
    return _render(parts, value)


def _render(parts: list[str], value: Any) -> str:
    """Text and expressions take turns in `parts`."""
    out: list[str] = []
    place = 0
    while place < len(parts):
        part = parts[place]
        if place % 2 == 0:
            out.append(part)
        elif part.startswith("range "):
            end = _end_of_range(parts, place)
            inside = ["", "", *parts[place + 1 : end]]
            _render(inside, None)  # What is wrong in it is wrong also where nothing is found.
            out += [_render(inside, one) for one in find(part[6:], value)]
            place = end
        else:
            out.append(_expression(part.strip(), value))
        place += 1
    return "".join(out)


def _end_of_range(parts: list[str], start: int) -> int:
    for place in range(start + 2, len(parts), 2):
        if parts[place].strip() == "end":
            return place
    raise CommandError("jsonpath: {range} without {end}", code=BAD_INPUT)


def _expression(text: str, value: Any) -> str:
    if not text:
        return ""
    if text[0] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            raise CommandError(f"jsonpath: cannot read {text}", code=BAD_INPUT) from None
    return " ".join(_written(one) for one in find(text, value))


def find(path: str, value: Any) -> list[Any]:
    """All that a path leads to; what is missing leads to nothing."""
    path = path.strip().removeprefix("$").removeprefix("@")
    found, place = [value], 0
    while place < len(path):
        if path[place:] == ".":
            break
        step = _STEP.match(path, place)
        if step is None:
            raise CommandError(f"jsonpath: cannot read {path[place:]!r}", code=BAD_INPUT)
        found = [after for before in found for after in _follow(step, before)]
        place = step.end()
    return found


def _follow(step: re.Match[str], value: Any) -> list[Any]:
    if step["all"] or step["star"] or step["name"] == "*":
        inside = value.values() if isinstance(value, dict) else value
        return list(inside) if isinstance(value, dict | list) else []
    if step["index"]:
        index = int(step["index"])
        fits = isinstance(value, list) and -len(value) <= index < len(value)
        return [value[index]] if fits else []
    name = step["quoted"] or step["name"].replace("\\.", ".")
    return [value[name]] if isinstance(value, dict) and name in value else []


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
