"""Index sets: task numbers written as ranges, so that ten thousand stay readable."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

_RANGES = re.compile(r"(?:[0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*)?")


class IndexSet:
    """An immutable set of whole numbers, written "0-99,105"."""

    __slots__ = ("_ranges",)

    def __init__(self, indexes: Iterable[int] = ()) -> None:
        self._ranges = tuple(_joined((i, i) for i in sorted(set(indexes))))

    @classmethod
    def parse(cls, text: str) -> IndexSet:
        """Read a set from its written form.

        Raises:
            ValueError: The text is not of the form "0-99,105".
        """
        if not text:
            return _NONE
        if not _RANGES.fullmatch(text):
            raise ValueError('expected numbers and ranges such as "0-99,105"')
        ranges = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            ranges.append((int(first), int(last or first)))
        if any(first > last for first, last in ranges):
            raise ValueError('expected ranges from low to high, such as "0-99"')
        return cls._of(_joined(sorted(ranges)))

    @classmethod
    def _of(cls, ranges: Iterable[tuple[int, int]]) -> IndexSet:
        made = cls.__new__(cls)
        made._ranges = tuple(ranges)
        return made

    def union(self, indexes: Iterable[int]) -> IndexSet:
        """The set with all these numbers in it."""
        return self._of(_joined(sorted((*self._ranges, *((i, i) for i in indexes)))))

    def missing(self, begin: int, end: int) -> Iterator[int]:
        """The numbers from `begin` up to and without `end` that are not in the set, in order."""
        for first, last in self._ranges:
            yield from range(begin, min(first, end))
            begin = max(begin, last + 1)
        yield from range(begin, end)

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        at = bisect_right(self._ranges, (index, 1 << 62)) - 1
        return at >= 0 and self._ranges[at][0] <= index <= self._ranges[at][1]

    def __iter__(self) -> Iterator[int]:
        for first, last in self._ranges:
            yield from range(first, last + 1)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexSet) and self._ranges == other._ranges

    def __hash__(self) -> int:
        return hash(self._ranges)

    def __str__(self) -> str:
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in self._ranges)

    def __repr__(self) -> str:
        return f"IndexSet({str(self)!r})"


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join sorted ranges that touch or overlap."""
    held: tuple[int, int] | None = None
    for first, last in ranges:
        if held is None:
            held = (first, last)
        elif first <= held[1] + 1:
            held = (held[0], max(held[1], last))
        else:
            yield held
            held = (first, last)
    if held is not None:
        yield held


#: Of most Jobs no task is known yet when they are read.
_NONE = IndexSet()
