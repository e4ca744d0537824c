"""One cron line or several, as people write them: a text, or a list of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

EXPECTED = "expected a cron line, or a list of them"


class CronLines:
    """Some cron lines, written again the way they were written."""

    __slots__ = ("is_list", "lines")

    def __init__(self, *lines: str, is_list: bool = False) -> None:
        self.lines = lines
        self.is_list = is_list or len(lines) != 1

    @classmethod
    def read(cls, value: object) -> CronLines:
        """Take one text, or a list of texts.

        Raises:
            ValueError: It is something else.
        """
        if isinstance(value, str):
            return cls(value)
        if isinstance(value, Iterable) and not isinstance(value, (bytes, dict)):
            lines = tuple(value)
            if all(isinstance(line, str) for line in lines):
                return cls(*lines, is_list=True)
        raise ValueError(EXPECTED)

    @property
    def written(self) -> str | list[str]:
        """The lines as JSON holds them."""
        return list(self.lines) if self.is_list else self.lines[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CronLines) and self.written == other.written

    def __hash__(self) -> int:
        return hash((self.lines, self.is_list))

    def __repr__(self) -> str:
        return f"CronLines({', '.join(map(repr, self.lines))})"
