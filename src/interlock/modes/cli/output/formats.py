"""Output formats: tables and colour on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "bold": "1", "dim": "2"}  # fmt: skip  # noqa: E501
#: The colour of each phase, and of the words of progress.
_MOODS = {
    "Succeeded": "green",
    "Running": "cyan",
    "Pending": "cyan",
    "Starting": "cyan",
    "Retrying": "yellow",
    "RetryBackoff": "yellow",
    "Queued": "yellow",
    "Terminating": "yellow",
    "Killing": "yellow",
    "Evicting": "yellow",
    "Reverting": "yellow",
    "Stuck": "red",
    "Failed": "red",
    "Killed": "red",
    "Refused": "red",
    "Unknown": "red",
    "FinishedUnknown": "red",
}


class Terminal:
    """The standard output, and whether it can show colour."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.is_tty = self.stream.isatty()
        self.has_colour = self.is_tty and _wants_colour()

    def print(self, text: str = "") -> None:
        """Print a line, at once."""
        self.stream.write(f"{text}\n")
        self.stream.flush()

    def paint(self, text: str, colour: str) -> str:
        """The text in a colour, where there is colour."""
        if not self.has_colour or not colour:
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"

    def mood(self, word: str, text: str | None = None) -> str:
        """A phase in the colour that goes with it."""
        return self.paint(text if text is not None else word, _MOODS.get(word.capitalize(), "") or _MOODS.get(word, ""))  # fmt: skip  # noqa: E501

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print rows in columns as wide as they need."""
        for line in self.lines(headers, rows):
            self.stream.write(f"{line}\n")
        self.stream.flush()

    def lines(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
        """The lines of a table; no headers, no first line."""
        cells = [[_one_line(cell) for cell in row] for row in rows]
        shown = [list(headers), *cells] if headers else cells
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = [self.row(row, widths) for row in cells]
        if headers:
            lines.insert(0, self.paint(self.row(headers, widths, plain=True), "bold"))
        return lines

    def row(self, cells: Sequence[str], widths: Sequence[int], *, plain: bool = False) -> str:
        """One line of a table; the last column is not padded."""
        padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)]
        if padded:
            padded[-1] = cells[-1]
        if self.has_colour and not plain:
            padded = [self.mood(c.strip(), p) for c, p in zip(cells, padded, strict=True)]
        return "   ".join(padded).rstrip()

    def data(self, value: Any, output: str) -> None:
        """Print for programs: json, yaml or jsonpath={...}."""
        if output == "yaml":
            text = to_yaml(value)
        elif output.startswith("jsonpath"):
            from interlock.modes.cli.output.jsonpath import render

            text = render(output.partition("=")[2], value) + "\n"
        else:
            import json

            text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        self.stream.write(text)
        self.stream.flush()


def to_yaml(value: object) -> str:
    """YAML in the order in which the server wrote the fields."""
    import yaml

    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("_Dumper", (base,), {})
    # Scripts and files inside a definition are read line by line, as they were written.
    dumper.add_representer(str, _text)
    text: str = yaml.dump(
        value, Dumper=dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    return text


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _one_line(cell: object) -> str:
    text = "" if cell is None else str(cell)
    return text.replace("\n", " ").replace("\x1b", "?") if not text.isprintable() else text


def _wants_colour() -> bool:
    """See no-color.org: any value but an empty one turns colour off."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
