"""Every request to a controller is a question to the cluster about the one who sent it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from interlock.api.answers import RefusedError
from interlock.api.callers import NOBODY
from interlock.api.requests import SOCKET, Request
from interlock.api.routing import (
    ForAll,
    OnPath,
    OnResource,
    Route,
    Router,
    Said,
    rights_on_resources,
)
from interlock.errors import UnavailableError
from interlock.kube.client.reviews import Deed, NotReviewedError, Person
from interlock.modes.cluster_guard import ClusterGuard, Reviewer
from interlock.resources.metadata import Key
from interlock.testing.asking import Asker, a_store
from support.reports import Reports

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


ROUTER = Router(Asker(routes=Reports(a_store()).routes()).app.router.routes)


def a_request(path: str, method: str = "GET", token: str = "good") -> Request:
    path, _, query = path.partition("?")
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    scope: dict[str, Any] = {
        "type": "websocket" if method == SOCKET else "http",
        "method": method, "path": path, "query_string": query.encode(), "headers": headers,
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        raise AssertionError("the body is nobody's concern here")

    request = Request(scope, receive)
    request.match = ROUTER.match(request)
    return request


def a_guard(cluster: Reviewer, namespace: str = "") -> ClusterGuard:
    return ClusterGuard(cluster, {"uid-1": Key("Job", "a", "one")}.get, namespace=namespace)


def admit(cluster: Reviewer, request: Request, namespace: str = "") -> None:
    asyncio.run(a_guard(cluster, namespace).admit(request))


def on_jobs(verb: str, namespace: str = "", name: str = "", **more: str) -> Deed:
    deed: dict[str, str] = {"group": "interlock.dev", "resource": "jobs"}
    return Deed(verb=verb, namespace=namespace, name=name, **(deed | more))


def test_who_asks_for_a_line_may_know_of_the_jobs_of_all_namespaces() -> None:
    cluster = Cluster()

    admit(cluster, a_request("/queues/x"))

    assert cluster.asked == [on_jobs("get", name="x", resource="queues"), on_jobs("list")]


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
        ("GET", "/jobs/stream?namespace=a", on_jobs("watch", "a")),
        ("GET", "/jobs/uid-1", on_jobs("get", "a", "one")),
        ("GET", "/jobs/uid-2", on_jobs("get")),
        ("GET", "/jobs/a/x", on_jobs("get", "a", "x")),
        ("GET", "/jobs/a/x/why", on_jobs("get", "a", "x")),
        ("GET", "/jobs/stream/x", on_jobs("get", "stream", "x")),
        ("GET", "/jobs//x", Deed(verb="get", path="/jobs//x")),
        ("GET", "/jobs/a/..", Deed(verb="get", path="/jobs/a/..")),
        ("POST", "/jobs/a/x", Deed(verb="post", path="/jobs/a/x")),
        ("POST", "/jobs/a/x/stop", on_jobs("patch", "a", "x")),
        ("POST", "/jobconfigs/a/x/disable", on_jobs("patch", "a", "x", resource="jobconfigs")),
        ("GET", "/jobs/a/x/stop", Deed(verb="get", path="/jobs/a/x/stop")),
        (SOCKET, "/jobs/stream", on_jobs("watch")),
        (SOCKET, "/jobs/stream?namespace=a", on_jobs("watch", "a")),
        (SOCKET, "/jobs/a/x", Deed(verb="(websocket)", path="/jobs/a/x")),
        (SOCKET, "/jobs/a/x/why?namespace=a", Deed(verb="(websocket)", path="/jobs/a/x/why")),
        (SOCKET, JOBS, Deed(verb="(websocket)", path=JOBS)),
        ("GET", "/jobconfigs/a/x/why", on_jobs("get", "a", "x", resource="jobconfigs")),
        ("GET", "/controlledjobs/a/x/why", on_jobs("get", "a", "x", resource="controlledjobs")),
        (
            "GET",
            "/jobs/a/x/log",
            Deed(verb="get", resource="pods", subresource="log", namespace="a"),
        ),
        ("GET", "/locks", on_jobs("list", resource="locks")),
        ("GET", "/locks?namespace=a", on_jobs("list", "a", resource="locks")),
        ("GET", "/queues", on_jobs("list", resource="queues")),
        ("GET", "/history", on_jobs("list")),
        ("GET", "/history?name=x", on_jobs("list", "default")),
        ("GET", "/history?namespace=a&name=x", on_jobs("list", "a")),
        ("GET", "/history?kind=Lock&name=x", on_jobs("list", "default", resource="locks")),
        (
            "GET",
            "/history?kind=ControlledJob&namespace=a&name=x",
            on_jobs("list", "a", resource="controlledjobs"),
        ),
        ("GET", f"{JOBS}/x/status?watch=true", on_jobs("get", "a", "x", subresource="status")),
        ("GET", "/metrics/", Deed(verb="get", path="/metrics")),
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
    ("path", "deeds"),
    [
        ("/jobs/a/x/retry", [on_jobs("get", "a", "x"), on_jobs("create", "a")]),
        (
            "/jobconfigs/a/x/run",
            [on_jobs("get", "a", "x", resource="jobconfigs"), on_jobs("create", "a")],
        ),
        (
            "/controlledjobs/a/x/restart",
            [
                on_jobs("get", "a", "x", resource="controlledjobs"),
                on_jobs("create", "a"),
                on_jobs("list", "a"),
                on_jobs("patch", "a"),
            ],
        ),
        (
            "/calendars/a/x/apply",
            [
                on_jobs("create", "a", resource="calendars"),
                on_jobs("patch", "a", "x", resource="calendars"),
            ],
        ),
    ],
)
def test_whoever_orders_must_be_allowed_to_do_all_of_it(path: str, deeds: list[Deed]) -> None:
    cluster = Cluster()

    admit(cluster, a_request(path, "POST"))

    assert cluster.asked == deeds


@pytest.mark.parametrize("method", ["GET", SOCKET])
def test_nobody_is_asked_about_what_may_mean_two_things(method: str) -> None:
    """Whoever answers must not read another namespace than the one that was judged."""
    cluster = Cluster()

    with pytest.raises(RefusedError, match="namespace: given more than once"):
        admit(cluster, a_request("/jobs/stream?namespace=a&namespace=", method))

    assert cluster.asked == []


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


def test_nothing_is_left_out_for_whom_the_cluster_lets_in_and_all_for_others() -> None:
    allowed, refused = a_request(JOBS), a_request(JOBS)
    admit(Cluster(), allowed)
    with pytest.raises(RefusedError):
        admit(Cluster(allows=False), refused)

    assert allowed.person == "ann"
    assert allowed.caller.sees("", "bob", "domains/acme")
    assert refused.caller == NOBODY


def test_why_there_is_no_backup_is_told_to_whoever_is_known() -> None:
    cluster = Cluster(allows=False)

    admit(cluster, a_request("/admin/backup", "POST"))

    with pytest.raises(RefusedError):
        admit(cluster, a_request("/admin/backup", "POST", token="bad"))


#: Words for the parts of paths, and for the parameters that rights are read from.
WORDS = {
    "namespace": "a", "name": "one", "uid": "uid-1", "group": "interlock.dev", "version": "v1",
}  # fmt: skip


def example_of(route: Route) -> tuple[str, str]:
    """A request for a route, as its row of the table reads: the method and the path."""
    path = route.path
    for part, word in WORDS.items():
        path = path.replace(f"{{{part}}}", word)
    query: dict[str, str] = {}
    if route.when is not None:
        query[route.when.parameter] = "true"
    for right in rights_on_resources(route.right):
        if right.namespace.parameter:
            query[right.namespace.parameter] = "a"
    return route.method, path + "?" + "&".join(f"{name}={word}" for name, word in query.items())


def deeds_of(route: Route) -> set[Deed]:
    """What the row of the table says that is needed for the example of it."""
    if isinstance(route.right, OnPath):
        return {Deed(verb=route.right.verb, path=example_of(route)[1].partition("?")[0])}
    return {
        Deed(
            verb=right.verb,
            group=right.group,
            resource=right.resource,
            subresource=right.subresource,
            namespace=(
                "a" if right.namespace.part or right.namespace.parameter or right.uid else ""
            ),
            name="one" if right.name.part or right.uid else "",
        )
        for right in rights_on_resources(route.right)
    }


class AllowsOnly(Cluster):
    """Lets people do some things, and nothing else."""

    def __init__(self, deeds: set[Deed]) -> None:
        super().__init__()
        self._deeds = deeds

    async def may(self, person: Person, deed: Deed) -> bool:
        return deed in self._deeds


async def opened_by(deeds: set[Deed]) -> set[Route]:
    """The routes that somebody reaches who may do this and nothing else."""
    guard, opened = a_guard(AllowsOnly(deeds)), set()
    for route in ROUTER.routes:
        method, path = example_of(route)
        with suppress(RefusedError):
            await guard.admit(a_request(path, method))
            opened.add(route)
    return opened


DEEDS = {deed for route in ROUTER.routes for deed in deeds_of(route)}


def test_one_right_opens_its_own_routes_and_no_other() -> None:
    assert len(DEEDS) > 50

    for deed in DEEDS:
        expected = {route for route in ROUTER.routes if deeds_of(route) <= {deed}}

        assert asyncio.run(opened_by({deed})) == expected


@pytest.mark.parametrize(
    "route", [one for one in ROUTER.routes if len(deeds_of(one)) > 1], ids=lambda one: one.path
)
def test_what_needs_several_rights_is_opened_by_all_of_them_and_by_no_fewer(route: Route) -> None:
    needed = deeds_of(route)

    assert route in asyncio.run(opened_by(needed))
    for deed in needed:
        assert route not in asyncio.run(opened_by(needed - {deed}))


METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", SOCKET]


@pytest.mark.parametrize("method", METHODS)
def test_no_right_of_the_table_opens_what_is_not_in_it(method: str) -> None:
    async def story() -> None:
        for route in ROUTER.routes:
            path = example_of(route)[1].partition("?")[0]
            tricks = (path, f"/{path}", f"{path}/..", f"{path}/x/y/z/why", f"{path}%", path.upper())
            for trick in tricks:
                request = a_request(trick, method)
                cluster = Cluster()
                await a_guard(cluster).admit(request)
                if not request.match.route.path:
                    assert not DEEDS & set(cluster.asked)
                    assert len(cluster.asked) == 1

    asyncio.run(story())


def test_a_route_needs_a_right() -> None:
    whole: dict[str, Any] = {"method": "GET", "path": "/x/{name}", "serve": None}
    Route(**whole, right=ForAll())

    with pytest.raises(TypeError):
        Route(**whole)
    with pytest.raises(TypeError, match="a route needs a right"):
        Route(**whole | {"right": None})
    with pytest.raises(TypeError, match="no part is named"):
        Route(**whole, right=OnResource(verb="get", resource="jobs", namespace=Said("namespace")))


def test_two_routes_cannot_be_meant_by_one_request() -> None:
    whole: dict[str, Any] = {"method": "GET", "serve": None, "right": ForAll()}

    with pytest.raises(ValueError, match="there are two routes"):
        Router((Route(path="/x/{name}", **whole), Route(path="/x/{uid}", **whole)))
