"""Files of holidays as calendar programs publish them, and the days that almanacs have.

The files are written as Thunderbird's are: one event for each holiday, a rule of years, and every
day that the rule has wrong moved to where it was by an event of its own. The days are written down
from the laws of each country, and share nothing with the files but the country.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, NamedTuple

YEARS = range(2015, 2041)
MON, TUE, WED, THU, FRI, SAT, SUN = range(7)

Days = Callable[[int], date]


def easter(year: int) -> date:
    """Easter Sunday, by a program that is not ours."""
    found: Any = importlib.import_module("dateutil.easter")
    day: date = found.easter(year)
    return day


def on(month: int, day: int) -> Days:
    return lambda year: date(year, month, day)


def after_easter(days: int) -> Days:
    return lambda year: easter(year) + timedelta(days=days)


def nth(count: int, weekday: int, month: int) -> Days:
    def day(year: int) -> date:
        first = date(year, month, 1)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (count - 1))

    return day


def last(weekday: int, month: int) -> Days:
    def day(year: int) -> date:
        end = date(year, month + 1, 1) - timedelta(days=1)
        return end - timedelta(days=(end.weekday() - weekday) % 7)

    return day


def first_from(weekday: int, month: int, day: int) -> Days:
    def found(year: int) -> date:
        start = date(year, month, day)
        return start + timedelta(days=(weekday - start.weekday()) % 7)

    return found


class Holiday(NamedTuple):
    name: str
    #: What almanacs say.
    day: Days
    #: What the file says; the days that it has wrong are moved.
    rule: str = "FREQ=YEARLY"


_LAST_MAY = "FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO"

COUNTRIES: dict[str, list[Holiday]] = {
    "uk": [
        Holiday("New Year's Day", on(1, 1)),
        Holiday("Good Friday", after_easter(-2)),
        Holiday("Easter Monday", after_easter(1)),
        Holiday(
            "Early May Bank Holiday",
            lambda year: date(2020, 5, 8) if year == 2020 else nth(1, MON, 5)(year),
            "FREQ=YEARLY;BYMONTH=5;BYDAY=1MO",
        ),
        Holiday(
            "Spring Bank Holiday",
            lambda year: date(2022, 6, 2) if year == 2022 else last(MON, 5)(year),
            _LAST_MAY,
        ),
        Holiday("Summer Bank Holiday", last(MON, 8), "FREQ=YEARLY;BYMONTH=8;BYDAY=-1MO"),
        Holiday("Christmas Day", on(12, 25), "FREQ=YEARLY;BYMONTHDAY=25;BYMONTH=12"),
        Holiday("Boxing Day", on(12, 26), "FREQ=YEARLY;INTERVAL=1"),
    ],
    "nl": [
        Holiday("Nieuwjaarsdag", on(1, 1), "FREQ=YEARLY;BYMONTHDAY=1;BYMONTH=1"),
        Holiday("Tweede paasdag", after_easter(1)),
        Holiday(
            "Koningsdag",
            lambda year: date(year, 4, 26 if date(year, 4, 27).weekday() == SUN else 27),
            "FREQ=YEARLY;BYMONTHDAY=27;BYMONTH=4",
        ),
        Holiday("Hemelvaartsdag", after_easter(39), "FREQ=YEARLY;INTERVAL=1"),
        Holiday("Tweede pinksterdag", after_easter(50)),
        Holiday("Eerste kerstdag", on(12, 25), "FREQ=YEARLY;BYMONTHDAY=25;BYMONTH=12"),
        Holiday("Tweede kerstdag", on(12, 26), "FREQ=YEARLY;BYMONTHDAY=26;BYMONTH=12"),
    ],
    "se": [
        Holiday("Nyårsdagen", on(1, 1)),
        Holiday("Trettondedag jul", on(1, 6)),
        Holiday("Kristi himmelsfärdsdag", after_easter(39)),
        Holiday("Nationaldagen", on(6, 6)),
        Holiday(
            "Midsommardagen",
            first_from(SAT, 6, 20),
            "FREQ=YEARLY;BYMONTH=6;BYMONTHDAY=20,21,22,23,24,25,26;BYDAY=SA",
        ),
        Holiday(
            "Alla helgons dag",
            first_from(SAT, 10, 31),
            "FREQ=YEARLY;BYMONTH=11;BYDAY=1SA",
        ),
        Holiday("Juldagen", on(12, 25)),
    ],
    "us": [
        Holiday("New Year's Day", on(1, 1)),
        Holiday("Martin Luther King Day", nth(3, MON, 1), "FREQ=YEARLY;BYDAY=3MO;BYMONTH=1"),
        Holiday("Presidents' Day", nth(3, MON, 2), "FREQ=YEARLY;BYDAY=3MO;BYMONTH=2"),
        Holiday("Memorial Day", last(MON, 5), _LAST_MAY),
        Holiday("Independence Day", on(7, 4)),
        Holiday("Labor Day", nth(1, MON, 9), "FREQ=YEARLY;BYDAY=1MO;BYMONTH=9"),
        Holiday("Thanksgiving", nth(4, THU, 11), "FREQ=YEARLY;BYDAY=4TH;BYMONTH=11"),
        Holiday(
            "Election Day",
            first_from(TUE, 11, 2),
            "FREQ=YEARLY;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        ),
        Holiday("Christmas Day", on(12, 25)),
    ],
    "de": [
        Holiday("Neujahr", on(1, 1)),
        Holiday("Karfreitag", after_easter(-2)),
        Holiday("Ostermontag", after_easter(1)),
        Holiday("Tag der Arbeit", on(5, 1)),
        Holiday("Pfingstmontag", after_easter(50)),
        Holiday("Fronleichnam", after_easter(60)),
        Holiday("Tag der Deutschen Einheit", on(10, 3)),
        Holiday("Buß- und Bettag", first_from(WED, 11, 16), "FREQ=YEARLY"),
        Holiday("1. Weihnachtstag", on(12, 25)),
    ],
}


def published(country: str, *, moves_first: bool) -> str:
    """The file of a country, with one event for each rule and one for each day that is moved."""
    events = []
    for number, holiday in enumerate(COUNTRIES[country]):
        start = holiday.day(YEARS.start)
        own = _event(number, holiday.name, start, f"RRULE:{holiday.rule}")
        moves = []
        for year in YEARS:
            by_rule, day = _by_rule(holiday, start, year), holiday.day(year)
            if by_rule != day:
                told = f"RECURRENCE-ID;VALUE=DATE:{by_rule:%Y%m%d}"
                moves.append(_event(number, holiday.name, day, told))
        events += [*moves, own] if moves_first else [own, *moves]
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", *events, "END:VCALENDAR", ""])


def _by_rule(holiday: Holiday, start: date, year: int) -> date:
    found: Any = importlib.import_module("dateutil.rrule")
    from datetime import datetime, time

    rule = found.rrulestr(holiday.rule, dtstart=datetime.combine(start, time()))
    first, last = datetime(year, 1, 1), datetime(year, 12, 31)  # noqa: DTZ001
    (moment,) = rule.between(first, last, inc=True)
    day: date = moment.date()
    return day


def _event(number: int, name: str, day: date, *lines: str) -> str:
    return "\r\n".join(
        [
            "BEGIN:VEVENT",
            "CREATED:20100101T000000Z",
            "LAST-MODIFIED:20250101T000000Z",
            "DTSTAMP:20250101T000000Z",
            f"UID:{number}-4711-0815@holidays.example",
            f"SUMMARY:{name}",
            *lines,
            f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
            f"DTEND;VALUE=DATE:{day + timedelta(days=1):%Y%m%d}",
            "TRANSP:TRANSPARENT",
            "SEQUENCE:2",
            "CATEGORIES:Holidays",
            "END:VEVENT",
        ]
    )
