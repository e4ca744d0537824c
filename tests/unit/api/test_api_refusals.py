"""Every refusal has the code, the reason and the shape that Kubernetes' clients expect."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.app import ApiApp
from interlock.errors import ExpiredError, FencedError, InterlockError, UnavailableError
from interlock.resources.modes import Mode
from interlock.testing.asking import JOB, JOBS, Ask, Asker, asking
from interlock.testing.builders import T0

MERGE = "application/merge-patch+json"
LOCKS = "/apis/interlock.dev/v1alpha1/namespaces/default/locks"


@pytest.mark.parametrize(
    ("method", "path", "body", "media", "expected"),
    [
        pytest.param("GET", f"{JOBS}/no", None, "", (404, "NotFound"), id="no such job"),
        pytest.param("GET", "/apis/no/v1/x", None, "", (404, "NotFound"), id="no such group"),
        pytest.param("GET", "/nothing", None, "", (404, "NotFound"), id="no such path"),
        pytest.param("DELETE", f"{JOBS}/no", None, "", (404, "NotFound"), id="nothing to delete"),
        pytest.param("PATCH", f"{JOBS}/no", {}, MERGE, (404, "NotFound"), id="nothing to patch"),
        pytest.param("PUT", f"{JOBS}/no", {}, "", (422, "Invalid"), id="an empty object"),
        pytest.param("POST", JOBS, JOB, "", (409, "AlreadyExists"), id="the name is taken"),
        pytest.param("POST", JOBS, b"{", "", (400, "BadRequest"), id="not JSON"),
        pytest.param("POST", JOBS, b"", "", (400, "BadRequest"), id="no body"),
        pytest.param("POST", JOBS, b"[]", "", (422, "Invalid"), id="a list"),
        pytest.param("POST", JOBS, b"a: [", "application/yaml", (400, "BadRequest"), id="not YAML"),
        pytest.param(
            "POST",
            JOBS,
            b"x",
            "application/x-foo",
            (415, "UnsupportedMediaType"),
            id="a strange body",
        ),
        pytest.param(
            "POST",
            JOBS,
            b"x",
            "application/vnd.kubernetes.protobuf",
            (415, "UnsupportedMediaType"),
            id="protobuf",
        ),
        pytest.param(
            "PATCH",
            f"{JOBS}/hello",
            {},
            "application/strategic-merge-patch+json",
            (415, "UnsupportedMediaType"),
            id="a strategic patch",
        ),
        pytest.param(
            "PATCH",
            f"{JOBS}/hello",
            {},
            "application/apply-patch+yaml",
            (415, "UnsupportedMediaType"),
            id="server-side apply",
        ),
        pytest.param(
            "PATCH",
            f"{JOBS}/hello",
            {},
            "",
            (415, "UnsupportedMediaType"),
            id="a patch without type",
        ),
        pytest.param("PATCH", f"{JOBS}/hello", [], MERGE, (400, "BadRequest"), id="a list patch"),
        pytest.param("POST", f"{JOBS}/hello", JOB, "", (405, "MethodNotAllowed"), id="post to one"),
        pytest.param("PUT", JOBS, JOB, "", (405, "MethodNotAllowed"), id="put to all"),
        pytest.param("OPTIONS", JOBS, None, "", (405, "MethodNotAllowed"), id="options"),
        pytest.param(
            "POST", "/version", {}, "", (405, "MethodNotAllowed"), id="post to a document"
        ),
        pytest.param(
            "DELETE", f"{JOBS}/hello/status", None, "", (405, "MethodNotAllowed"), id="status"
        ),
        pytest.param("POST", LOCKS, {}, "", (403, "Forbidden"), id="locks are the system's"),
        pytest.param("DELETE", f"{LOCKS}/x", None, "", (403, "Forbidden"), id="locks stay"),
        pytest.param("DELETE", LOCKS, None, "", (403, "Forbidden"), id="all locks stay"),
        pytest.param(
            "POST",
            JOBS.replace("default", "no"),
            JOB,
            "",
            (404, "NotFound"),
            id="no such namespace",
        ),
        pytest.param(
            "POST",
            JOBS,
            {**JOB, "metadata": {"name": "b", "namespace": "other"}},
            "",
            (400, "BadRequest"),
            id="another namespace",
        ),
        pytest.param(
            "PUT",
            f"{JOBS}/hello",
            {**JOB, "metadata": {"name": "b"}},
            "",
            (400, "BadRequest"),
            id="another name",
        ),
        pytest.param(
            "POST",
            JOBS,
            {**JOB, "metadata": {"name": "b", "resourceVersion": "1"}},
            "",
            (400, "BadRequest"),
            id="a version before its time",
        ),
        pytest.param(
            "DELETE",
            "/apis/interlock.dev/v1alpha1/jobs",
            None,
            "",
            (405, "MethodNotAllowed"),
            id="everywhere at once",
        ),
    ],
)
def test_refusals(
    ask: Ask, method: str, path: str, body: Any, media: str, expected: tuple[int, str]
) -> None:
    ask("POST", JOBS, JOB)
    answer = ask(method, path, body, {"content-type": media} if media else None)
    assert (answer.status, answer.json["reason"]) == expected
    assert answer.json["kind"] == "Status"
    assert answer.json["apiVersion"] == "v1"
    assert answer.json["status"] == "Failure"
    assert answer.json["code"] == answer.status
    assert answer.json["message"]


def test_an_invalid_object_is_told_all_its_problems(ask: Ask) -> None:
    spec = {"process": {"command": []}, "retries": {"delay": "soon"}, "timout": "5m"}
    body = {**JOB, "metadata": {"name": "UPPER"}, "spec": spec}
    answer = ask("POST", f"{JOBS}?fieldValidation=Strict", body)
    assert answer.status == 422
    details = answer.json["details"]
    assert (details["group"], details["kind"]) == ("interlock.dev", "Job")
    causes = {cause["field"]: cause for cause in details["causes"]}
    assert "did you mean spec.timeout?" in causes["spec.timout"]["message"]
    assert causes["spec.retries.delay"]["reason"] == "FieldValueInvalid"
    for cause in details["causes"]:
        assert cause["field"] in answer.json["message"]


def test_rules_are_told_beside_wrong_types(ask: Ask) -> None:
    spec = {"pod": {"spec": 5}, "retries": {"limit": -1, "delay": "-5s"}, "timeout": "-1m"}
    marks = {"annotations": {"interlock.dev/no-such-mark": "x"}}
    body = JOB | {"metadata": {"name": "bad", **marks}, "spec": spec}

    causes = ask("POST", JOBS, body).json["details"]["causes"]

    assert {cause["field"] for cause in causes} == {
        'metadata.annotations["interlock.dev/no-such-mark"]',
        "spec.pod",
        "spec.pod.spec",
        "spec.retries.limit",
        "spec.retries.delay",
        "spec.timeout",
    }


def test_a_missing_field_is_told_as_required(ask: Ask) -> None:
    answer = ask("POST", JOBS, {"kind": "Job", "metadata": {"name": "x"}})
    assert ("spec", "FieldValueRequired") in [
        (cause["field"], cause["reason"]) for cause in answer.json["details"]["causes"]
    ]


POD = {"pod": {"spec": {"containers": [{"name": "main", "image": "a"}]}}}


class TestModes:
    def test_a_pod_needs_a_cluster(self, ask: Ask) -> None:
        answer = ask("POST", JOBS, {**JOB, "spec": POD})

        assert (answer.status, answer.json["reason"]) == (422, "Invalid")
        assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["spec.pod"]
        assert "needs a Kubernetes cluster" in answer.json["message"]

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_no_change_brings_one_in(self, ask: Ask, method: str) -> None:
        assert ask("POST", JOBS, JOB).status == 201
        spec = POD if method == "PUT" else {**POD, "process": None}
        media = "application/json" if method == "PUT" else MERGE
        answer = ask(method, f"{JOBS}/hello", {**JOB, "spec": spec}, {"content-type": media})

        assert (answer.status, answer.json["reason"]) == (422, "Invalid")
        assert "spec.pod: needs a Kubernetes cluster" in answer.json["message"]

    @pytest.mark.parametrize(
        ("kind", "template"), [("JobConfig", "template"), ("ControlledJob", "jobTemplate")]
    )
    def test_what_would_make_one_is_refused_too(self, ask: Ask, kind: str, template: str) -> None:
        place = f"/apis/interlock.dev/v1alpha1/namespaces/default/{kind.lower()}s"
        body = {"kind": kind, "metadata": {"name": "a"}, "spec": {template: {"spec": POD}}}
        good = {**body, "spec": {template: {"spec": {"noop": {}}}}}
        refused = (422, f"spec.{template}.spec.pod")

        def told(method: str, path: str, body: dict[str, Any]) -> tuple[int, str]:
            answer = ask(method, path, body)
            return answer.status, answer.json["details"]["causes"][0]["field"]

        assert told("POST", place, body) == refused
        assert ask("POST", place, good).status == 201
        assert told("PUT", f"{place}/a", body) == refused

    def test_a_cluster_takes_pods_and_no_processes(self) -> None:
        ask = asking(Asker(mode=Mode.CLUSTER))

        assert ask("POST", JOBS, {**JOB, "spec": POD}).status == 201
        answer = ask("POST", JOBS, {**JOB, "metadata": {"name": "x"}})
        assert answer.status == 422
        assert "spec.process: a cluster runs no processes" in answer.json["message"]

    def test_what_is_stored_all_the_same_may_be_labelled(self) -> None:
        """A Job that cannot run here must be free to be described, and to go."""
        asker = Asker(mode=Mode.CLUSTER)
        asking(asker)("POST", JOBS, {**JOB, "spec": POD})
        embedded = Asker()
        embedded.app = ApiApp(asker.store, lambda: T0)
        labels = {"metadata": {"labels": {"a": "b"}}}
        answer = asking(embedded)("PATCH", f"{JOBS}/hello", labels, {"content-type": MERGE})

        assert answer.status == 200


def test_a_body_that_says_it_is_too_large_is_not_read(ask: Ask) -> None:
    answer = ask("POST", JOBS, b"{}", {"content-length": "99999999"})
    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")
    assert answer.header("connection") == "close"


def test_a_body_that_turns_out_too_large_is_refused(ask: Ask) -> None:
    answer = ask("POST", JOBS, b" " * (3 * 1024 * 1024 + 1), {"content-length": "2"})
    assert answer.status == 413


@pytest.mark.parametrize("value", [None, [], "text", 5, True, [{"kind": "Job"}]])
def test_a_patch_must_leave_an_object(ask: Ask, value: object) -> None:
    ask("POST", JOBS, JOB)
    patch = [{"op": "replace", "path": "", "value": value}]
    headers = {"content-type": "application/json-patch+json"}

    answer = ask("PATCH", f"{JOBS}/hello", patch, headers)

    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert "expected an object" in answer.json["message"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("kind: Job\nx: [" + "1," * 60_000 + "]", id="values"),
        pytest.param("".join(f"k{n}: 1\n" for n in range(60_000)), id="keys"),
        pytest.param(
            "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]\n" for n in range(1, 9)),
            id="aliases",
        ),
        pytest.param("".join(f"%TAG !{n}! x\n" for n in range(50_000)) + "--- 1", id="directives"),
    ],
)
def test_yaml_that_would_take_long_is_refused(ask: Ask, body: str) -> None:
    answer = ask("POST", JOBS, body.encode(), {"content-type": "application/yaml"})

    assert answer.status == 400
    assert "more than" in answer.json["message"]


def test_a_large_definition_in_yaml_is_taken(ask: Ask) -> None:
    keys = "".join(f"  - key-{n}\n" for n in range(10_000))
    text = f"kind: Job\nmetadata: {{name: many}}\nspec:\n parallelism:\n  keys:\n{keys}"
    text += " process: {command: [echo, '${task.key}']}\n"

    answer = ask("POST", JOBS, text.encode(), {"content-type": "application/yaml"})

    assert answer.status == 201, answer.body[:300]


def test_labels_are_bounded(ask: Ask) -> None:
    labels = {"a": "x" * 64}
    answer = ask("POST", JOBS, {**JOB, "metadata": {"name": "x", "labels": labels}})
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    huge = {f"key-{n}": "x" * 63 for n in range(40_000)}
    answer = ask("POST", JOBS, {**JOB, "metadata": {"name": "x", "labels": huge}})
    assert answer.status in (413, 422)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(UnavailableError("disk full"), (503, "ServiceUnavailable"), id="disk full"),
        pytest.param(FencedError("another leads"), (503, "ServiceUnavailable"), id="fenced"),
        pytest.param(ExpiredError(1, 5), (410, "Expired"), id="expired"),
        pytest.param(InterlockError("odd"), (500, "InternalError"), id="anything else of ours"),
        pytest.param(RuntimeError("secret"), (500, "InternalError"), id="a mistake of ours"),
    ],
)
def test_errors_of_the_store(error: Exception, expected: tuple[int, str]) -> None:
    asker = Asker()

    async def fail(*_: object, **__: object) -> None:
        raise error

    asker.store.get = fail  # type: ignore[assignment, method-assign]
    answer = asking(asker)("GET", f"{JOBS}/x")
    assert (answer.status, answer.json["reason"]) == expected
    assert b"secret" not in answer.body
    assert bool(answer.header("retry-after")) is (expected[0] == 503)


def test_an_unacceptable_form_is_refused(ask: Ask) -> None:
    answer = ask("GET", JOBS, headers={"accept": "image/png"})
    assert (answer.status, answer.json["reason"]) == (406, "NotAcceptable")


@pytest.mark.parametrize("name", ["default", "interlock-system"])
def test_a_namespace_that_everything_is_in_stays(ask: Ask, name: str) -> None:
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": "interlock-system"}})
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": "another"}})

    answer = ask("DELETE", f"/api/v1/namespaces/{name}")
    swept = ask("DELETE", "/api/v1/namespaces")

    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert "may not be deleted" in answer.json["message"]
    assert [one["metadata"]["name"] for one in swept.json["items"]] == ["another"]
