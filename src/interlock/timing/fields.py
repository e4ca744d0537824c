"""One field of a cron line: which of its values are meant.

A field is a list of parts. A part is a value, a range, a wildcard or an `H`, each with or
without a step; fields of days know a few more. Values are bits, the field's lowest value first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from interlock.findings import nearest
from interlock.timing.days import DayRule, read_day_rule
from interlock.timing.flaws import Flaws
from interlock.timing.hashing import place_of
from interlock.timing.names import MONTH_NAMES, WEEKDAY_NAMES


class Field(Struct, frozen=True, kw_only=True, eq=False):
    """What a field may hold."""

    #: Its name; also what `H` hashes beside the identity, so it must never change.
    name: str
    low: int
    high: int
    #: Words for values, in capitals.
    names: Mapping[str, int] = {}
    #: Whether a range may run past the end and go on at the start: NOV-FEB.
    wraps: bool = False
    #: The highest value that a plain `H` may take, so that it exists in every month.
    hash_high: int | None = None

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.high - self.low + 1

    @property
    def every(self) -> int:
        """All values."""
        return (1 << self.size) - 1


SECOND = Field(name="second", low=0, high=59)
MINUTE = Field(name="minute", low=0, high=59)
HOUR = Field(name="hour", low=0, high=23)
DAY_OF_MONTH = Field(name="day-of-month", low=1, high=31, hash_high=28)
MONTH = Field(name="month", low=1, high=12, names=MONTH_NAMES, wraps=True)
DAY_OF_WEEK = Field(name="day-of-week", low=0, high=6, names=WEEKDAY_NAMES, wraps=True)
YEAR = Field(name="year", low=1970, high=2099)

#: Whether a date can ever come is checked for every value an H may take; with several H in one
#: field there would be too many combinations to check.
_ONE_HASH = frozenset(field.name for field in (DAY_OF_MONTH, MONTH, DAY_OF_WEEK, YEAR))


class Reading(Struct, kw_only=True):
    """What was read from a field."""

    #: The values that are meant whatever the name.
    fixed: int = 0
    #: The values that the name drew by hash.
    drawn: int = 0
    #: The values that any name may draw; empty without an `H`.
    draws: tuple[int, ...] = ()
    #: Days that depend on the month: the last one, the third Friday.
    rules: tuple[DayRule, ...] = ()
    #: Whether every value is meant because a part is a plain wildcard.
    is_wild: bool = False
    #: Whether a part is a wildcard or a step that means more than one value.
    is_interval: bool = False

    @property
    def values(self) -> int:
        """All values that are meant."""
        return self.fixed | self.drawn

    @property
    def possible(self) -> tuple[int, ...]:
        """What `values` may be, over all names there can be."""
        return tuple(self.fixed | draw for draw in self.draws) or (self.fixed,)


class Part(Struct, frozen=True):
    """A part of a field, in capitals, and its place in the line."""

    field: Field
    text: str
    place: int


_PART = re.compile(
    r"(?:(?P<wild>[*?])"
    r"|(?P<hash>H)(?:\((?P<low>[^()-]*)-(?P<high>[^()-]*)\))?"
    r"|(?P<first>[0-9A-Z]+)(?:-(?P<last>[0-9A-Z]+))?)?"
    r"(?:/(?P<step>[0-9]+))?"
)


def read_field(field: Field, text: str, place: int, identity: str, flaws: Flaws) -> Reading:
    """Read one field that starts at `place` of its line; note what is wrong in `flaws`."""
    reading = Reading()
    hashes = 0
    for piece in text.split(","):
        part = Part(field, piece.upper(), place)
        _read_part(part, identity, reading, flaws)
        place += len(piece) + 1
        hashes += part.text.startswith("H")
        if hashes > 1 and field.name in _ONE_HASH:
            flaws.add(part.place, piece, f"expected at most one H in the {field.name}")
            break
    return reading


def _read_part(part: Part, identity: str, reading: Reading, flaws: Flaws) -> None:
    if rule := read_day_rule(part.field.name, part.text):
        reading.rules += (rule,)
        return
    match = _PART.fullmatch(part.text)
    if not match or not part.text:
        flaws.add(part.place, part.text, _expected(part))
        return
    step = _step(match["step"], part, flaws)
    span = _span(match, part, flaws)
    if step is None or span is None:
        return
    if match["hash"]:
        values = _draw(part, span, step, identity, reading, flaws)
        reading.drawn |= values
    else:
        values = _stepped(part.field, span, step or 1)
        reading.fixed |= values
    if match["wild"] and (step or 1) == 1:
        reading.is_wild = True
    if (match["wild"] or step) and values & (values - 1):
        reading.is_interval = True


def _step(text: str | None, part: Part, flaws: Flaws) -> int | None:
    """The step; 0 if there is none, None if it makes no sense."""
    if text is None:
        return 0
    if not 1 <= int(text) <= part.field.size:
        flaws.add(part.place, part.text, f"expected a step of 1 to {part.field.size} after the /")
        return None
    return int(text)


def _span(match: re.Match[str], part: Part, flaws: Flaws) -> tuple[int, int] | None:
    """The first and the last value that a part is about; the last may be less where it wraps."""
    field = part.field
    if match["hash"]:
        if match["low"] is None:
            high = field.hash_high if field.hash_high and not match["step"] else field.high
            return field.low, high
        return _range(match["low"], match["high"], part, flaws)
    if not match["first"]:
        return field.low, field.high
    if match["last"]:
        return _range(match["first"], match["last"], part, flaws)
    value = _value(match["first"], part, flaws)
    if value is None:
        return None
    value = _plain(field, value)
    return value, field.high if match["step"] else value


def _range(first: str, last: str, part: Part, flaws: Flaws) -> tuple[int, int] | None:
    field = part.field
    low, high = _value(first, part, flaws), _value(last, part, flaws)
    if low is None or high is None:
        return None
    if _plain(field, low) != low:
        low, high = 0, _plain(field, high)
    if low > high and not field.wraps:
        better = f"{low}-{field.high},{field.low}-{high}"
        hint = "" if part.text.startswith("H") else f'; did you mean "{better}"?'
        flaws.add(part.place, part.text, f"expected the range to rise{hint}")
        return None
    return low, high


def _plain(field: Field, value: int) -> int:
    """The value itself; 0 for the other number of Sunday."""
    return 0 if field is DAY_OF_WEEK and value == 7 else value


def _value(word: str, part: Part, flaws: Flaws) -> int | None:
    field = part.field
    if word in field.names:
        return field.names[word]
    high = 7 if field is DAY_OF_WEEK else field.high
    if word.isascii() and word.isdigit():
        if field.low <= int(word) <= high:
            return int(word)
        near = str(field.low) if int(word) == high + 1 and field.low == 0 else None
    else:
        near = _near_name(word, field)
    better = part.text.replace(word, near) if near and word else None
    hint = f'; did you mean "{better}"?' if better else _elsewhere(word)
    flaws.add(part.place, part.text, f"expected {_allowed(field)} in the {field.name}{hint}")
    return None


def _near_name(word: str, field: Field) -> str | None:
    """The name that was probably meant: one slip in three letters is more than `nearest` takes."""
    alike = [name for name in field.names if len(name) == 3 and name[:2] == word[:2]]
    return nearest(word, field.names) or (alike[0] if len(word) > 1 and len(alike) == 1 else None)


def _elsewhere(word: str) -> str:
    if word == "L":
        return '; "FRIL" is the last Friday of a month'
    for field in (MONTH, DAY_OF_WEEK):
        if word in field.names:
            return f"; {word} is a {field.name}"
    return ""


def _allowed(field: Field) -> str:
    numbers = f"{field.low} to {field.high}"
    if not field.names:
        return numbers
    first, *_, last = [name for name in field.names if len(name) == 3]
    return f"{numbers} or {first} to {last}"


def _expected(part: Part) -> str:
    if not part.text:
        return f"expected a value before and after each comma in the {part.field.name}"
    if part.text in ("**", "??"):
        return 'expected one wildcard; did you mean "*"?'
    special = _SPECIAL.get(part.field.name, "")
    return (
        f"expected {_allowed(part.field)}, a range a-b, a wildcard *, a step */n or an H "
        f"in the {part.field.name}{special}"
    )


_SPECIAL = {
    DAY_OF_MONTH.name: ", or L, L-3, LW, 15W",
    DAY_OF_WEEK.name: ", or 5L, 5#3",
}


def _stepped(field: Field, span: tuple[int, int], step: int) -> int:
    low, high = span
    if low > high:
        high += field.size
    return sum(
        1 << value
        for value in {(each - field.low) % field.size for each in range(low, high + 1, step)}
    )


def _draw(
    part: Part,
    span: tuple[int, int],
    step: int,
    identity: str,
    reading: Reading,
    flaws: Flaws,
) -> int:
    """The values that the hash picks: one place of the span, then each step after it."""
    field = part.field
    low, high = span
    if low > high:
        high += field.size
    places = step or high - low + 1
    if places > high - low + 1:
        flaws.add(part.place, part.text, f"expected a step of at most {high - low + 1}")
        return 0
    reading.draws = draws = _draws(field, low, high, step)
    return draws[place_of(identity, field.name, places)]


@lru_cache(maxsize=1024)
def _draws(field: Field, low: int, high: int, step: int) -> tuple[int, ...]:
    """All that a hash may pick. Many configs have the same line, each with a name of its own."""
    return tuple(
        _stepped(field, (low + place, high), step) if step else _one(field, low + place)
        for place in range(step or high - low + 1)
    )


def _one(field: Field, value: int) -> int:
    return 1 << (value - field.low) % field.size
