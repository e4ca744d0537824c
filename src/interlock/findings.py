"""Findings: what is wrong with what a person wrote, where, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from interlock.errors import Problem

#: Values are shown up to this many characters.
SHOWN = 60
#: At most this many problems of one object are told one by one.
MAX_TOLD = 50

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def child(path: str, name: object) -> str:
    """The path of a field or a list's element, as a person would write it."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    text = shortened(str(name))
    if not _PLAIN.fullmatch(text):
        return f'{path}["{text}"]'
    return f"{path}.{text}" if path else text


def shortened(text: str) -> str:
    """A text that fits on a line: no longer than SHOWN, without control characters."""
    if len(text) > SHOWN:
        text = text[: SHOWN - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)


def shown(value: object) -> object:
    """A value that was found, made harmless to show: small, and quick to make for any value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else "a number of many digits"
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (dict, list, tuple)):
        return _sized(value)
    return shortened(type(value).__name__)


def _sized(value: dict[object, object] | list[object] | tuple[object, ...]) -> str:
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    return "[…]" if value else "[]"


def type_of(value: object) -> str:
    """What to call the type of a value that was found."""
    if value is None:
        return "null"
    for types, name in _TYPES:
        if isinstance(value, types):
            return name
    return shortened(type(value).__name__)


_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (str, "text"),
    (int, "a whole number"),
    (float, "a number"),
    (Mapping, "an object"),
    (Sequence, "a list"),
)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be; None when none is near.

    Spelling it with other capitals, dashes or underscores counts as no difference.
    """
    plain = _folded(word[:SHOWN])
    by_plain = {_folded(candidate): candidate for candidate in known}
    if plain in by_plain:
        return by_plain[plain]
    # The import costs more than the rest of this module; only bad input pays for it.
    from difflib import get_close_matches

    near = get_close_matches(plain, by_plain, n=1, cutoff=0.7)
    return by_plain[near[0]] if near else None


def _folded(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def did_you_mean(word: object, known: Iterable[str], *, quoted: bool = True) -> str:
    """The end of a message: `; did you mean "x"?`, or nothing."""
    near = nearest(word, known) if isinstance(word, str) else None
    if near is None:
        return ""
    return f'; did you mean "{near}"?' if quoted else f"; did you mean {near}?"


class Findings:
    """Problems in the order they were found. Beyond MAX_TOLD they are only counted."""

    def __init__(self) -> None:
        self._told: list[Problem] = []
        self._count = 0

    def add(self, path: str, message: str, found: object = None) -> None:
        """Note one problem."""
        self._count += 1
        if len(self._told) < MAX_TOLD:
            self._told.append(Problem(path, message, shown(found)))

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted, so that work on their words is wasted."""
        return len(self._told) >= MAX_TOLD

    def __len__(self) -> int:
        return self._count

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was found; the last one tells how many were left out."""
        rest = self._count - len(self._told)
        if rest:
            return (*self._told, Problem("...", f"and {rest} more"))
        return tuple(self._told)
