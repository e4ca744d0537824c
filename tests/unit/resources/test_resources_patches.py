"""Patches, by the tables of their RFCs."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.errors import BadRequestError, InvalidError
from interlock.resources.codec import to_builtins
from interlock.resources.door.patches import MAX_OPERATIONS, json_patch, merge_patch
from interlock.testing.builders import a_job


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_of_rfc_7386(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_a_merge_patch_leaves_the_target_alone() -> None:
    target = {"a": {"b": 1}}

    assert merge_patch(target, {"a": {"b": 2}}) == {"a": {"b": 2}}
    assert target == {"a": {"b": 1}}


def test_a_deep_merge_patch_is_refused() -> None:
    patch: dict[str, Any] = {}
    for _ in range(100_000):
        patch = {"a": patch}

    with pytest.raises(BadRequestError):
        merge_patch({}, patch)


def op(op: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "path": path} | {k.rstrip("_"): v for k, v in more.items()}


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        pytest.param({"foo": "bar"}, [op("add", "/baz", value="qux")],
                     {"baz": "qux", "foo": "bar"}, id="A.1 add an object member"),
        pytest.param({"foo": ["bar", "baz"]}, [op("add", "/foo/1", value="qux")],
                     {"foo": ["bar", "qux", "baz"]}, id="A.2 add an array element"),
        pytest.param({"baz": "qux", "foo": "bar"}, [op("remove", "/baz")],
                     {"foo": "bar"}, id="A.3 remove an object member"),
        pytest.param({"foo": ["bar", "qux", "baz"]}, [op("remove", "/foo/1")],
                     {"foo": ["bar", "baz"]}, id="A.4 remove an array element"),
        pytest.param({"baz": "qux", "foo": "bar"}, [op("replace", "/baz", value="boo")],
                     {"baz": "boo", "foo": "bar"}, id="A.5 replace a value"),
        pytest.param({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
                     [op("move", "/qux/thud", from_="/foo/waldo")],
                     {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
                     id="A.6 move a value"),
        pytest.param({"foo": ["all", "grass", "cows", "eat"]},
                     [op("move", "/foo/3", from_="/foo/1")],
                     {"foo": ["all", "cows", "eat", "grass"]}, id="A.7 move an array element"),
        pytest.param({"baz": "qux", "foo": ["a", 2, "c"]},
                     [op("test", "/baz", value="qux"), op("test", "/foo/1", value=2)],
                     {"baz": "qux", "foo": ["a", 2, "c"]}, id="A.8 test a value"),
        pytest.param({"foo": "bar"}, [op("add", "/child", value={"grandchild": {}})],
                     {"foo": "bar", "child": {"grandchild": {}}}, id="A.10 add a nested member"),
        pytest.param({"foo": "bar"}, [op("add", "/baz", value="qux", xyz=123)],
                     {"foo": "bar", "baz": "qux"}, id="A.11 ignore unknown elements"),
        pytest.param({"/": 9, "~1": 10}, [op("test", "/~01", value=10)],
                     {"/": 9, "~1": 10}, id="A.14 tilde escapes"),
        pytest.param({"foo": ["bar"]}, [op("add", "/foo/-", value=["abc", "def"])],
                     {"foo": ["bar", ["abc", "def"]]}, id="A.16 add an array value"),
        pytest.param({"a": 1}, [op("replace", "", value={"b": 2})], {"b": 2}, id="the whole"),
        pytest.param({"a": 1}, [op("add", "", value=[1])], [1], id="add the whole"),
        pytest.param({"a": {"b": 1}}, [op("copy", "/c", from_="/a"),
                     op("replace", "/c/b", value=2)], {"a": {"b": 1}, "c": {"b": 2}}, id="copy"),
        pytest.param({"a": 1}, [op("move", "/a", from_="/a")], {"a": 1}, id="move to itself"),
        pytest.param({"": 1, "a/b": 2}, [op("remove", "/"), op("remove", "/a~1b")], {},
                     id="an empty name, a slash"),
        pytest.param({"a": None}, [op("test", "/a", value=None)], {"a": None}, id="test null"),
        pytest.param({"a": 1}, [op("test", "/a", value=1.0)], {"a": 1}, id="equal numbers"),
        pytest.param({"a": [1]}, [op("add", "/a/1", value=2)], {"a": [1, 2]}, id="at the end"),
    ],
)  # fmt: skip
def test_json_patch_of_rfc_6902(document: Any, operations: list[Any], result: Any) -> None:
    assert json_patch(document, operations) == result


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        pytest.param({"baz": "qux"}, op("test", "/baz", value="bar"), id="A.9 test fails"),
        pytest.param({"foo": "bar"}, op("add", "/baz/bat", value="x"), id="A.12 no parent"),
        pytest.param(
            {"/": 9, "~1": 10}, op("test", "/~01", value="10"), id="A.15 text is no number"
        ),
        pytest.param({"a": 1}, op("test", "/a", value=True), id="true is no number"),
        pytest.param({}, op("remove", "/a"), id="remove what is not there"),
        pytest.param({}, op("replace", "/a", value=1), id="replace what is not there"),
        pytest.param({"a": [1]}, op("remove", "/a/1"), id="remove past the end"),
        pytest.param({"a": [1]}, op("remove", "/a/-"), id="remove after the end"),
        pytest.param({"a": [1]}, op("add", "/a/3", value=1), id="add past the end"),
        pytest.param({"a": [1]}, op("add", "/a/01", value=1), id="a leading zero"),
        pytest.param({"a": [1]}, op("add", "/a/x", value=1), id="no index"),
        pytest.param({"a": 1}, op("add", "/a/b", value=1), id="into a number"),
        pytest.param({"a": 1}, op("remove", "/a/b"), id="out of a number"),
        pytest.param(None, op("move", "", from_="/a"), id="out of nothing"),
        pytest.param({"a": {"b": 1}}, op("move", "/a/b/c", from_="/a"), id="into itself"),
        pytest.param({"a": 1}, op("remove", ""), id="remove all"),
        pytest.param({"a": 1}, op("copy", "/b", from_="/c"), id="copy what is not there"),
    ],
)
def test_a_json_patch_that_does_not_fit(document: Any, operation: dict[str, Any]) -> None:
    with pytest.raises(InvalidError) as refusal:
        json_patch(document, [operation])

    (problem,) = refusal.value.problems
    assert problem.path == operation["path"]
    assert problem.message.startswith(operation["op"])


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param({}, id="no list"),
        pytest.param([1], id="no object"),
        pytest.param([{"path": "/a"}], id="no op"),
        pytest.param([op("ad", "/a", value=1)], id="unknown op"),
        pytest.param([op("add", "/a")], id="no value"),
        pytest.param([op("add", "a", value=1)], id="no slash"),
        pytest.param([op("add", "/a~2", value=1)], id="a bad escape"),
        pytest.param([{"op": "add", "value": 1}], id="no path"),
        pytest.param([op("move", "/a")], id="no from"),
        pytest.param([op("remove", "/a" * 101)], id="too many steps"),
        pytest.param([op("remove", "/a")] * (MAX_OPERATIONS + 1), id="too many"),
    ],
)
def test_what_is_no_json_patch(operations: Any) -> None:
    with pytest.raises(BadRequestError):
        json_patch({"a": 1}, operations)


def test_a_json_patch_leaves_the_document_alone() -> None:
    document = {"a": [1], "b": {"c": 1}}
    json_patch(document, [op("add", "/a/-", value=2), op("remove", "/b/c")])

    assert document == {"a": [1], "b": {"c": 1}}


def test_all_or_nothing_is_told_with_the_name() -> None:
    with pytest.raises(InvalidError, match="Job resize is invalid: /spec/x: remove: there is no x"):
        json_patch(to_builtins(a_job("resize")), [op("remove", "/spec/x")])


@pytest.mark.parametrize("start", [{"a": "x" * 1000}, {"a": {}}])
def test_copies_cannot_grow_without_end(start: Any) -> None:
    doubling = [op("copy", "/b", from_="/a"), op("copy", "/a/c", from_="")] * 2000

    with pytest.raises((InvalidError, BadRequestError)):
        json_patch(start, doubling)


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises((InvalidError, BadRequestError)):
        json_patch({"a": 1}, [op("copy", "/a", from_="")] * MAX_OPERATIONS)
