"""Which days of a month are meant, when that depends on the month: `L`, `15W`, `5L`, `5#3`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import assert_never

from msgspec import Struct

from interlock.timing.months import SHAPES, all_days, every_weekday, nth_weekday
from interlock.timing.names import WEEKDAY_NAMES


class LastDay(Struct, frozen=True):
    """`L`, or `L-n`: the day that is n days before the last one."""

    before: int = 0


class Workday(Struct, frozen=True):
    """`15W`: the workday nearest to a day, in the same month. `LW` (None): the last workday."""

    day: int | None


class NthWeekday(Struct, frozen=True):
    """`5#3`: the third Friday. `5L` (-1): the last Friday."""

    weekday: int
    nth: int


DayRule = LastDay | Workday | NthWeekday

_LAST = re.compile(r"L(?:-([0-9]{1,2}))?")
_WORKDAY = re.compile(r"(?:L|([0-9]{1,2}))W")
_NTH = re.compile(r"([0-7]|[A-Z]{3,9}?)(?:L|#([1-5]))")


def read_day_rule(field: str, text: str) -> DayRule | None:
    """The rule that a part in capitals is; None if it is none, or makes no sense in that field."""
    if field == "day-of-month":
        return _read_day_of_month(text)
    if field == "day-of-week":
        return _read_day_of_week(text)
    return None


def _read_day_of_month(text: str) -> DayRule | None:
    if match := _LAST.fullmatch(text):
        before = int(match[1] or 0)
        return LastDay(before) if before <= 30 else None
    if match := _WORKDAY.fullmatch(text):
        day = int(match[1]) if match[1] else None
        return Workday(day) if day is None or 1 <= day <= 31 else None
    return None


def _read_day_of_week(text: str) -> DayRule | None:
    match = _NTH.fullmatch(text)
    if not match:
        return None
    weekday = int(match[1]) % 7 if match[1].isdigit() else WEEKDAY_NAMES.get(match[1])
    return None if weekday is None else NthWeekday(weekday, int(match[2] or -1))


def days_by_rule(rule: DayRule, shape: int) -> int:
    """The days, as bits, that a rule means in a month of some shape."""
    length = shape % 4 + 28
    match rule:
        case LastDay(before):
            return 1 << length - 1 - before if before < length else 0
        case NthWeekday(weekday, nth):
            return nth_weekday(shape, weekday, nth)
        case Workday(day):
            return _nearest_workday(day or length, shape, length)
        case _:
            assert_never(rule)


def _nearest_workday(day: int, shape: int, length: int) -> int:
    if day > length:
        return 0
    weekday = (shape // 4 + day - 1) % 7
    if weekday == 6:
        day += -1 if day > 1 else 2
    elif weekday == 0:
        day += 1 if day < length else -2
    return 1 << day - 1


@lru_cache(maxsize=1024)
def days_by_shape(
    days: int, day_rules: tuple[DayRule, ...], weekdays: int, weekday_rules: tuple[DayRule, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each shape of a month: the days by day of month, and the days by day of week."""
    by_month = []
    by_week = []
    for shape in range(SHAPES):
        of_month, of_week = days & all_days(shape), every_weekday(shape, weekdays)
        for rule in day_rules:
            of_month |= days_by_rule(rule, shape)
        for rule in weekday_rules:
            of_week |= days_by_rule(rule, shape)
        by_month.append(of_month)
        by_week.append(of_week)
    return tuple(by_month), tuple(by_week)
