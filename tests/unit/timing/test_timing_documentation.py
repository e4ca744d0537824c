"""The tables of docs/clock-changes.md are true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from wall_walker import library_zone

from interlock.timing.cron import read_cron
from interlock.timing.due import Schedule, upcoming
from interlock.timing.plans import Plan
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.windows import read_window
from interlock.timing.zones import find_zone

PAGE = Path(__file__).parents[3] / "docs" / "clock-changes.md"
NEW_YORK = "America/New_York"
SPRING = datetime(2026, 3, 8, tzinfo=UTC)
AUTUMN = datetime(2026, 11, 1, tzinfo=UTC)
LINES = (
    "30 2 * * *",
    "0,15,30 2 * * *",
    "0 3 * * *",
    "30 1 * * *",
    "0 1,2 * * *",
    "30 * * * *",
    "0 */2 * * *",
    "*/20 2 * * *",
    "*/20 1 * * *",
)
WINDOWS = (
    "01:30-04:00",
    "02:30-04:00",
    "00:30-02:30",
    "02:15-02:45",
    "00:30-01:30",
    "01:15-01:45",
)
ODD = (
    ("Australia/Lord_Howe", datetime(2026, 10, 4, tzinfo=UTC), "15 2 * * *"),
    ("Australia/Lord_Howe", datetime(2026, 4, 5, tzinfo=UTC), "*/15 1 * * *"),
    ("America/Santiago", datetime(2026, 9, 6, tzinfo=UTC), "0 0 * * *"),
    ("America/Havana", datetime(2026, 11, 1, tzinfo=UTC), "30 0 * * *"),
    ("America/Nuuk", datetime(2026, 3, 28, tzinfo=UTC), "30 23 * * SAT"),
    ("Europe/Dublin", datetime(2026, 10, 25, tzinfo=UTC), "30 1 * * *"),
    ("Antarctica/Troll", datetime(2026, 3, 29, tzinfo=UTC), "0,30 1,2 * * *"),
    ("Pacific/Apia", datetime(2011, 12, 30, tzinfo=UTC), "0 9 * * *"),
    ("Pacific/Apia", datetime(2011, 12, 30, tzinfo=UTC), "0 */6 * * *"),
    ("Africa/Monrovia", datetime(1972, 1, 7, tzinfo=UTC), "20 0 * * *"),
)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def told(moments: list[datetime], zone: str, form: str = "%H:%M %Z") -> str:
    """What the clock on the wall shows at some moments."""
    shown = [f"{moment.astimezone(library_zone(zone)):{form}}" for moment in moments]
    return ", ".join(text.removesuffix(":00") if "%S" in form else text for text in shown) or "–"


def day_of(zone: str, day: datetime, hours: int) -> tuple[datetime, datetime]:
    """The first and the last moment of the first hours of a day in a zone."""
    begin = find_zone(zone).first_at(int(day.timestamp()))
    start = datetime.fromtimestamp(begin, UTC) - timedelta(seconds=1)
    end = find_zone(zone).first_at(int(day.timestamp()) + hours * 3600)
    return start, datetime.fromtimestamp(end, UTC)


def due_on(line: str, zone: str, day: datetime, hours: int, **policy: object) -> list[datetime]:
    begin, end = day_of(zone, day, hours)
    on_gap = OnGap(str(policy.get("on_gap", OnGap.RUN_AFTER)))
    on_repeat = OnRepeat(str(policy.get("on_repeat", OnRepeat.FIRST)))
    schedule = Schedule([read_cron(line, "x")], find_zone(zone), on_gap=on_gap, on_repeat=on_repeat)
    found = []
    for due in upcoming([schedule], begin):
        if due.at >= end:
            break
        if due.skipped is None:
            found.append(due.at)
    return found


def line_row(line: str) -> str:
    cells = [
        told(due_on(line, NEW_YORK, SPRING, 5), NEW_YORK),
        told(due_on(line, NEW_YORK, SPRING, 5, on_gap=OnGap.SKIP), NEW_YORK),
        told(due_on(line, NEW_YORK, AUTUMN, 5), NEW_YORK),
        told(due_on(line, NEW_YORK, AUTUMN, 5, on_repeat=OnRepeat.BOTH), NEW_YORK),
    ]
    kind = "interval" if read_cron(line, "x").is_interval else "fixed"
    return row(f"`{line}`", kind, *cells)


def window_row(window: str) -> str:
    begin, end = window.split("-")
    plan = Plan(find_zone(NEW_YORK), [read_window(begin, end)])
    cells = []
    for day in (SPRING, AUTUMN):
        first, last = day_of(NEW_YORK, day, 12)
        start = plan.state_at(first).next_start
        if start is None or start >= last:
            cells.append("–")
            continue
        stop = plan.state_at(start).next_stop
        assert stop is not None
        cells.append(f"{told([start], NEW_YORK)} to {told([stop], NEW_YORK)} ({stop - start})")
    return row(window.replace("-", " to "), *cells)


def odd_row(zone: str, day: datetime, line: str) -> str:
    due = due_on(line, zone, day, 30)
    return row(zone, f"{day:%Y-%m-%d}", f"`{line}`", told(due, zone, "%a %H:%M:%S"))


@pytest.mark.parametrize("line", LINES)
def test_the_table_of_lines_is_true(line: str) -> None:
    assert line_row(line) in PAGE.read_text("utf-8").splitlines()


@pytest.mark.parametrize("window", WINDOWS)
def test_the_table_of_windows_is_true(window: str) -> None:
    assert window_row(window) in PAGE.read_text("utf-8").splitlines()


@pytest.mark.parametrize(("zone", "day", "line"), ODD)
def test_the_table_of_odd_changes_is_true(zone: str, day: datetime, line: str) -> None:
    assert odd_row(zone, day, line) in PAGE.read_text("utf-8").splitlines()
