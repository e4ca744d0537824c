"""Around every change of clocks a line is due exactly when the documentation says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zlib import crc32

import pytest
from wall_walker import Sample, Walk, changes_between, compare, engine_due

from interlock.timing.cron import read_cron
from interlock.timing.due import Schedule, next_after, previous_at_or_before
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.tzfiles import zone_names
from interlock.timing.zones import find_zone

#: One zone in this many is walked through every day; `wall_walker.py` walks through all of them.
ONE_IN = 24


def test_a_sample_of_all_zones_is_due_as_a_walk_through_time_tells() -> None:
    chosen = [name for name in zone_names() if crc32(name.encode()) % ONE_IN == 0]
    compared = sum(
        compare(name, change) for name in chosen for change in changes_between(name, 2025, 2025)
    )
    assert compared > 500


@pytest.mark.parametrize(
    ("name", "year"),
    [
        pytest.param("America/New_York", 2026, id="two in the morning, west of Greenwich"),
        pytest.param("Europe/London", 2024, id="one in the morning, at Greenwich"),
        pytest.param("Europe/Dublin", 2026, id="winter time is the odd one"),
        pytest.param("Australia/Lord_Howe", 2026, id="half an hour"),
        pytest.param("Antarctica/Troll", 2026, id="two hours"),
        pytest.param("America/Santiago", 2026, id="midnight is skipped"),
        pytest.param("America/Havana", 2026, id="midnight is skipped and repeated"),
        pytest.param("Atlantic/Azores", 2026, id="the hour before or after midnight"),
        pytest.param("America/Sao_Paulo", 2018, id="midnight, when it still was"),
        pytest.param("America/Nuuk", 2026, id="the hour before midnight is skipped"),
        pytest.param("Africa/Casablanca", 2023, id="for a month of fasting"),
        pytest.param("Africa/Cairo", 2026, id="midnight at the end of a month"),
        pytest.param("Asia/Gaza", 2026, id="twice in spring"),
        pytest.param("Pacific/Apia", 2011, id="a whole day is skipped"),
        pytest.param("Pacific/Kwajalein", 1993, id="another day is skipped"),
        pytest.param("Africa/Monrovia", 1972, id="44 minutes and 30 seconds"),
        pytest.param("Asia/Kathmandu", 1985, id="a quarter of an hour"),
        pytest.param("America/Caracas", 2016, id="standard time moves by half an hour"),
        pytest.param("Europe/Volgograd", 2020, id="standard time moves back"),
        pytest.param("Antarctica/Casey", 2020, id="three hours and more"),
    ],
)
def test_an_odd_change_is_walked_through(name: str, year: int) -> None:
    changes = list(changes_between(name, year, year))
    assert changes
    for change in changes[:2]:
        compare(name, change)


@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "Africa/Monrovia"])
@pytest.mark.parametrize("on_gap", OnGap)
@pytest.mark.parametrize("on_repeat", OnRepeat)
def test_seconds_are_walked_through_too(name: str, on_gap: OnGap, on_repeat: OnRepeat) -> None:
    year = 1972 if name == "Africa/Monrovia" else 2026
    sample = Sample("*/20 10,40 0-2 * * * *", False, _every_twenty_seconds)
    for change in changes_between(name, year, year):
        walk = Walk(name, change, timedelta(hours=3), 1)
        line = read_cron(sample.text, "default/sample")
        schedule = Schedule((line,), find_zone(name), on_gap=on_gap, on_repeat=on_repeat)

        expected = walk.due(sample, on_gap, on_repeat)

        assert engine_due(walk, schedule) == (expected, expected)


def _every_twenty_seconds(wall: datetime) -> bool:
    return wall.hour < 3 and wall.minute in (10, 40) and wall.second % 20 == 0


def test_lines_that_meet_at_the_end_of_a_gap_are_due_once() -> None:
    lines = [read_cron(f"{minute} 2 * * *", "default/sample") for minute in (0, 15, 30)]
    schedule = Schedule(lines, find_zone("America/New_York"))
    gap_end = datetime(2026, 3, 8, 7, tzinfo=UTC)

    assert next_after(schedule, gap_end - timedelta(hours=6)) == gap_end
    assert next_after(schedule, gap_end) == gap_end + timedelta(hours=23)
    assert previous_at_or_before(schedule, gap_end) == gap_end
    assert previous_at_or_before(schedule, gap_end - timedelta(seconds=1)) == (
        gap_end - timedelta(hours=23, minutes=30)
    )


@pytest.mark.parametrize(
    ("moment", "following", "previous"),
    [
        pytest.param(
            datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), None, id="long ago"
        ),
        pytest.param(
            datetime(9999, 12, 31, tzinfo=UTC), None, datetime(2099, 12, 31, tzinfo=UTC), id="far"
        ),
        pytest.param(
            datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC),
            datetime(2026, 1, 2, tzinfo=UTC),
            datetime(2026, 1, 1, tzinfo=UTC),
            id="a fraction of a second after",
        ),
        pytest.param(
            datetime(2025, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            datetime(2026, 1, 1, tzinfo=UTC),
            datetime(2025, 12, 31, tzinfo=UTC),
            id="a fraction of a second before",
        ),
    ],
)
def test_the_ends_of_time_and_fractions_of_seconds(
    moment: datetime, following: datetime | None, previous: datetime | None
) -> None:
    schedule = Schedule((read_cron("@daily", ""),), find_zone("UTC"))

    assert next_after(schedule, moment) == following
    assert previous_at_or_before(schedule, moment) == previous
