"""Date formats in the tokens of Moment.js, such as `YYYY-MM-DD`; names are English."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

_TOKEN = re.compile(
    r"\[([^\[\]]*)\]|\\(.)|"
    r"(Mo|M{1,4}|Do|DDDo|D{1,4}|do|d{1,4}|w[ow]?|W[oW]?|Qo?|Y{4,6}|YY|Y|g{4,5}|gg|G{4,5}|GG"
    r"|e|E|a|A|hmmss|hmm|Hmmss|Hmm|hh?|HH?|kk?|mm?|ss?|S{1,9}|x|X|zz?|ZZ?|LTS|LT|L{1,4}|l{1,4})"
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
#: What the tokens for whole dates stand for.
_LONG = {
    "LT": "h:mm A",
    "LTS": "h:mm:ss A",
    "L": "MM/DD/YYYY",
    "l": "M/D/YYYY",
    "LL": "MMMM D, YYYY",
    "ll": "MMM D, YYYY",
    "LLL": "MMMM D, YYYY h:mm A",
    "lll": "MMM D, YYYY h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "llll": "ddd, MMM D, YYYY h:mm A",
}


def format_moment(moment: datetime, format: str) -> str:
    """Write a moment in its own offset. Text in [brackets] stays as it is."""

    def put(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        return found[2] if found[2] is not None else _written(moment, found[3])

    return _TOKEN.sub(put, format)


def unknown_in(format: str) -> tuple[str, ...]:
    """The words of a format that are no tokens; the T between a date and a time is known."""
    words = re.findall(r"[A-Za-z]+", _TOKEN.sub(" ", format))
    return tuple(word for word in words if word != "T")


def _written(moment: datetime, token: str) -> str:
    if token in _LONG:
        return format_moment(moment, _LONG[token])
    if token.startswith("S"):
        return f"{moment.microsecond:06}000"[: len(token)]
    return _TOKENS[token](moment)


def _ordinal(number: int) -> str:
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _day_of_year(moment: datetime) -> int:
    return moment.timetuple().tm_yday


def _weekday(moment: datetime) -> int:
    """The day of the week, Sunday 0."""
    return moment.isoweekday() % 7


def _week(moment: datetime) -> tuple[int, int]:
    """Year and week where weeks begin on Sunday and the first holds the first of January."""
    saturday = moment.replace(tzinfo=None) + timedelta(days=6 - _weekday(moment))
    return saturday.year, (saturday.timetuple().tm_yday - 1) // 7 + 1


def _hour12(moment: datetime) -> int:
    return moment.hour % 12 or 12


def _hour24(moment: datetime) -> int:
    return moment.hour or 24


def _half(moment: datetime) -> str:
    return "AM" if moment.hour < 12 else "PM"


def _offset(moment: datetime, colon: str) -> str:
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}{colon}{minutes:02}"


_TOKENS: dict[str, Callable[[datetime], str]] = {
    "Y": lambda m: str(m.year),
    "YY": lambda m: f"{m.year % 100:02}",
    "YYYY": lambda m: f"{m.year:04}",
    "YYYYY": lambda m: f"{m.year:05}",
    "YYYYYY": lambda m: f"+{m.year:06}",
    "Q": lambda m: str((m.month + 2) // 3),
    "Qo": lambda m: _ordinal((m.month + 2) // 3),
    "M": lambda m: str(m.month),
    "Mo": lambda m: _ordinal(m.month),
    "MM": lambda m: f"{m.month:02}",
    "MMM": lambda m: _MONTHS[m.month - 1][:3],
    "MMMM": lambda m: _MONTHS[m.month - 1],
    "D": lambda m: str(m.day),
    "Do": lambda m: _ordinal(m.day),
    "DD": lambda m: f"{m.day:02}",
    "DDD": lambda m: str(_day_of_year(m)),
    "DDDo": lambda m: _ordinal(_day_of_year(m)),
    "DDDD": lambda m: f"{_day_of_year(m):03}",
    "d": lambda m: str(_weekday(m)),
    "do": lambda m: _ordinal(_weekday(m)),
    "dd": lambda m: _DAYS[_weekday(m)][:2],
    "ddd": lambda m: _DAYS[_weekday(m)][:3],
    "dddd": lambda m: _DAYS[_weekday(m)],
    "e": lambda m: str(_weekday(m)),
    "E": lambda m: str(m.isoweekday()),
    "w": lambda m: str(_week(m)[1]),
    "wo": lambda m: _ordinal(_week(m)[1]),
    "ww": lambda m: f"{_week(m)[1]:02}",
    "W": lambda m: str(m.isocalendar().week),
    "Wo": lambda m: _ordinal(m.isocalendar().week),
    "WW": lambda m: f"{m.isocalendar().week:02}",
    "gg": lambda m: f"{_week(m)[0] % 100:02}",
    "gggg": lambda m: f"{_week(m)[0]:04}",
    "ggggg": lambda m: f"{_week(m)[0]:05}",
    "GG": lambda m: f"{m.isocalendar().year % 100:02}",
    "GGGG": lambda m: f"{m.isocalendar().year:04}",
    "GGGGG": lambda m: f"{m.isocalendar().year:05}",
    "a": lambda m: _half(m).lower(),
    "A": _half,
    "h": lambda m: str(_hour12(m)),
    "hh": lambda m: f"{_hour12(m):02}",
    "H": lambda m: str(m.hour),
    "HH": lambda m: f"{m.hour:02}",
    "k": lambda m: str(_hour24(m)),
    "kk": lambda m: f"{_hour24(m):02}",
    "hmm": lambda m: f"{_hour12(m)}{m.minute:02}",
    "hmmss": lambda m: f"{_hour12(m)}{m.minute:02}{m.second:02}",
    "Hmm": lambda m: f"{m.hour}{m.minute:02}",
    "Hmmss": lambda m: f"{m.hour}{m.minute:02}{m.second:02}",
    "m": lambda m: str(m.minute),
    "mm": lambda m: f"{m.minute:02}",
    "s": lambda m: str(m.second),
    "ss": lambda m: f"{m.second:02}",
    "x": lambda m: str(int(m.timestamp() * 1000)),
    "X": lambda m: str(int(m.timestamp())),
    "z": lambda m: _offset(m, ":"),
    "zz": lambda m: _offset(m, ":"),
    "Z": lambda m: _offset(m, ":"),
    "ZZ": lambda m: _offset(m, ""),
}
