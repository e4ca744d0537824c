"""Discovery, schemas, forms, health and metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.checking import Check
from interlock.resources.kinds import KINDS
from interlock.testing.asking import JOB, JOBS, Ask, Asker, asking

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/interlock.dev", "APIGroup"),
        ("/apis/interlock.dev/v1alpha1", "APIResourceList"),
        ("/apis/coordination.k8s.io/v1", "APIResourceList"),
        ("/api/v1", "APIResourceList"),
        ("/api/", "APIVersions"),
    ],
)
def test_discovery(ask: Ask, path: str, kind: str) -> None:
    answer = ask("GET", path)
    assert (answer.status, answer.json["kind"]) == (200, kind)


@pytest.mark.parametrize("path", ["/apis/no", "/apis/no/v1", "/api/v2", "/apis//v1"])
def test_discovery_of_what_is_not_there(ask: Ask, path: str) -> None:
    assert ask("GET", path).status == 404


def test_aggregated_discovery_tells_the_same_as_the_plain_one(ask: Ask) -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for path in ("/api", "/apis"):
        answer = ask("GET", path, headers={"accept": f"{AGGREGATED},application/json"})
        assert answer.header("content-type") == AGGREGATED
        for group in answer.json["items"]:
            for version in group["versions"]:
                for resource in version["resources"]:
                    place = (group["metadata"].get("name", ""), version["version"])
                    found.setdefault(place, []).append(resource["resource"])
    for (group, version), plurals in found.items():
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        plain = [r["name"] for r in ask("GET", path).json["resources"] if "/" not in r["name"]]
        assert plain == plurals
    assert sum(map(len, found.values())) == len(KINDS)


def test_statuses_are_told_of_as_what_can_be_read_and_no_more(ask: Ask) -> None:
    told = {}
    for path in ("/api", "/apis"):
        answer = ask("GET", path, headers={"accept": AGGREGATED})
        for resource in (
            resource
            for group in answer.json["items"]
            for version in group["versions"]
            for resource in version["resources"]
        ):
            told[resource["resource"]] = resource.get("subresources", [])
    for kind in KINDS.values():
        place = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
        plain = [
            entry["verbs"]
            for entry in ask("GET", f"/{place}").json["resources"]
            if entry["name"] == f"{kind.plural}/status"
        ]
        paths = ask("GET", f"/openapi/v3/{place}").json["paths"]
        methods = [
            sorted(item.keys() - {"parameters"})
            for path, item in paths.items()
            if path.endswith(f"/{kind.plural}/{{name}}/status")
        ]
        expected = [["get"]] if kind.has_status else []
        assert plain == [each["verbs"] for each in told[kind.plural]] == expected
        # Whoever writes one all the same is told why not.
        assert methods == ([["get", "patch", "put"]] if kind.has_status else [])


def test_every_discovered_kind_can_be_listed(ask: Ask) -> None:
    for kind in KINDS.values():
        root = f"/apis/{kind.group}" if kind.group else "/api"
        listed = ask("GET", f"{root}/{kind.version}/{kind.plural}")
        assert listed.json["kind"] == f"{kind.name}List"


def _references(document: Any) -> set[str]:
    if isinstance(document, dict):
        own = {document["$ref"]} if isinstance(document.get("$ref"), str) else set()
        return own.union(*map(_references, document.values()))
    if isinstance(document, list):
        return set().union(*map(_references, document))
    return set()


def test_openapi_v3_is_found_and_complete(ask: Ask) -> None:
    paths = ask("GET", "/openapi/v3").json["paths"]
    groups = {"api/v1", "apis/interlock.dev/v1alpha1", "apis/coordination.k8s.io/v1"}
    assert set(paths) == groups | {"reports"}
    for entry in paths.values():
        document = ask("GET", entry["serverRelativeURL"]).json
        names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert _references(document) <= names
        ids = [
            operation["operationId"]
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method != "parameters"
        ]
        assert ids
    assert ask("GET", "/openapi/v3/apis/no/v1").status == 404


def test_clients_learn_that_fields_are_validated_here(ask: Ask) -> None:
    document = ask("GET", "/openapi/v3/apis/interlock.dev/v1alpha1").json
    item = document["paths"]["/apis/interlock.dev/v1alpha1/namespaces/{namespace}/jobs/{name}"]
    assert "fieldValidation" in [parameter["name"] for parameter in item["patch"]["parameters"]]


def test_openapi_v2_is_complete(ask: Ask) -> None:
    document = ask("GET", "/openapi/v2").json
    names = {f"#/definitions/{name}" for name in document["definitions"]}
    assert _references(document) <= names
    assert "nullable" not in json.dumps(document["definitions"])


def test_openapi_v2_is_json_alone(ask: Ask) -> None:
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = ask("GET", "/openapi/v2", headers={"accept": accept})
    assert answer.status == 406
    assert "kubectl reads them since 1.27" in answer.json["message"]


def test_a_table_has_the_columns_of_the_kind(ask: Ask) -> None:
    ask("POST", JOBS, JOB)
    table = ask("GET", JOBS, headers={"accept": f"{TABLE},application/json"}).json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names[:2] == ["Name", "Phase"]
    (row,) = table["rows"]
    assert len(row["cells"]) == len(names)
    assert row["cells"][0] == "hello"
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "hello"
    one = ask("GET", f"{JOBS}/hello", headers={"accept": TABLE}).json
    assert one["rows"] == table["rows"]


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "Job")]
)
def test_what_rows_carry(ask: Ask, include: str, kind: str | None) -> None:
    ask("POST", JOBS, JOB)
    table = ask("GET", f"{JOBS}?includeObject={include}", headers={"accept": TABLE}).json
    assert table["rows"][0].get("object", {}).get("kind") == kind


def test_metadata_alone(ask: Ask) -> None:
    ask("POST", JOBS, JOB)
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    one = ask("GET", f"{JOBS}/hello", headers={"accept": accept}).json
    assert set(one) == {"kind", "apiVersion", "metadata"}
    accept = accept.replace("Metadata;", "MetadataList;")
    listed = ask("GET", JOBS, headers={"accept": accept}).json
    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["items"] == [one]


def test_readiness_tells_what_is_missing() -> None:
    checks = [Check("store"), Check("caches", "the cache of Jobs")]
    ask = asking(Asker(ready=lambda: checks))
    answer = ask("GET", "/readyz")
    assert (answer.status, answer.body) == (503, b"not ready: the cache of Jobs\n")
    told = ask("GET", "/readyz?verbose")
    assert told.status == 503
    assert told.body.decode().splitlines() == [
        "[+]ping ok",
        "[+]store ok",
        "[-]caches failed: the cache of Jobs",
        "readyz check failed",
    ]
    assert ask("GET", "/livez").status == 200
    checks.pop()
    assert ask("GET", "/readyz").body == b"ok"
    assert ask("GET", "/livez?verbose").body == b"[+]ping ok\nlivez check passed\n"


def test_metrics_count_requests(ask: Ask) -> None:
    ask("POST", JOBS, JOB)
    ask("GET", f"{JOBS}/no")
    text = ask("GET", "/metrics").body.decode()
    assert 'interlock_http_requests_total{code="201",verb="create"} 1.0' in text
    assert 'interlock_http_requests_total{code="404",verb="get"} 1.0' in text
    assert "interlock_http_watches 0.0" in text


def test_the_page_lists_every_kind(ask: Ask) -> None:
    page = ask("GET", "/")
    assert page.header("content-type").startswith("text/html")
    assert "script" not in page.body.decode()
    for kind in KINDS.values():
        assert kind.plural in page.body.decode()


def test_head_is_answered(ask: Ask) -> None:
    assert ask("HEAD", "/healthz").status == 200
    assert ask("HEAD", JOBS).status == 200
