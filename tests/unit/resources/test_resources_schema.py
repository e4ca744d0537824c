"""Schemas and explanations: they tell what the nouns and their comments tell."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from interlock.errors import BadRequestError
from interlock.resources.describe.explanation import explain
from interlock.resources.describe.schema import DURATION, REFERENCE, components, structural
from interlock.resources.kinds import KINDS


def every_schema(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all schemas inside it."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from every_schema(part)
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from every_schema(schema[name])
    for part in schema.get("allOf", ()):
        yield from every_schema(part)


def test_every_reference_leads_somewhere() -> None:
    known = {REFERENCE.format(name=name) for name in components()}
    found = {
        part["$ref"]
        for schema in components().values()
        for part in every_schema(schema)
        if "$ref" in part
    }

    assert found
    assert found <= known


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_says_which_it_is(kind: str) -> None:
    schema = components()[kind]

    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": KINDS[kind].group, "version": KINDS[kind].version, "kind": kind}
    ]
    assert {"apiVersion", "kind", "metadata"} <= schema["properties"].keys()
    assert schema["properties"]["metadata"]["allOf"] == [
        {"$ref": "#/components/schemas/ObjectMeta"}
    ]


def test_fields_are_described_by_their_comments() -> None:
    schemas = components()
    spec = schemas["JobSpec"]["properties"]

    assert spec["timeout"] == {
        "type": "string",
        "nullable": True,
        **DURATION,
        "not": {"type": "string", "pattern": "^[0.dhms]*$"},
        "description": "A Job that runs longer, all attempts of a round together, is stopped,"
        " and fails.",
    }
    assert spec["gracePeriod"]["default"] == "30s"
    assert spec["killAt"]["format"] == "date-time"
    assert spec["locks"]["items"] == {"$ref": "#/components/schemas/LockRequest"}
    assert schemas["LockRequest"]["required"] == ["key"]
    assert (
        "Enqueue: Wait in line." in schemas["LockRequest"]["properties"]["whenTaken"]["description"]
    )
    assert schemas["Retries"]["description"] == "What to do about a task that failed."


@pytest.mark.parametrize("kind", list(KINDS))
def test_structural_schemas_are_structural(kind: str) -> None:
    """No references, and a type on everything, as a custom resource definition demands."""
    for part in every_schema(structural(kind)):
        assert "$ref" not in part
        assert "allOf" not in part
        assert "default" not in part
        if part.get("x-kubernetes-preserve-unknown-fields") and "type" not in part:
            continue  # One of several types, which no structural schema can say.
        if part.get("x-kubernetes-int-or-string"):
            assert "type" not in part  # But for this one choice of types.
            continue
        assert part["type"] in ("object", "array", "string", "integer", "number", "boolean")
    assert structural(kind)["properties"]["metadata"] == {"type": "object"}


def test_a_field_is_explained() -> None:
    found = explain("Job", "spec.locks[0].whenTaken")

    assert found.path == "spec.locks.whenTaken"
    assert found.name == "whenTaken"
    assert found.type == "string"
    assert found.default == "Enqueue"
    assert ("Enqueue", "Wait in line.") in found.values
    assert found.children == ()


def test_a_kind_is_explained_with_its_fields() -> None:
    found = explain("Job")

    assert found.description == "One run of something: the only thing that ever executes."
    assert [part.path for part in found.children] == ["apiVersion", "metadata", "spec", "status"]
    process = explain("Job", "spec.process")
    assert [(part.path, part.required) for part in process.children][:2] == [
        ("spec.process.command", True),
        ("spec.process.args", False),
    ]


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_field_can_be_explained(kind: str) -> None:
    waiting = [explain(kind)]
    while waiting:
        for part in waiting.pop().children:
            assert part.type
            waiting.append(explain(kind, part.path))


@pytest.mark.parametrize(
    ("kind", "path", "told"),
    [
        ("Jb", "", 'unknown kind; did you mean "Job"'),
        ("Job", "spec.proces", 'spec.proces: Job has no such field; did you mean "process"'),
        ("Job", "spec.title.x", "spec.title.x: Job has no such field"),
        (
            "Job",
            "spec.pod.spec.containers[0]",
            "not ours. A Kubernetes pod specification, `kubectl",
        ),
    ],
)
def test_an_unknown_field_is_told(kind: str, path: str, told: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        explain(kind, path)

    assert told in str(refusal.value)


def test_the_door_needs_no_schema_until_it_must() -> None:
    """A command line that only talks to a server must not pay for what it does not use."""
    program = (
        "import sys, interlock.resources.door.validation; "
        "dear = ('difflib', 'yaml', 'interlock.resources.describe.shapes', "
        "'interlock.resources.door.reading'); "
        "print(*(name for name in dear if name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True,
                         check=False, env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip

    assert ran.stderr == ""
    assert ran.stdout.strip() == ""
