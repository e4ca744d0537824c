"""What each verb answers, and what the store holds afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.routing import collection_path
from interlock.resources.job import JOB_FINALIZER
from interlock.resources.kinds import KINDS, Kind
from interlock.testing.asking import JOB, JOBS, Ask

MERGE = {"content-type": "application/merge-patch+json"}
JSON_PATCH = {"content-type": "application/json-patch+json"}


def a_job(name: str = "hello", **metadata: Any) -> dict[str, Any]:
    return {**JOB, "metadata": {"name": name, **metadata}}


def test_create_fills_in_what_the_system_owns(ask: Ask) -> None:
    made = ask("POST", JOBS, JOB)

    assert made.status == 201
    metadata = made.json["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["generation"] == 1
    assert metadata["finalizers"] == [JOB_FINALIZER]
    assert ask("GET", f"{JOBS}/hello").json == made.json


def test_create_from_yaml(ask: Ask) -> None:
    body = b"kind: Job\nmetadata: {name: y}\nspec: {process: {command: ['true']}}\n"
    made = ask("POST", JOBS, body, {"content-type": "application/yaml"})
    assert (made.status, made.json["metadata"]["name"]) == (201, "y")


def _part(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2, len(data))) + data


def test_kubectl_makes_a_namespace_in_protobuf(ask: Ask) -> None:
    label = _part(11, _part(1, b"team") + _part(2, b"blue"))
    metadata = _part(1, b"elsewhere") + _part(2, b"") + b"\x38\x00" + label
    kind = _part(1, b"v1") + _part(2, b"Namespace")
    body = b"k8s\x00" + _part(1, kind) + _part(2, _part(1, metadata)) + _part(3, b"")
    media = {"content-type": "application/vnd.kubernetes.protobuf"}
    made = ask("POST", "/api/v1/namespaces", body, media)
    assert (made.status, made.json["metadata"]["labels"]) == (201, {"team": "blue"})
    for cut in range(len(body)):
        assert 400 <= ask("POST", "/api/v1/namespaces", body[:cut], media).status < 500


def test_generate_name(ask: Ask) -> None:
    made = ask("POST", JOBS, {**JOB, "metadata": {"generateName": "run-"}})
    assert made.status == 201
    assert made.json["metadata"]["name"].startswith("run-")


def test_update_replaces_and_conflicts_on_an_old_version(ask: Ask) -> None:
    first = ask("POST", JOBS, JOB).json
    changed = {**first, "spec": {**first["spec"], "title": "new"}}

    assert ask("PUT", f"{JOBS}/hello", changed).json["spec"]["title"] == "new"
    again = ask("PUT", f"{JOBS}/hello", {**changed, "spec": {**first["spec"], "title": "x"}})
    assert (again.status, again.json["reason"]) == (409, "Conflict")
    assert ask("GET", f"{JOBS}/hello").json["metadata"]["generation"] == 2


def test_update_without_a_version_takes_whatever_there_is(ask: Ask) -> None:
    ask("POST", JOBS, JOB)
    spec = {**JOB["spec"], "priority": 7}
    changed = ask("PUT", f"{JOBS}/hello", {**JOB, "spec": spec})
    assert (changed.status, changed.json["spec"]["priority"]) == (200, 7)


def test_an_update_that_changes_nothing_makes_no_version(ask: Ask) -> None:
    first = ask("POST", JOBS, JOB).json
    assert ask("PUT", f"{JOBS}/hello", first).json == first
    assert ask("PATCH", f"{JOBS}/hello", {"spec": {}}, MERGE).json == first


def test_nobody_takes_off_the_finalizer_that_keeps_locks_safe(ask: Ask) -> None:
    ask("POST", JOBS, JOB)
    patched = ask("PATCH", f"{JOBS}/hello", {"metadata": {"finalizers": None}}, MERGE)
    assert patched.json["metadata"]["finalizers"] == [JOB_FINALIZER]
    assert "proven gone" in patched.header("warning")
    replaced = ask("PUT", f"{JOBS}/hello", JOB)
    assert replaced.json["metadata"]["finalizers"] == [JOB_FINALIZER]


def test_a_stop_that_is_due_is_not_taken_back(ask: Ask) -> None:
    """The clock of this server stands at noon."""
    due = {**JOB, "spec": {**JOB["spec"], "killAt": "2026-01-05T12:00:00Z"}}
    ask("POST", JOBS, due)
    for kill_at in (None, "2026-01-05T12:00:01Z"):
        refused = ask("PATCH", f"{JOBS}/hello", {"spec": {"killAt": kill_at}}, MERGE)
        assert refused.status == 422
        assert refused.json["details"]["causes"][0]["field"] == "spec.killAt"
    assert ask("PUT", f"{JOBS}/hello", JOB).status == 422
    assert ask("PATCH", f"{JOBS}/hello", {"spec": {"gracePeriod": "0s"}}, MERGE).status == 200
    assert ask("GET", f"{JOBS}/hello").json["spec"]["killAt"] == due["spec"]["killAt"]


@pytest.mark.parametrize(
    ("media", "patch", "title"),
    [
        pytest.param(MERGE, {"spec": {"title": "b"}}, "b", id="merge patch"),
        pytest.param(MERGE, {"spec": {"title": None}}, None, id="null removes"),
        pytest.param(
            JSON_PATCH,
            [{"op": "replace", "path": "/spec/title", "value": "c"}],
            "c",
            id="json patch",
        ),
        pytest.param(
            JSON_PATCH,
            [
                {"op": "test", "path": "/spec/title", "value": "a"},
                {"op": "remove", "path": "/spec/title"},
            ],
            None,
            id="json patch with a test",
        ),
    ],
)
def test_patches(ask: Ask, media: dict[str, str], patch: Any, title: str | None) -> None:
    ask("POST", JOBS, {**JOB, "spec": {**JOB["spec"], "title": "a"}})
    patched = ask("PATCH", f"{JOBS}/hello", patch, media)
    assert patched.status == 200
    assert patched.json["spec"].get("title") == title


def test_a_patch_that_names_an_old_version_conflicts(ask: Ask) -> None:
    version = ask("POST", JOBS, JOB).json["metadata"]["resourceVersion"]
    named = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
    assert ask("PATCH", f"{JOBS}/hello", named, MERGE).status == 200
    named["metadata"]["labels"] = {"a": "c"}
    assert ask("PATCH", f"{JOBS}/hello", named, MERGE).json["reason"] == "Conflict"


ADMITTED = {"phase": "Starting", "admission": {"phase": "Admitted", "sequence": 1}}


def test_a_status_in_a_body_is_left_out(ask: Ask) -> None:
    made = ask("POST", JOBS, {**JOB, "status": ADMITTED}).json
    both = {"spec": {"title": "yes"}, "status": ADMITTED}
    patched = ask("PATCH", f"{JOBS}/hello", both, MERGE).json
    put = ask("PUT", f"{JOBS}/hello", {**patched, "status": ADMITTED}).json
    read = ask("GET", f"{JOBS}/hello/status").json

    assert patched["spec"]["title"] == "yes"
    assert [one.get("status", {}) for one in (made, patched, put, read)] == [{}] * 4


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS.values() if kind.has_status], ids=lambda kind: kind.plural
)
def test_nobody_outside_writes_a_status(ask: Ask, kind: Kind) -> None:
    """A Job that says of itself that it was admitted would start beside the holder of its lock."""
    ask("POST", JOBS, JOB)
    path = f"{collection_path(kind)}/hello/status"
    if kind.namespaced:
        path = path.replace(f"/{kind.plural}/", f"/namespaces/default/{kind.plural}/")
    for method, body, media in (
        ("PATCH", {"status": ADMITTED}, MERGE),
        ("PATCH", [{"op": "replace", "path": "/status", "value": ADMITTED}], JSON_PATCH),
        ("PUT", {**JOB, "kind": kind.name, "status": ADMITTED}, {}),
    ):
        for query in ("", "?dryRun=All"):
            told = ask(method, path + query, body, media)
            assert (told.status, told.json["reason"]) == (403, "Forbidden")
            assert "the control plane alone" in told.json["message"]
    assert "status" not in ask("GET", f"{JOBS}/hello").json


def test_delete_waits_for_finalizers(ask: Ask) -> None:
    ask("POST", JOBS, JOB)
    going = ask("DELETE", f"{JOBS}/hello")
    assert (going.status, going.json["kind"]) == (200, "Job")
    assert going.json["metadata"]["deletionTimestamp"]


def test_delete_of_what_nothing_holds_is_done_at_once(ask: Ask) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    uid = ask("POST", leases, lease).json["metadata"]["uid"]
    done = ask("DELETE", f"{leases}/l").json
    assert (done["kind"], done["status"], done["details"]["uid"]) == ("Status", "Success", uid)
    assert ask("GET", f"{leases}/l").status == 404


@pytest.mark.parametrize(
    ("query", "options", "status"),
    [
        pytest.param("", {"preconditions": {"uid": "other"}}, 409, id="another uid"),
        pytest.param("", {"preconditions": {"resourceVersion": "1"}}, 409, id="another version"),
        pytest.param("", {"propagationPolicy": "Foreground"}, 200, id="in the body"),
        pytest.param("?propagationPolicy=Orphan", None, 200, id="in the query"),
        pytest.param("?propagationPolicy=Sideways", None, 422, id="no such policy"),
        pytest.param("?gracePeriodSeconds=0", None, 200, id="grace is accepted"),
        pytest.param("", {"kind": "Job"}, 400, id="not options"),
        pytest.param("", b"{", 400, id="not JSON"),
    ],
)
def test_delete_options(ask: Ask, query: str, options: Any, status: int) -> None:
    ask("POST", JOBS, JOB)
    assert ask("DELETE", f"{JOBS}/hello{query}", options).status == status


def test_delete_collection_takes_only_what_is_selected(ask: Ask) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        ask("POST", JOBS, a_job(name, labels={"color": color}))
    gone = ask("DELETE", f"{JOBS}?labelSelector=color%3Dred").json
    assert [item["metadata"]["name"] for item in gone["items"]] == ["a", "c"]
    listed = ask("GET", JOBS).json["items"]
    going = [i["metadata"]["name"] for i in listed if "deletionTimestamp" in i["metadata"]]
    assert going == ["a", "c"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_dry_run_changes_nothing(ask: Ask, method: str) -> None:
    first = ask("POST", JOBS, JOB).json
    path = f"{JOBS}/hello" if method != "POST" else JOBS
    body = a_job("other") if method == "POST" else {**JOB, "spec": {**JOB["spec"], "title": "x"}}
    if method == "DELETE":
        body = {}
    answer = ask(method, f"{path}?dryRun=All", body, MERGE if method == "PATCH" else None)
    assert answer.status in (200, 201)
    assert ask("GET", JOBS).json["items"] == [first]


def test_list_in_parts_is_the_whole_list(ask: Ask) -> None:
    for name in "abcde":
        ask("POST", JOBS, a_job(name))
    names, token = [], ""
    while True:
        part = ask("GET", f"{JOBS}?limit=2&continue={token}").json
        names += [item["metadata"]["name"] for item in part["items"]]
        token = part["metadata"].get("continue", "")
        if not token:
            break
    assert names == list("abcde")


def test_a_long_list_is_sent_in_parts_and_is_whole(ask: Ask) -> None:
    for number in range(1201):
        ask("POST", JOBS, a_job(f"job-{number:04}"))
    listed = ask("GET", "/apis/interlock.dev/v1alpha1/jobs").json
    assert len(listed["items"]) == 1201
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert len(ask("GET", JOBS, headers=table).json["rows"]) == 1201


@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param("resourceVersion=0", 200, id="any version"),
        pytest.param("resourceVersion=1&resourceVersionMatch=NotOlderThan", 200, id="not older"),
        pytest.param("resourceVersion=1&resourceVersionMatch=Exact", 410, id="an old one, exactly"),
        pytest.param("resourceVersion=999", 504, id="one of the future"),
        pytest.param("resourceVersionMatch=Exact", 400, id="exactly what"),
        pytest.param("resourceVersion=1&resourceVersionMatch=Roughly", 400, id="no such match"),
        pytest.param("resourceVersion=x", 400, id="no number"),
        pytest.param("limit=-1", 400, id="a negative limit"),
        pytest.param("limit=1&continue=nonsense", 400, id="a bad token"),
        pytest.param("labelSelector=a%3D%3D%3Db", 400, id="a bad label selector"),
        pytest.param("fieldSelector=spec.nothing%3Db", 400, id="a bad field selector"),
        pytest.param("fieldSelector=metadata.name%3Dhello", 200, id="by name"),
    ],
)
def test_list_parameters(ask: Ask, query: str, status: int) -> None:
    ask("POST", JOBS, JOB)
    assert ask("GET", f"{JOBS}?{query}").status == status


@pytest.mark.parametrize(
    ("validation", "status", "warns"),
    [
        pytest.param("Strict", 422, False, id="strict refuses"),
        pytest.param("Warn", 201, True, id="warn stores and says so"),
        pytest.param("Ignore", 201, False, id="ignore stores"),
        pytest.param("Maybe", 400, False, id="no such validation"),
        pytest.param("", 201, True, id="warns by default"),
    ],
)
def test_unknown_fields(ask: Ask, validation: str, status: int, warns: bool) -> None:
    body = {**JOB, "spec": {**JOB["spec"], "proces": {}}}
    query = f"?fieldValidation={validation}" if validation else ""
    answer = ask("POST", f"{JOBS}{query}", body)
    assert answer.status == status
    assert ("spec.proces" in answer.header("warning")) is warns
