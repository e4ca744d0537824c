"""A timeline as SVG: well-formed, readable without colour and without eyes, and by itself."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from test_timeline_terminal import the_tour
from timeline_objects import charted, config, controlled, ran

from interlock.forecast.timeline.model import Chart
from interlock.modes.cli.output.timelines.svg import drawn
from interlock.resources.tasks import JobResult

_NS = "{http://www.w3.org/2000/svg}"


def parsed(chart: Chart, width: int = 1200) -> ElementTree.Element:
    return ElementTree.fromstring(drawn(chart, width=width))


def rows_of(root: ElementTree.Element) -> list[ElementTree.Element]:
    groups = root.findall(f"{_NS}g[@role='group']")
    return [group for group in groups if group.get("aria-label") != "legend"]


def classes_of(group: ElementTree.Element) -> list[str]:
    return [str(part.get("class")) for part in group if part.tag != f"{_NS}text"]


def test_it_says_what_it_is_to_those_who_cannot_see_it() -> None:
    root = parsed(the_tour())
    assert root.get("role") == "img"
    labels = str(root.get("aria-labelledby")).split()
    told = [root.find(f"*[@id='{label}']") for label in labels]
    texts = [part.text for part in told if part is not None]
    assert texts[0] == "Timeline"
    assert "controlledjob/pricing-engine" in str(texts[1])
    rows = rows_of(root)
    assert len(rows) == 10
    assert rows[7].get("aria-label") == (
        "controlledjob/pricing-engine, Tuesday 2026-11-17 (America/New_York):"
        " running; restarted 10:02 (template changed)"
    )


def test_every_part_of_a_row_has_a_title() -> None:
    for row in rows_of(parsed(the_tour())):
        for part in row:
            if part.tag in (f"{_NS}rect", f"{_NS}circle", f"{_NS}line"):
                title = part.find(f"{_NS}title")
                assert title is not None
                assert title.text


def test_what_there_is_is_drawn() -> None:
    rows = rows_of(parsed(the_tour()))
    by_label = {str(row.get("aria-label")).partition(" (")[0]: classes_of(row) for row in rows}
    tuesday = by_label["controlledjob/pricing-engine, Tuesday 2026-11-17"]
    assert tuesday == ["window", "planned", "succeeded", "running", "now"]
    assert "held" in by_label["controlledjob/pricing-engine, Wednesday 2026-11-18"]
    assert by_label["controlledjob/pricing-engine, Thursday 2026-11-19"] == ["skipped"]
    # A failure has a cross beside its colour.
    report = by_label["jobconfig/nightly-report, Tuesday 2026-11-17"]
    assert report == ["failed", "failed", "cross", "succeeded", "now"]


def test_it_stands_by_itself_and_runs_nothing() -> None:
    text = drawn(the_tour())
    assert not re.search(r"<script|javascript:|\bon\w+=|<image|<foreignObject|@import", text)
    links = set(re.findall(r"https?://[^\"' ]+", text))
    assert links == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"url\(([^)]*)\)", text)) == {"#hatch", "#dots", "#cross"}
    assert "@media (prefers-color-scheme: dark)" in text


def test_an_hour_that_is_skipped_is_marked_and_nothing_is_in_it() -> None:
    night = controlled(zone="Europe/London", windows=[{"from": "22:00", "to": "02:30"}])
    chart = charted([(night, [])], "2026-03-01T00:00:00", "2026-03-29")
    (row,) = rows_of(parsed(chart))
    rects = [(part.get("class"), part) for part in row if part.tag == f"{_NS}rect"]
    assert [name for name, _ in rects] == ["gap", "planned", "planned", "planned"]
    spots = [(float(part.get("x", "")), float(part.get("width", ""))) for _, part in rects]
    gap, before, after, _ = spots
    assert before[0] + before[1] == pytest.approx(gap[0], abs=0.2)
    assert gap[0] + gap[1] == pytest.approx(after[0], abs=0.2)
    texts = [part.text for part in row if part.tag == f"{_NS}text"]
    assert "Sun 29 Mar · 23 h" in texts


def test_nothing_leaves_the_picture() -> None:
    for width in (600, 1200, 3000):
        root = parsed(the_tour(), width)
        for part in root.iter(f"{_NS}rect"):
            x, wide = float(part.get("x", "")), float(part.get("width", ""))
            assert x >= 0
            assert x + wide <= max(width, 640) + 5


def test_odd_words_stay_words() -> None:
    odd = "</title><script>alert(1)</script>\x00\x1b[31m & \"'"
    report = config(
        skips=[{"at": "2026-06-10T02:00:00Z", "reason": "Invalid", "message": odd}],
    )
    jobs = [ran("2026-06-10T02:00:00", "2026-06-10T02:00:00", JobResult.FAILED)]
    chart = charted([(report, jobs)], "2026-06-10T20:00:00", "2026-06-10")
    text = drawn(chart)
    root = ElementTree.fromstring(text)
    assert root.find(f".//{_NS}script") is None
    assert "<script>" not in text


def test_nothing_is_a_picture_too() -> None:
    root = parsed(charted([], "2026-06-10T00:00:00", "2026-06-10"))
    assert "nothing is scheduled" in [part.text for part in root.iter(f"{_NS}text")]
