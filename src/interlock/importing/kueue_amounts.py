"""Amounts as Kubernetes writes them, which is in more ways than ours."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.importing.drafts import quoted
from interlock.importing.fields import Fields
from interlock.resources.values.amounts import EXPECTED, MOST, Amount, format_milli
from interlock.resources.values.quantities import parse_quantity


def read_amount(given: Fields, name: str) -> Amount:
    """An amount in a field.

    Raises:
        BadSourceError: It is none.
    """
    value = given.raw(name)
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(EXPECTED)
        return _amount(value)
    except ValueError as error:
        raise given.wrong(name, f"{error}, found {quoted(str(value))}") from None


def sum_of(amounts: Sequence[Amount]) -> int | str:
    """Some amounts together; one alone as it is written."""
    if len(amounts) == 1:
        return amounts[0].written
    return format_milli(sum(amount.milli for amount in amounts))


def _amount(value: float | str) -> Amount:
    try:
        return Amount.read(value if isinstance(value, int) else str(value))
    except ValueError:
        # Ours know no 1e3 and no .5.
        text = str(value)
        scale, number = (1, text[:-1]) if text.endswith("m") else (1000, text)
        try:
            milli = parse_quantity(number) * scale
        except ValueError:
            raise ValueError(EXPECTED) from None
        if milli > MOST * 1000:
            raise
        return Amount(milli)
