"""Amounts of a resource as people write them: 2, "500m", "1.5", "512Gi"."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

from interlock.resources.values.quantities import parse_quantity

EXPECTED = 'expected an amount such as 4, "500m" or "512Gi"'

#: As a schema says it of text.
PATTERN = "[0-9]{1,19}([.][0-9]{1,9})?([mkMGTPE]|[KMGTPE]i)?"
LONGEST_TEXT = 32
#: No amount is above this many whole ones, so that sums of them stay numbers that JSON keeps.
MOST = 1 << 53

_WHOLE = re.compile(
    "(?P<number>[0-9]{1,19}(?:[.][0-9]{1,9})?)(?P<suffix>[mkMGTPE]|[KMGTPE]i)?",
)
_BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


class Amount:
    """So much of a resource, exact to a thousandth, never negative; written as it was read."""

    __slots__ = ("milli", "written")

    def __init__(self, milli: int, written: int | str | None = None) -> None:
        self.milli = milli
        #: How it was written, so that it is written the same way again.
        self.written = format_milli(milli) if written is None else written

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and self.milli == other.milli

    def __hash__(self) -> int:
        return hash(self.milli)

    def __str__(self) -> str:
        return str(self.written)

    def __repr__(self) -> str:
        return f"Amount({self.written!r})"

    @staticmethod
    def read(value: object) -> Amount:
        """Read an amount: a whole number, or text.

        Raises:
            ValueError: It is none.
        """
        if isinstance(value, Amount):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            if not 0 <= value <= MOST:
                raise ValueError(f"expected 0 to {MOST}")
            return Amount(value * 1000, value)
        if isinstance(value, str):
            return _parsed(value)
        raise ValueError(EXPECTED)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Amount:
    read = _WHOLE.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if read is None:
        raise ValueError(EXPECTED)
    scale = 1 if read["suffix"] == "m" else parse_quantity(f"1{read['suffix'] or ''}") * 1000
    # Rounded up, as Kubernetes does: nobody is ever counted with less than was written.
    milli = int((Decimal(read["number"]) * scale).to_integral_value(rounding=ROUND_CEILING))
    if milli > MOST * 1000:
        raise ValueError(f"expected at most {MOST}")
    return Amount(milli, text)


def format_milli(milli: int) -> int | str:
    """So many thousandths as one would write them: "500m", 16, "512Gi"."""
    whole, rest = divmod(milli, 1000)
    if rest:
        return f"{milli}m"
    for suffix, size in _BINARY:
        if whole >= size and whole % size == 0:
            return f"{whole // size}{suffix}"
    return whole
