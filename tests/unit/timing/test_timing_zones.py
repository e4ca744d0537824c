"""Every clock in the world shows what the standard library says, and strange names are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zlib import crc32

import pytest
from wall_walker import offset_at

from interlock.timing.flaws import UnreadableError
from interlock.timing.tzfiles import zone_names
from interlock.timing.zones import find_zone


def seconds(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp())


def test_every_zone_agrees_with_the_standard_library_at_its_changes_and_between() -> None:
    for name in zone_names():
        zone = find_zone(name)
        moments = [start + delta for start in zone.starts[1::7] for delta in (-1, 0)]
        # Every zone is looked at on days of its own, over all years.
        first = crc32(name.encode()) % 86_400_000
        moments += range(first, seconds(2099, 12, 31), 86_400_000)
        for at in moments:
            moment = datetime.fromtimestamp(at, UTC)
            assert zone.wall_at(at) - at == offset_at(name, moment).total_seconds(), (name, moment)


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("", 0),
        ("UTC", 0),
        ("GMT", 0),
        ("UTC+8", 8),
        ("UTC+08", 8),
        ("UTC-3:30", -3.5),
        ("UTC+05:45", 5.75),
        ("GMT-0330", -3.5),
        ("+08:00", 8),
        ("-11", -11),
        ("Etc/GMT-8", 8),
        ("Singapore", 8),
        ("MST7MDT", -7),
        ("Asia/Kathmandu", 5.75),
    ],
)
def test_a_zone_is_found_by_any_of_its_names(name: str, hours: float) -> None:
    at = seconds(2026, 1, 15)

    assert find_zone(name).wall_at(at) - at == hours * 3600


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Europe/Lodnon", 'did you mean "Europe/London"?'),
        ("europe/london", 'did you mean "Europe/London"?'),
        ("Local", "machines differ"),
        ("UTC+25", "at most 23:59"),
        ("UTC+8:75", "at most 23:59"),
        ("../../etc/passwd", "expected a zone"),
        ("UTC+8 ", "expected a zone"),
        ("٣", "expected a zone"),
        ("x" * 100_000, "expected a zone"),
    ],
)
def test_an_unknown_zone_is_refused_with_what_was_probably_meant(name: str, told: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        find_zone(name)

    assert told in str(refused.value)


def test_an_extra_offset_puts_the_clock_forward_and_moves_its_changes_along() -> None:
    plain, shifted = find_zone("Europe/London"), find_zone("Europe/London", 5400)

    assert [a - b for a, b in zip(shifted.offsets, plain.offsets, strict=True)] == [5400] * len(
        plain.offsets
    )
    assert shifted.starts == plain.starts
    assert shifted.name == "Europe/London+5400s"
    with pytest.raises(UnreadableError, match="at most 86400 seconds"):
        find_zone("UTC", 86_401)


def test_a_skipped_time_is_first_shown_when_the_gap_ends_and_a_repeated_one_the_first_time() -> (
    None
):
    zone = find_zone("America/New_York")
    spring = seconds(2026, 3, 8, 7)
    autumn = seconds(2026, 11, 1, 6)

    assert zone.first_at(seconds(2026, 3, 8, 2, 30)) == spring
    assert zone.first_at(seconds(2026, 3, 8, 3)) == spring
    assert zone.first_at(seconds(2026, 11, 1, 1, 30)) == autumn - 1800
    assert zone.passed_by(autumn) == zone.passed_by(autumn + 3599) == autumn - 4 * 3600 - 1


def test_a_day_may_be_skipped_as_a_whole() -> None:
    zone = find_zone("Pacific/Apia")
    change = seconds(2011, 12, 30, 10)

    assert zone.wall_at(change - 1) == seconds(2011, 12, 30) - 1
    assert zone.wall_at(change) == seconds(2011, 12, 31)
    assert zone.first_at(seconds(2011, 12, 30, 12)) == change


def test_the_search_ends_with_the_century() -> None:
    zone = find_zone("Europe/Dublin")

    assert zone.starts[-1] > seconds(2099, 10, 1)
    assert datetime.fromtimestamp(zone.starts[-1], UTC) - timedelta(days=400) < datetime(
        2099, 12, 31, tzinfo=UTC
    )
