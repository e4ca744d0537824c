"""What is installed in a cluster follows from the types, and is the same every time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from interlock.kube.install.definitions import definitions
from interlock.kube.install.immutable_fields import job_change
from interlock.kube.install.rules import MOMENT, VALIDATIONS
from interlock.kube.install.schedule_rules import RULES
from interlock.kube.install.schemas import schema_of
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.checks.job_changes import FREE_ONCE_ENDED, FROZEN_ONCE_ADMITTED
from interlock.resources.codec import from_builtins, to_builtins
from interlock.resources.describe.schema import DURATION
from interlock.resources.describe.shapes import fields_of
from interlock.resources.door.checking import check_update
from interlock.resources.job import Job, JobStatus
from interlock.resources.kinds import KINDS, columns_of
from interlock.resources.metadata import GROUP, Moment
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.values.durations import parse_duration
from interlock.testing.builders import a_job

#: Fields of one of several types, which no structural schema can say.
OPEN = {"JobConfig": {"spec.schedules[].cron", "spec.options[].default"}}
OURS = [kind.name for kind in KINDS.values() if kind.group == GROUP]


def every_schema(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and all schemas inside it, with their paths."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from every_schema(part, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from every_schema(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from every_schema(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("kind", OURS)
class TestSchemas:
    def test_every_rule_is_about_a_field_that_there_is(self, kind: str) -> None:
        known = {path for path, _ in every_schema(schema_of(kind))}

        assert RULES.get(kind, {}).keys() <= known

    def test_every_schema_has_a_type_and_no_reference(self, kind: str) -> None:
        for path, part in every_schema(schema_of(kind)):
            if part.get("x-kubernetes-preserve-unknown-fields") and "type" not in part:
                assert path in OPEN[kind]
                continue
            if part.get("x-kubernetes-int-or-string"):
                assert "type" not in part  # The one choice of types that such a schema can say.
                continue
            assert part["type"] in ("object", "array", "string", "integer", "number", "boolean")
            assert not part.keys() & {"$ref", "allOf", "nullable"}, path

    def test_only_specs_have_defaults(self, kind: str) -> None:
        for path, part in every_schema(schema_of(kind)):
            if "default" in part:
                assert path.startswith("spec.") or path == "status"

    def test_fields_are_described(self, kind: str) -> None:
        for name, part in schema_of(kind)["properties"].items():
            assert part.get("description") or name == "metadata"

    def test_rules_tell_what_is_expected(self, kind: str) -> None:
        for path, part in every_schema(schema_of(kind)):
            for rule in part.get(VALIDATIONS, ()):
                assert rule["message"], path
                # Its parser takes 100,000 characters.
                assert len(rule["rule"]) < 60_000


def test_defaults_are_those_of_the_types() -> None:
    """What an API server fills in reads as a Job in which it was left out."""
    spec = schema_of("Job")["properties"]["spec"]["properties"]
    bare = {"noop": {}, "retries": {}, "locks": [{"key": "db"}]}
    filled: dict[str, Any] = dict(bare)
    filled |= {name: part["default"] for name, part in spec.items() if "default" in part}
    retries, locks = spec["retries"]["properties"], spec["locks"]["items"]["properties"]
    filled["retries"] = {n: p["default"] for n, p in retries.items() if "default" in p}
    filled["locks"] = [
        {"key": "db"} | {n: p["default"] for n, p in locks.items() if "default" in p}
    ]

    assert filled["gracePeriod"] == "30s"
    assert filled["locks"] == [{"key": "db", "limit": 1, "whenTaken": "Enqueue"}]
    status = schema_of("Job")["properties"]["status"]["default"]
    made = from_builtins({"kind": "Job", "spec": filled, "status": status}, Job)
    assert made == from_builtins({"kind": "Job", "spec": bare}, Job)


@pytest.mark.parametrize(
    "text",
    [
        *("0", "0s", "90s", "1h30m", "1d2h3m4s5ms", "5ms", "1.5h", "0.5s", "5m5ms", "10d", "1m1s"),
        *("", "5", "5x", "1s1m", "1s1s", "-1s", "1.s", ".5s", "1h 30m", "5S", "s", "1ms1s", "5s\n"),
    ],
)  # fmt: skip
def test_durations_are_read_as_at_the_door(text: str) -> None:
    try:
        parse_duration(text)
        good = True
    except ValueError:
        good = False

    matches = re.search(DURATION["pattern"].replace("$", r"\Z"), text) is not None
    assert (matches and len(text) >= DURATION["minLength"]) is good


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("2026-01-05T12:00:00Z", True),
        ("2026-01-05T12:00:00.123456Z", True),
        ("2026-01-05T12:00:00+01:00", True),
        ("0001-01-05T12:00:00Z", True),
        ("0000-01-05T12:00:00Z", False),
        ("2026-01-05T12:00:00", False),
        ("2026-01-05T12:00:60Z", False),
        ("2026-01-05T24:00:00Z", False),
        ("2026-01-05", False),
        ("tomorrow", False),
    ],
)
def test_what_passes_as_a_moment_can_be_read(text: str, good: bool) -> None:
    assert bool(re.search(MOMENT["pattern"], text)) is good
    if good:
        assert msgspec.convert(text, Moment).tzinfo is not None


class TestDefinitions:
    def test_there_is_one_for_each_of_our_kinds(self) -> None:
        assert [made["metadata"]["name"] for made in definitions()] == [
            "jobs.interlock.dev",
            "jobconfigs.interlock.dev",
            "controlledjobs.interlock.dev",
            "calendars.interlock.dev",
            "locks.interlock.dev",
            "queues.interlock.dev",
            "queuequotas.interlock.dev",
            "testbeds.interlock.dev",
            "testbedslots.interlock.dev",
            "schedulings.interlock.dev",
            "schedulingclaims.interlock.dev",
        ]

    @pytest.mark.parametrize("made", definitions(), ids=OURS)
    def test_they_say_what_the_kind_says(self, made: dict[str, Any]) -> None:
        kind = KINDS[made["spec"]["names"]["kind"]]
        names, (version,) = made["spec"]["names"], made["spec"]["versions"]

        assert (names["plural"], names["singular"]) == (kind.plural, kind.singular)
        assert tuple(names.get("shortNames", ())) == kind.short_names
        assert tuple(names["categories"]) == kind.categories
        assert "interlock" in names["categories"]
        assert made["spec"]["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
        assert version["name"] == kind.version
        assert version["subresources"] == ({"status": {}} if kind.has_status else {})
        assert ("status" in schema_of(kind.name)["properties"]) is kind.has_status

    @pytest.mark.parametrize("made", definitions(), ids=OURS)
    def test_they_show_the_columns_of_our_own_lists(self, made: dict[str, Any]) -> None:
        columns = made["spec"]["versions"][0]["additionalPrinterColumns"]
        shown = [(column["name"], column.get("priority", 0)) for column in columns]

        expected = columns_of(made["spec"]["names"]["kind"])
        assert shown == [(one.name, one.priority) for one in expected if one.name != "Name"]


WAITING = JobStatus()
ADMITTED = JobStatus(admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED))
ENDED = replace(ADMITTED, execution=ExecutionStatus(result=JobResult.SUCCEEDED))
#: Another value for each field of a Job's spec.
CHANGES: dict[str, Any] = {
    "process": {"command": ["b"]},
    "pod": {"spec": {"containers": [{"name": "a", "image": "b"}]}},
    "batchJob": {
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
            }
        }
    },
    "steps": [{"name": "a", "run": {"process": {"command": ["b"]}}}],
    "python": {"function": "f"},
    "noop": {},
    "adopted": {"kind": "Pod", "name": "a", "uid": "u"},
    "target": {"path": "a"},
    "stepsAtOnce": 2,
    "maxInterruptions": 2,
    "parallelism": {"count": 2},
    "completion": "AnySuccessful",
    "retries": {"limit": 1},
    "pendingTimeout": "1m",
    "taskTimeout": "1m",
    "timeout": "1m",
    "gracePeriod": "1m",
    "forceDeleteAfter": "1m",
    "killAt": "2026-01-05T12:00:00Z",
    "startAfter": "2026-01-05T12:00:00Z",
    "startBy": "2026-01-05T12:00:00Z",
    "ttlAfterFinished": "1m",
    "suspend": True,
    "suspendReason": "x",
    "priority": 1,
    "locks": [{"key": "x"}],
    "queue": "b",
    "resources": {"cpu": 2},
    "minParallelism": 2,
    "active": False,
    "waitForPodsReady": {"enable": True},
    "slots": {"testBed": "bed"},
    "type": "x",
    "title": "x",
    "description": "x",
    "owner": "x",
    "parent": "x",
    "idempotencyKey": "x",
    "args": {"a": "b"},
    "redact": ["a"],
    "substitutions": {"option.a": "b"},
}


def test_there_is_a_change_for_every_field() -> None:
    assert CHANGES.keys() == fields_of(type(a_job().spec)).keys()


@pytest.mark.parametrize("name", list(CHANGES))
def test_the_same_fields_are_frozen_as_at_the_door(name: str) -> None:
    def refused(status: JobStatus) -> bool:
        old = a_job(status=status)
        spec = to_builtins(old.spec) | {name: CHANGES[name]}
        return bool(check_update(old, replace(old, spec=from_builtins(spec, type(old.spec)))))

    assert not refused(WAITING)
    assert refused(ADMITTED) is (name in (*FROZEN_ONCE_ADMITTED, "locks"))
    assert refused(ENDED) is (name != FREE_ONCE_ENDED)
    assert (f"self.spec.{name}" in job_change()["rule"]) is (name != FREE_ONCE_ENDED)
