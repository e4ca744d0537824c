"""Moments are told on the clock of the schedule that they are about."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from interlock.timing.local_time import short_name, start_of_day, told_at, told_in
from interlock.timing.zones import find_zone

#: A Friday in winter.
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "zone", "told"),
    [
        pytest.param("2026-11-20T22:30", "America/New_York", "today 17:30 EST", id="today"),
        pytest.param("2026-11-21T04:30", "America/New_York", "today 23:30 EST", id="still today"),
        pytest.param("2026-11-21T14:00", "America/New_York", "tomorrow 09:00 EST", id="tomorrow"),
        pytest.param("2026-11-27T19:00:05", "UTC", "Fri 27 Nov 19:00:05 UTC", id="with seconds"),
        pytest.param("2027-07-01T11:00", "Europe/London", "Thu 1 Jul 12:00 BST", id="summer time"),
        pytest.param("2030-01-01T00:00", "UTC", "Tue 1 Jan 2030 00:00 UTC", id="another year"),
        pytest.param("2026-11-20T15:30", "UTC+05:30", "today 21:00 UTC+05:30", id="an offset"),
        pytest.param("2026-11-20T15:00", "Asia/Dubai", "today 19:00 Asia/Dubai", id="no letters"),
    ],
)
def test_a_moment_is_told_as_short_as_it_can_be(moment: str, zone: str, told: str) -> None:
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)

    assert told_at(at, find_zone(zone), NOW) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("its window closed at 2026-11-20T22:30:00Z", "its window closed today 17:30 EST"),
        ("on hold until 2026-11-23T14:00:00Z: x", "on hold until Mon 23 Nov 09:00 EST: x"),
        ("on 2026-13-40T00:00:00Z", "on 2026-13-40T00:00:00Z"),
        ("suspended", "suspended"),
    ],
)
def test_the_moments_of_a_stored_text_are_told_on_the_wall(text: str, told: str) -> None:
    assert told_in(text, find_zone("America/New_York"), NOW) == told


def test_a_zone_that_is_put_forward_is_called_by_its_whole_name() -> None:
    assert short_name(find_zone("Europe/London", 60), NOW) == "Europe/London+60s"


def test_a_day_begins_when_its_wall_shows_it_first() -> None:
    # Clocks in Beirut skip the hour after midnight.
    begin = start_of_day(datetime(2026, 3, 29).date(), find_zone("Asia/Beirut"))  # noqa: DTZ001

    assert begin == datetime(2026, 3, 28, 22, 0, tzinfo=UTC)
