"""What the door says about Calendars, one row for each side of every limit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.errors import InvalidError
from interlock.resources.calendar import Calendar
from interlock.resources.door.validation import read_resource

Spec = dict[str, Any]


def a_body(spec: Spec, **metadata: Any) -> Spec:
    """A good calendar but for what is given."""
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": "a"} | metadata,
        "spec": spec,
    }


def days(*texts: str) -> Spec:
    return {"days": [{"day": text} for text in texts]}


def events(*lines: str) -> Spec:
    """An iCalendar text with one event of these lines."""
    whole = ("BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR", "")
    return {"icalendar": "\r\n".join(whole)}


def refusal_of(body: Spec) -> list[tuple[str, str]]:
    """Where something is wrong, and what is said; nothing when the object is taken."""
    try:
        read_resource(json.dumps(body).encode())
    except InvalidError as error:
        return [(problem.path, problem.message) for problem in error.problems]
    return []


def briefly(value: object) -> str:
    return str(value)[:60]


CHRISTMAS = "DTSTART;VALUE=DATE:20261225"
GOOD: list[Spec] = [
    days("2026-12-25"),
    days("2026-12-24..2027-01-01", "12-25", "12-24..01-01", "02-29"),
    days("SAT,SUN", "MON-FRI", "4th THU of NOV", "last MON of MAY", "1st MON of *"),
    days("easter", "easter+1", "easter-2"),
    {"days": [{"day": "12-25", "name": "Christmas Day"}]},
    {"days": [{"day": "12-25"}] * 2000},
    events(CHRISTMAS, "SUMMARY:Christmas Day"),
    {**days("12-25"), **events(CHRISTMAS, "RRULE:FREQ=YEARLY")},
]

#: What a definition in a cluster refuses too.
BAD: list[tuple[str, str, Spec]] = [
    ("spec", "expected days, or an icalendar text", {}),
    ("spec", "expected days, or an icalendar text", {"days": [], "icalendar": ""}),
    ("spec.days", "expected at most 2000 days", {"days": [{"day": "12-25"}] * 2001}),
    ("spec.days[0].day", "is required", {"days": [{"name": "x"}]}),
    ("spec.days[0].day", "expected a day such as 2026-12-25", days("")),
    ("spec.days[0].day", "expected a day such as 2026-12-25", days("x" * 201)),
    ("spec.days[0].name", "expected one line", {"days": [{"day": "12-25", "name": "a\nb"}]}),
    ("spec.icalendar", "expected at most 524288 bytes", {"icalendar": "x" * 524_289}),
    ("spec.icalendar", "expected text, found a list", {"icalendar": ["x"]}),
]

#: What only our own door refuses, because no definition can say it.
BEYOND: list[tuple[str, str, Spec]] = [
    ("spec.days[1].day", "expected a date that there is", days("12-25", "2026-02-30")),
    ("spec.days[0].day", "expected the first date before the last", days("2026-02-02..2026-02-01")),
    ("spec.days[0].day", "expected a year in both dates or in none", days("2026-02-02..02-03")),
    ("spec.days[0].day", "expected", days("FOO")),
    ("spec.days[0].day", "expected one weekday", days("2nd MON-FRI of MAY")),
    ("spec.days[0].day", "at most 200 days before or after Easter", days("easter+201")),
    ("spec.icalendar", "line 1: expected BEGIN:VCALENDAR before it", {"icalendar": "DTSTART:x"}),
    ("spec.icalendar", "expected at least one event", {
        "icalendar": "BEGIN:VCALENDAR\nEND:VCALENDAR\n"}),
    ("spec.icalendar", "line ", events("DTSTART;VALUE=DATE:20261325")),
]  # fmt: skip


@pytest.mark.parametrize("spec", GOOD, ids=briefly)
def test_good_calendars_are_taken_and_read_back(spec: Spec) -> None:
    calendar, warnings = read_resource(json.dumps(a_body(spec)).encode())

    assert isinstance(calendar, Calendar)
    assert warnings == ()


@pytest.mark.parametrize(("path", "told", "spec"), [*BAD, *BEYOND], ids=briefly)
def test_bad_calendars_are_refused_with_the_place_and_the_reason(
    path: str, told: str, spec: Spec
) -> None:
    found = refusal_of(a_body(spec))

    assert path in [place for place, _ in found]
    assert any(place == path and told in message for place, message in found), found


@pytest.mark.parametrize(("length", "is_good"), [(63, True), (64, False)])
def test_a_name_is_a_label(length: int, is_good: bool) -> None:
    assert (refusal_of(a_body(days("12-25"), name="x" * length)) == []) is is_good


MOVED = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20260504
RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=1MO
SUMMARY:May Day
END:VEVENT
BEGIN:VEVENT
UID:1
RECURRENCE-ID;VALUE=DATE:WHICH
DTSTART;VALUE=DATE:20270507
SUMMARY:Moved
END:VEVENT
END:VCALENDAR
"""


def test_a_move_of_a_day_that_is_none_is_taken_with_a_warning() -> None:
    _, (warning,) = read_resource(a_body({"icalendar": MOVED.replace("WHICH", "20270504")}))
    assert warning.startswith('spec.icalendar: line 10: "Moved": it moves 2027-05-04')

    assert read_resource(a_body({"icalendar": MOVED.replace("WHICH", "20270503")}))[1] == ()
