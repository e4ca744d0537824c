"""The names of months and weekdays, in capitals, short and long."""

from __future__ import annotations

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
