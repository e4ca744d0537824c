"""Variables, patches and amounts, for values nobody thought of."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.errors import BadRequestError, InvalidError
from interlock.resources.door.patches import json_patch, merge_patch
from interlock.resources.job import Parallelism
from interlock.resources.values.durations import format_duration, parse_duration
from interlock.resources.variables import (
    UnknownVariableError,
    names_in,
    substitute,
    task_count,
    task_labels,
)
from interlock.testing.builders import a_job

# Examples are drawn the same way on every run, and may take any time on a busy machine.
STEADY = settings(
    deadline=None, derandomize=True, max_examples=100, suppress_health_check=list(HealthCheck)
)

TRICKY = st.text("${}.abjo", max_size=20)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "/", "~"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "/", "~1", "0", ""]), inner, max_size=3),
    ),
    max_leaves=10,
)
POINTERS = st.lists(st.sampled_from(["a", "b", "~1", "~01", "0", "1", "-", ""]), max_size=3).map(
    lambda steps: "".join(f"/{step}" for step in steps)
)
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": POINTERS,
        "from": POINTERS,
        "value": JSON,
    }
)


@STEADY
@given(before=TRICKY, value=TRICKY, after=TRICKY)
def test_a_value_is_put_in_exactly_as_it_is(before: str, value: str, after: str) -> None:
    """Whatever a value holds, it is never read as a reference."""
    before, after = before.replace("$", ""), after.replace("$", "")

    assert substitute(f"{before}${{args.a}}{after}", {"args.a": value}) == f"{before}{value}{after}"


@STEADY
@given(TRICKY)
def test_any_text_is_substituted_or_names_what_is_unknown(text: str) -> None:
    unknown = [name for name in names_in(text) if name != "job.a"]
    if unknown:
        with pytest.raises(UnknownVariableError) as refusal:
            substitute(text, {"job.a": "${job.b}"})
        assert refusal.value.name == unknown[0]
    else:
        substitute(text, {"job.a": "${job.b}"})


@STEADY
@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.lists(st.sampled_from("wxyz"), min_size=1, max_size=4, unique=True).map(tuple),
        min_size=1,
    )
)
def test_every_combination_is_one_task(matrix: dict[str, tuple[str, ...]]) -> None:
    parallelism = Parallelism(matrix=matrix)
    count = task_count(a_job(parallelism=parallelism).spec)
    found = [tuple(task_labels(parallelism, at).matrix.items()) for at in range(count)]

    assert len(set(found)) == count
    assert all(value in matrix[name] for combination in found for name, value in combination)
    assert [dict(one) for one in found] == sorted(
        (dict(one) for one in found),
        key=lambda one: [matrix[name].index(one[name]) for name in sorted(matrix)],
    )


@STEADY
@given(JSON, JSON)
def test_a_merge_patch_twice_is_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)

    assert merge_patch(once, patch) == once


@STEADY
@given(JSON, st.lists(OPERATIONS, max_size=6))
def test_any_json_patch_is_applied_or_refused(document: Any, operations: list[Any]) -> None:
    before = repr(document)
    with suppress(InvalidError, BadRequestError):
        json_patch(document, operations)
    assert repr(document) == before


@STEADY
@given(JSON, JSON)
def test_add_then_test_then_remove_gives_the_document_back(document: Any, value: Any) -> None:
    if not isinstance(document, dict):
        return
    document.pop("new", None)
    steps = [
        {"op": "add", "path": "/new", "value": value},
        {"op": "test", "path": "/new", "value": value},
        {"op": "remove", "path": "/new"},
    ]

    assert json_patch(document, steps) == document


@STEADY
@given(JSON)
def test_what_is_no_patch_is_refused(operations: Any) -> None:
    if operations == []:
        return
    with pytest.raises(BadRequestError):
        json_patch({}, operations)


@STEADY
@given(st.integers(0, 10**12))
def test_durations_read_as_they_are_written(milliseconds: int) -> None:
    length = timedelta(milliseconds=milliseconds)

    assert parse_duration(format_duration(length)) == length
