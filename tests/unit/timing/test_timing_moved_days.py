"""A day that an iCalendar file moves or cancels is not where its rule would have it."""

from __future__ import annotations

from datetime import date

import pytest

from interlock.timing.icalendar import Reading, read_icalendar

MAY_DAY = (
    "UID:may@example",
    "DTSTART;VALUE=DATE:20260504",
    "RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=1MO",
    "SUMMARY:May Day",
)


def read(*events: tuple[str, ...]) -> Reading:
    lines = ["BEGIN:VCALENDAR"]
    for event in events:
        lines += ["BEGIN:VEVENT", *event, "END:VEVENT"]
    return read_icalendar("c", "\n".join([*lines, "END:VCALENDAR"]))


def moved(of: str, *lines: str, uid: str = "may@example") -> tuple[str, ...]:
    return (f"UID:{uid}", f"RECURRENCE-ID{of}", *lines)


def days(reading: Reading, *years: int) -> list[str]:
    """The days of some years, without the years."""
    found = []
    for year in years:
        for ordinal in range(date(year, 1, 1).toordinal(), date(year + 1, 1, 1).toordinal()):
            day = date.fromordinal(ordinal)
            if reading.calendar.reason_for(day):
                found.append(f"{day:%m-%d}")
    return found


TO_FRIDAY = moved(";VALUE=DATE:20270503", "DTSTART;VALUE=DATE:20270507", "SUMMARY:Moved")


@pytest.mark.parametrize("events", [(MAY_DAY, TO_FRIDAY), (TO_FRIDAY, MAY_DAY)])
def test_a_moved_day_is_where_it_was_moved_to_and_only_there(
    events: tuple[tuple[str, ...], ...],
) -> None:
    reading = read(*events)

    assert (reading.flaws, reading.remarks) == ((), ())
    assert days(reading, 2026, 2027, 2028) == ["05-04", "05-07", "05-01"]
    assert reading.calendar.reason_for(date(2027, 5, 7)) == "Moved"
    assert reading.calendar.reason_for(date(2028, 5, 1)) == "May Day"


def test_a_moved_day_without_a_name_has_that_of_its_event() -> None:
    reading = read(MAY_DAY, moved(":20270503", "DTSTART;VALUE=DATE:20270507"))

    assert reading.calendar.reason_for(date(2027, 5, 7)) == "May Day"


def test_a_cancelled_day_is_no_day_with_or_without_a_start() -> None:
    whole = moved(":20270503", "DTSTART;VALUE=DATE:20270503", "STATUS:CANCELLED")
    bare = moved(":20280501", "STATUS:CANCELLED")

    assert days(read(MAY_DAY, whole, bare), 2026, 2027, 2028, 2029) == ["05-04", "05-07"]


def test_a_moved_day_may_take_several_days_and_several_may_be_moved() -> None:
    reading = read(
        MAY_DAY,
        moved(":20270503", "DTSTART;VALUE=DATE:20270507", "DTEND;VALUE=DATE:20270509"),
        moved(":20280501", "DTSTART;VALUE=DATE:20280430"),
    )

    assert days(reading, 2026, 2027, 2028) == ["05-04", "05-07", "05-08", "04-30"]


@pytest.mark.parametrize(
    "name",
    [
        ";VALUE=DATE:20270503",
        ":20270503",
        ":20270503T000000",
        ":20270503T000000Z",
        ";TZID=Europe/London:20270503T000000",
        ";TZID=Europe/London:20270503T090000",
    ],
)
def test_the_day_is_found_by_a_date_and_by_a_time(name: str) -> None:
    reading = read(MAY_DAY, moved(name, "DTSTART;VALUE=DATE:20270507"))

    assert (reading.flaws, reading.remarks) == ((), ())
    assert days(reading, 2027) == ["05-07"]


@pytest.mark.parametrize(
    "name",
    [
        ":20270502T230000Z",
        ";TZID=Europe/London:20270503T000000",
        ";TZID=America/New_York:20270502T190000",
    ],
)
def test_the_day_is_that_of_the_events_own_zone(name: str) -> None:
    event = (
        "UID:may@example",
        "DTSTART;TZID=Europe/London:20260504T000000",
        "DTEND;TZID=Europe/London:20260505T000000",
        "RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=1MO",
    )

    reading = read(event, moved(name, "DTSTART;VALUE=DATE:20270507"))

    assert (reading.flaws, reading.remarks) == ((), ())
    assert days(reading, 2026, 2027) == ["05-04", "05-07"]


def test_the_highest_sequence_wins_wherever_it_stands() -> None:
    first = moved(":20270503", "SEQUENCE:1", "DTSTART;VALUE=DATE:20270510")
    second = moved(":20270503", "SEQUENCE:10", "DTSTART;VALUE=DATE:20270507")
    none = moved(":20270503", "DTSTART;VALUE=DATE:20270511")

    for events in ((first, second, none), (second, none, first)):
        assert days(read(MAY_DAY, *events), 2027) == ["05-07"]


def test_of_equal_sequences_the_newer_stamp_wins() -> None:
    old = moved(":20270503", "DTSTAMP:20260101T000000Z", "DTSTART;VALUE=DATE:20270510")
    new = moved(":20270503", "DTSTAMP:20260201T000000Z", "DTSTART;VALUE=DATE:20270507")

    assert days(read(MAY_DAY, new, old), 2027) == ["05-07"]


def test_a_newer_event_replaces_the_older_of_its_uid_and_that_is_told() -> None:
    older = ("UID:x", "SEQUENCE:1", "DTSTART;VALUE=DATE:20270101", "SUMMARY:Old")
    newer = ("UID:x", "SEQUENCE:2", "DTSTART;VALUE=DATE:20270102", "SUMMARY:New")

    reading = read(older, newer)

    assert reading.flaws == ()
    assert days(reading, 2027) == ["01-02"]
    assert [(one.place, one.summary) for one in reading.remarks] == [(2, "Old")]


def test_two_events_of_one_uid_that_nothing_orders_are_both_kept_and_told() -> None:
    reading = read(
        ("UID:x", "DTSTART;VALUE=DATE:20270101", "SUMMARY:One"),
        ("UID:x", "DTSTART;VALUE=DATE:20270102", "SUMMARY:Two"),
    )

    assert reading.flaws == ()
    assert days(reading, 2027) == ["01-01", "01-02"]
    assert [one.summary for one in reading.remarks] == ["Two"]


def test_the_same_event_twice_is_no_news() -> None:
    event = ("UID:x", "DTSTART;VALUE=DATE:20270101", "SUMMARY:One")

    assert read(event, event).remarks == ()


def test_a_move_of_a_day_that_the_rule_does_not_have_is_a_day_more_and_told() -> None:
    reading = read(MAY_DAY, moved(":20270504", "DTSTART;VALUE=DATE:20270507", "SUMMARY:Moved"))

    assert days(reading, 2027) == ["05-03", "05-07"]
    (remark,) = reading.remarks
    assert remark.changes_days
    assert remark.summary == "Moved"
    assert "2027-05-04" in remark.message


def test_a_move_of_an_excluded_day_is_what_calendar_programs_write() -> None:
    event = (*MAY_DAY, "EXDATE;VALUE=DATE:20270503")
    reading = read(event, moved(":20270503", "DTSTART;VALUE=DATE:20270507"))

    assert days(reading, 2027) == ["05-07"]
    assert reading.remarks == ()


def test_a_moved_day_alone_in_its_file_is_a_day() -> None:
    reading = read(moved(":20270503", "DTSTART;VALUE=DATE:20270507"))

    assert (reading.flaws, reading.remarks) == ((), ())
    assert days(reading, 2027) == ["05-07"]


def test_a_cancelled_event_has_no_days_those_that_were_moved_included() -> None:
    assert days(read((*MAY_DAY, "STATUS:CANCELLED"), TO_FRIDAY), 2026, 2027) == []


def test_an_event_of_another_uid_is_left_alone() -> None:
    other = (*MAY_DAY[1:], "UID:other@example")
    reading = read(other, TO_FRIDAY)

    assert days(reading, 2027) == ["05-03", "05-07"]


def test_this_and_the_future_moves_all_that_follow() -> None:
    reading = read(
        MAY_DAY,
        moved(";RANGE=THISANDFUTURE:20270503", "DTSTART;VALUE=DATE:20270504", "SUMMARY:Tuesday"),
        moved(":20280501", "DTSTART;VALUE=DATE:20280531"),
        moved(";RANGE=THISANDFUTURE:20300506", "STATUS:CANCELLED"),
    )

    assert reading.flaws == ()
    assert days(reading, *range(2026, 2033)) == ["05-04", "05-04", "05-31", "05-08"]
    assert reading.calendar.reason_for(date(2029, 5, 8)) == "Tuesday"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param(
            moved(";RANGE=THISANDPRIOR:20270503", "DTSTART;VALUE=DATE:20270504"),
            "RANGE=THISANDFUTURE",
            id="the past",
        ),
        pytest.param(
            moved(";RANGE=THISANDFUTURE:20270504", "DTSTART;VALUE=DATE:20270504"),
            "names no day of its event",
            id="a range from no day",
        ),
        pytest.param(
            moved(":20270503", "DTSTART;VALUE=DATE:20270504", "RRULE:FREQ=DAILY;COUNT=2"),
            "expected no RRULE beside a RECURRENCE-ID",
            id="a rule of its own",
        ),
        pytest.param(
            moved(":soon", "DTSTART;VALUE=DATE:20270504"), "expected a day", id="no day at all"
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_words(lines: tuple[str, ...], told: str) -> None:
    (flaw,) = read(MAY_DAY, lines).flaws

    assert told in flaw.message
    assert flaw.place in (10, 12)


def test_further_days_and_excluded_ones_count_beside_the_rule() -> None:
    reading = read(
        (
            *MAY_DAY,
            "RDATE;VALUE=DATE:20270520,20270521",
            "RDATE;VALUE=DATE:20270522",
            "EXDATE;VALUE=DATE:20270521,20280501",
            "EXDATE:20260504T000000",
        ),
        moved(":20270522", "DTSTART;VALUE=DATE:20270523"),
    )

    assert (reading.flaws, reading.remarks) == ((), ())
    assert days(reading, 2026, 2027, 2028) == ["05-03", "05-20", "05-23"]


def test_a_day_moved_to_part_of_a_day_is_told_and_is_not_where_it_was() -> None:
    reading = read(MAY_DAY, moved(":20270503", "DTSTART:20270507T130000", "SUMMARY:Half a day"))

    (flaw,) = reading.flaws
    assert (flaw.place, flaw.summary) == (11, "Half a day")
    assert days(reading, 2026, 2027) == ["05-04"]
