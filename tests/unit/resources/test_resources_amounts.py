"""Durations, quantities and sets of indexes, as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.resources.values.durations import format_duration, parse_duration
from interlock.resources.values.indexes import IndexSet
from interlock.resources.values.quantities import parse_quantity


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("0", 0),
        ("250ms", 0.25),
        ("2d", 172800),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    length = parse_duration(text)

    assert length == timedelta(seconds=seconds)
    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    "text", ["", "5", "-5s", "5 s", "5x", "1m1h", "1m1m", "٣s", "9" * 99 + "d", "9999999d"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("128974848", 128974848),
        ("129e6", 129_000_000),
        ("129M", 129_000_000),
        ("123Mi", 123 << 20),
        ("1.5Gi", 3 << 29),
        (".5Ki", 512),
        ("1.", 1),
        ("0.1", 1),
        ("1k", 1000),
        ("7Ei", 7 << 60),
    ],
)
def test_quantities(text: str, amount: int) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1 Gi", "1GiB", "1gi", "1m", "8Ei", "1e99", "1e9999", "٣", "1\n"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_quantity(text)


def test_index_sets_read_and_write_ranges() -> None:
    assert str(IndexSet.parse("3,0-1,2,9")) == "0-3,9"
    assert list(IndexSet.parse("")) == []


@pytest.mark.parametrize("text", ["x", "1-", "3-1", "-1", "1,,2", "9" * 10, "٣"])
def test_what_is_no_index_set(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        IndexSet.parse(text)
