"""The names of months and weekdays, in capitals, short and long."""

from __future__ import annotations

from collections.abc import Iterable

_MONTHS = (
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
)
_WEEKDAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")

#: January is 1.
MONTH_NAMES: dict[str, int] = {
    **{name[:3]: number for number, name in enumerate(_MONTHS, 1)},
    **{name: number for number, name in enumerate(_MONTHS, 1)},
}
#: Sunday is 0.
WEEKDAY_NAMES: dict[str, int] = {
    **{name[:3]: number for number, name in enumerate(_WEEKDAYS)},
    **{name: number for number, name in enumerate(_WEEKDAYS)},
}


def weekdays_in_words(weekdays: Iterable[int]) -> str:
    """Weekdays by their short names, Sunday being 0; three or more in a row are a range."""
    wanted = set(weekdays)
    runs: list[list[str]] = []
    last = -2
    for place, number in enumerate((1, 2, 3, 4, 5, 6, 0)):
        if number not in wanted:
            continue
        if last != place - 1:
            runs.append([])
        runs[-1].append(_WEEKDAYS[number][:3])
        last = place
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(run) for run in runs)
