"""An iCalendar file becomes a Calendar of the days that can be read; the rest is told."""

from __future__ import annotations

from datetime import date

import pytest
from import_clocks import imported

from interlock.modes.cli.importing.drafts import BadSourceError
from interlock.modes.cli.importing.icalendar import import_icalendar
from interlock.resources.timing.icalendar import read_icalendar


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
    read = read_icalendar("x", made["spec"]["icalendar"])
    assert read.flaws == ()
    assert read.calendar.reason_for(date(2026, 12, 25)) == "Christmas"
    assert [note.line for note in draft.notes] == [4, 13]


def test_any_number_of_bad_events_is_left_out() -> None:
    source = calendar(CHRISTMAS, *[PARTY] * 200)
    (made,), draft = imported(import_icalendar, source)
    assert read_icalendar("x", made["spec"]["icalendar"]).flaws == ()
    assert len(draft.notes) == 200


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
