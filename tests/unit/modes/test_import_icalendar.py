"""An iCalendar file becomes a Calendar of the days that can be read; the rest is told."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from import_clocks import imported

from interlock.importing.drafts import BadSourceError, Draft, Wishes
from interlock.importing.icalendar import import_icalendar
from interlock.timing.icalendar import read_icalendar


def event(*lines: str) -> str:
    return "\n".join(["BEGIN:VEVENT", *lines, "END:VEVENT", ""])


def calendar(*events: str) -> str:
    return f"BEGIN:VCALENDAR\nVERSION:2.0\n{''.join(events)}END:VCALENDAR\n"


CHRISTMAS = event("DTSTART;VALUE=DATE:20261225", "SUMMARY:Christmas", "RRULE:FREQ=YEARLY")
PARTY = event("DTSTART:20261231T170000Z", "SUMMARY:Party")


def test_the_days_of_the_file_are_in_the_calendar() -> None:
    (made,), draft = imported(import_icalendar, calendar(CHRISTMAS), file="/x/UK holidays.ics")
    assert (made["kind"], made["metadata"]["name"]) == ("Calendar", "uk-holidays")
    read = read_icalendar("x", made["spec"]["icalendar"])
    assert read.calendar.reason_for(date(2030, 12, 25)) == "Christmas"
    assert read.flaws == ()
    assert draft.notes == []


def test_an_event_that_cannot_be_read_is_left_out_and_told_with_its_line() -> None:
    (made,), draft = imported(import_icalendar, calendar(PARTY, CHRISTMAS, PARTY))
    assert draft.left_out == 2
    read = read_icalendar("x", made["spec"]["icalendar"])
    assert read.flaws == ()
    assert read.calendar.reason_for(date(2026, 12, 25)) == "Christmas"
    assert [note.line for note in draft.notes] == [4, 13]
    assert draft.notes[0].where == '"Party" (DTSTART:20261231T170000Z)'
    assert draft.notes[0].instead == "its days are not in the calendar"


def test_any_number_of_bad_events_is_left_out() -> None:
    source = calendar(CHRISTMAS, *[PARTY] * 200)
    (made,), draft = imported(import_icalendar, source)
    assert read_icalendar("x", made["spec"]["icalendar"]).flaws == ()
    assert len(draft.notes) == draft.left_out == 200


def test_line_ends_of_any_sort_are_fine() -> None:
    (made,), _ = imported(import_icalendar, calendar(CHRISTMAS, PARTY).replace("\n", "\r\n"))
    assert "\r" not in made["spec"]["icalendar"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param("hello\n", 1, id="no calendar at all"),
        pytest.param(calendar(), 1, id="no event"),
        pytest.param(calendar(PARTY), 4, id="no whole day"),
        pytest.param("", 1, id="nothing"),
    ],
)
def test_a_file_without_days_is_refused(source: str, line: int) -> None:
    with pytest.raises(BadSourceError) as caught:
        imported(import_icalendar, source)
    assert caught.value.flaws[0].line == line


def days(made: dict[str, Any], year: int) -> list[str]:
    read = read_icalendar("x", made["spec"]["icalendar"])
    assert read.flaws == ()
    first = date(year, 1, 1).toordinal()
    every = map(date.fromordinal, range(first, date(year + 1, 1, 1).toordinal()))
    return [f"{day:%m-%d}" for day in every if read.calendar.reason_for(day)]


MAY_DAY = event(
    "UID:may@example",
    "DTSTART;VALUE=DATE:20260504",
    "RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=1MO",
    "SUMMARY:May Day",
)


def moved(to: str, *lines: str) -> str:
    return event("UID:may@example", "RECURRENCE-ID:20270503", f"DTSTART{to}", *lines)


def test_a_moved_day_is_moved_in_what_is_kept() -> None:
    source = calendar(moved(";VALUE=DATE:20270507"), MAY_DAY)
    (made,), draft = imported(import_icalendar, source)
    assert (draft.notes, draft.left_out) == ([], 0)
    assert days(made, 2027) == ["05-07"]


def test_a_day_moved_to_part_of_a_day_is_told_and_not_where_it_was() -> None:
    source = calendar(MAY_DAY, moved(":20270507T130000", "SUMMARY:Half a day"))
    (made,), draft = imported(import_icalendar, source)
    assert draft.left_out == 1
    assert draft.notes[0].where.startswith('"Half a day"')
    assert [days(made, year) for year in (2026, 2027)] == [["05-04"], []]


def test_a_move_of_a_day_that_is_none_is_to_be_looked_at() -> None:
    wrong = event("UID:may@example", "RECURRENCE-ID:20270504", "DTSTART:20270507", "SUMMARY:Moved")
    (made,), draft = imported(import_icalendar, calendar(MAY_DAY, wrong))
    assert draft.left_out == 1
    assert "2027-05-04" in draft.notes[0].why
    assert days(made, 2027) == ["05-03", "05-07"]


def test_what_is_kept_says_nothing_but_days() -> None:
    long = event(
        "UID:1@example",
        "DTSTAMP:20200101T000000Z",
        "DTSTART;VALUE=DATE:20261225",
        "DESCRIPTION:" + "a very long story " * 1000,
        "X-SOMETHING:else",
        "SEQUENCE:3",
        "SUMMARY:Christmas",
        "BEGIN:VALARM",
        "END:VALARM",
    )
    (made,), _ = imported(import_icalendar, calendar(long))
    inside = made["spec"]["icalendar"].split("BEGIN:VEVENT\n")[1].split("END:VEVENT")[0]
    assert inside.splitlines() == ["DTSTART;VALUE=DATE:20261225", "SUMMARY:Christmas"]


def test_a_large_file_of_real_sort_has_room() -> None:
    every = [
        event(
            f"UID:{number}-0123-4567-89ab-cdef@calendar.example",
            "CREATED:20200101T000000Z",
            "LAST-MODIFIED:20200101T000000Z",
            "DTSTAMP:20200101T000000Z",
            f"SUMMARY:A holiday with a name {number}",
            f"DTSTART;VALUE=DATE:{1970 + number % 130}0101",
            f"DTEND;VALUE=DATE:{1970 + number % 130}0102",
            "TRANSP:TRANSPARENT",
            "CATEGORIES:Holidays",
            "DESCRIPTION:" + "what people do on such a day " * 8,
        )
        for number in range(3000)
    ]
    (made,), draft = imported(import_icalendar, calendar(*every))
    assert (draft.notes, draft.left_out) == ([], 0)
    assert days(made, 2098) == ["01-01"]


def test_what_does_not_fit_is_refused_with_the_limit_and_what_to_do() -> None:
    every = [event("DTSTART:20270101", f"SUMMARY:{'x' * 200} {at}") for at in range(3000)]
    with pytest.raises(BadSourceError) as caught:
        imported(import_icalendar, calendar(*every))
    assert "a Calendar has room for 524288: split the file" in caught.value.flaws[0].message


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(calendar(CHRISTMAS).replace("END:VCALENDAR\n", ""), id="the end is missing"),
        pytest.param(calendar(CHRISTMAS, "BEGIN:VEVENT\n"), id="an event does not end"),
    ],
)
def test_a_file_that_was_cut_off_is_refused(source: str) -> None:
    with pytest.raises(BadSourceError):
        imported(import_icalendar, source)


@pytest.mark.parametrize(
    ("encoding", "is_told"),
    [("utf-8", False), ("utf-8-sig", False), ("utf-16", False), ("latin-1", True)],
)
def test_files_of_older_encodings_are_read(encoding: str, is_told: bool) -> None:
    text = calendar(event("DTSTART:20270206", "SUMMARY:Día de la Constitución"))
    draft = Draft(Wishes(file="mexico.ics"))
    import_icalendar(draft, text.encode(encoding))
    (made,) = draft.objects
    read = read_icalendar("x", made["spec"]["icalendar"])
    assert read.calendar.reason_for(date(2027, 2, 6)) == "Día de la Constitución"
    assert [note.what for note in draft.notes] == (["is read as Latin-1"] if is_told else [])
    assert draft.left_out == 0


def test_what_holds_no_event_is_told_and_costs_nothing() -> None:
    todo = "BEGIN:VTODO\nSUMMARY:Shop\nEND:VTODO\n"
    (made,), draft = imported(import_icalendar, calendar(CHRISTMAS, todo))
    assert ([note.line for note in draft.notes], draft.left_out) == ([8], 0)
    assert days(made, 2027) == ["12-25"]
