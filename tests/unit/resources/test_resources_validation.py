"""The door: what is taken, what is refused, and how it is told."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.findings import MAX_TOLD, child
from interlock.resources.codec import encode
from interlock.resources.door.manifests import read_manifests
from interlock.resources.door.validation import MAX_BODY_BYTES, FieldValidation, read_resource
from interlock.resources.job import Job


def a_body(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "resize"},
        "spec": spec or {"process": {"command": ["true"]}},
    }


def refused(data: Any, kind: str | None = None) -> dict[str, Problem]:
    with pytest.raises(InvalidError) as refusal:
        read_resource(data if isinstance(data, bytes) else json.dumps(data).encode(), kind)
    assert refusal.value.problems
    return {problem.path: problem for problem in refusal.value.problems}


def test_a_good_body_becomes_a_resource() -> None:
    body = a_body(process={"command": ["convert"]}, retries={"limit": 3, "delay": "10s"})

    resource, warnings = read_resource(json.dumps(body).encode())

    assert isinstance(resource, Job)
    assert json.loads(encode(resource))["spec"] == body["spec"]
    assert warnings == ()


def test_plain_data_reads_the_same_as_its_json() -> None:
    body = a_body(noop={}, locks=[{"key": "db"}])

    assert read_resource(body) == read_resource(json.dumps(body).encode(), "Job")


def test_all_problems_are_told_at_once() -> None:
    problems = refused(
        a_body(
            proces={"command": ["x"]},
            retries={"delay": "5x", "backoff": "exponential", "limit": "3"},
            parallelism={"keys": "a"},
            locks=[{"limit": 1}],
            suspend="no",
            killAt="tomorrow",
            title=7,
            args={"a": 1},
        )
    )

    assert {path: problem.message for path, problem in problems.items()} == {
        "spec.proces": "unknown field; did you mean spec.process?",
        "spec.retries.delay": 'expected a duration such as "90s", "5m" or "1h30m"',
        "spec.retries.backoff": "expected one of Constant, Linear, Exponential; "
        'did you mean "Exponential"?',
        "spec.retries.limit": "expected a whole number, found text",
        "spec.parallelism.keys": "expected a list, found text",
        "spec.locks[0].key": "is required",
        "spec.suspend": "expected true or false, found text",
        "spec.killAt": 'expected a moment with its zone, such as "2026-01-05T12:00:00Z"',
        "spec.title": "expected text, found a whole number",
        "spec.args.a": "expected text, found a whole number",
    }
    assert problems["spec.retries.delay"].found == "5x"


@pytest.mark.parametrize(
    ("spec", "path", "meant"),
    [
        pytest.param({"start_after": "x"}, "spec.start_after", "spec.startAfter", id="snake case"),
        pytest.param({"PROCESS": {}}, "spec.PROCESS", "spec.process", id="capitals"),
        pytest.param({"command": []}, "spec.command", "spec.process.command", id="one level up"),
        pytest.param({"process": {"command": ["a"], "locks": []}}, "spec.process.locks",
                     "spec.locks", id="one level down"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_told_with_what_was_meant(
    spec: dict[str, Any], path: str, meant: str
) -> None:
    assert refused(a_body(**spec))[path].message == f"unknown field; did you mean {meant}?"


def test_a_field_that_is_like_no_other_gets_no_suggestion() -> None:
    assert refused(a_body(noop={}, xyzzy=1))["spec.xyzzy"].message == "unknown field"


def test_rules_are_checked_along_with_unknown_fields() -> None:
    problems = refused(a_body(noop={}, tite="x", priority=1 << 40))

    assert set(problems) == {"spec.tite", "spec.priority"}


def test_null_means_not_given() -> None:
    body = a_body(noop={}, retries=None, locks=None, title=None, args={"a": None})
    body["metadata"] |= {"creationTimestamp": None, "labels": None}
    body["status"] = None

    resource, warnings = read_resource(json.dumps(body).encode())

    assert resource == read_resource(a_body(noop={}))[0]
    assert warnings == ()


def test_null_in_a_list_is_not_text() -> None:
    assert set(refused(a_body(process={"command": ["a", None]}))) == {"spec.process.command[1]"}


def test_null_for_what_is_required_is_told() -> None:
    body = a_body(noop={}) | {"spec": None}

    assert refused(body)["spec"].message == "is required"


def test_what_kubernetes_clients_send_along_is_taken() -> None:
    body = a_body(noop={})
    body["metadata"] |= {
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        "selfLink": "/x",
        "uid": "u",
        "generation": 4,
        "deletionGracePeriodSeconds": 0,
        "creationTimestamp": "2026-01-05T12:00:00Z",
    }
    body["status"] = {}

    resource, warnings = read_resource(json.dumps(body).encode())

    assert resource.metadata.uid == "u"
    assert warnings == ()


class TestFieldValidation:
    BODY = (
        b'{"kind":"Job","metadata":{"name":"a"},'
        b'"spec":{"noop":{},"tite":1,"title":"x","title":"y"}}'
    )

    def test_strict_refuses(self) -> None:
        assert set(refused(self.BODY)) == {"spec.tite", "spec.title"}

    def test_warn_leaves_out_and_says_so(self) -> None:
        resource, warnings = read_resource(self.BODY, field_validation=FieldValidation.WARN)

        assert isinstance(resource, Job)
        assert resource.spec.title == "y"
        assert sorted(warnings) == [
            "spec.tite: unknown field; did you mean spec.title?",
            "spec.title: given twice; the last one counts",
        ]

    def test_ignore_leaves_out(self) -> None:
        assert read_resource(self.BODY, field_validation=FieldValidation.IGNORE)[1] == ()

    def test_a_wrong_type_is_refused_by_all(self) -> None:
        with pytest.raises(InvalidError):
            read_resource(a_body(noop=1), field_validation=FieldValidation.IGNORE)

    @pytest.mark.parametrize("field_validation", [FieldValidation.STRICT, FieldValidation.WARN])
    def test_doubled_fields_are_seen_in_good_bodies(
        self, field_validation: FieldValidation
    ) -> None:
        body = b'{"kind":"Job","metadata":{"name":"a"},"spec":{"noop":{},"args":{"a":"1","a":"2"}}}'
        try:
            told = read_resource(body, field_validation=field_validation)[1]
        except InvalidError as refusal:
            told = tuple(map(str, refusal.problems))

        assert told == ("spec.args.a: given twice; the last one counts",)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        pytest.param({"kind": "Jb"}, None, "did you mean", id="nearly a kind"),
        pytest.param({"metadata": {}}, None, "is required", id="no kind"),
        pytest.param({"kind": "Lock", "spec": {"key": "a"}}, "Job", "expected Job", id="another"),
        pytest.param({"kind": 7}, None, "expected Job or", id="not text"),
    ],
)
def test_a_wrong_kind_is_told(body: dict[str, Any], kind: str | None, message: str) -> None:
    assert message in refused(body, kind)["kind"].message


def test_the_kind_may_be_left_to_the_path() -> None:
    body = a_body(noop={})
    del body["kind"]

    assert read_resource(json.dumps(body).encode(), "Job")[0].kind == "Job"


def test_another_api_version_is_refused() -> None:
    body = a_body(noop={}) | {"apiVersion": "batch/v1"}

    assert refused(body)["apiVersion"].message == "expected interlock.dev/v1alpha1"


def test_moments_are_in_utc_past_the_door() -> None:
    job = read_resource(a_body(noop={}, startAfter="2026-01-05T13:00:00+01:00"))[0]

    assert isinstance(job, Job)
    assert job.spec.start_after == datetime(2026, 1, 5, 12, tzinfo=UTC)
    assert job.spec.start_after is not None
    assert job.spec.start_after.tzinfo is UTC


def test_a_moment_before_all_time_is_refused() -> None:
    assert set(refused(a_body(noop={}, killAt="0001-01-01T00:00:00+14:00"))) == {"spec.killAt"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="half"),
        pytest.param(b'{"kind":"Job","spec":{"title":"\xff"}}', id="not UTF-8"),
        pytest.param(b'{"kind":"Job","spec":{"retries":{"jitter":NaN}}}', id="NaN"),
        pytest.param(b'{"kind":"Job","spec":{"x":' + b"[" * 100_000, id="deep and unfinished"),
        pytest.param(b'{"kind":"Job","spec":{"priority":' + b"9" * 9_000 + b"}}", id="endless"),
        pytest.param(b'{"kind":' + b" " * MAX_BODY_BYTES + b'"Job"}', id="huge"),
    ],
)
def test_what_is_not_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        read_resource(body)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param(b"[]", "kind", id="a list"),
        pytest.param(b"null", "kind", id="null"),
        pytest.param(b'{"kind":"Job","metadata":{"name":"a"},"spec":' + b"[" * 500 + b"]" * 500
                     + b"}", "spec", id="deep"),
        pytest.param(b'{"kind":"Job","metadata":{"name":"a","generation":' + b"9" * 30
                     + b'},"spec":{"noop":{}}}', "metadata.generation", id="beyond 64 bits"),
        pytest.param(b'{"kind":"Job","metadata":{"name":"a"},"spec":{"noop":{},"title":"\\ud800"}}',
                     "spec.title", id="half a character"),
        pytest.param(b'{"kind":"Job","metadata":{"name":"a"},"spec":{"noop":{},"retries":'
                     b'{"jitter":1e400}}}', "spec.retries.jitter", id="infinite"),
        pytest.param(b'{"kind":"Job","metadata":{"name":"a","labels":{"\\ud800":"x"}},"spec":'
                     b'{"noop":{}}}', "metadata.labels", id="half a character in a name"),
    ],
)  # fmt: skip
def test_strange_json_is_refused_with_its_place(body: bytes, path: str) -> None:
    assert path in refused(body)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(float("nan"), id="nan"),
        pytest.param(float("inf"), id="inf"),
        pytest.param(10**5000, id="endless"),
        pytest.param(b"x", id="bytes"),
        pytest.param(object(), id="an object of Python"),
        pytest.param({1: 2}, id="a name that is no text"),
    ],
)
def test_strange_plain_data_is_refused(value: object) -> None:
    body = a_body(noop={}, retries={"jitter": value})
    with pytest.raises(InvalidError):
        read_resource(body)
    with pytest.raises(InvalidError):
        read_resource(a_body(noop={}) | {"spec": value})


def test_a_million_unknown_fields_are_counted_not_told() -> None:
    body = a_body(noop={}) | {"spec": {f"f{n}": n for n in range(1_000_000)} | {"noop": {}}}

    with pytest.raises(InvalidError) as refusal:
        read_resource(body)

    assert len(refusal.value.problems) == MAX_TOLD + 1
    assert refusal.value.problems[-1].message == f"and {1_000_000 - MAX_TOLD} more"


def test_an_object_that_is_too_large_is_refused() -> None:
    body = a_body(process={"command": ["cat"], "stdin": "x" * (1 << 20)})

    assert "expected at most 1048576 bytes" in refused(body)["object"].message


def test_the_size_is_told_beside_the_rules() -> None:
    body = a_body(process={"command": ["cat"], "stdin": "x" * (1 << 20)}, priority=1 << 40)

    assert {"object", "spec.priority"} <= set(refused(body))


def test_found_values_are_short() -> None:
    problem = refused(a_body(noop={}, completion="x" * 1000))["spec.completion"]

    assert len(str(problem.found)) == 60


def told(body: dict[str, Any]) -> list[str]:
    """Where something is wrong; the two ways to the door find the same."""
    with pytest.raises(InvalidError) as refusal:
        read_resource(body)
    assert set(refused(body)) == {problem.path for problem in refusal.value.problems}
    return [problem.path for problem in refusal.value.problems]


COMMAND = {"process": {"command": ["true"]}}
CONFIG = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "JobConfig",
    "metadata": {"name": "report"},
}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param(
            COMMAND | {"retries": {"limit": -1, "delay": "-5s"}, "parallelism": {"count": -3},
                       "timeout": "-1m"},
            {"spec.retries.limit", "spec.retries.delay", "spec.parallelism.count", "spec.timeout"},
            id="numbers beside durations",
        ),
        pytest.param(
            COMMAND | {"locks": [{"key": "", "limit": 0}], "timeout": 5},
            {"spec.locks[0].key", "spec.locks[0].limit", "spec.timeout"},
            id="locks beside a timeout",
        ),
        pytest.param(
            {"process": {"command": [True], "env": {"1A": "x"}}},
            {"spec.process.command[0]", "spec.process.env.1A"},
            id="inside the object that has the wrong value",
        ),
        pytest.param(
            {"timeout": 5}, {"spec.timeout", "spec"}, id="what is missing beside what is wrong"
        ),
        pytest.param(
            COMMAND | {"locks": [{"limit": 0}, {"key": "b", "limit": "x"}, {"key": "b"}]},
            {"spec.locks[0].key", "spec.locks[0].limit", "spec.locks[1].limit",
             "spec.locks[2].key"},
            id="each element of a list",
        ),
        pytest.param(
            COMMAND | {"killAt": "0001-01-01T00:00:00+14:00", "priority": 1 << 40},
            {"spec.killAt", "spec.priority"},
            id="beside a moment before all time",
        ),
        pytest.param(
            {"process": {"command": ["${task.indx}"]}, "timeout": 5},
            {"spec.timeout", "spec.process.command[0]"},
            id="an unknown variable",
        ),
    ],
)  # fmt: skip
def test_rules_are_told_beside_wrong_types(spec: dict[str, Any], paths: set[str]) -> None:
    found = told(a_body(**spec))

    assert set(found) == paths
    assert len(found) == len(paths)


def test_another_api_version_is_told_beside_wrong_types() -> None:
    body = a_body(process={"command": [True]}) | {"apiVersion": "batch/v1"}

    assert set(told(body)) == {"apiVersion", "spec.process.command[0]"}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param({"process": "echo"}, {"spec.process"}, id="which work there is"),
        pytest.param({"proces": {"command": ["x"]}}, {"spec.proces"}, id="a name nearly right"),
        pytest.param(COMMAND | {"parallelism": {"count": "3"}}, {"spec.parallelism.count"},
                     id="exactly one of"),
        pytest.param(COMMAND | {"startAfter": "soon", "startBy": "2026-01-05T12:00:00Z"},
                     {"spec.startAfter"}, id="which of two moments is later"),
        pytest.param(COMMAND | {"locks": [{"limit": 1}, {"limit": 2}]},
                     {"spec.locks[0].key", "spec.locks[1].key"}, id="whether keys are the same"),
        pytest.param({"process": {"command": ["${args.a}"]}, "args": {"a": 1}}, {"spec.args.a"},
                     id="a variable whose value is wrong"),
        pytest.param({"process": {"command": ["${task.matrix.a}"]},
                      "parallelism": {"matrix": "a"}},
                     {"spec.parallelism.matrix"}, id="variables that could not be read"),
    ],
)  # fmt: skip
def test_what_a_wrong_value_decides_is_not_guessed(spec: dict[str, Any], paths: set[str]) -> None:
    assert set(told(a_body(**spec))) == paths


def test_schedules_are_told_beside_wrong_types() -> None:
    spec = {
        "template": {"spec": {"process": {"command": ["${option.region}"]}, "timeout": 5}},
        "options": [{"nme": "region"}, {"name": "b", "default": 5}],
        "schedules": [{"cron": "61 * * * *", "timezone": 7}],
        "concurrency": {"maxConcurrency": -1},
    }

    assert set(told(CONFIG | {"spec": spec})) == {
        "spec.template.spec.timeout",
        "spec.options[0].name",
        "spec.options[0].nme",
        "spec.options[1].default",
        "spec.schedules[0].cron",
        "spec.schedules[0].timezone",
        "spec.concurrency.maxConcurrency",
    }


def test_a_variable_is_unknown_also_beside_options_that_are_wrong() -> None:
    spec = {
        "template": {"spec": {"process": {"command": ["${option.region}", "${option.a}"]}}},
        "options": [{"name": "a", "type": "Strng", "default": 5}],
    }

    assert set(told(CONFIG | {"spec": spec})) == {
        "spec.template.spec.process.command[0]",
        "spec.options[0].type",
        "spec.options[0].default",
    }


def test_further_rules_are_told_with_the_others() -> None:
    def no_title(resource: Any) -> tuple[Problem, ...]:
        return (Problem("spec.title", "none here"),) if resource.spec.title else ()

    with pytest.raises(InvalidError) as refusal:
        read_resource(a_body(noop={}, timeout=5, priority=1 << 40, title="x"), also=no_title)

    paths = {problem.path for problem in refusal.value.problems}
    assert paths == {"spec.timeout", "spec.priority", "spec.title"}


def places(value: object, path: str = "") -> Iterator[tuple[str, Callable[[Any, Any], None]]]:
    """Every place in plain data, with what puts something else there."""
    inside: Iterable[tuple[Any, object]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for name, held in inside:
        here = child(path, name)

        def put(whole: Any, new: object, name: Any = name, above: str = path) -> None:
            at(whole, above)[name] = new

        yield here, put
        yield from places(held, here)


def at(whole: Any, path: str) -> Any:
    for name in re.findall(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[]+)', path):
        quoted, index, plain = name
        whole = whole[int(index)] if index else whole[quoted or plain]
    return whole


EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
GOOD = [one for file in FILES for one in read_manifests(file.read_bytes())]


@pytest.mark.parametrize("wrong", [[[0.5]], 0.5, {"?": [None]}], ids=["a list", "0.5", "an object"])
def test_a_wrong_value_is_all_that_is_told_of_a_good_definition(wrong: object) -> None:
    """Nothing else is blamed for it: what stands in for it leaves no traces."""
    assert GOOD
    looked = 0
    for document in GOOD:
        for path, put in list(places(document.data)):
            body = copy.deepcopy(document.data)
            if isinstance(at(body, path), type(wrong)):
                continue  # It is not wrong as a whole, only inside.
            put(body, wrong)
            try:
                read_resource(body)
            except InvalidError as error:
                looked += 1
                for problem in error.problems:
                    assert problem.path.startswith(path), (document.data, path, problem)
    assert looked > len(GOOD)
