"""Syntax errors of texts that say when: what is wrong, and where in the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from interlock.errors import InterlockError
from interlock.findings import MAX_TOLD, shortened


class Flaw(NamedTuple):
    """One thing that is wrong: its place, what was found there, what was expected."""

    #: Where it starts in the text; the first character is 1. For a file, the line number.
    place: int
    #: The part of the text that is wrong, shortened.
    found: str
    #: What was expected and, where one can be guessed, what was probably meant.
    message: str

    def __str__(self) -> str:
        return f'"{self.found}" at {self.place}: {self.message}'


class UnreadableError(InterlockError):
    """A text that says when something is due makes no sense; every flaw of it is told."""

    def __init__(self, what: str, text: str, flaws: Iterable[Flaw]) -> None:
        self.what = what
        self.text = text
        self.flaws = tuple(flaws)
        told = "; ".join(map(str, self.flaws))
        super().__init__(f'{what} "{shortened(text)}" cannot be read: {told}')


class NeverDueError(UnreadableError):
    """A line makes sense, and names only days that never come."""


class Flaws:
    """Flaws in the order they were found, at most MAX_TOLD of them."""

    def __init__(self, what: str, text: str) -> None:
        self._what = what
        self._text = text
        self._told: list[Flaw] = []

    def add(self, place: int, found: str, message: str) -> None:
        """Note one flaw; `place` counts from 0, as Python does."""
        if len(self._told) < MAX_TOLD:
            self._told.append(Flaw(place + 1, shortened(found), message))

    def __bool__(self) -> bool:
        return bool(self._told)

    def raise_if_any(self) -> None:
        """End the reading when something was found.

        Raises:
            UnreadableError: There are flaws.
        """
        if self._told:
            raise UnreadableError(self._what, self._text, self._told)


def unreadable(what: str, text: str, message: str, *, place: int = 0) -> UnreadableError:
    """The error for a text with one flaw that concerns all of it from `place` on."""
    return UnreadableError(what, text, [Flaw(place + 1, shortened(text[place:]), message)])
