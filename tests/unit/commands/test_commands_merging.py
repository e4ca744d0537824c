"""An apply changes what the file says, removes what it no longer says, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.commands.merging import (
    LAST_APPLIED,
    last_applied,
    three_way_patch,
    with_last_applied,
)
from interlock.resources.door.patches import merge_patch


@pytest.mark.parametrize(
    ("before", "given_now", "stored", "expected"),
    [
        pytest.param({}, {"a": 1}, {"a": 1}, {}, id="the same"),
        pytest.param({}, {"a": 1}, {"b": 2}, {"a": 1}, id="others' fields stay"),
        pytest.param({"a": 1}, {}, {"a": 1}, {"a": None}, id="no longer said"),
        pytest.param({"a": 1}, {}, {}, {}, id="no longer said nor stored"),
        pytest.param({}, {"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1}}, id="nested"),
        pytest.param(
            {"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 1, "c": 2, "d": 4}},
            {"a": {"b": 3, "c": None}}, id="nested change and removal",
        ),
        pytest.param({}, {"a": [1, 2]}, {"a": [1]}, {"a": [1, 2]}, id="lists are replaced whole"),
        pytest.param({}, {"a": True}, {"a": 1}, {"a": True}, id="true is not one"),
        pytest.param({}, {"a": None}, {"a": 1}, {"a": None}, id="null means not there"),
        pytest.param({}, {"a": {}}, {}, {"a": {}}, id="an empty object is something"),
    ],
)  # fmt: skip
def test_patch(
    before: dict[str, Any], given_now: dict[str, Any], stored: dict[str, Any], expected: object
) -> None:
    assert three_way_patch(before, given_now, stored) == expected


VALUES = st.recursive(
    st.sampled_from([0, 1, "x", True]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.lists(inner, max_size=2)
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@settings(deadline=None)
@given(before=DOCUMENTS, after=DOCUMENTS)
def test_applying_one_file_after_another_leaves_exactly_the_second(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """With nobody else writing, what is stored is what the newest file says."""
    patch = three_way_patch(before, after, before)
    result = merge_patch(before, patch)

    assert _without_empty(result) == _without_empty(after)
    assert three_way_patch(after, after, result) == {}


def _without_empty(value: Any) -> Any:
    """A merge patch cannot tell an object that lost all its fields from one that had none."""
    if not isinstance(value, dict):
        return value
    inner = {name: _without_empty(held) for name, held in value.items()}
    return {name: held for name, held in inner.items() if held != {}}


def test_the_record_is_kubectls() -> None:
    marked = with_last_applied({"kind": "Job", "metadata": {"name": "x"}, "spec": {"b": 1}})

    record = marked["metadata"]["annotations"][LAST_APPLIED]
    assert record == ('{"kind":"Job","metadata":{"annotations":{},"name":"x"},"spec":{"b":1}}\n')
    assert last_applied(marked) == json.loads(record)


def test_a_record_that_cannot_be_read_counts_as_none() -> None:
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: "{"}}}) == {}
