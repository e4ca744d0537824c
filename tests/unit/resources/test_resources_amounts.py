"""Durations, quantities, amounts and sets of indexes, as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.resources.codec import from_builtins, to_builtins
from interlock.resources.describe.schema import AMOUNT
from interlock.resources.queue import QueueSpec
from interlock.resources.values.amounts import MOST, Amount, format_milli
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


#: What is an amount, with how many thousandths it is.
AMOUNTS: list[tuple[int | str, int]] = [
    (0, 0),
    (4, 4000),
    (MOST, MOST * 1000),
    ("0", 0),
    ("4", 4000),
    ("500m", 500),
    ("1m", 1),
    ("0.5m", 1),
    ("1.5", 1500),
    ("0.0001", 1),
    ("2k", 2_000_000),
    ("1Ki", 1_024_000),
    ("512Gi", (512 << 30) * 1000),
    ("1.5Gi", (3 << 29) * 1000),
    ("8Pi", (8 << 50) * 1000),
    ("9P", 9 * 10**18),
    ("9007199254740992", MOST * 1000),
    ("0" * 18 + "1", 1000),
]
#: What is none.
NO_AMOUNTS: list[object] = [
    *("", " ", "x", "-1", "+1", "1 Gi", "1GiB", "1gi", "1K", "1e3", "1.", ".5", "1,5", "٣", "1\n"),
    *("1" * 20, "0." + "1" * 10, "9007199254740993", "9007199254740992.5", "10P", "8.1Pi", "1E"),
    *("9" * 33, -1, MOST + 1, 1.5, 1.0, True, False, None, [], {}),
]


@pytest.mark.parametrize(("written", "milli"), AMOUNTS)
def test_amounts(written: int | str, milli: int) -> None:
    amount = Amount.read(written)

    assert amount.milli == milli
    assert Amount.read(amount) is amount
    assert str(amount) == str(written)


@pytest.mark.parametrize("written", NO_AMOUNTS, ids=repr)
def test_what_is_no_amount(written: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        Amount.read(written)


@pytest.mark.parametrize(("written", "milli"), AMOUNTS)
def test_an_amount_is_written_as_it_was_read(written: int | str, milli: int) -> None:
    spec = from_builtins({"resources": {"cpu": written}}, QueueSpec)

    assert to_builtins(spec)["resources"] == {"cpu": written}
    assert spec.resources["cpu"].milli == milli


def test_an_amount_is_what_it_stands_for_however_it_is_written() -> None:
    assert Amount.read("1000m") == Amount.read(1) == Amount.read("1.0")
    assert len({Amount.read("1Ki"), Amount.read(1024)}) == 1
    assert Amount.read(1) != 1


@pytest.mark.parametrize("written", [text for text in NO_AMOUNTS if isinstance(text, str)])
def test_a_schema_takes_no_text_that_is_no_amount_but_for_its_size(written: str) -> None:
    is_taken = re.search(AMOUNT["pattern"].replace("$", r"\Z"), written) is not None

    too_much = {"9007199254740993", "9007199254740992.5", "10P", "8.1Pi", "1E"}
    assert is_taken is (written in too_much)


@pytest.mark.parametrize("written", [text for text, _ in AMOUNTS if isinstance(text, str)])
def test_a_schema_takes_every_amount(written: str) -> None:
    assert re.search(AMOUNT["pattern"], written)
    assert len(written) <= AMOUNT["maxLength"]


@given(milli=st.integers(0, MOST * 1000))
def test_what_is_said_of_an_amount_is_that_amount(milli: int) -> None:
    """What we write ourselves, in a record or a report, reads as the same to a thousandth."""
    assert Amount.read(format_milli(milli)).milli == milli
    assert Amount(milli) == Amount.read(Amount(milli).written)


@given(
    whole=st.integers(0, 10**6),
    part=st.text("0123456789", max_size=9),
    suffix=st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]),
)
def test_nobody_is_counted_with_less_than_was_written(whole: int, part: str, suffix: str) -> None:
    text = f"{whole}.{part}{suffix}" if part else f"{whole}{suffix}"
    more = Amount.read(text).milli

    least, most = Amount.read(f"{whole}{suffix}").milli, Amount.read(f"{whole + 1}{suffix}").milli
    assert least <= more <= most
    assert (more == least) is (int(part or 0) == 0 or more == least == most)


def test_index_sets_read_and_write_ranges() -> None:
    assert str(IndexSet.parse("3,0-1,2,9")) == "0-3,9"
    assert list(IndexSet.parse("")) == []


@pytest.mark.parametrize("text", ["x", "1-", "3-1", "-1", "1,,2", "9" * 10, "٣"])
def test_what_is_no_index_set(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        IndexSet.parse(text)
