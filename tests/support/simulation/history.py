"""What happened in a world, in order, in words, and as one number that tells two runs apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from interlock.forecast.rehearsal.simulated_loop import SimLoop


class Line(Struct, frozen=True):
    """One thing that happened."""

    at_us: int
    #: Which process did it.
    who: str
    what: str
    #: The names it concerns: a Job, a lock key, a plane.
    about: tuple[str, ...]

    def __str__(self) -> str:
        minutes, us = divmod(self.at_us, 60_000_000)
        return f"{minutes:3d}:{us / 1e6:09.6f}  {self.who:<8} {self.what}"


class History:
    """Everything that happened so far. The same seed gives the same digest."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.lines: list[Line] = []

    def note(self, who: str, what: str, *about: str) -> None:
        """Write down that something happened."""
        self.lines.append(Line(self._loop.now_us, who, what, about))

    def digest(self) -> str:
        """A number for the whole history."""
        told = hashlib.sha256()
        for line in self.lines:
            told.update(f"{line.at_us} {line.who} {line.what}\n".encode())
        return told.hexdigest()[:16]

    def about(self, names: Iterable[str], *, last: int = 60) -> list[Line]:
        """The last lines that concern any of the names, and those that concern everybody."""
        wanted = set(names)
        if not wanted:
            return self.lines[-last:]
        found = [line for line in self.lines if not line.about or wanted.intersection(line.about)]
        return found[-last:]
