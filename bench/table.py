"""Tables for people: text to the left, numbers to the right, and how they came about above.

Who compares measurements gives a file in `INTERLOCK_BENCH_RECORD`: each table becomes a line of it.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    if record := os.environ.get("INTERLOCK_BENCH_RECORD"):
        with Path(record).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([title, columns, rows]) + "\n")
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    print(f"\n{title}")
    print(
        "  " + "  ".join(_fit(name, width, 0) for name, width in zip(columns, widths, strict=True))
    )
    for row, given in zip(cells, rows, strict=True):
        fitted = (_fit(*each) for each in zip(row, widths, given, strict=True))
        print("  " + "  ".join(fitted).rstrip())


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _fit(text: str, width: int, given: object) -> str:
    return text.ljust(width) if isinstance(given, str) else text.rjust(width)


def medians(ways: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each way, measured in turns so that a busy machine slows all alike."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    return {name: statistics.median(values) for name, values in found.items()}
