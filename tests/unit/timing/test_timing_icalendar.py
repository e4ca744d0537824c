"""An iCalendar file is read as the days it names; what cannot be read is told."""

from __future__ import annotations

import importlib
from datetime import date, datetime, time
from typing import Any

import pytest

from interlock.timing.icalendar import Reading, read_icalendar

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
        pytest.param("EXRULE:FREQ=DAILY", 4, "EXRULE is not known", id="unknown property"),
        pytest.param("RDATE;VALUE=PERIOD:20260102T000000/P1D", 4, "expected a day", id="a period"),
        pytest.param("RRULE:FREQ=YEARLY;BYSETPOS=1", 4, "BYSETPOS is not known", id="unknown part"),
        pytest.param("RRULE:FREQ=HOURLY", 4, "such as FREQ=YEARLY", id="not of days"),
        pytest.param("RRULE:FREQ=YEARLY;COUNT=x", 4, "such as FREQ=YEARLY", id="no number"),
        pytest.param("RRULE:FREQ=WEEKLY;BYDAY=2MO", 4, "such as FREQ=YEARLY", id="no sense"),
        pytest.param("RRULE:COUNT=3", 4, "such as FREQ=YEARLY", id="no frequency"),
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


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY",
        "FREQ=DAILY;COUNT=1000000000",
        "FREQ=DAILY;INTERVAL=1;UNTIL=99991231",
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU",
        "FREQ=MONTHLY;BYMONTHDAY=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25"
        ",26,27,28,29,30,31",
        "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU",
    ],
)
def test_many_rules_of_all_days_are_read_whole(rule: str) -> None:
    event = f"BEGIN:VEVENT\nDTSTART;VALUE=DATE:19700101\nRRULE:{rule}\nSUMMARY:x\nEND:VEVENT\n"

    reading = read_icalendar("c", f"BEGIN:VCALENDAR\n{event * 300}END:VCALENDAR\n")

    assert reading.flaws == ()
    assert len(reading.calendar.entries) == 300
    assert len(days(reading, 1970)) == 365
    assert len(days(reading, 2096)) == 366
    assert reading.calendar.reason_for(date(2099, 12, 31)) == "x"


@pytest.mark.parametrize("frequency", ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
def test_a_rule_that_hardly_repeats_has_its_first_day(frequency: str) -> None:
    reading = read_event(
        "DTSTART;VALUE=DATE:20260101", f"RRULE:FREQ={frequency};INTERVAL=999999999;COUNT=999999999"
    )

    assert reading.flaws == ()
    assert [len(days(reading, year)) for year in (2026, 2027, 2098, 2099)] == [1, 0, 0, 0]


def test_any_number_of_excluded_days_is_read() -> None:
    every = [date.fromordinal(date(2026, 1, 1).toordinal() + at) for at in range(20_000)]
    listed = ",".join(f"{day:%Y%m%d}" for day in every * 5)

    reading = read_event(
        "DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=DAILY", f"EXDATE;VALUE=DATE:{listed}"
    )

    assert reading.flaws == ()
    assert days(reading, 2050) == []
    assert len(days(reading, 2098)) == 365


@pytest.mark.parametrize("frequency", ["SECONDLY", "MINUTELY", "HOURLY"])
def test_a_rule_of_parts_of_a_day_is_told(frequency: str) -> None:
    reading = read_event("DTSTART;VALUE=DATE:20260101", f"RRULE:FREQ={frequency}", "SUMMARY:Tick")

    (flaw,) = reading.flaws
    assert (flaw.place, flaw.summary) == (4, "Tick")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("DTSTART:20260125T000000", "DTEND:20260126T000000"), ["01-25"]),
        (("DTSTART:20260125T000000", "DTEND:20260128T000000"), ["01-25", "01-26", "01-27"]),
        (("DTSTART:20260125T000000", "DURATION:P1D"), ["01-25"]),
        (("DTSTART:20260125T000000", "DURATION:PT24H"), ["01-25"]),
        (("DTSTART:20260125T000000", "DURATION:PT48H"), ["01-25", "01-26"]),
        (
            (
                "DTSTART;TZID=Asia/Ho_Chi_Minh:20260125T000000",
                "DTEND;TZID=Asia/Ho_Chi_Minh:20260126T000000",
                "RRULE:FREQ=WEEKLY;UNTIL=20260207T165959Z",
            ),
            ["01-25", "02-01"],
        ),
        (
            (
                "DTSTART;TZID=Asia/Ho_Chi_Minh:20260125T000000",
                "DTEND;TZID=Asia/Ho_Chi_Minh:20260126T000000",
                "RRULE:FREQ=WEEKLY;UNTIL=20260207T170000Z",
                "EXDATE:20260131T170000Z",
            ),
            ["01-25", "02-08"],
        ),
        (
            ("DTSTART;TZID=Our own:20260125T000000", "DTEND;TZID=Our own:20260126T000000"),
            ["01-25"],
        ),
    ],
)
def test_from_midnight_to_midnight_is_a_whole_day(
    lines: tuple[str, ...], expected: list[str]
) -> None:
    reading = read_event(*lines)

    assert reading.flaws == ()
    assert [f"{day:%m-%d}" for day in days(reading, 2026)] == expected


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(("DTSTART:20260125T000000",), id="no end"),
        pytest.param(("DTSTART:20260125T000000", "DTEND:20260125T000000"), id="no time at all"),
        pytest.param(("DTSTART:20260125T000000", "DTEND:20260126T120000"), id="to noon"),
        pytest.param(("DTSTART:20260125T000000", "DTEND;VALUE=DATE:20260126"), id="two forms"),
        pytest.param(("DTSTART:20260125T000000", "DURATION:PT25H"), id="an hour more"),
        pytest.param(("DTSTART:20260125T000000Z", "DTEND:20260126T000000Z"), id="midnight of UTC"),
        pytest.param(
            (
                "DTSTART;TZID=Asia/Tokyo:20260125T000000",
                "DTEND;TZID=Europe/London:20260126T000000",
            ),
            id="two zones",
        ),
    ],
)
def test_what_is_not_sure_to_be_whole_days_is_told(lines: tuple[str, ...]) -> None:
    (flaw,) = read_event(*lines, "SUMMARY:x").flaws

    assert "whole day" in flaw.message


def test_a_first_day_that_the_rule_does_not_have_is_told() -> None:
    reading = read_event(
        "DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=1MO", "SUMMARY:May"
    )

    (remark,) = reading.remarks
    assert (remark.summary, remark.changes_days) == ("May", True)


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

    assert any(told in flaw.message for flaw in reading.flaws)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(("STATUS:CANCELLED",), id="no start"),
        pytest.param(("DTSTART:20260101T130000Z", "STATUS:CANCELLED"), id="part of a day"),
        pytest.param(
            ("DTSTART:20260101", "RRULE:FREQ=HOURLY", "EXRULE:x", "STATUS:cancelled"), id="a rule"
        ),
    ],
)
def test_what_is_cancelled_need_not_be_read(lines: tuple[str, ...]) -> None:
    reading = read_event(*lines)

    assert (reading.flaws, reading.calendar.entries) == ((), ())


@pytest.mark.parametrize(
    "line", ["SEQUENCE:", "SEQUENCE:x", "UID:1\nUID:2", "STATUS:CONFIRMED\nSTATUS:TENTATIVE"]
)
def test_what_says_nothing_about_days_costs_none(line: str) -> None:
    reading = read_event("DTSTART;VALUE=DATE:20260101", line)

    assert reading.flaws == ()
    assert days(reading, 2026) == [date(2026, 1, 1)]


def test_an_empty_duration_is_told() -> None:
    assert read_event("DTSTART;VALUE=DATE:20260101", "DURATION:P").flaws
