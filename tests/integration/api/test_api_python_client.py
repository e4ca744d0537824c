"""The official Python client, which nobody here wrote, works with custom objects and watches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, watch

from interlock.testing.serving import PATIENCE_S, Server

GROUP, VERSION, PLURAL = "interlock.dev", "v1alpha1", "jobs"
PLACE = {"group": GROUP, "version": VERSION, "namespace": "default", "plural": PLURAL}


def a_job(name: str, **spec: Any) -> dict[str, Any]:
    given = {"process": {"command": ["true"]}, "suspend": True, **spec}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": given,
    }


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with Server(tmp_path_factory.mktemp("python-client") / "data") as server:
        configuration = client.Configuration()
        configuration.host = server.url
        with client.ApiClient(configuration) as connection:
            yield client.CustomObjectsApi(connection)


def settled(api: Any, name: str) -> Any:
    """The Job once the system has said why it waits; after that it writes no more to it."""
    for _ in range(10_000):
        job = api.get_namespaced_custom_object(**PLACE, name=name)
        if job.get("status", {}).get("admission", {}).get("waits"):
            return job
    raise AssertionError(f"{name} never settled")


def test_create_get_list_patch_replace_delete(api: Any) -> None:
    made = api.create_namespaced_custom_object(**PLACE, body=a_job("one"))
    assert made["metadata"]["uid"]
    patched = api.patch_namespaced_custom_object(**PLACE, name="one", body={"spec": {"title": "t"}})
    assert patched["spec"]["title"] == "t"
    got = settled(api, "one")
    got["spec"]["title"] = "u"
    assert (
        api.replace_namespaced_custom_object(**PLACE, name="one", body=got)["spec"]["title"] == "u"
    )
    with pytest.raises(client.ApiException) as conflict:
        api.replace_namespaced_custom_object(**PLACE, name="one", body=got | {"spec": made["spec"]})
    assert conflict.value.status == 409
    listed = api.list_namespaced_custom_object(**PLACE, label_selector="nothing=here")
    assert listed["items"] == []
    names = [
        item["metadata"]["name"]
        for item in api.list_cluster_custom_object(group=GROUP, version=VERSION, plural=PLURAL)[
            "items"
        ]
    ]
    assert "one" in names
    api.delete_namespaced_custom_object(**PLACE, name="one", propagation_policy="Foreground")


def test_status_is_a_subresource(api: Any) -> None:
    api.create_namespaced_custom_object(**PLACE, body=a_job("with-status"))
    status = api.get_namespaced_custom_object_status(**PLACE, name="with-status")
    assert status["kind"] == "Job"


def test_errors_are_told(api: Any) -> None:
    with pytest.raises(client.ApiException) as missing:
        api.get_namespaced_custom_object(**PLACE, name="nowhere")
    assert (missing.value.status, missing.value.reason) == (404, "Not Found")
    with pytest.raises(client.ApiException) as invalid:
        api.create_namespaced_custom_object(**PLACE, body=a_job("bad", process=None))
    assert invalid.value.status == 422


def test_watch_from_a_list(api: Any) -> None:
    api.create_namespaced_custom_object(**PLACE, body=a_job("before"))
    listed = api.list_namespaced_custom_object(**PLACE)
    version = listed["metadata"]["resourceVersion"]
    api.create_namespaced_custom_object(**PLACE, body=a_job("after-1"))
    api.create_namespaced_custom_object(**PLACE, body=a_job("after-2"))
    seen = []
    watching: Any = watch.Watch()  # type: ignore[no-untyped-call]
    for event in watching.stream(
        api.list_namespaced_custom_object,
        **PLACE,
        resource_version=version,
        timeout_seconds=int(PATIENCE_S),
    ):
        if event["type"] == "ADDED":
            seen.append(event["object"]["metadata"]["name"])
        if len(seen) == 2:
            watching.stop()
    assert seen == ["after-1", "after-2"]


def test_delete_collection(api: Any) -> None:
    for number in range(3):
        job = a_job(f"swept-{number}")
        job["metadata"]["labels"] = {"swept": "yes"}
        api.create_namespaced_custom_object(**PLACE, body=job)
    gone = api.delete_collection_namespaced_custom_object(**PLACE, label_selector="swept=yes")
    assert len(gone["items"]) == 3
