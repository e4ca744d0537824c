"""Calendars name days, and a due time on a closed day is told as skipped."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pytest

from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.cron import read_cron
from interlock.timing.day_sets import easter
from interlock.timing.day_texts import read_days
from interlock.timing.due import (
    Schedule,
    due_after,
    next_after,
    previous_at_or_before,
    upcoming,
)
from interlock.timing.flaws import UnreadableError
from interlock.timing.zones import find_zone


def a_calendar(name: str, **days: str) -> Calendar:
    """A calendar of days, each under its name."""
    return Calendar(name, [NamedDays(read_days(text), key) for key, text in days.items()])


def days_of(text: str, year: int) -> list[str]:
    """The days of a year that a text means."""
    calendar = a_calendar("c", day=text)
    every = (date(year, 1, 1) + timedelta(days=number) for number in range(366))
    return [f"{day:%m-%d}" for day in every if day.year == year and calendar.reason_for(day)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2026-12-25", ["12-25"], id="a date"),
        pytest.param("2027-12-25", [], id="of another year"),
        pytest.param("12-25", ["12-25"], id="every year"),
        pytest.param("02-29", [], id="leap day in a common year"),
        pytest.param("2026-04-30..2026-05-02", ["04-30", "05-01", "05-02"], id="a range"),
        pytest.param("2025-01-01..2026-01-02", ["01-01", "01-02"], id="the end of a range"),
        pytest.param("12-30..01-02", ["01-01", "01-02", "12-30", "12-31"], id="over the new year"),
        pytest.param("04-30..05-01", ["04-30", "05-01"], id="every year, a range"),
        pytest.param("4th THU of NOV", ["11-26"], id="Thanksgiving"),
        pytest.param("last MON of MAY", ["05-25"], id="Memorial Day"),
        pytest.param("1st MON of SEP,OCT", ["09-07", "10-05"], id="of two months"),
        pytest.param("5th SUN of *", ["03-29", "05-31", "08-30", "11-29"], id="when there is one"),
        pytest.param("easter", ["04-05"], id="Easter Sunday"),
        pytest.param("easter-2", ["04-03"], id="Good Friday"),
        pytest.param("Easter + 49", ["05-24"], id="Pentecost"),
    ],
)
def test_a_text_names_days(text: str, expected: list[str]) -> None:
    assert days_of(text, 2026) == expected


def test_weekdays_are_days_too() -> None:
    assert len(days_of("SAT,SUN", 2026)) == 104
    assert days_of("SAT-SUN", 2026) == days_of("SUN,SAT", 2026)
    assert days_of("02-29", 2028) == ["02-29"]


@pytest.mark.parametrize(
    ("year", "day"),
    [
        (1970, "03-29"),
        (2000, "04-23"),
        (2008, "03-23"),
        (2024, "03-31"),
        (2038, "04-25"),
        (2099, "04-12"),
    ],
)
def test_easter_is_when_the_churches_say(year: int, day: str) -> None:
    assert f"{easter(year):%m-%d}" == day


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-02-30", "a date that there is"),
        ("13-01", "a date that there is"),
        ("0000-01-01", "a date that there is"),
        ("2026-12-25..12-31", "a year in both"),
        ("2026-12-25..2026-12-24", "the first date before the last"),
        ("4th THU of NOVE", 'did you mean "NOV"?'),
        ("4th MON-FRI of NOV", "one weekday"),
        ("6th THU of NOV", "expected a day such as"),
        ("easter+400", "at most 200 days"),
        ("christmas", "expected 0 to 6"),
        ("2026/12/25", "expected a day such as"),
        ("", "expected a day such as"),
        ("x" * 10_000, "expected a day such as"),
    ],
)
def test_a_text_that_names_no_day_is_refused(text: str, told: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        read_days(text)

    assert told in str(refused.value)


HOLIDAYS = a_calendar("uk-holidays", christmas="12-25", boxing="12-26")
WORKDAYS = a_calendar("workdays", workday="MON-FRI")


def test_a_due_time_on_a_closed_day_is_told_with_its_reason() -> None:
    schedule = Schedule(
        (read_cron("0 2 * * *", "x"),),
        find_zone("Europe/London"),
        exclude=[HOLIDAYS],
        only=[WORKDAYS],
    )
    start = datetime(2026, 12, 23, 12, tzinfo=UTC)

    due = list(islice(upcoming([schedule], start), 5))

    assert [(f"{each.wall:%a %d}", each.skipped) for each in due] == [
        ("Thu 24", None),
        ("Fri 25", "calendar uk-holidays: christmas"),
        ("Sat 26", "calendar uk-holidays: boxing"),
        ("Sun 27", "not a day of calendar workdays"),
        ("Mon 28", None),
    ]
    assert next_after(schedule, due[0].at) == due[4].at
    assert previous_at_or_before(schedule, due[4].at - timedelta(seconds=1)) == due[0].at


def test_the_day_that_counts_is_the_one_on_the_wall() -> None:
    schedule = Schedule((read_cron("0 1 * * *", "x"),), find_zone("Asia/Tokyo"), exclude=[HOLIDAYS])

    due = due_after(schedule, datetime(2026, 12, 24, 12, tzinfo=UTC))

    assert due is not None
    assert (due.at, due.skipped) == (
        datetime(2026, 12, 24, 16, tzinfo=UTC),
        "calendar uk-holidays: christmas",
    )


def test_a_time_moved_out_of_a_gap_still_belongs_to_its_own_day() -> None:
    # In Nuuk the last hour of Saturday is skipped, so what is due in it comes on Sunday.
    sunday = a_calendar("sundays", sunday="SUN")
    saturday = a_calendar("saturdays", saturday="SAT")
    zone, lines = find_zone("America/Nuuk"), (read_cron("30 23 * * SAT", "x"),)
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    moved = datetime(2026, 3, 29, 1, tzinfo=UTC)

    assert next_after(Schedule(lines, zone, exclude=[sunday]), before) == moved
    skipped = due_after(Schedule(lines, zone, exclude=[saturday]), before)
    assert skipped is not None
    assert (skipped.at, f"{skipped.wall:%a %H:%M}") == (moved, "Sat 23:30")
    assert skipped.skipped == "calendar saturdays: saturday"


def test_a_schedule_that_calendars_close_for_ever_never_runs_and_says_so_at_once() -> None:
    every_day = a_calendar("every-day", day="SUN-SAT")
    nothing = Calendar("nothing", [])
    line = read_cron("* * * * *", "x")
    now = datetime(2026, 1, 1, tzinfo=UTC)

    for exclude, only in (([every_day], []), ([], [nothing])):
        schedule = Schedule((line,), find_zone("UTC"), exclude=exclude, only=only)

        assert next_after(schedule, now) is None
        assert previous_at_or_before(schedule, now) is None
        assert due_after(schedule, now) is not None


def test_where_one_schedule_runs_and_another_skips_it_is_a_run() -> None:
    zone, line = find_zone("UTC"), read_cron("0 2 * * *", "x")
    both = [Schedule((line,), zone, exclude=[HOLIDAYS]), Schedule((line,), zone)]

    (due,) = islice(upcoming(both, datetime(2026, 12, 24, 12, tzinfo=UTC)), 1)

    assert due.skipped is None
