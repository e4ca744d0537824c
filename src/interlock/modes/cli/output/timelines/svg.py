"""A timeline as SVG: one file without scripts that every browser shows, in the dark too.

Nothing is told by colour alone: runs that failed have a cross, what is to come is hatched, and all
of it has a title that screen readers read and a pointer shows.
"""

from __future__ import annotations

from xml.etree import ElementTree

from interlock.forecast.timeline.model import RUNS, Chart, Mark, Row, Sign, Sort, Span
from interlock.modes.cli.output.timelines.scale import share_of, shares, skipped_shares
from interlock.timing.local_time import told_time

_NAMES, _DAYS, _WORDS = 170, 116, 260
_ROW, _HEAD, _FOOT, _PAD = 24, 40, 44, 12
#: Characters that fit into a column, about.
_PER_CHARACTER = 7.0

_STYLE = """
svg { font: 12px ui-sans-serif, system-ui, sans-serif; background: #fff; color: #1c2024; }
text { fill: currentColor; }
.name { font-weight: 600; } .faint { opacity: .65; }
.line { stroke: currentColor; stroke-opacity: .14; }
.window { fill: currentColor; fill-opacity: .13; } .planned { fill: url(#hatch); }
.held { fill: url(#dots); stroke: #b7791f; stroke-opacity: .7; }
.gap { fill: url(#cross); } .now { stroke: #c2410c; stroke-width: 1.5; }
.succeeded { fill: #2f855a; } .running { fill: #0e7490; } .stopped { fill: #b7791f; }
.failed { fill: #c53030; } .cross { stroke: #fff; stroke-width: 1.6; fill: none; }
.skipped { fill: none; stroke: #b7791f; stroke-width: 1.8; } .due { fill: none; stroke: #2b6cb0; }
.extended { fill: #2b6cb0; } .ink { stroke: currentColor; stroke-opacity: .45; }
.dot { fill: currentColor; fill-opacity: .45; }
@media (prefers-color-scheme: dark) {
  svg { background: #14171a; color: #e6e8ea; }
  .succeeded { fill: #48bb78; } .running { fill: #22d3ee; } .stopped { fill: #ecc94b; }
  .failed { fill: #fc8181; } .cross { stroke: #14171a; } .now { stroke: #fb923c; }
  .skipped, .held { stroke: #ecc94b; } .due { stroke: #63b3ed; } .extended { fill: #63b3ed; }
}
"""

_PATTERNS = (
    ("hatch", 6, '<path class="ink" d="M0 6L6 0" />'),
    ("cross", 6, '<path class="ink" d="M0 6L6 0M0 0L6 6" />'),
    ("dots", 5, '<circle class="dot" cx="2.5" cy="2.5" r="1" />'),
)
_SAYS = {
    Sign.SKIPPED: "skipped",
    Sign.DUE: "due",
    Sign.EXTENDED: "window extended to here",
}
#: The legend: a class, how it is drawn, what it means.
_LEGEND = (
    ("succeeded", "ran, ok"),
    ("running", "runs now"),
    ("stopped", "ran, was stopped"),
    ("failed", "failed"),
    ("window", "window, nothing ran"),
    ("planned", "window to come"),
    ("held", "on hold"),
    ("due", "due"),
    ("skipped", "skipped"),
    ("extended", "window extended to here"),
    ("gap", "an hour that clocks skip"),
)
_Element = ElementTree.Element


def drawn(chart: Chart, *, width: int = 1200) -> str:
    """The whole file."""
    day_width = max(width - _NAMES - _DAYS - _WORDS - 2 * _PAD, 240)
    height = _HEAD + _ROW * max(len(chart.rows), 1) + _FOOT
    size = {"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}"}
    root = ElementTree.Element("svg", size)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    root.set("role", "img")
    root.set("aria-labelledby", "title description")
    _add(root, "title", id="title").text = "Timeline"
    _add(root, "desc", id="description").text = _clean(_description(chart))
    _add(root, "style").text = _STYLE
    _define(root)
    _axis(root, chart, day_width)
    last = ("", "", "")
    for number, row in enumerate(chart.rows):
        key = (row.kind, row.namespace, row.name)
        _Line(root, chart, row, _HEAD + number * _ROW, day_width, key != last).draw()
        last = key
    if not chart.rows:
        text = _add(root, "text", x=str(_PAD), y=str(_HEAD + 16))
        text.text = "nothing is scheduled"
    _legend(root, chart, height, width)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _description(chart: Chart) -> str:
    names = list(dict.fromkeys(f"{row.kind.lower()}/{row.name}" for row in chart.rows))
    told = ", ".join(names[:10]) + (", and more" if len(names) > 10 else "")
    return (
        f"Windows, runs and skips of {told or 'nothing'}; each row is a day, midnight on the left."
    )


def _define(root: _Element) -> None:
    definitions = _add(root, "defs")
    for name, size, inside in _PATTERNS:
        pattern = _add(
            definitions,
            "pattern",
            id=name,
            width=str(size),
            height=str(size),
            patternUnits="userSpaceOnUse",
        )
        pattern.append(ElementTree.fromstring(inside))


def _axis(root: _Element, chart: Chart, day_width: int) -> None:
    left, bottom = _PAD + _NAMES + _DAYS, _HEAD + _ROW * max(len(chart.rows), 1)
    group = _add(root, "g", **{"aria-hidden": "true"})
    for hour in range(0, 25, 3):
        x = f"{left + day_width * hour / 24:.1f}"
        _add(group, "line", **{"class": "line", "x1": x, "x2": x, "y1": "28", "y2": str(bottom)})
        label = _add(group, "text", **{"class": "faint", "x": x, "y": "22"})
        label.set("text-anchor", "middle")
        label.text = f"{hour:02}"


class _Line:
    """One row."""

    def __init__(
        self, root: _Element, chart: Chart, row: Row, top: int, width: int, is_first: bool
    ) -> None:
        self._chart, self._row, self._top, self._width = chart, row, top, width
        self._left = _PAD + _NAMES + _DAYS
        self._is_first = is_first
        label = f"{row.kind.lower()}/{row.name}, {row.day:%A %Y-%m-%d} ({row.zone.name})"
        summary = f": {row.summary}" if row.summary else ""
        self._group = _add(root, "g", role="group", **{"aria-label": _clean(label + summary)})

    def draw(self) -> None:
        """Draw it, what matters most last."""
        row = self._row
        if self._is_first:
            path = f"M{_PAD} {self._top}H{self._left + self._width + _WORDS}"
            _add(self._group, "path", **{"class": "line", "d": path})
            self._text(_PAD, row.name, "name", _NAMES)
        hours = "" if row.hours == 24 else f" · {row.hours:g} h"
        self._text(_PAD + _NAMES, f"{row.day:%a} {row.day.day} {row.day:%b}{hours}", "faint", 0)
        self._text(self._left + self._width + 12, row.summary, "", _WORDS - 12)
        for begin, finish in skipped_shares(row):
            self._bar("gap", begin, finish, "an hour that clocks skip", 3)
        for span in sorted(row.spans, key=lambda span: span.sort in RUNS):
            self._span(span)
        for mark in row.marks:
            self._mark(mark)
        if row.begin <= self._chart.now < row.end:
            x = self._x(share_of(row, self._chart.now))
            y = {"y1": str(self._top + 1), "y2": str(self._top + _ROW - 1)}
            line = _add(self._group, "line", **{"class": "now", "x1": x, "x2": x, **y})
            _add(line, "title").text = f"now, {told_time(self._chart.now, row.zone)}"

    def _x(self, share: float) -> str:
        return f"{self._left + self._width * share:.1f}"

    def _text(self, x: int, text: str, cls: str, room: int) -> None:
        most = int(room / _PER_CHARACTER) if room else len(text)
        shown = text if len(text) <= most else f"{text[: most - 1]}…"
        made = _add(self._group, "text", x=str(x), y=str(self._top + 16))
        if cls:
            made.set("class", cls)
        made.text = _clean(shown)
        if shown != text:
            _add(made, "title").text = _clean(text)

    def _span(self, span: Span) -> None:
        cls = span.sort.lower()
        margin = 5 if span.sort in RUNS else 3
        begin, finish = (told_time(at, self._row.zone) for at in (span.start, span.end))
        title = f"{span.text or cls}, {begin} to {finish}"
        for first, last in shares(self._row, span.start, max(span.end, span.start)):
            self._bar(cls, first, last, title, margin)
        if span.start == span.end or not list(shares(self._row, span.start, span.end)):
            at = share_of(self._row, span.start)
            self._bar(cls, at, at, title, margin)
        if span.sort is Sort.FAILED and span.end <= self._row.end:
            self._cross(share_of(self._row, span.end), title)

    def _bar(self, cls: str, begin: float, finish: float, title: str, margin: int) -> None:
        wide = max(self._width * (finish - begin), 4.0)
        made = _add(
            self._group,
            "rect",
            **{"class": cls, "x": self._x(begin), "y": str(self._top + margin)},
            width=f"{wide:.1f}",
            height=str(_ROW - 2 * margin),
            rx="2",
        )
        _add(made, "title").text = _clean(title)

    def _cross(self, share: float, title: str) -> None:
        x, y = float(self._x(share)), self._top + _ROW / 2
        circle = {"class": "failed", "cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "6"}
        made = _add(self._group, "circle", **circle)
        _add(made, "title").text = _clean(title)
        path = f"M{x - 2.5:.1f} {y - 2.5:.1f}l5 5m0 -5l-5 5"
        _add(self._group, "path", **{"class": "cross", "d": path})

    def _mark(self, mark: Mark) -> None:
        x, y = float(self._x(share_of(self._row, mark.at))), self._top + _ROW / 2
        cls = mark.sign.lower()
        if mark.sign is Sign.EXTENDED:
            path = f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"
            made = _add(self._group, "path", **{"class": cls, "d": path})
        else:
            circle = {"class": cls, "cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "3.6"}
            made = _add(self._group, "circle", **circle)
        why = f": {mark.text}" if mark.text else ""
        time = told_time(mark.at, self._row.zone)
        _add(made, "title").text = _clean(f"{_SAYS[mark.sign]}, {time}{why}")


def _legend(root: _Element, chart: Chart, height: int, width: int) -> None:
    used = {span.sort.lower() for row in chart.rows for span in row.spans}
    used |= {mark.sign.lower() for row in chart.rows for mark in row.marks}
    used |= {"gap" for row in chart.rows if any(True for _ in skipped_shares(row))}
    group = _add(root, "g", role="group", **{"aria-label": "legend"})
    x, y = _PAD, height - 16
    for cls, meaning in _LEGEND:
        if cls not in used:
            continue
        needed = 20 + int(len(meaning) * 6.6) + 16
        if x + needed > width:
            break
        if cls in ("due", "skipped"):
            circle = {"class": cls, "cx": str(x + 7), "cy": str(y - 4), "r": "3.6"}
            _add(group, "circle", **circle)
        elif cls == "extended":
            _add(group, "path", **{"class": cls, "d": f"M{x + 7} {y - 9}l5 5l-5 5l-5 -5z"})
        else:
            box = {"class": cls, "x": str(x), "y": str(y - 9), "rx": "2"}
            _add(group, "rect", **box, width="14", height="10")
        _add(group, "text", x=str(x + 20), y=str(y)).text = meaning
        x += needed


def _add(parent: _Element, tag: str, **attributes: str) -> _Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _clean(text: str) -> str:
    """A text that XML can hold."""
    return "".join(c if c.isprintable() else " " for c in text)
