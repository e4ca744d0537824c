"""The holidays of countries are on the days that almanacs have, in the file and when imported."""

from __future__ import annotations

from datetime import date

import pytest
from national_files import COUNTRIES, YEARS, published

from interlock.importing.drafts import Draft, Wishes
from interlock.importing.icalendar import import_icalendar
from interlock.timing.icalendar import Reading, read_icalendar


def expected(country: str) -> dict[date, set[str]]:
    found: dict[date, set[str]] = {}
    for holiday in COUNTRIES[country]:
        for year in YEARS:
            found.setdefault(holiday.day(year), set()).add(holiday.name)
    return found


def in_calendar(reading: Reading) -> set[date]:
    first, end = date(YEARS.start, 1, 1).toordinal(), date(YEARS.stop, 1, 1).toordinal()
    every = map(date.fromordinal, range(first, end))
    return {day for day in every if reading.calendar.reason_for(day)}


@pytest.mark.parametrize("moves_first", [False, True])
@pytest.mark.parametrize("country", COUNTRIES)
def test_a_country_has_its_holidays_and_no_other_days(country: str, moves_first: bool) -> None:
    text = published(country, moves_first=moves_first)

    reading = read_icalendar(country, text)

    known = expected(country)
    assert (reading.flaws, reading.remarks) == ((), ())
    assert in_calendar(reading) == set(known)
    for day, names in known.items():
        assert reading.calendar.reason_for(day) in names


@pytest.mark.parametrize("country", COUNTRIES)
def test_what_is_imported_has_the_same_days(country: str) -> None:
    draft = Draft(Wishes(file=f"{country}.ics"))

    import_icalendar(draft, published(country, moves_first=True).encode())

    (made,) = draft.objects
    reading = read_icalendar(country, made["spec"]["icalendar"])
    assert (draft.notes, draft.left_out) == ([], 0)
    assert in_calendar(reading) == set(expected(country))


def test_a_file_of_hundreds_of_yearly_rules_is_read_whole() -> None:
    """A national file of hundreds of events, each with a rule of years from long ago."""
    days = [(number % 12 + 1, number % 28 + 1) for number in range(500)]
    events = [
        f"BEGIN:VEVENT\nUID:{number}\nDTSTART;VALUE=DATE:1970{month:02}{day:02}"
        f"\nRRULE:FREQ=YEARLY;BYMONTHDAY={day};BYMONTH={month}\nSUMMARY:Day {number}\nEND:VEVENT\n"
        for number, (month, day) in enumerate(days)
    ]

    reading = read_icalendar("nl", f"BEGIN:VCALENDAR\n{''.join(events)}END:VCALENDAR\n")

    assert (reading.flaws, reading.remarks) == ((), ())
    assert len(reading.calendar.entries) == 500
    assert all(reading.calendar.reason_for(date(2099, *day)) for day in days)
