"""Files that people write: what is read, on which line, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.bodies import MAX_YAML_VALUES
from interlock.errors import InvalidError
from interlock.resources.door.manifests import MAX_BYTES, MAX_VALUES, ManifestError, read_manifests
from interlock.resources.door.validation import read_resource

TOUR = """\
# A Job: run this, once, now.
apiVersion: interlock.dev/v1alpha1
kind: Job
metadata: {name: resize}
spec:
  process: {command: [convert, "in-${task.index}.png", "out-${task.index}.png"]}
  parallelism: {count: 50}
  retries: {limit: 3, delay: 10s, backoff: Exponential}
  timeout: 10m
---
---
kind: Job
metadata:
  name: other
  labels:
    app.kubernetes.io/name: x
spec:
  noop: {}
  locks:
    - key: db
    - key: b
      limit: 2
"""


def value_of(text: str) -> Any:
    (document,) = read_manifests(f"kind: X\nvalue: {text}\n")
    return document.data["value"]


def test_documents_are_read_with_their_lines() -> None:
    first, second = read_manifests(TOUR)

    assert first.data["spec"]["retries"] == {"limit": 3, "delay": "10s", "backoff": "Exponential"}
    assert first.lines["spec.retries.delay"] == 8
    assert second.data["apiVersion"] == "interlock.dev/v1alpha1"
    assert second.lines["spec.locks[1].limit"] == 22
    assert second.lines['metadata.labels["app.kubernetes.io/name"]'] == 16
    for document in (first, second):
        read_resource(document.data)


def test_a_missing_field_has_the_line_of_what_is_around_it() -> None:
    document = read_manifests(TOUR)[1]

    assert document.line_of("spec.locks[0].limit") == 20
    assert document.line_of("spec.process.command") == 17
    assert document.line_of("nowhere.at.all") == 12
    assert document.line_of('metadata.labels["a.b/c"]') == 15


def test_problems_at_the_door_have_lines() -> None:
    (document,) = read_manifests(
        "kind: Job\nmetadata: {name: a}\nspec:\n  proces: {}\n  noop: {}\n"
    )
    with pytest.raises(InvalidError) as refusal:
        read_resource(document.data)

    assert [document.line_of(problem.path) for problem in refusal.value.problems] == [4]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-05", "2026-01-05"),
        ("2026-01-05T12:00:00Z", "2026-01-05T12:00:00Z"),
        ("12:30", "12:30"),
        ("12:30:45.5", "12:30:45.5"),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("1_000", 1000),
        ("0x1F", 31),
        ("010", 8),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("1.5", 1.5),
        ('"5"', "5"),
        ("!!str 5", "5"),
        ("'on'", "on"),
        ("=", "="),
        ("10s", "10s"),
        ("{on: 1}", {"on": 1}),
        ('{"5": 1}', {"5": 1}),
    ],
)
def test_words_and_numbers(text: str, value: object) -> None:
    found = value_of(text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("a: 1\na: 2", 2, id="a key twice"),
        pytest.param("a: {b: 1,\n  b: 2}", 2, id="a key twice inside"),
        pytest.param("a:\n  5: x", 2, id="a number for a key"),
        pytest.param("? [a]\n: b", 1, id="a list for a key"),
        pytest.param("a:\n  ~: x", 2, id="null for a key"),
        pytest.param("a: !!binary aGk=", 1, id="binary"),
        pytest.param("a: !!python/object/apply:os.system [ls]", 1, id="python"),
        pytest.param("a: !x y", 1, id="a tag of their own"),
        pytest.param("a: !!set {b}", 1, id="a set"),
        pytest.param("a: .nan", 1, id="NaN"),
        pytest.param("a: .inf", 1, id="infinity"),
        pytest.param("a: " + "9" * 5000, 1, id="endless"),
        pytest.param("a: !!float x", 1, id="a false number"),
        pytest.param("- a", 1, id="a list"),
        pytest.param("text", 1, id="text"),
        pytest.param("a: [", 2, id="unfinished"),
        pytest.param("a: b: c", 1, id="two colons"),
        pytest.param("a: *x", 1, id="an unknown alias"),
        pytest.param("a: &x\n  b: *x", None, id="an alias inside itself"),
        pytest.param("a: " + "[" * 60 + "]" * 60, 1, id="deep"),
        pytest.param("a: " + "[" * 100_000, None, id="very deep"),
        pytest.param("a: \x07", None, id="a control character"),
        pytest.param("<<: 5\na: 1", 1, id="a merge of a number"),
        pytest.param('{"a": 1, "a": 2}', 1, id="a key twice in JSON"),
        pytest.param("kind: List\nitems:\n- 5", 3, id="a list of numbers"),
    ],
)
def test_what_is_refused(text: str, line: int | None) -> None:
    with pytest.raises(ManifestError) as refusal:
        read_manifests(text)

    if line is not None:
        assert refusal.value.line == line
        assert str(refusal.value).startswith(f"line {line}: ")


def test_aliases_cannot_grow_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(ManifestError, match=f"more than {MAX_VALUES} values"):
        read_manifests("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("[" + "1," * 120 + "]", "more than 100 values", id="values"),
        pytest.param("".join(f"\n  k{n}: 1" for n in range(120)), "more than 100", id="keys"),
        pytest.param("[&a [1,1,1,1], " + "*a, " * 24 + "]", "more than 100 values", id="aliases"),
        pytest.param("[&a {b: 1, c: 1}, " + "{<<: *a}, " * 40 + "]", "more than 100", id="merges"),
        pytest.param("1\n---\na: " * 120, "more than 100 values", id="documents"),
        pytest.param("1\n...\n" + "%TAG ! x\n" * 101, "100 lines begin with %", id="directives"),
        pytest.param("&a [*a]", "undefined alias", id="an alias inside itself"),
        pytest.param(
            f"[&a {'[' * 20 + ']' * 20}, &b [*a], {'[' * 30}*b{']' * 30}]", "deeper", id="depth"
        ),
    ],
)
def test_the_work_is_bounded_while_it_is_done(text: str, told: str) -> None:
    with pytest.raises(ManifestError, match=told):
        read_manifests(f"a: {text}", most=100)


def test_what_json_alone_can_spell_is_bounded_too() -> None:
    emoji = '{"a": "\\ud83d\\ude00", "b": [%s]}'
    assert read_manifests(emoji % "1, 1", most=50)[0].data["b"] == [1, 1]

    with pytest.raises(ManifestError, match="more than 50 values"):
        read_manifests(emoji % ("1, " * 50 + "1"), most=50)


def test_a_large_definition_fits() -> None:
    """Ten thousand keys, each with a word of its own, are well below the bound of the server."""
    keys = "".join(f"      - key-{n}\n" for n in range(10_000))
    text = f"kind: Job\nspec:\n  parallelism:\n    keys:\n{keys}"

    (document,) = read_manifests(text, most=MAX_YAML_VALUES // 4)

    assert len(document.data["spec"]["parallelism"]["keys"]) == 10_000
    assert document.line_of("spec.parallelism.keys[9999]") == 10_004


def test_a_merge_brings_in_what_is_not_given() -> None:
    text = "base: &b {a: 1, b: 2}\nother: &o {b: 3, c: 4}\nx: {<<: [*b, *o], a: 9}\ny: {<<: *b}\n"
    (document,) = read_manifests(text)

    assert document.data["x"] == {"a": 9, "b": 2, "c": 4}
    assert document.data["y"] == {"a": 1, "b": 2}


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(ManifestError, match="larger"):
        read_manifests(b"a" * (MAX_BYTES + 1))


def test_a_file_that_is_not_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(ManifestError) as refusal:
        read_manifests(b"a: 1\nb: \xff\n")

    assert refusal.value.line == 2


def test_json_is_read_too() -> None:
    (document,) = read_manifests(
        '\ufeff{\n\t"kind": "Job",\n\t"a": "\\ud83d\\ude00 \\/"\n}'.encode()
    )

    assert document.data["a"] == "\U0001f600 /"
    (plain,) = read_manifests('{"kind": "Lease",\n "spec": {"a": 1}}')
    assert plain.data["apiVersion"] == "coordination.k8s.io/v1"
    assert plain.lines["spec.a"] == 2


def test_a_list_is_taken_apart() -> None:
    items = "- kind: Job\n  spec: {}\n- kind: Job\n  metadata:\n    name: b\n"
    first, second = read_manifests(f"kind: List\napiVersion: v1\nitems:\n{items}")

    assert first.data == {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "spec": {}}
    assert first.line_of("spec") == 5
    assert second.line_of("metadata.name") == 8


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "\n\n"])
def test_an_empty_file_has_no_documents(text: str) -> None:
    assert read_manifests(text) == ()
