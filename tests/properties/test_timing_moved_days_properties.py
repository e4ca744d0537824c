"""Whatever a file moves and cancels, the calendar has what each single occurrence became."""

from __future__ import annotations

import importlib
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from interlock.importing.drafts import BadSourceError, Draft, Wishes
from interlock.importing.icalendar import import_icalendar
from interlock.timing.icalendar import Reading, read_icalendar

FIRST, END = date(2026, 1, 1), date(2031, 1, 1)
RULES = (
    "FREQ=YEARLY",
    "FREQ=YEARLY;BYMONTH=5;BYDAY=1MO",
    "FREQ=YEARLY;INTERVAL=2;BYMONTH=1,7;BYMONTHDAY=-1",
    "FREQ=YEARLY;BYDAY=20TU",
    "FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=31",
    "FREQ=WEEKLY;INTERVAL=9;BYDAY=SU,MO;WKST=SU",
    "FREQ=DAILY;INTERVAL=40;COUNT=30",
)


class Move(NamedTuple):
    """What becomes of an occurrence: so many days later for so long, or cancelled."""

    which: int
    later: int
    length: int
    is_cancelled: bool
    is_range: bool
    sequence: int


moves = st.builds(
    Move,
    which=st.integers(0, 30),
    later=st.sampled_from((-40, -1, 0, 1, 3, 31)),
    length=st.sampled_from((1, 2, 7)),
    is_cancelled=st.sampled_from((False, False, True)),
    is_range=st.sampled_from((False, False, False, True)),
    sequence=st.integers(0, 2),
)


def occurrences(rule: str, start: date) -> list[date]:
    found: Any = importlib.import_module("dateutil.rrule")
    begin, end = (datetime.combine(day, time()) for day in (start, END + timedelta(days=400)))
    return [one.date() for one in found.rrulestr(rule, dtstart=begin).between(begin, end, inc=True)]


def one_by_one(
    starts: list[date], excluded: set[date], length: int, told: list[tuple[date, Move]]
) -> set[date]:
    """Go through the occurrences, and look up for each what the file says about it."""
    days: set[date] = set()
    for start in starts:
        own = [move for day, move in told if day == start and not move.is_range]
        before = [(day, move) for day, move in told if move.is_range and day <= start]
        begin, lasts = start, length
        if own:
            # Of equal sequences the last in the file.
            best = max(enumerate(own), key=lambda each: (each[1].sequence, each[0]))[1]
            if best.is_cancelled:
                continue
            begin, lasts = start + timedelta(days=best.later), best.length
        elif start in excluded:
            continue
        elif before:
            newest = max(day for day, _ in before)
            same = [move for day, move in before if day == newest]
            best = max(enumerate(same), key=lambda each: (each[1].sequence, each[0]))[1]
            if best.is_cancelled:
                continue
            begin, lasts = start + timedelta(days=best.later), best.length
        days |= {begin + timedelta(days=number) for number in range(lasts)}
    return {day for day in days if FIRST <= day < END}


def listed(name: str, days: set[date]) -> list[str]:
    return [f"{name};VALUE=DATE:{','.join(f'{day:%Y%m%d}' for day in days)}"] if days else []


def written(own: list[str], told: list[tuple[date, Move]], at: int) -> str:
    events = []
    for day, move in told:
        to = day + timedelta(days=move.later)
        lines = [
            "UID:u",
            f"RECURRENCE-ID{';RANGE=THISANDFUTURE' if move.is_range else ''}:{day:%Y%m%d}",
            f"DTSTART;VALUE=DATE:{to:%Y%m%d}",
            f"DTEND;VALUE=DATE:{to + timedelta(days=move.length):%Y%m%d}",
            f"SEQUENCE:{move.sequence}",
            *(["STATUS:CANCELLED"] if move.is_cancelled else []),
        ]
        events.append(lines)
    events.insert(min(at, len(events)), own)
    body = [line for lines in events for line in ("BEGIN:VEVENT", *lines, "END:VEVENT")]
    return "\n".join(["BEGIN:VCALENDAR", *body, "END:VCALENDAR", ""])


def days_of(reading: Reading) -> set[date]:
    every = map(date.fromordinal, range(FIRST.toordinal(), END.toordinal()))
    return {day for day in every if reading.calendar.reason_for(day)}


@given(
    rule=st.sampled_from(RULES),
    start=st.dates(FIRST, date(2027, 12, 31)),
    length=st.sampled_from((1, 3)),
    wanted=st.lists(moves, max_size=6),
    added=st.sets(st.dates(date(2028, 1, 1), date(2029, 12, 31)), max_size=3),
    excluded=st.sets(st.integers(0, 30), max_size=3),
    at=st.integers(0, 6),
)
def test_each_occurrence_is_where_the_file_puts_it(
    rule: str,
    start: date,
    length: int,
    wanted: list[Move],
    added: set[date],
    excluded: set[int],
    at: int,
) -> None:
    starts = sorted({*occurrences(rule, start), *added})
    without = {starts[which] for which in excluded if which < len(starts)}
    told = [(starts[move.which], move) for move in wanted if move.which < len(starts)]
    # All later days cannot be moved from a day that is none.
    told = [(day, move) for day, move in told if not move.is_range or day not in without]
    own = ["UID:u", f"DTSTART:{start:%Y%m%d}", f"DURATION:P{length}D", f"RRULE:{rule}"]
    own += [*listed("RDATE", added), *listed("EXDATE", without)]
    text = written(own, told, at)

    reading = read_icalendar("c", text)

    assert reading.flaws == ()
    expected = one_by_one(starts, without, length, told)
    assert days_of(reading) == expected
    assert _imported(text) in (expected, None)


def _imported(text: str) -> set[date] | None:
    """The days of what is imported; None when the file has none."""
    draft = Draft(Wishes(file="c.ics"))
    try:
        import_icalendar(draft, text.encode())
    except BadSourceError:
        return None
    (made,) = draft.objects
    reading = read_icalendar("c", made["spec"]["icalendar"])
    assert reading.flaws == ()
    return days_of(reading)


NAMES = ("DTSTART", "DTEND", "RECURRENCE-ID", "EXDATE", "RDATE")
FORMS = (
    ":20260101",
    ":20260102",
    ";VALUE=DATE:20260101",
    ":20260101T000000",
    ":20260102T000000",
    ":20260101T000000Z",
    ";TZID=Europe/London:20260102T000000",
    ";TZID=Asia/Tokyo:20260101T090000",
    ";TZID=Nowhere:20260102T000000",
    ";RANGE=THISANDFUTURE:20260101",
    ":00000000",
    ":21991231",
    ":19000101T000000",
    ":",
)
lines = st.one_of(
    st.builds("{}{}".format, st.sampled_from(NAMES), st.sampled_from(FORMS)),
    st.builds("RRULE:{}".format, st.sampled_from((*RULES, "FREQ=WEEKLY;UNTIL=20260101T000000Z"))),
    st.sampled_from(("UID:a", "UID:b", "SEQUENCE:1", "STATUS:CANCELLED", "DURATION:P1D", "x")),
)


@given(st.lists(st.lists(lines, max_size=6, unique=True), max_size=5))
def test_whatever_a_file_says_what_is_imported_has_its_days(given: list[list[str]]) -> None:
    body = [line for event in given for line in ("BEGIN:VEVENT", *event, "END:VEVENT")]
    text = "\n".join(["BEGIN:VCALENDAR", *body, "END:VCALENDAR", ""])

    reading = read_icalendar("c", text)

    found = _imported(text)
    assert found is None or found == days_of(reading)
    assert found is not None or not days_of(reading)
