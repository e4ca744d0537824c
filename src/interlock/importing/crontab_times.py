"""The times of a crontab's line: what vixie cron means by them, in our words.

A field whose first character is `*` counts as a wildcard to cron, whatever follows: that decides
about clock changes, and whether the days of the month and of the week must both fit.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from interlock.importing.cron_lines import NAMES, SPANS
from interlock.importing.drafts import BadSourceError, Flaw, quoted

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every_minute": "* * * * *",
}
_NAMES = ("minute", "hour", "day of the month", "month", "day of the week")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_PART = re.compile(
    r"(?:(?P<star>\*)|(?P<first>[0-9A-Za-z]+)(?:-(?P<last>[0-9A-Za-z]+))?)(?:/(?P<step>[0-9]{1,4}))?"
)
_NUMBERS = re.compile(r"([0-9]+)-([0-9]+)")
_RANDOM = re.compile(r"([0-9]*)~([0-9]*)")
_MONTH, _WEEKDAY = 3, 4


class Remark(NamedTuple):
    """Something about the times that is not as it was."""

    what: str
    why: str
    instead: str


class Times(NamedTuple):
    """When a line is due."""

    #: A line of ours.
    line: str
    #: Whether cron takes it for one with a wildcard when clocks change.
    is_wild: bool
    #: Weekdays that the day must be beside all else; empty is any.
    weekdays: str
    remarks: tuple[Remark, ...]


def read_times(number: int, text: str) -> Times:
    """Read the five fields of a line, or a nickname.

    Raises:
        BadSourceError: Cron would not take them.
    """
    if text.startswith("@"):
        text = _unfolded(number, text)
    fields = text.split()
    remarks: list[Remark] = []
    is_wild = any(field.startswith("*") for field in fields[:2])
    made = [_field(number, at, field, is_wild, remarks) for at, field in enumerate(fields)]
    weekdays = _both_days(number, fields, made)
    return Times(" ".join(made), is_wild, weekdays, tuple(remarks))


def _unfolded(number: int, text: str) -> str:
    plain = _NICKNAMES.get(text.lower())
    if plain is None:
        known = ", ".join(_NICKNAMES)
        message = f"{quoted(text)} is none of {known} and @reboot"
        raise BadSourceError([Flaw(number, message)])
    return plain


def _field(number: int, at: int, field: str, is_wild: bool, remarks: list[Remark]) -> str:
    parts = [_part(number, at, part, is_wild, remarks) for part in field.split(",")]
    if "*" in parts:
        # A wildcard that does not come first is none to cron: it names every value.
        low, size = SPANS[at]
        return "*" if field.startswith("*") else f"{low}-{low + size - 1}"
    return ",".join(part for part in dict.fromkeys(parts) if not _is_covered(part, parts))


def _is_covered(part: str, parts: list[str]) -> bool:
    """Whether a single number is in a plain range beside it: `*/100,1-7` is 1-7."""
    ranges = [found for each in parts if (found := _NUMBERS.fullmatch(each))]
    return part.isdigit() and any(int(one[1]) <= int(part) <= int(one[2]) for one in ranges)


def _part(number: int, at: int, part: str, is_wild: bool, remarks: list[Remark]) -> str:
    if drawn := _RANDOM.fullmatch(part):
        low, size = SPANS[at]
        is_any = not (drawn[1] or drawn[2])
        made = "H" if is_any else f"H({drawn[1] or low}-{drawn[2] or low + size - 1})"
        why = "it is a value that cron draws by lot each time it reads the file"
        remarks.append(Remark(f"{quoted(part)} is drawn once", why, f"{made}, drawn by its name"))
        return made
    match = _PART.fullmatch(part)
    if not match or match["step"] == "0":
        low, size = SPANS[at]
        message = (
            f"{quoted(part)} is no {_NAMES[at]}: expected {low} to {low + size - 1},"
            " a range a-b, *, or either with a step /n"
        )
        raise BadSourceError([Flaw(number, message)])
    _check_range(number, at, match)
    if match["step"] is None:
        return part.upper()
    if not match["star"] and match["last"] is None:
        why = (
            "without a range or a * Debian's cron takes no notice of a step, and cronie of the line"
        )
        remarks.append(Remark(f"{quoted(part)} is read as {match['first']}", why, "the same"))
        return match["first"].upper()
    return _stepped(number, at, match, is_wild)


def _check_range(number: int, at: int, match: re.Match[str]) -> None:
    """Refuse what cron refuses: words that are no names, and ranges that go over the end."""
    if match["star"]:
        return
    first = _value(number, at, match["first"])
    last = _value(number, at, match["last"]) if match["last"] else first
    if first > last:
        low, size = SPANS[at]
        end = low + size - 1
        better = f"{_span(first, end)},{_span(low, last)}"
        if not match["first"].isdigit() and at == _WEEKDAY:
            better = ",".join(_DAYS[day % 7] for day in range(first, last + 8))
        message = (
            f"{quoted(match[0])} ends before it begins, and cron refuses that as {_NAMES[at]}:"
            f' expected "{better}"'
        )
        raise BadSourceError([Flaw(number, message)])


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _stepped(number: int, at: int, match: re.Match[str], is_wild: bool) -> str:
    step, (low, size) = int(match["step"]), SPANS[at]
    if match["star"]:
        return "*" if step == 1 else f"*/{step}" if step < size else str(low)
    first, last = (_value(number, at, word) for word in (match["first"], match["last"]))
    if step > last - first:
        return str(first)
    if at < 2 and not is_wild:
        # With a step it would be an interval to us, and it is a list of fixed times to cron.
        return ",".join(map(str, range(first, last + 1, step)))
    return f"{first}-{last}/{step}"


def _value(number: int, at: int, word: str) -> int:
    value = NAMES[at].get(word.upper()) if not word.isdigit() else int(word)
    low, size = SPANS[at]
    high = 7 if at == _WEEKDAY else low + size - 1
    if value is None or not low <= value <= high:
        names = f" or {', '.join(NAMES[at])}" if NAMES[at] else ""
        message = f"{quoted(word)} is no {_NAMES[at]}: expected {low} to {high}{names}"
        raise BadSourceError([Flaw(number, message)])
    return value


def _both_days(number: int, given: list[str], made: list[str]) -> str:
    """The weekdays that must fit beside the day of the month; they leave the line then.

    To cron `*/2` is a wildcard, and with a wildcard in either field both must fit. To us it is
    none, and either would do.
    """
    month_day, weekday = made[2], made[_WEEKDAY]
    if "*" in (month_day, weekday) or not (given[2][0] == "*" or given[_WEEKDAY][0] == "*"):
        return ""
    days = sorted({day % 7 for part in weekday.split(",") for day in _values(number, part)})
    made[_WEEKDAY] = "*"
    return "" if len(days) == 7 else ",".join(_DAYS[day] for day in days)


def _values(number: int, part: str) -> range:
    """The weekdays of a part that was read before."""
    match = _PART.fullmatch(part)
    if not match:
        raise BadSourceError([Flaw(number, f"{quoted(part)} cannot be read together with */n")])
    step = int(match["step"] or 1)
    if match["star"]:
        return range(0, 7, step)
    first = _value(number, _WEEKDAY, match["first"])
    last = _value(number, _WEEKDAY, match["last"]) if match["last"] else first
    return range(first, last + 1, step)
