"""Dates and moments as people write them, read on the clock of what they are about.

A day is today, tomorrow, a weekday or a date such as 2026-11-20. A moment is a day, a time such as
19:00 (today), both ("monday 19:00"), or one with its zone: 2026-11-20T19:00Z. What lies in the
past, or could mean two moments, is refused: a weekday that is today's means the next one where it
must begin after now, and needs a date where it need not.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from interlock.commands.errors import OrderRefusedError
from interlock.findings import nearest
from interlock.timing.due import moment_of, seconds_of
from interlock.timing.local_time import day_at, start_of_day, told_at, told_time
from interlock.timing.months import FIRST_YEAR, LAST_YEAR
from interlock.timing.zones import Zone

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAYS_EXPECTED = "today, tomorrow, a weekday such as monday, or a date such as {date}"
MOMENTS_EXPECTED = (
    'a time such as 19:00, a day such as tomorrow, monday or {date}, both as in "{date} 19:00",'
    " or a moment with its zone as in {date}T19:00Z"
)
_NEAR = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_ZONED = re.compile(r".*\d(Z|[+-]\d{2}:?\d{2})", re.IGNORECASE)


def has_zone(text: str) -> bool:
    """Whether a moment is written with its zone, so that no clock needs to be known."""
    return _ZONED.fullmatch(text.strip()) is not None


class DayWords:
    """Reads what is typed about one thing: its zone, and what time it is."""

    def __init__(self, zone: Zone, now: datetime) -> None:
        self._zone = zone
        self._now = now
        self._today = day_at(now, zone)

    def day(self, text: str) -> date:
        """Read a day that is not over."""
        day = self._day(text.strip().lower())
        if day is None:
            raise self._refused(text, "is no day", DAYS_EXPECTED)
        if day < self._today:
            raise self._refused(text, "is over", DAYS_EXPECTED)
        return day

    def moment(self, text: str) -> datetime:
        """Read a moment that is yet to come."""
        moment = self._moment(text.strip())
        if moment is None:
            raise self._refused(text, "is no moment", MOMENTS_EXPECTED)
        if moment <= self._now:
            when, now = (told_at(one, self._zone, self._now) for one in (moment, self._now))
            hint = "expected a moment to come"
            if _TIME.fullmatch(text.strip()):
                hint += f': "tomorrow {text.strip()}" is the next one'
            raise OrderRefusedError(f"{text!r} is past: {when}, and it is {now}", hint=hint)
        return moment

    def _moment(self, text: str) -> datetime | None:
        if has_zone(text):
            return _zoned(text)
        words = (
            text.lower().replace("t", " ", 1).split() if _DATE.match(text) else text.lower().split()
        )
        if len(words) == 1 and (time := _time(words[0])) is not None:
            return self._at(self._today, time, text)
        if not words or len(words) > 2:
            return None
        if len(words) == 1:
            day = self._day(words[0], is_to_begin=True)
            return start_of_day(day, self._zone) if day is not None else None
        day, time = self._day(words[0]), _time(words[1])
        return self._at(day, time, text) if day is not None and time is not None else None

    def _at(self, day: date, time: timedelta, text: str) -> datetime:
        """The one moment at which the wall shows that time of that day."""
        wall = seconds_of(datetime(day.year, day.month, day.day, tzinfo=UTC) + time)
        moments = [
            moment_of(at)
            for offset in dict.fromkeys(self._zone.offsets)
            if self._zone.wall_at(at := wall - offset) == wall
        ]
        if len(moments) == 1:
            return moments[0]
        if not moments:
            there = told_time(moment_of(self._zone.first_at(wall)), self._zone)
            raise OrderRefusedError(
                f"{text!r}: clocks change then, and {self._zone.name} has no such time",
                hint=f"the first time after it is {there}",
            )
        both = " or ".join(sorted(f"{one:%Y-%m-%dT%H:%M:%SZ}" for one in moments))
        raise OrderRefusedError(
            f"{text!r}: clocks change then, and {self._zone.name} has that time twice",
            hint=f"say which: {both}",
        )

    def _day(self, word: str, *, is_to_begin: bool = False) -> date | None:
        if word in _NEAR:
            return self._today + timedelta(days=_NEAR[word])
        if match := _DATE.fullmatch(word):
            return _date(match)
        named = [day for day in WEEKDAYS if word in (day, day[:3])]
        if not named:
            return None
        ahead = (WEEKDAYS.index(named[0]) - self._today.weekday()) % 7
        if not ahead:
            later = self._today + timedelta(days=7)
            if is_to_begin:
                return later
            raise OrderRefusedError(
                f"today is a {named[0].capitalize()}: {word!r} could be this one or the next",
                hint=f"write today, or {later}",
            )
        return self._today + timedelta(days=ahead)

    def _refused(self, text: str, why: str, expected: str) -> OrderRefusedError:
        word = text.strip().lower()
        # What was understood needs no guess.
        is_read = self._day(word, is_to_begin=True) is not None
        near = None if is_read else nearest(word, ("today", "tomorrow", *WEEKDAYS))
        hint = f"expected {expected.format(date=self._today + timedelta(days=7))}"
        return OrderRefusedError(
            f"{text!r} {why}", hint=f"{hint}; did you mean `{near}`?" if near else hint
        )


def _date(match: re.Match[str]) -> date | None:
    year, month, day = map(int, match.groups())
    try:
        return date(year, month, day) if FIRST_YEAR <= year < LAST_YEAR else None
    except ValueError:
        return None


def _time(word: str) -> timedelta | None:
    match = _TIME.fullmatch(word)
    if match is None:
        return None
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def _zoned(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None
    return moment if FIRST_YEAR <= moment.year < LAST_YEAR else None
