"""Cron lines of Quartz, Spring, AWS and Jenkins: how each writes them, and where they differ.

A field is worked out by the rules of its program, and then written so that we read the same values
from it. Weekdays are written by name: their numbers are what programs disagree about most.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from interlock.importing.drafts import quoted
from interlock.timing.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    YEAR,
    Field,
    read_field,
)
from interlock.timing.flaws import Flaws
from interlock.timing.names import weekdays_in_words

FIVE = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)

_PART = re.compile(
    r"(?:(?P<wild>[*?])|(?P<first>[0-9A-Z]+)(?:-(?P<last>[0-9A-Z]+))?)?(?:/(?P<step>[0-9]{1,6}))?"
)
_HASH = re.compile(r"H(?:\([0-9]{1,2}-[0-9]{1,2}\))?(?:/[0-9]{1,3})?")
_LAST = re.compile(r"L(?:-(?P<before>[0-9]{1,2}))?(?P<workday>W?)")
_WORKDAY = re.compile(r"([0-9]{1,2})W")
_NTH = re.compile(r"(?P<day>[0-9]|[A-Z]{3})(?:L|#(?P<nth>[0-9]))")
_LEAP = frozenset(filter(calendar.isleap, range(YEAR.low, YEAR.high + 1)))
#: Days that every month has before its last day.
_MOST_BEFORE = 27


class Dialect(StrEnum):
    """A program that writes cron lines in its own way."""

    QUARTZ = "quartz"
    SPRING = "spring"
    AWS = "aws"
    JENKINS = "jenkins"


class DialectError(Exception):
    """A line cannot be said in our words, or is none of its program's."""


class Remark(NamedTuple):
    """Something about a line that is not as it was."""

    what: str
    why: str
    instead: str


class Converted(NamedTuple):
    """When a line is due, in our words."""

    lines: tuple[str, ...]
    format: str | None
    #: Days of a Calendar that the day must be in beside all else, as Calendars write them.
    only: tuple[str, ...]
    remarks: tuple[Remark, ...]


class _Rules(NamedTuple):
    """What a program takes a line of fields for."""

    title: str
    #: How many fields there may be, and which they are.
    fields: dict[int, tuple[Field, ...]]
    #: The number of Sunday; weekdays end seven numbers after 0 or six after 1.
    sunday: int
    #: Whether a range may run past the end of its field.
    wraps: bool = False
    #: Whether one of the two fields of days must be a `?`. If not, a day must fit both.
    one_day_field: bool = False
    #: Whether L and W may stand in a list of days; # and L in one of weekdays.
    lists_days: bool = False
    lists_weekdays: bool = False
    #: Whether a day that ends its month and is a Sunday is moved to the Monday, a month later.
    moves_past_end: bool = False
    #: Whether a step after a name counts.
    steps_names: bool = True
    has_rules: bool = True
    #: Whether `5/15` is every 15 from 5 on.
    steps_from: bool = True
    has_hash: bool = False


_RULES = {
    Dialect.QUARTZ: _Rules(
        "Quartz",
        {6: (SECOND, *FIVE), 7: (SECOND, *FIVE, YEAR)},
        1,
        wraps=True,
        one_day_field=True,
        lists_days=True,
        steps_names=False,
    ),
    Dialect.AWS: _Rules("AWS", {6: (*FIVE, YEAR)}, 1, one_day_field=True, steps_names=False),
    Dialect.SPRING: _Rules(
        "Spring",
        {6: (SECOND, *FIVE)},
        0,
        lists_days=True,
        lists_weekdays=True,
        moves_past_end=True,
    ),
    Dialect.JENKINS: _Rules(
        "Jenkins", {5: FIVE}, 0, has_rules=False, steps_from=False, has_hash=True
    ),
}

_SHORTHANDS = {
    Dialect.SPRING: {
        "@yearly": "0 0 0 1 1 *",
        "@annually": "0 0 0 1 1 *",
        "@monthly": "0 0 0 1 * *",
        "@weekly": "0 0 0 * * 0",
        "@daily": "0 0 0 * * *",
        "@midnight": "0 0 0 * * *",
        "@hourly": "0 0 * * * *",
    },
    Dialect.JENKINS: {
        "@yearly": "H H H H *",
        "@annually": "H H H H *",
        "@monthly": "H H H * *",
        "@weekly": "H H * * H",
        "@daily": "H H * * *",
        "@midnight": "H H(0-2) * * *",
        "@hourly": "H * * * *",
    },
}


def convert(dialect: Dialect, text: str) -> Converted:
    """Say in our words when a line of another program is due.

    Raises:
        DialectError: There are no such words, or the program itself would not take the line.
    """
    text = text.strip()
    if dialect is Dialect.AWS:
        if text.lower().startswith(("rate(", "at(")):
            return _rate(text)
        if match := re.fullmatch(r"cron\((.*)\)", text, re.IGNORECASE):
            text = match[1]
    if text == "-" and dialect is Dialect.SPRING:
        raise DialectError("Spring takes - for never: that is a JobConfig without schedules")
    if text.startswith("@"):
        known = _SHORTHANDS.get(dialect, {})
        plain = known.get(text.lower())
        if plain is None:
            expected = f"expected one of {', '.join(known)}" if known else "expected fields"
            raise DialectError(f"{_RULES[dialect].title} has no {quoted(text)}: {expected}")
        text = plain
    return _Line(_RULES[dialect], text).converted()


def _rate(text: str) -> Converted:
    match = re.fullmatch(r"rate\(\s*([0-9]{1,6})\s+(minute|hour|day)s?\s*\)", text, re.IGNORECASE)
    if not match:
        why = "once is a Job with startAfter" if text.lower().startswith("at(") else "no such rate"
        raise DialectError(f"{why}: expected cron(...), or rate(5 minutes)")
    minutes = int(match[1]) * {"minute": 1, "hour": 60, "day": 1440}[match[2].lower()]
    line = _every(minutes)
    if line is None:
        raise DialectError(
            "a rate counts from when its rule was made, and a line goes by the clock: "
            f"{match[1]} {match[2].lower()}s do not divide an hour or a day evenly"
        )
    why = "a rate counts from when its rule was made, and a line goes by the clock"
    return Converted((line,), None, (), (Remark("is due at other moments", why, f'"{line}"'),))


def _every(minutes: int) -> str | None:
    """The line that is due every so many minutes; None when the clock has none."""
    if minutes < 1:
        return None
    if minutes < 60:
        return (
            (f"*/{minutes} * * * *" if minutes > 1 else "* * * * *") if 60 % minutes == 0 else None
        )
    hours, rest = divmod(minutes, 60)
    if rest or 24 % hours:
        return None
    return {1: "0 * * * *", 24: "0 0 * * *"}.get(hours, f"0 */{hours} * * *")


class _Line:
    """A line that is being read."""

    def __init__(self, rules: _Rules, text: str) -> None:
        self._rules = rules
        self._remarks: list[Remark] = []
        words = text.upper().split()
        fields = rules.fields.get(len(words))
        if fields is None:
            most = " or ".join(map(str, rules.fields))
            raise DialectError(f"found {len(words)} fields, and {rules.title} has {most}")
        self._words = {field.name: word for field, word in zip(fields, words, strict=True)}
        self._words = {SECOND.name: "0", YEAR.name: "*", **self._words}

    def converted(self) -> Converted:
        """The line in our words."""
        made = {field.name: self._field(field) for field in (SECOND, MINUTE, HOUR, MONTH, YEAR)}
        self._check_day_fields()
        months = self._values(MONTH) if not self._has_hash(MONTH) else set(range(1, 13))
        only: tuple[str, ...] = ()
        day, weekday = self._day(months), self._weekday()
        if "*" not in (day, weekday):
            # Both must fit, and to us either would do.
            only, weekday = self._calendar_days(), "*"
        made |= {DAY_OF_MONTH.name: day, DAY_OF_WEEK.name: weekday}
        if match := re.fullmatch(r"L-([0-9]+)W", day):
            lines = self._near_last(made, months, int(match[1]))
            return Converted(lines, None, only, tuple(self._remarks))
        line, format = _written(made)
        return Converted((line,), format, only, tuple(self._remarks))

    def _check_day_fields(self) -> None:
        days = [self._words[field.name] for field in (DAY_OF_MONTH, DAY_OF_WEEK)]
        if self._rules.one_day_field and days.count("?") != 1:
            raise DialectError(
                f"{self._rules.title} wants a ? in exactly one of the day of the month and the "
                f"weekday, found {quoted(days[0])} and {quoted(days[1])}"
            )

    def _has_hash(self, field: Field) -> bool:
        return "H" in self._words[field.name]

    def _field(self, field: Field) -> str:
        """A field without rules of days."""
        word = self._words[field.name]
        if self._rules.has_hash and any(_HASH.fullmatch(part) for part in word.split(",")):
            return self._hashed(field, word)
        values = self._values(field)
        if field is YEAR and re.search(r"\b2[1-9][0-9]{2}\b", word):
            why = f"no schedule here goes beyond {YEAR.high}"
            self._remarks.append(Remark(f"{quoted(word)} ends sooner", why, str(YEAR.high)))
        return _said(field, word, values)

    def _hashed(self, field: Field, word: str) -> str:
        why = "each program draws its own value from the name"
        self._remarks.append(Remark("an H falls elsewhere", why, "H, drawn by its new name"))
        # Jenkins takes a step of 1 for none: one value, and not every one.
        word = re.sub(r"(H(?:\([0-9]+-[0-9]+\))?)/1(?![0-9])", r"\1", word)
        if field is DAY_OF_MONTH:
            # Jenkins stays within the days that every month has.
            word = re.sub(r"\bH/", "H(1-28)/", word)
        return word

    def _values(self, field: Field, word: str | None = None) -> set[int]:
        """All values that a field means, as we number them."""
        found: set[int] = set()
        for part in (self._words[field.name] if word is None else word).split(","):
            found |= self._part(field, part)
        return found

    def _part(self, field: Field, part: str) -> set[int]:
        match = _PART.fullmatch(part)
        if not match or not part or (part.startswith("?") and field not in _DAYS):
            raise DialectError(f"{quoted(part)} is no {field.name} of {self._rules.title}")
        low, high = self._span(field)
        step = int(match["step"] or 1)
        if step < 1:
            raise DialectError(f"{quoted(part)}: expected a step of 1 or more")
        if not match["first"]:
            first, last = low, high
        else:
            first = self._value(field, part, match["first"])
            last = self._value(field, part, match["last"]) if match["last"] else first
            if match["step"] and not self._rules.steps_names and not match["first"].isdigit():
                raise DialectError(f"{quoted(part)}: a step after a name does not count there")
            if field is DAY_OF_WEEK and self._rules.lists_weekdays and match["last"]:
                # Spring takes Sunday for 0 at the start of a range, and for 7 elsewhere.
                first %= 7
            if match["step"] and not match["last"]:
                if not self._rules.steps_from:
                    raise DialectError(f"{quoted(part)}: Jenkins wants a range before the /")
                last = high
        if match["step"] and step > last - first and step > high - low:
            why = f"a step beyond the end of the {field.name}s leaves the first value alone"
            self._remarks.append(Remark(f"{quoted(part)} is {first}", why, "the same"))
        return self._walked(field, part, first, last, step)

    def _walked(self, field: Field, part: str, first: int, last: int, step: int) -> set[int]:
        low, high = self._span(field)
        size = 7 if field is DAY_OF_WEEK else high - low + 1
        if first > last:
            if not self._rules.wraps or field is YEAR:
                raise DialectError(f"{quoted(part)}: expected the range to rise")
            last += size
        numbers = range(first, last + 1, step)
        if field is DAY_OF_WEEK:
            return {(number - self._rules.sunday) % 7 for number in numbers}
        return {(number - low) % size + low for number in numbers}

    def _span(self, field: Field) -> tuple[int, int]:
        """The first and the last value of a field without limits."""
        if field is DAY_OF_WEEK:
            if self._rules.title == "Spring":
                return 1, 7
            return (1, 7) if self._rules.sunday else (0, 6)
        return (field.low, 2199) if field is YEAR else (field.low, field.high)

    def _value(self, field: Field, part: str, word: str) -> int:
        low, high = self._span(field)
        if field is DAY_OF_WEEK:
            low, high = self._rules.sunday, 7
        if word.isdigit():
            if low <= int(word) <= high:
                return int(word)
        elif len(word) == 3 and word in field.names:
            number = field.names[word]
            if field is not DAY_OF_WEEK:
                return number
            return number + 1 if self._rules.sunday else number or 7
        raise DialectError(f"{quoted(part)}: expected {low} to {high} in the {field.name}")

    def _day(self, months: set[int]) -> str:
        word = self._words[DAY_OF_MONTH.name]
        parts = word.split(",")
        rules = [part for part in parts if re.search("[LW]", part)]
        if not rules or not self._rules.has_rules:
            return self._field(DAY_OF_MONTH)
        self._check_alone(parts, is_list=self._rules.lists_days)
        return ",".join(
            self._day_rule(part, months)
            if part in rules
            else _said(DAY_OF_MONTH, part, self._values(DAY_OF_MONTH, part))
            for part in parts
        )

    def _check_alone(self, parts: list[str], *, is_list: bool) -> None:
        if len(parts) > 1 and not is_list:
            raise DialectError(f"{self._rules.title} takes L, W and # only alone in their field")
        if len(parts) > 1 and any(re.fullmatch("L-[0-9]+W", part) for part in parts):
            raise DialectError("L-1W and the like can only be said alone in their field")

    def _day_rule(self, part: str, months: set[int]) -> str:
        if match := _LAST.fullmatch(part):
            before = int(match["before"] or 0)
            if before > _MOST_BEFORE:
                raise DialectError(f"{quoted(part)}: not every month has that day")
            if before and match["workday"] and not self._rules.one_day_field:
                raise DialectError(f"{self._rules.title} has no {quoted(part)}")
            return part
        match = _WORKDAY.fullmatch(part)
        if not match or not 1 <= int(match[1]) <= 31:
            raise DialectError(f"{quoted(part)} is no day-of-month of {self._rules.title}")
        shortest = min(
            28 if month == 2 else calendar.monthrange(2026, month)[1] for month in months
        )
        most = shortest - 1 if self._rules.moves_past_end else shortest
        if int(match[1]) > most:
            raise DialectError(
                f"{quoted(part)}: programs disagree about months that end on that day or before; "
                "write LW for the last working day, or a line of its own for such months"
            )
        return part

    def _weekday(self) -> str:
        word = self._words[DAY_OF_WEEK.name]
        if self._rules.has_hash and self._has_hash(DAY_OF_WEEK):
            return self._field(DAY_OF_WEEK)
        plain, nth = self._weekday_parts()
        if word in ("*", "?") or len(plain) == 7:
            return "*"
        words = [weekdays_in_words(plain)] if plain else []
        words += [f"{day}{'L' if count < 0 else f'#{count}'}" for day, count in nth]
        return ",".join(words)

    def _weekday_parts(self) -> tuple[set[int], list[tuple[str, int]]]:
        """The weekdays that are always meant, and those that are the nth of their month."""
        plain: set[int] = set()
        nth: list[tuple[str, int]] = []
        parts = self._words[DAY_OF_WEEK.name].split(",")
        for part in parts:
            match = _NTH.fullmatch(part) if self._rules.has_rules else None
            if match:
                self._check_alone(parts, is_list=self._rules.lists_weekdays)
                count = int(match["nth"] or -1)
                if count not in (-1, 1, 2, 3, 4, 5):
                    raise DialectError(f"{quoted(part)}: expected #1 to #5")
                number = self._value(DAY_OF_WEEK, part, match["day"])
                nth.append((weekdays_in_words({(number - self._rules.sunday) % 7}), count))
            elif part == "L" and self._rules.one_day_field:
                # The last day of a week that begins on Sunday.
                plain.add(6)
            else:
                plain |= self._part(DAY_OF_WEEK, part)
        return plain, nth

    def _calendar_days(self) -> tuple[str, ...]:
        if self._has_hash(DAY_OF_WEEK) and self._rules.has_hash:
            raise DialectError("a day of the month and an H for the weekday: no line says both")
        plain, nth = self._weekday_parts()
        words = [weekdays_in_words(plain)] if plain else []
        names = {-1: "last", 1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 5: "5th"}
        return (*words, *(f"{names[count]} {day} of *" for day, count in nth))

    def _near_last(self, made: dict[str, str], months: set[int], before: int) -> tuple[str, ...]:
        """The working day nearest to one before the last: a line for each length of a month."""
        years = {year for year in self._values(YEAR) if year <= YEAR.high}
        every = frozenset(range(YEAR.low, YEAR.high + 1))
        lines = []
        for length, of_length, of_years in (
            (31, {1, 3, 5, 7, 8, 10, 12}, every),
            (30, {4, 6, 9, 11}, every),
            (29, {2}, _LEAP),
            (28, {2}, every - _LEAP),
        ):
            wanted, when = months & of_length, years & of_years
            if wanted and when:
                parts = made | {
                    DAY_OF_MONTH.name: f"{length - before}W",
                    MONTH.name: _listed(wanted),
                    YEAR.name: _years(when),
                }
                names = [field.name for field in (SECOND, *FIVE, YEAR)]
                lines.append(" ".join(parts[name] for name in names))
        if len(lines) > 1:
            why = "no single line says it: months differ in length"
            self._remarks.append(Remark("becomes several lines", why, "the same days"))
        return tuple(lines)


_DAYS = (DAY_OF_MONTH, DAY_OF_WEEK)


def _said(field: Field, word: str, values: set[int]) -> str:
    """A field in our words: as it was written where we read the same from it."""
    if field is YEAR:
        values = {year for year in values if year <= YEAR.high}
        if not values:
            raise DialectError(f"{quoted(word)}: years end with {YEAR.high} here")
    if len(values) == field.size:
        return "*"
    bits = sum(1 << value - field.low for value in values)
    for text in (word, ",".join(_rising(field, part) for part in word.split(","))):
        flaws = Flaws("field", text)
        reading = read_field(field, text, 0, "x/x", flaws)
        if not flaws and not reading.rules and reading.fixed == bits:
            return text
    return _years(values) if field is YEAR else _listed(values)


def _rising(field: Field, part: str) -> str:
    """A range that runs past the end of its field, as one up to the end and one from the start."""
    match = re.fullmatch(r"([0-9]+)-([0-9]+)", part)
    if not match or int(match[1]) <= int(match[2]):
        return part
    return f"{match[1]}-{field.high},{field.low}-{match[2]}"


def _listed(values: Iterable[int]) -> str:
    """Numbers as single ones and ranges."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


def _years(values: Iterable[int]) -> str:
    """Years; leap years and all others are every fourth year from some years on."""
    years = frozenset(values)
    if len(years) == YEAR.size:
        return "*"
    if years == _LEAP:
        return "1972/4"
    if years == frozenset(range(YEAR.low, YEAR.high + 1)) - _LEAP:
        return "1970/4,1971/4,1973/4"
    return _listed(years)


def _written(made: dict[str, str]) -> tuple[str, str | None]:
    """The line with as few fields as will do, and its format."""
    middle = " ".join(made[field.name] for field in FIVE)
    second, year = made[SECOND.name], made[YEAR.name]
    match (second != "0", year != "*"):
        case (False, False):
            return middle, None
        case (True, False):
            return f"{second} {middle}", "SecondsFirst"
        case (False, True):
            return f"{middle} {year}", "YearLast"
        case _:
            return f"{second} {middle} {year}", None
