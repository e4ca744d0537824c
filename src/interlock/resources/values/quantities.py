"""Quantities as Kubernetes writes them: "512Mi", "2Gi", "1G", "1.5e3"."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

EXPECTED = 'expected a quantity such as "512Mi", "2Gi" or "1G"'

_SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "Pi": 1 << 50,
    "Ei": 1 << 60,
}
_QUANTITY = re.compile(
    r"(?P<number>[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>[KMGTPE]i|[kMGTPE])?)"
)
_MAX = (1 << 63) - 1


def parse_quantity(text: str) -> int:
    """Read a quantity as a whole number, rounded up as Kubernetes does.

    Raises:
        ValueError: The text is no quantity, or stands for more than 2^63 - 1.
    """
    read = _QUANTITY.fullmatch(text)
    if read is None:
        raise ValueError(EXPECTED)
    scale = Decimal(10) ** int(read["exponent"] or 0) * _SUFFIXES[read["suffix"] or ""]
    total = Decimal(read["number"]) * scale
    if total > _MAX:
        raise ValueError("expected at most 2^63 - 1 (about 8Ei)")
    return int(total.to_integral_value(rounding=ROUND_CEILING))
