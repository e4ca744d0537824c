"""Kubernetes tables as the server sends them, as lines for people."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def columns_of(table: dict[str, Any], *, wide: bool) -> list[int]:
    """Which columns to show: those of a higher priority number only when wide."""
    definitions = table.get("columnDefinitions") or []
    return [i for i, column in enumerate(definitions) if wide or not column.get("priority")]


def headers_of(table: dict[str, Any], columns: list[int], *, namespaces: bool) -> list[str]:
    """The names of the columns."""
    names = [str(table["columnDefinitions"][i]["name"]).upper() for i in columns]
    return ["NAMESPACE", *names] if namespaces else names


def rows_of(
    rows: Iterable[dict[str, Any]], columns: list[int], *, namespaces: bool
) -> list[list[str]]:
    """The cells of each row, as text."""
    return [
        [
            *([str(row["object"]["metadata"].get("namespace", ""))] if namespaces else []),
            *(cell_text(row["cells"][i]) for i in columns),
        ]
        for row in rows
    ]


def cell_text(cell: object) -> str:
    """A cell for people; an empty one is told apart from a missing column."""
    if cell is None or cell == "":
        return "-"
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
