"""The machines and services that the broker looks after, played by one file: `deeds`.

Whatever a step does to the world is one call of `put` or `take`, and one line in that file. Both
may be repeated: who finds it done already does nothing more, and its line says so. So whoever reads
the file sees what really happened, in which order, and how often.

    +   dns acme/shop 17 "shop-acme.example.org"    it was put there, with fencing token 17
    (+) dns acme/shop 17 "shop-acme.example.org"   it was there already
    -   dns acme/shop 21 ""                         it was taken away
    (-) dns acme/shop 21 ""                        it was gone already
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple


class Deed(NamedTuple):
    """A line: what was done to one thing."""

    #: `+` or `-`; in brackets when it was so already.
    sign: str
    kind: str
    name: str
    fence: int
    value: str


class TooLateError(Exception):
    """A writer that somebody newer has taken the place of is refused."""


class Infrastructure:
    """Gears, names, keys: things of some kind, each with a name and a value."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._deeds = root / "deeds"

    def put(self, kind: str, name: str, value: str, *, fence: int) -> None:
        """Have something there, with this value."""
        self._do("+", Deed("+", kind, name, fence, value))

    def take(self, kind: str, name: str, *, fence: int) -> None:
        """Have something away."""
        self._do("-", Deed("-", kind, name, fence, ""))

    def value(self, kind: str, name: str) -> str | None:
        """What is there; None when nothing is."""
        return self.things(kind).get(name)

    def things(self, kind: str, prefix: str = "") -> dict[str, str]:
        """All of a kind that is there, by its name."""
        found: dict[str, str] = {}
        for deed in self.deeds():
            if deed.kind != kind or not deed.name.startswith(prefix):
                continue
            if deed.sign == "+":
                found[deed.name] = deed.value
            elif deed.sign == "-":
                found.pop(deed.name, None)
        return found

    def deeds(self) -> list[Deed]:
        """Everything that was done so far, in order."""
        if not self._deeds.exists():
            return []
        return [_read(line) for line in self._deeds.read_text().splitlines(keepends=True)]

    def _do(self, sign: str, deed: Deed) -> None:
        with self._alone() as file:
            newest = max((one.fence for one in self.deeds() if _same(one, deed)), default=0)
            if deed.fence < newest:
                raise TooLateError(f"{deed.kind} {deed.name}: {deed.fence} comes after {newest}")
            there = self.value(deed.kind, deed.name)
            done = there == deed.value if sign == "+" else there is None
            told = deed._replace(sign=f"({sign})" if done else sign)
            # One write, so that whoever is killed here has done all of it or nothing.
            file.write(_line(told).encode())

    @contextmanager
    def _alone(self) -> Iterator[IO[bytes]]:
        """The file to write to; no other process has it meanwhile."""
        self._root.mkdir(parents=True, exist_ok=True)
        with self._deeds.open("ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _same(one: Deed, other: Deed) -> bool:
    return (one.kind, one.name) == (other.kind, other.name)


def _line(deed: Deed) -> str:
    return f"{deed.sign} {deed.kind} {deed.name} {deed.fence} {json.dumps(deed.value)}\n"


def _read(line: str) -> Deed:
    sign, kind, name, fence, value = line.split(" ", 4)
    return Deed(sign, kind, name, int(fence), json.loads(value))
