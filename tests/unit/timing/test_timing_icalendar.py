"""An iCalendar file is read as the days it names; what cannot be read is told."""

from __future__ import annotations

import importlib
from datetime import date, datetime, time
from typing import Any

import pytest

from interlock.resources.timing.icalendar import MAX_DAYS, Reading, read_icalendar

FILE = """BEGIN:VCALENDAR\r
VERSION:2.0\r
PRODID:-//somebody//holidays//EN\r
BEGIN:VEVENT\r
UID:1@example\r
DTSTAMP:20200101T000000Z\r
DTSTART;VALUE=DATE:20201126\r
DTEND;VALUE=DATE:20201127\r
RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH\r
SUMMARY:Thanksgiving\\, a day \r
 of thanks\r
BEGIN:VALARM\r
TRIGGER:-PT15M\r
END:VALARM\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20261224\r
DTEND;VALUE=DATE:20261227\r
SUMMARY:Christmas\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20260401\r
STATUS:CANCELLED\r
SUMMARY:Not this time\r
END:VEVENT\r
END:VCALENDAR\r
"""


def read_event(*lines: str) -> Reading:
    """Read a file of one event."""
    text = "\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR"])
    return read_icalendar("c", text)


def days(reading: Reading, year: int) -> list[date]:
    """The days of a year that were read."""
    found = []
    for ordinal in range(date(year, 1, 1).toordinal(), date(year + 1, 1, 1).toordinal()):
        day = date.fromordinal(ordinal)
        if reading.calendar.reason_for(day):
            found.append(day)
    return found


def test_events_are_days_with_their_summaries_as_reasons() -> None:
    reading = read_icalendar("us-holidays", FILE)

    assert reading.flaws == ()
    assert reading.calendar.reason_for(date(2026, 11, 26)) == "Thanksgiving, a day of thanks"
    assert reading.calendar.reason_for(date(2019, 11, 28)) is None
    assert [day for day in days(reading, 2026) if day.month == 12] == [
        date(2026, 12, 24),
        date(2026, 12, 25),
        date(2026, 12, 26),
    ]
    assert reading.calendar.reason_for(date(2026, 4, 1)) is None


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY",
        "FREQ=YEARLY;COUNT=3",
        "FREQ=YEARLY;INTERVAL=4",
        "FREQ=YEARLY;UNTIL=20241231",
        "FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO",
        "FREQ=YEARLY;BYMONTH=1,7;BYMONTHDAY=1,-1",
        "FREQ=YEARLY;BYDAY=20MO",
        "FREQ=YEARLY;BYDAY=-1FR",
        "FREQ=YEARLY;BYMONTHDAY=13;BYDAY=FR",
        "FREQ=YEARLY;BYDAY=MO",
        "FREQ=MONTHLY",
        "FREQ=MONTHLY;BYMONTHDAY=31",
        "FREQ=MONTHLY;BYMONTHDAY=-1;INTERVAL=2",
        "FREQ=MONTHLY;BYDAY=2TU,-1FR",
        "FREQ=MONTHLY;BYDAY=SA,SU;BYMONTH=2",
        "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
        "FREQ=WEEKLY",
        "FREQ=WEEKLY;BYDAY=SA,SU;COUNT=31",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;WKST=SU",
        "FREQ=WEEKLY;BYMONTH=8",
        "FREQ=DAILY;INTERVAL=10",
        "FREQ=DAILY;BYMONTH=3;BYMONTHDAY=1,2,3",
        "FREQ=DAILY;BYDAY=WE;COUNT=7",
        "FREQ=DAILY;UNTIL=20240310T120000Z",
    ],
)
@pytest.mark.parametrize("start", [date(2024, 2, 29), date(2023, 12, 31)])
def test_a_rule_repeats_as_another_program_reads_it(rule: str, start: date) -> None:
    # Comes with the development tools; it carries no types.
    dateutil: Any = importlib.import_module("dateutil.rrule")
    begin = datetime.combine(start, time())
    plain = rule.replace("T120000Z", "T120000")
    expected = [
        moment.date()
        for moment in dateutil.rrulestr(plain, dtstart=begin).between(
            begin,
            datetime.combine(date(2034, 12, 31), time()),
            inc=True,
        )
    ]

    reading = read_event(f"DTSTART;VALUE=DATE:{start:%Y%m%d}", f"RRULE:{rule}", "SUMMARY:x")

    assert reading.flaws == ()
    found = [day for year in range(start.year, 2035) for day in days(reading, year)]
    assert found == expected


def test_excluded_dates_are_left_out() -> None:
    reading = read_event(
        "DTSTART;VALUE=DATE:20260101",
        "RRULE:FREQ=MONTHLY;COUNT=4",
        "EXDATE;VALUE=DATE:20260201,20260301",
        "SUMMARY:x",
    )

    assert days(reading, 2026) == [date(2026, 1, 1), date(2026, 4, 1)]


@pytest.mark.parametrize(
    ("line", "place", "told"),
    [
        pytest.param("RDATE;VALUE=DATE:20260102", 4, "RDATE is not known", id="unknown property"),
        pytest.param("RRULE:FREQ=YEARLY;BYSETPOS=1", 4, "BYSETPOS is not known", id="unknown part"),
        pytest.param("RRULE:FREQ=HOURLY", 4, "expected a rule such as", id="not of days"),
        pytest.param("RRULE:FREQ=YEARLY;COUNT=x", 4, "expected a rule such as", id="no number"),
        pytest.param("RRULE:FREQ=WEEKLY;BYDAY=2MO", 4, "expected a rule such as", id="no sense"),
        pytest.param("RRULE:COUNT=3", 4, "expected a rule such as", id="no frequency"),
        pytest.param("DTEND;VALUE=DATE:20251231", 4, "after the start", id="ends before it starts"),
        pytest.param("DTSTART;VALUE=DATE:20260102", 4, "expected one DTSTART", id="two starts"),
        pytest.param("EXDATE:20260101T090000Z", 4, "expected a whole day", id="a time of day"),
        pytest.param("DURATION:PT1H", 4, "whole days", id="an hour"),
        pytest.param("what is this", 4, "expected NAME:VALUE", id="no property"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(line: str, place: int, told: str) -> None:
    reading = read_event("DTSTART;VALUE=DATE:20260101", line, "SUMMARY:x")

    (flaw,) = reading.flaws
    assert flaw.place == place
    assert told in flaw.message


def test_an_event_with_a_time_of_day_is_told() -> None:
    reading = read_event("DTSTART;TZID=Europe/London:20260101T090000", "SUMMARY:x")

    assert "expected a whole day" in reading.flaws[0].message
    assert days(reading, 2026) == []


def test_a_file_cannot_keep_its_reader_busy() -> None:
    event = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:19700101\nRRULE:FREQ=DAILY\nSUMMARY:x\nEND:VEVENT\n"
    events = event * (MAX_DAYS // 40_000)

    reading = read_icalendar("c", f"BEGIN:VCALENDAR\n{events}END:VCALENDAR\n")

    assert reading.flaws
    assert "too many days" in reading.flaws[0].message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("<html>", "expected NAME:VALUE", id="no calendar at all"),
        pytest.param("BEGIN:VEVENT\nEND:VEVENT", "BEGIN:VCALENDAR before", id="a bare event"),
        pytest.param("BEGIN:VCALENDAR\nBEGIN:VTODO\n", "not known", id="no event"),
        pytest.param("BEGIN:VCALENDAR\nBEGIN:VEVENT\n", "expected its END", id="ends too soon"),
        pytest.param(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR", "end of VEVENT first", id="crossed"
        ),
    ],
)
def test_a_broken_file_is_told(text: str, told: str) -> None:
    reading = read_icalendar("c", text)

    assert told in reading.flaws[0].message
