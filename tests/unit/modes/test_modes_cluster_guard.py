"""Every request to a controller is a question to the cluster about the one who sent it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.api.answers import RefusedError
from interlock.api.requests import Request
from interlock.kube.reviews import Deed, NotReviewedError, Person
from interlock.modes.cluster_guard import ClusterGuard
from interlock.resources.errors import UnavailableError
from interlock.resources.metadata import Key

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/a/jobs"


class Cluster:
    """Knows one token, and lets its owner do everything or nothing."""

    def __init__(self, *, allows: bool = True, error: Exception | None = None) -> None:
        self.allows = allows
        self.error = error
        self.asked: list[Deed] = []

    async def who(self, token: str) -> Person | None:
        if self.error is not None:
            raise self.error
        return Person(username="ann") if token == "good" else None

    async def may(self, person: Person, deed: Deed) -> bool:
        assert person.username == "ann"
        self.asked.append(deed)
        return self.allows


def a_request(path: str, method: str = "GET", token: str = "good") -> Request:
    path, _, query = path.partition("?")
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    scope: dict[str, Any] = {
        "method": method, "path": path, "query_string": query.encode(), "headers": headers,
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        raise AssertionError("the body is nobody's concern here")

    return Request(scope, receive)


def admit(cluster: Cluster, request: Request, namespace: str = "") -> None:
    key_of = {"uid-1": Key("Job", "a", "one")}.get
    guard = ClusterGuard(cluster, key_of, namespace=namespace)  # type: ignore[arg-type]
    asyncio.run(guard.admit(request))


def on_jobs(verb: str, namespace: str = "", name: str = "", **more: str) -> Deed:
    deed: dict[str, str] = {"group": "interlock.dev", "resource": "jobs"}
    return Deed(verb=verb, namespace=namespace, name=name, **(deed | more))


@pytest.mark.parametrize(
    ("method", "path", "deed"),
    [
        ("GET", JOBS, on_jobs("list", "a")),
        ("GET", f"{JOBS}?watch=true", on_jobs("watch", "a")),
        ("GET", f"{JOBS}/x", on_jobs("get", "a", "x")),
        ("HEAD", f"{JOBS}/x", on_jobs("get", "a", "x")),
        ("POST", JOBS, on_jobs("create", "a")),
        ("PUT", f"{JOBS}/x", on_jobs("update", "a", "x")),
        ("PATCH", f"{JOBS}/x", on_jobs("patch", "a", "x")),
        ("PUT", f"{JOBS}/x/status", on_jobs("update", "a", "x", subresource="status")),
        ("DELETE", f"{JOBS}/x", on_jobs("delete", "a", "x")),
        ("DELETE", JOBS, on_jobs("deletecollection", "a")),
        ("GET", "/apis/interlock.dev/v1alpha1/jobs", on_jobs("list")),
        ("GET", "/api/v1/namespaces/a", Deed(verb="get", resource="namespaces", name="a")),
        ("GET", "/jobs", on_jobs("list")),
        ("GET", "/jobs?namespace=a", on_jobs("list", "a")),
        ("GET", "/jobs?namespace=a&namespace=", on_jobs("list")),
        ("GET", "/jobs/stream?namespace=a", on_jobs("watch", "a")),
        ("GET", "/jobs/uid-1", on_jobs("get", "a", "one")),
        ("GET", "/jobs/uid-2", on_jobs("get")),
        ("GET", "/jobs/a/x", on_jobs("get", "a", "x")),
        ("GET", "/jobs/a/x/why", on_jobs("get", "a", "x")),
        ("GET", "/jobs//x", on_jobs("get", "", "x")),
        (
            "GET",
            "/jobs/a/x/log",
            Deed(verb="get", resource="pods", subresource="log", namespace="a"),
        ),
        ("GET", "/locks", on_jobs("list", resource="locks")),
        ("GET", "/locks?namespace=a", on_jobs("list", "a", resource="locks")),
        ("GET", "/history", on_jobs("list")),
        ("GET", "/history?name=x", on_jobs("list", "default")),
        ("GET", "/history?namespace=a&name=x", on_jobs("list", "a")),
        ("GET", "/history?kind=Lock&name=x", on_jobs("list", "default", resource="locks")),
        (
            "GET",
            "/history?kind=ControlledJob&namespace=a&name=x",
            on_jobs("list", "a", resource="controlledjobs"),
        ),
        ("GET", "/metrics", Deed(verb="get", path="/metrics")),
        ("GET", "/", Deed(verb="get", path="/")),
        ("GET", "/apis/interlock.dev", Deed(verb="get", path="/apis/interlock.dev")),
        ("POST", "/anything", Deed(verb="post", path="/anything")),
    ],
)
def test_what_is_asked(method: str, path: str, deed: Deed) -> None:
    cluster = Cluster()

    admit(cluster, a_request(path, method))

    assert cluster.asked == [deed]


@pytest.mark.parametrize(
    ("path", "namespace"),
    [
        ("/jobs", "mine"),
        ("/apis/interlock.dev/v1alpha1/jobs", "mine"),
        ("/locks", "mine"),
        ("/history", "mine"),
        ("/jobs?namespace=other", "other"),
        ("/api/v1/namespaces", ""),
    ],
)
def test_all_means_one_namespace_to_a_controller_of_one(path: str, namespace: str) -> None:
    cluster = Cluster()

    admit(cluster, a_request(path), namespace="mine")

    assert [deed.namespace for deed in cluster.asked] == [namespace]


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_health_is_told_to_anybody(path: str) -> None:
    cluster = Cluster(error=UnavailableError("away"))

    admit(cluster, a_request(path, token=""))

    assert cluster.asked == []


@pytest.mark.parametrize(
    ("cluster", "token", "code", "told"),
    [
        pytest.param(Cluster(), "", 401, "a token of the cluster", id="no token"),
        pytest.param(Cluster(), "bad", 401, "does not know this token", id="not known"),
        pytest.param(
            Cluster(allows=False), "good", 403,
            'User "ann" cannot list resource "jobs" in API group "interlock.dev"', id="may not",
        ),
        pytest.param(
            Cluster(error=NotReviewedError("may not ask")), "good", 500, "may not ask",
            id="the controller may not ask",
        ),
    ],
)  # fmt: skip
def test_who_is_not_let_in(cluster: Cluster, token: str, code: int, told: str) -> None:
    with pytest.raises(RefusedError) as caught:
        admit(cluster, a_request(JOBS, token=token))

    assert caught.value.status.code == code
    assert told in caught.value.status.message
    assert (b"www-authenticate", b"Bearer") in caught.value.headers or code != 401


def test_nobody_is_let_in_while_the_cluster_cannot_be_asked() -> None:
    with pytest.raises(UnavailableError):
        admit(Cluster(error=UnavailableError("away")), a_request(JOBS))


def test_why_there_is_no_backup_is_told_to_whoever_is_known() -> None:
    cluster = Cluster(allows=False)

    admit(cluster, a_request("/admin/backup", "POST"))

    with pytest.raises(RefusedError):
        admit(cluster, a_request("/admin/backup", "POST", token="bad"))
