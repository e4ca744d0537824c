"""Days and moments are read on the clock of what they are about, or refused with what is meant."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from interlock.commands.dates import DayWords
from interlock.commands.errors import OrderRefusedError, Refusal
from interlock.timing.zones import find_zone

#: A Thursday: 20:30 in New York, and Friday already in London.
NOW = datetime(2026, 11, 20, 1, 30, tzinfo=UTC)
NEW_YORK = DayWords(find_zone("America/New_York"), NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("today", date(2026, 11, 19), id="today is the zone's, not UTC's"),
        pytest.param("Tomorrow", date(2026, 11, 20), id="in capitals"),
        pytest.param("friday", date(2026, 11, 20), id="a weekday is the next one"),
        pytest.param("wed", date(2026, 11, 25), id="a short weekday in the next week"),
        pytest.param("2026-12-24", date(2026, 12, 24), id="a date"),
    ],
)
def test_a_day_is_read_on_the_zone_s_wall(text: str, expected: date) -> None:
    assert NEW_YORK.day(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("23:15", "2026-11-20T04:15", id="a time is today's"),
        pytest.param("9:00", None, id="a time that is past"),
        pytest.param("tomorrow", "2026-11-20T05:00", id="a day is its beginning"),
        pytest.param("thursday", "2026-11-26T05:00", id="today's weekday has begun: the next one"),
        pytest.param("monday 09:30", "2026-11-23T14:30", id="a weekday and a time"),
        pytest.param("2026-11-27 19:00:05", "2026-11-28T00:00:05", id="a date and a time"),
        pytest.param("2026-11-27T19:00", "2026-11-28T00:00", id="a date and a time with a T"),
        pytest.param("2026-11-27T19:00Z", "2026-11-27T19:00", id="with its own zone"),
        pytest.param("2026-11-27T19:00:00+01:00", "2026-11-27T18:00", id="with an offset"),
        pytest.param("2027-07-01 12:00", "2027-07-01T16:00", id="in summer"),
    ],
)
def test_a_moment_is_read_on_the_zone_s_wall(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(OrderRefusedError, match="is past"):
            NEW_YORK.moment(text)
    else:
        assert NEW_YORK.moment(text) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        pytest.param("tommorow", "no moment", "did you mean `tomorrow`?", id="a near miss"),
        pytest.param("20/11/2026", "no moment", "such as 19:00", id="another way to write a date"),
        pytest.param("2026-02-30", "no moment", "2026-11-26", id="a day that is not there"),
        pytest.param("25:00", "no moment", "such as 19:00", id="a time that is not there"),
        pytest.param("", "no moment", "such as 19:00", id="nothing"),
        pytest.param("tomorrow 09:00 sharp", "no moment", "such as", id="too many words"),
        pytest.param("9999-01-01", "no moment", "such as", id="after all schedules"),
        pytest.param(
            "thursday 21:00", "today is a Thursday", "2026-11-26", id="this one or the next"
        ),
        pytest.param("yesterday", "is past", "to come", id="yesterday"),
        pytest.param("2026-11-01", "is past", "to come", id="a date that is past"),
        pytest.param("20:00", "is past", '"tomorrow 20:00" is the next', id="a time that is past"),
        pytest.param("2027-03-14 02:30", "no such time", "03:00 EDT", id="clocks skip it"),
        pytest.param(
            "2027-11-07 01:30", "twice", "2027-11-07T05:30:00Z or 2027-11-07T06:30:00Z",
            id="clocks repeat it",
        ),
    ],
)  # fmt: skip
def test_what_is_past_or_means_two_moments_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(OrderRefusedError) as refused:
        NEW_YORK.moment(text)

    assert refused.value.refusal is Refusal.INVALID
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_day_that_is_over_is_refused() -> None:
    with pytest.raises(OrderRefusedError, match="is over"):
        NEW_YORK.day("2026-11-18")
    with pytest.raises(OrderRefusedError, match="is no day"):
        NEW_YORK.day("19:00")


def test_a_day_that_could_be_today_or_in_a_week_is_refused() -> None:
    with pytest.raises(OrderRefusedError, match="today is a Thursday"):
        NEW_YORK.day("thursday")
