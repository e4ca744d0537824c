"""A cron line means what people expect, and what is wrong with it is told in its place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from interlock.timing.cron import CronFormat, read_cron
from interlock.timing.due import Schedule, next_after
from interlock.timing.flaws import UnreadableError
from interlock.timing.hashing import place_of, xxhash64
from interlock.timing.zones import find_zone

NAME = "default/report"
NOW = datetime(2026, 1, 14, 12, 34, 56, tzinfo=UTC)  # A Wednesday.


def next_times(text: str, count: int = 1, format: CronFormat | None = None) -> list[str]:
    schedule = Schedule((read_cron(text, NAME, format),), find_zone("UTC"))
    found = []
    moment: datetime | None = NOW
    for _ in range(count):
        assert moment is not None
        moment = next_after(schedule, moment)
        found.append(f"{moment:%Y-%m-%d %H:%M:%S}" if moment else "never")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("* * * * *", "2026-01-14 12:35:00", id="every minute"),
        pytest.param("*/5 * * * *", "2026-01-14 12:35:00", id="a step"),
        pytest.param("/5 * * * *", "2026-01-14 12:35:00", id="a bare step is a step of all"),
        pytest.param("40/15 * * * *", "2026-01-14 12:40:00", id="from a value to the end"),
        pytest.param("10-50/20 * * * *", "2026-01-14 12:50:00", id="a step in a range"),
        pytest.param("0 2 * * *", "2026-01-15 02:00:00", id="tomorrow"),
        pytest.param("0 9 * * MON-FRI", "2026-01-15 09:00:00", id="weekdays"),
        pytest.param("0 9 * * fri-Mon", "2026-01-16 09:00:00", id="days that wrap, in any case"),
        pytest.param("0 9 * * sunday", "2026-01-18 09:00:00", id="long names"),
        pytest.param("0 9 * * 7", "2026-01-18 09:00:00", id="seven is Sunday"),
        pytest.param("0 9 * * 5-7", "2026-01-16 09:00:00", id="seven ends a range"),
        pytest.param("0 9 * * 7-7", "2026-01-18 09:00:00", id="seven alone in a range"),
        pytest.param("0 9 1 NOV-FEB *", "2026-02-01 09:00:00", id="months that wrap"),
        pytest.param("0 0 ? * ?", "2026-01-15 00:00:00", id="question marks are wildcards"),
        pytest.param("0 0 L * *", "2026-01-31 00:00:00", id="last day"),
        pytest.param("0 0 L-30 * *", "2026-03-01 00:00:00", id="days before the last"),
        pytest.param("0 0 LW * *", "2026-01-30 00:00:00", id="last workday"),
        pytest.param("0 0 17W * *", "2026-01-16 00:00:00", id="nearest workday, a Saturday"),
        pytest.param("0 0 18W * *", "2026-01-19 00:00:00", id="nearest workday, a Sunday"),
        pytest.param("0 0 1W 8 *", "2026-08-03 00:00:00", id="nearest workday stays in the month"),
        pytest.param("0 0 31W 5 *", "2026-05-29 00:00:00", id="at the end of the month too"),
        pytest.param("0 0 * * 5L", "2026-01-30 00:00:00", id="last Friday"),
        pytest.param("0 0 * * FRIL", "2026-01-30 00:00:00", id="last Friday by name"),
        pytest.param("0 0 * * 5#3", "2026-01-16 00:00:00", id="third Friday"),
        pytest.param("0 0 * * MON#5", "2026-03-30 00:00:00", id="fifth Monday, when there is one"),
        pytest.param("0 0 15 * MON", "2026-01-15 00:00:00", id="either day is enough"),
        pytest.param("0 0 20 * MON", "2026-01-19 00:00:00", id="either day, the weekday first"),
        pytest.param("0 0 29 2 *", "2028-02-29 00:00:00", id="leap day"),
        pytest.param("@daily", "2026-01-15 00:00:00", id="daily"),
        pytest.param("@Midnight", "2026-01-15 00:00:00", id="midnight"),
        pytest.param("@hourly", "2026-01-14 13:00:00", id="hourly"),
        pytest.param("@weekly", "2026-01-18 00:00:00", id="weekly"),
        pytest.param("@monthly", "2026-02-01 00:00:00", id="monthly"),
        pytest.param("@yearly", "2027-01-01 00:00:00", id="yearly"),
        pytest.param("@annually", "2027-01-01 00:00:00", id="annually"),
        pytest.param("30 0 2 * * * *", "2026-01-15 02:00:30", id="seven fields have seconds"),
        pytest.param("0 0 0 1 1 * 2030-2031", "2030-01-01 00:00:00", id="and a year"),
        pytest.param("0 0 0 1 1 * 1999", "never", id="a year that has passed"),
    ],
)
def test_a_line_is_next_due(text: str, expected: str) -> None:
    assert next_times(text) == [expected]


def test_steps_start_at_the_start_of_their_range_also_where_it_wraps() -> None:
    assert next_times("0 0 * * FRI-MON/2", 3) == [
        "2026-01-16 00:00:00",
        "2026-01-18 00:00:00",
        "2026-01-23 00:00:00",
    ]


def test_six_fields_need_a_format() -> None:
    assert next_times("15 30 2 * * *", format=CronFormat.SECONDS_FIRST) == ["2026-01-15 02:30:15"]
    assert next_times("30 2 * * * 2027", format=CronFormat.YEAR_LAST) == ["2027-01-01 02:30:00"]

    with pytest.raises(UnreadableError) as refused:
        read_cron("15 30 2 * * *", NAME)

    message = str(refused.value)
    assert "SecondsFirst reads it as second 15, minute 30, hour 2" in message
    assert "YearLast reads it as minute 15, hour 30, day-of-month 2" in message
    assert "only SecondsFirst makes sense of it" in message


@pytest.mark.parametrize(
    ("text", "place", "found", "told"),
    [
        pytest.param("61 * * * *", 1, "61", "expected 0 to 59 in the minute", id="too high"),
        pytest.param("0 24 * * *", 3, "24", 'did you mean "0"?', id="midnight is 0"),
        pytest.param("0 0 0 * *", 5, "0", "expected 1 to 31", id="no day 0"),
        pytest.param(
            "0 0 * * MON-FRY", 9, "MON-FRY", 'did you mean "MON-FRI"?', id="a misspelt day"
        ),
        pytest.param("0 0 * JANU *", 7, "JANU", 'did you mean "JAN"?', id="a misspelt month"),
        pytest.param("0 MON * * *", 3, "MON", "MON is a day-of-week", id="a name in a wrong field"),
        pytest.param(
            "0 22-2 * * *", 3, "22-2", 'did you mean "22-23,0-2"?', id="hours do not wrap"
        ),
        pytest.param("*/0 * * * *", 1, "*/0", "a step of 1 to 60", id="no step 0"),
        pytest.param("*/61 * * * *", 1, "*/61", "a step of 1 to 60", id="too wide a step"),
        pytest.param("1,,2 * * * *", 3, "", "before and after each comma", id="nothing in a list"),
        pytest.param("** * * * *", 1, "**", 'did you mean "*"?', id="two stars"),
        pytest.param("0 0 * * L", 9, "L", "FRIL", id="the last of which day"),
        pytest.param("0 0 32W * *", 5, "32W", "expected 1 to 31", id="no such workday"),
        pytest.param("H(20-19) * * * *", 1, "H(20-19)", "to rise", id="an empty draw"),
        pytest.param("H(1-3)/5 * * * *", 1, "H(1-3)/5", "at most 3", id="a step beyond the draw"),
        pytest.param("0 0 H,H * *", 7, "H", "at most one H", id="two draws of one date"),
        pytest.param("0 0 30 2 *", 5, "30 2 *", "never be due", id="30 February"),
        pytest.param("0 0 31 4,6,9,11 *", 5, "31 4,6,9,11 *", "never be due", id="no such 31st"),
        pytest.param("0 0 0 29 2 * 2025-2027", 7, "29 2 * 2025-2027", "never", id="no leap year"),
        pytest.param(
            "0 0 H(28-30) 2 *", 5, "H(28-30) 2 *", "an H draws", id="never for some names"
        ),
        pytest.param("* * * *", 1, "* * * *", "found 4 fields, expected 5", id="a field short"),
        pytest.param("* * * * * * * x", 15, "x", "found 8 fields", id="a field too many"),
        pytest.param("", 1, "", "expected five fields", id="nothing"),
        pytest.param("@reboot", 1, "@reboot", "create a Job", id="no reboot"),
        pytest.param("@every 5m", 1, "@every 5m", '"*/5 * * * *"', id="every five minutes"),
        pytest.param("@every 2h", 1, "@every 2h", '"0 */2 * * *"', id="every two hours"),
        pytest.param("@every 7m", 1, "@every 7m", "does not divide", id="no such interval"),
        pytest.param("@dayly", 1, "@dayly", 'did you mean "@daily"?', id="a misspelt shorthand"),
        pytest.param("TZ=UTC 0 0 * * *", 1, "TZ=UTC 0 0 * * *", 'timezone: "UTC"', id="a zone"),
        pytest.param("CRON_TZ=UTC", 1, "CRON_TZ=UTC", 'timezone: "UTC"', id="a zone alone"),
    ],
)
def test_a_flaw_is_told_in_its_place(text: str, place: int, found: str, told: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        read_cron(text, NAME)

    (flaw,) = refused.value.flaws
    assert (flaw.place, flaw.found) == (place, found)
    assert told in flaw.message


def test_all_flaws_of_a_line_are_told_at_once() -> None:
    with pytest.raises(UnreadableError) as refused:
        read_cron("61 24 0 13 8", NAME)

    assert [flaw.place for flaw in refused.value.flaws] == [1, 4, 7, 9, 12]


def test_a_line_without_end_is_refused_unread() -> None:
    with pytest.raises(UnreadableError, match="at most 500 characters"):
        read_cron("1," * 100_000, NAME)


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        pytest.param(b"", 0xEF46DB3751D8E999, id="nothing"),
        pytest.param(b"a", 0xD24EC4F1A98C6E5B, id="a byte"),
        pytest.param(b"abc", 0x44BC2CF5AD770999, id="bytes"),
        pytest.param(
            b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1, id="more than a stripe"
        ),
    ],
)
def test_the_hash_is_the_published_one(data: bytes, digest: int) -> None:
    assert xxhash64(data) == digest


@pytest.mark.parametrize(
    ("name", "minute", "hour", "second"),
    [("default/report", 15, 20, 27), ("default/backup", 59, 5, 15), ("prod/report", 2, 4, 36)],
)
def test_an_h_falls_where_furiko_puts_it(name: str, minute: int, hour: int, second: int) -> None:
    line = read_cron("H H H * * * *", name)

    assert (line.seconds, line.minutes, line.hours) == (1 << second, 1 << minute, 1 << hour)


def test_an_h_with_a_step_starts_inside_its_range() -> None:
    start = 10 + place_of(NAME, "minute", 7)

    line = read_cron("H(10-40)/7 * * * *", NAME)

    assert line.minutes == sum(1 << minute for minute in range(start, 41, 7))


@pytest.mark.parametrize(
    ("text", "is_interval"),
    [
        ("*/5 * * * *", True),
        ("0 * * * *", True),
        ("0 */6 * * *", True),
        ("H H/6 * * *", True),
        ("5/15 2 * * *", True),
        ("0 8-18/2 * * *", True),
        ("@hourly", True),
        ("30 2 * * *", False),
        ("H H * * *", False),
        ("0,30 1,2,3 * * *", False),
        ("0-10 2 * * *", False),
        ("*/60 2 * * *", False),
        ("*/5 0 2 * * * *", False),
        ("@daily", False),
    ],
)
def test_an_interval_has_a_wildcard_or_a_step_of_minutes_or_hours(
    text: str, is_interval: bool
) -> None:
    assert read_cron(text, NAME).is_interval is is_interval
