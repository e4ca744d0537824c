"""A timeline as text: a line for each row, a cell for half an hour or so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from math import floor
from typing import NamedTuple

from interlock.forecast.timeline.model import RUNS, Chart, Row, Sign, Sort, Span
from interlock.modes.cli.output.timelines.scale import share_of, shares, skipped_shares

#: Puts a text in a colour.
Paint = Callable[[str, str], str]

_MOST_PER_HOUR = 6
_LONGEST_NAME = 28
#: What is left for the words at the end of a line.
_FOR_WORDS = 24


class _Look(NamedTuple):
    """How something looks: the cell, the plain cell, its colour, and what it means."""

    block: str
    plain: str
    colour: str
    meaning: str


_WINDOW = _Look("░", ".", "dim", "window, nothing ran")
_PLANNED = _Look("▒", "/", "blue", "window to come")
_HELD = _Look("┄", "=", "yellow", "on hold")
_RAN = _Look("█", "#", "green", "ran")
_RUNS_NOW = _Look("▶", ">", "cyan", "runs now")
_BRIEF = _Look("●", "o", "green", "ran briefly, ok")
_FAILED = _Look("✕", "x", "red", "failed")
_STOPPED = _Look("■", "s", "yellow", "ran briefly, was stopped")
_SKIPPED = _Look("○", "-", "yellow", "skipped")
_DUE = _Look("◌", "+", "blue", "due")
_EXTENDED = _Look("◆", "*", "blue", "window extended to here")
_GAP = _Look("╳", "~", "dim", "an hour that clocks skip")
_NOW = _Look("│", "|", "dim", "now")

#: In the order of the legend.
_LOOKS = (
    *(_RAN, _RUNS_NOW, _BRIEF, _FAILED, _STOPPED, _WINDOW, _PLANNED, _HELD),
    *(_DUE, _SKIPPED, _EXTENDED, _GAP, _NOW),
)
_SIGNS = {Sign.SKIPPED: _SKIPPED, Sign.DUE: _DUE, Sign.EXTENDED: _EXTENDED}
#: Of several things in one cell the one that matters most is shown.
_RANK = {look: rank for rank, look in enumerate((_DUE, _BRIEF, _STOPPED, _SKIPPED, _FAILED))}


def drawn(chart: Chart, *, width: int, plain: bool, paint: Paint, is_cut: bool = True) -> list[str]:
    """The lines of a chart that is at most `width` wide, as far as names and hours allow.

    Words at the end of a line go beyond that when they are not to be cut.
    """
    if not chart.rows:
        return ["nothing is scheduled"]
    names = _names(chart)
    days = [_day(row) for row in chart.rows]
    name_width = max(map(len, names))
    day_width = max(map(len, days))
    left = width - name_width - day_width - 4 - _FOR_WORDS
    cells = 24 * max(1, min(_MOST_PER_HOUR, left // 24))
    lines = [" " * (name_width + day_width + 4) + _hours(cells)]
    used: set[_Look] = set()
    for row, name, day in zip(chart.rows, names, days, strict=True):
        looks = _cells(chart, row, cells)
        used.update(look for look in looks if look is not None)
        picture = _painted(looks, plain, paint)
        room = max(width - name_width - day_width - 6 - cells, 8)
        words = _shortened(row.summary, room if is_cut else len(row.summary), plain)
        line = f"{name:<{name_width}}  {day:<{day_width}}  {picture}  {words}"
        lines.append(line.rstrip())
    return [*lines, "", *_legend(used, plain, width, paint)]


def _names(chart: Chart) -> list[str]:
    """What stands before each row: the name of an object once, before its first day."""
    several = len({row.namespace for row in chart.rows}) > 1
    kinds = {(row.namespace, row.name): set[str]() for row in chart.rows}
    for row in chart.rows:
        kinds[row.namespace, row.name].add(row.kind)
    names = []
    last = ("", "", "")
    for row in chart.rows:
        key = (row.kind, row.namespace, row.name)
        kind = f"{row.kind.lower()}/" if len(kinds[row.namespace, row.name]) > 1 else ""
        place = f"{row.namespace}/" if several else ""
        name = f"{place}{kind}{row.name}"
        if len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME - 2]}.."
        names.append("" if key == last else name)
        last = key
    return names


def _day(row: Row) -> str:
    hours = "" if row.hours == 24 else f" {row.hours:g}h"
    return f"{row.day:%a} {row.day.day:>2}{hours}"


def _hours(cells: int) -> str:
    per_hour = cells // 24
    step = 3 if per_hour < 4 else 1
    return "".join(f"{hour:02}".ljust(per_hour * step) for hour in range(0, 24, step)).rstrip()


def _cells(chart: Chart, row: Row, count: int) -> list[_Look | None]:
    cells: list[_Look | None] = [None] * count
    for begin, finish in skipped_shares(row):
        _fill(cells, begin, finish, _GAP)
    for sort, look in ((Sort.WINDOW, _WINDOW), (Sort.PLANNED, _PLANNED), (Sort.HELD, _HELD)):
        for span in row.spans:
            if span.sort is sort:
                for begin, finish in shares(row, span.start, span.end):
                    _fill(cells, begin, finish, look)
    brief = [span for span in row.spans if span.sort in RUNS and not _draw_run(cells, row, span)]
    for span in brief:
        _put(cells, share_of(row, span.start), _BRIEFLY[span.sort])
    for mark in row.marks:
        _put(cells, share_of(row, mark.at), _SIGNS[mark.sign])
    if row.begin <= chart.now < row.end:
        at = min(floor(share_of(row, chart.now) * count), count - 1)
        if cells[at] in (None, _PLANNED, _WINDOW):
            cells[at] = _NOW
    return cells


_BRIEFLY = {
    Sort.SUCCEEDED: _BRIEF,
    Sort.STOPPED: _STOPPED,
    Sort.FAILED: _FAILED,
    Sort.RUNNING: _RUNS_NOW,
}


def _draw_run(cells: list[_Look | None], row: Row, span: Span) -> bool:
    """Draw a run that takes at least two cells; the last cell tells how it ended."""
    parts = [_places(len(cells), *part) for part in shares(row, span.start, span.end)]
    places = [at for part in parts for at in part]
    starts_before = span.start < row.begin
    if not places or (len(places) < 2 and not starts_before):
        return False
    for at in places:
        cells[at] = _RAN
    ends_here = span.end <= row.end
    if ends_here and span.sort in (Sort.FAILED, Sort.RUNNING):
        cells[places[-1]] = _BRIEFLY[span.sort]
    return True


def _fill(cells: list[_Look | None], begin: float, finish: float, look: _Look) -> None:
    for at in _places(len(cells), begin, finish):
        cells[at] = look


def _places(count: int, begin: float, finish: float) -> range:
    """The cells of a part of the day: those of which it has at least half, and one if none."""
    first, last = floor(begin * count + 0.5), floor(finish * count + 0.5)
    if first == last:
        first = min(floor(begin * count), count - 1)
        last = first + 1
    return range(first, min(last, count))


def _put(cells: list[_Look | None], share: float, look: _Look) -> None:
    at = min(floor(share * len(cells)), len(cells) - 1)
    there = cells[at]
    if there is None or _RANK.get(there, -1) <= _RANK.get(look, len(_RANK)):
        cells[at] = look


def _painted(looks: list[_Look | None], plain: bool, paint: Paint) -> str:
    parts = []
    for look, same in groupby(looks):
        count = len(list(same))
        if look is None:
            parts.append(" " * count)
        else:
            parts.append(paint((look.plain if plain else look.block) * count, look.colour))
    return "".join(parts)


def _shortened(text: str, room: int, plain: bool) -> str:
    text = "".join(c if c.isprintable() else "?" for c in text)
    if plain:
        text = text.encode("ascii", "replace").decode()
    if len(text) <= room:
        return text
    end = "..." if plain else "…"
    return text[: room - len(end)].rstrip() + end


def _legend(used: set[_Look], plain: bool, width: int, paint: Paint) -> Iterator[str]:
    line, shown = "", ""
    for look in _LOOKS:
        if look not in used:
            continue
        sign = look.plain if plain else look.block
        word = f"{sign} {look.meaning}"
        if line and len(line) + len(word) + 3 > width:
            yield shown
            line, shown = "", ""
        gap = "   " if line else ""
        line += gap + word
        shown += f"{gap}{paint(sign, look.colour)} {look.meaning}"
    if shown:
        yield shown
