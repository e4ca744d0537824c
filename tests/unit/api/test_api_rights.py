"""What a named token may do: every route of the table, every sort of token, every Job."""

from __future__ import annotations

import hmac
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.api.answers import Answer, RefusedError
from interlock.api.authorization import check_submission
from interlock.api.callers import NOBODY, Access, Caller, trusted
from interlock.api.requests import SOCKET, Request, Send
from interlock.api.routing import ForAll, ForKnown, Route
from interlock.api.security import Security, Token
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobSpec
from interlock.resources.metadata import Metadata
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import PythonSpec, Target
from interlock.runtimes.workers.protocol import PATH as WORKERS
from interlock.testing.asking import JOBS, Asker, Reply, a_store, asking, in_time, scope_of
from interlock.testing.builders import a_job
from support.reports import Reports

EVERYWHERE = frozenset({"/"})


def a_token(name: str, right: Access, *paths: str) -> Token:
    return Token(f"{name}-0123456789abcdef".encode(), name, frozenset({right}), frozenset(paths))


TOKENS = {
    one.name: one
    for one in (
        a_token("reader", Access.READ),
        a_token("reader-of-acme", Access.READ, "domains/acme"),
        a_token("reader-of-all", Access.READ, "/"),
        a_token("operator", Access.OPERATE),
        a_token("operator-of-acme", Access.OPERATE, "domains/acme"),
        a_token("operator-of-all", Access.OPERATE, "/"),
        a_token("worker", Access.WORKER),
        a_token("admin", Access.ADMIN),
    )
}


async def _serve(request: Request, send: Send) -> Answer:
    return Answer(200, b"")


#: What somebody forgot to think about.
OTHERS = (Route(method="POST", path="/forgotten", right=ForKnown(), serve=_serve),)
STORE = a_store()
REPORTS = Reports(STORE)
ROUTER = Asker(
    store=STORE, routes=(*REPORTS.routes(), *OTHERS), desk=REPORTS.reporting.statuses
).app.router


def lets_in(route: Route, token: Token) -> bool:
    """Whether the door lets a token use a route."""
    words = [("x" if part.startswith("{") else part) for part in route.path.split("/")]
    query = f"?{route.when.parameter}=true" if route.when is not None else ""
    headers = {"authorization": f"Bearer {token.secret.decode()}"}
    is_socket = route.method == SOCKET
    scope = scope_of("GET" if is_socket else route.method, "/".join(words) + query, b"", headers)
    scope["type"] = "websocket" if is_socket else "http"
    request = Request(scope, _nothing)
    request.match = ROUTER.match(request)
    assert request.match.route is route, "this asks for the route that it is about"
    security = Security(loopback=True, tokens=tuple(TOKENS.values()))
    try:
        in_time(security.admit(request))
    except RefusedError as error:
        refused = error
    else:
        return True
    assert refused.status.code == 403
    return False


async def _nothing() -> dict[str, Any]:
    raise AssertionError("nobody reads a body to know who asks")


#: What shows nothing that is anybody's.
DOCUMENTS = {
    "/", "/version", "/api", "/apis", "/api/{version}", "/apis/{group}", "/apis/{group}/{version}",
    "/openapi/v2", "/openapi/v3", "/openapi/v3/api/{version}",
    "/openapi/v3/apis/{group}/{version}", "/openapi/v3/reports",
}  # fmt: skip
#: What leaves out the Jobs that somebody does not see.
OWN_JOBS = {
    "/jobs", "/user/jobs", "/{path...}/jobs", "/jobs/{uid}", "/jobs/{namespace}/{name}",
    "/jobs/{namespace}/{name}/log",
}  # fmt: skip
ORDERS = {
    "stop", "kill", "requeue", "release", "retry", "go-forward", "roll-back", "resolve", "let-go",
    "suspend", "resume",
}  # fmt: skip
OTHER_ORDERS = {"run", "enable", "disable", "start", "restart", "skip", "extend", "hold"}


def expected(route: Route) -> set[str]:
    """The tokens that a route is meant for."""
    method, path = route.method, route.path
    last = path.rpartition("/")[2]
    if isinstance(route.right, ForAll):
        return set(TOKENS)
    if path == WORKERS:
        return {"worker", "admin"}
    readers = {name for name in TOKENS if name != "worker"}
    operators = {name for name in readers if not name.startswith("reader")}
    of_all = {"reader-of-all", "operator-of-all", "admin"}
    if method == "GET" and path in DOCUMENTS | OWN_JOBS:
        return readers
    if method in ("GET", SOCKET) or last == "plan":
        return of_all
    if path == "/operations":
        return operators
    if method == "POST" and path in {f"/jobs/{{namespace}}/{{name}}/{one}" for one in ORDERS}:
        return operators
    is_order = last in ORDERS | OTHER_ORDERS and not path.startswith("/apis/")
    of_jobs = "/jobs" in path and last in ("jobs", "{name}", "apply")
    if is_order or of_jobs or path == "/operations/sweep":
        return of_all - {"reader-of-all"}
    return {"admin"}


@pytest.mark.parametrize(
    "route", ROUTER.routes, ids=lambda one: f"{one.method} {one.path} {one.when or ''}"
)
def test_each_route_lets_in_whom_it_is_meant_for(route: Route) -> None:
    assert {name for name, token in TOKENS.items() if lets_in(route, token)} == expected(route)


def test_what_nobody_thought_about_is_for_admins() -> None:
    forgotten = [route for route in ROUTER.routes if expected(route) == {"admin"}]
    paths = {route.path for route in forgotten}
    assert {"/forgotten", "/admin/backup"} <= paths
    assert "/apis/interlock.dev/v1alpha1/namespaces/{namespace}/locks/{name}" in paths


def test_a_worker_learns_not_even_which_paths_there_are() -> None:
    ask = asking(Asker(security=Security(loopback=True, tokens=tuple(TOKENS.values()))))
    shown = {name: ask("GET", "/nowhere", headers=bearer(name)).status for name in TOKENS}
    assert shown == {**dict.fromkeys(TOKENS, 404), "worker": 403}
    assert ask("POST", "/jobs/x/y/z/w", headers=bearer("worker")).status == 403


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name].secret.decode()}"}


NAMES = st.sampled_from(["", "ann", "bob"])
PLACES = st.sampled_from(["", "a", "ab", "a/b", "a/bc", "a/b/c", "b"])
CALLERS = st.builds(
    Caller,
    name=NAMES,
    rights=st.frozensets(st.sampled_from(Access), max_size=2),
    paths=st.frozensets(st.sampled_from(["/", "a", "a/b", "b"]), max_size=2),
)


@given(caller=CALLERS, owner=NAMES, creator=NAMES, path=PLACES)
def test_what_is_seen_is_ones_own_or_at_or_below_a_path_of_ones_own(
    caller: Caller, owner: str, creator: str, path: str
) -> None:
    seen = caller.sees(owner, creator, path)
    if Access.ADMIN in caller.rights:
        assert seen
    elif not caller.rights & {Access.READ, Access.OPERATE}:
        assert not seen
    else:
        is_own = caller.name != "" and (owner == caller.name or creator == caller.name)
        is_below = any(f"{path}/".startswith(f"{one}/") for one in caller.paths - EVERYWHERE)
        assert seen == (is_own or "/" in caller.paths or is_below)


@given(caller=CALLERS, other=CALLERS)
def test_more_rights_never_show_less(caller: Caller, other: Caller) -> None:
    more = Caller(
        name=caller.name, rights=caller.rights | other.rights, paths=caller.paths | other.paths
    )
    for right in Access:
        assert more.may(right) >= caller.may(right)
    for owner, path in itertools.product(("", "ann", "bob"), ("", "a", "a/b", "b/c")):
        assert more.sees(owner, "", path) >= caller.sees(owner, "", path)


def test_nobody_may_nothing_and_who_is_trusted_everything() -> None:
    assert not any(NOBODY.may(right) for right in Access)
    assert not NOBODY.sees("", "", "")
    assert all(trusted().may(right) for right in Access)
    assert trusted().sees("", "", "")


@pytest.mark.parametrize(
    ("name", "method", "path", "takes"),
    [
        ("worker", "GET", "/jobs", '"read", or'),
        ("reader", "POST", "/jobs/default/created/stop", '"operate", or'),
        ("reader", "GET", "/history", '"read" on everything'),
    ],
)
def test_who_may_not_ask_is_told_what_it_takes(
    name: str, method: str, path: str, takes: str
) -> None:
    refused = Desk().ask(name, method, path, {} if method == "POST" else None)
    assert refused.status == 403
    assert f"it takes the right {takes}" in refused.json["message"]


# Jobs


def made_by(creator: str) -> dict[str, Any]:
    return {"annotations": {CREATOR_ANNOTATION: creator}}


def jobs() -> Iterator[Job]:
    """A Job of each sort, by who sees it."""
    yield a_job("created", metadata=made_by("operator"))
    yield a_job("owned", owner="operator")
    yield a_job("below", target=Target(path="domains/acme/applications/shop"))
    yield a_job("beside", target=Target(path="domains/acmeshop"))
    yield a_job("foreign", metadata=made_by("ann"), owner="bob")


class Desk:
    """A server with these Jobs."""

    def __init__(self) -> None:
        store = a_store()
        reports = Reports(store)
        self.uids: dict[str, str] = {}
        for job in jobs():
            new = replace(job.metadata, resource_version="", uid="")
            made = in_time(store.create(replace(job, metadata=new)))
            self.uids[made.metadata.name] = made.metadata.uid
            reports.note(made)
        security = Security(loopback=True, tokens=tuple(TOKENS.values()))
        self._ask = asking(Asker(security=security, store=store, routes=reports.routes()))

    def ask(self, name: str, method: str, path: str, body: Any = None) -> Reply:
        return self._ask(method, path, body, bearer(name))


ALL = {"created", "owned", "below", "beside", "foreign"}
SEEN = {
    "reader": set[str](),
    "reader-of-acme": {"below"},
    "operator": {"created", "owned"},
    "operator-of-acme": {"below"},
    "operator-of-all": ALL,
    "admin": ALL,
}


@pytest.mark.parametrize("name", SEEN)
def test_what_somebody_does_not_see_is_as_if_it_were_not_there(name: str) -> None:
    desk = Desk()
    listed = desk.ask(name, "GET", "/jobs")
    assert {job["name"] for job in listed.json["items"]} == SEEN[name]
    for job in ALL:
        for path in ("/jobs/{}", "/jobs/default/{}"):
            word = desk.uids[job] if path == "/jobs/{}" else job
            shown = desk.ask(name, "GET", path.format(word))
            assert shown.status == (200 if job in SEEN[name] else 404)
            if job not in SEEN[name]:
                unknown = desk.ask(name, "GET", path.format("unknown"))
                assert shown.json == _renamed(unknown, "unknown", word)


@pytest.mark.parametrize("name", [name for name in SEEN if not name.startswith("reader")])
def test_orders_about_what_somebody_does_not_see_are_for_nothing(name: str) -> None:
    desk = Desk()
    for job in ALL:
        answer = desk.ask(name, "POST", f"/jobs/default/{job}/stop", {})
        assert answer.status == (200 if job in SEEN[name] else 404)
        if job not in SEEN[name]:
            unknown = desk.ask(name, "POST", "/jobs/default/unknown/stop", {})
            assert answer.json == _renamed(unknown, "unknown", job)
    stored = {
        job["metadata"]["name"]: job["metadata"].get("annotations", {})
        for job in desk.ask("admin", "GET", JOBS).json["items"]
    }
    stopped = {job for job, notes in stored.items() if "interlock.dev/stopped-by" in notes}
    assert stopped == SEEN[name]
    assert all(stored[job]["interlock.dev/stopped-by"] == name for job in stopped)


def test_a_reader_orders_nothing_not_even_about_what_they_see() -> None:
    refused = Desk().ask("reader-of-acme", "POST", "/jobs/default/below/stop", {})
    assert refused.status == 403
    assert "reader-of-acme may not do this" in refused.json["message"]


def _renamed(reply: Reply, old: str, new: str) -> Any:
    """An answer about something of another name."""
    return json.loads(reply.body.decode().replace(old, new))


# The door


def test_every_token_is_compared_whichever_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that an answer takes must not tell how many tokens were tried."""
    compared: list[bytes] = []
    own = hmac.compare_digest

    def noting(ours: bytes, shown: bytes) -> bool:
        compared.append(ours)
        return own(ours, shown)

    monkeypatch.setattr(hmac, "compare_digest", noting)
    secrets = [token.secret for token in TOKENS.values()]
    ask = asking(Asker(security=Security(loopback=True, tokens=tuple(TOKENS.values()))))
    for name in (*TOKENS, "reader"):
        compared.clear()
        ask("GET", "/version", headers=bearer(name))
        assert compared == secrets
    compared.clear()
    ask("GET", "/version", headers={"authorization": "Bearer none-of-them-at-all"})
    assert compared == secrets


HAD = a_token("ann", Access.READ, "a", "b")


@pytest.mark.parametrize(
    ("now", "stays"),
    [
        pytest.param(HAD, True, id="as before"),
        pytest.param(replace(HAD, rights=frozenset(Access)), True, id="more rights"),
        pytest.param(replace(HAD, paths=HAD.paths | {"c"}), True, id="more paths"),
        pytest.param(replace(HAD, rights=frozenset({Access.WORKER})), False, id="lost the right"),
        pytest.param(replace(HAD, paths=frozenset({"a"})), False, id="lost a path"),
        pytest.param(replace(HAD, name="bob"), False, id="is somebody else's"),
        pytest.param(replace(HAD, secret=b"another-secret-0123"), False, id="is gone"),
    ],
)
def test_who_was_let_in_stays_only_with_all_that_let_them_in(now: Token, stays: bool) -> None:
    security = Security(loopback=True, tokens=(HAD,))
    headers = {"authorization": f"Bearer {HAD.secret.decode()}"}
    request = Request(scope_of("GET", "/jobs", headers=headers), _nothing)
    request.match = ROUTER.match(request)
    in_time(security.admit(request))
    security.tokens = (now,)
    assert security.knows(request) is stays


class TestSubmitting:
    """Whose rights do not hold for everything may ask for what workers know, on what is theirs."""

    FUNCTION = PythonSpec(function="create")

    def refused(self, spec: JobSpec, *paths: str, right: Access = Access.OPERATE) -> str:
        caller = Caller(name="ana", rights=frozenset({right}), paths=frozenset(paths))
        try:
            check_submission(caller, Job(metadata=Metadata(name="a"), spec=spec))
        except RefusedError as error:
            return f"{error.status.code} {error.status.message}"
        return ""

    @pytest.mark.parametrize(
        ("spec", "paths", "refusal"),
        [
            pytest.param(JobSpec(python=FUNCTION), (), "", id="of no target"),
            pytest.param(
                JobSpec(python=FUNCTION, target=Target(path="a/b")), ("a",), "", id="below a path"
            ),
            pytest.param(
                JobSpec(python=FUNCTION, target=Target(path="ab")),
                ("a",),
                "403 ana may submit spec.target.path below a path of theirs",
                id="beside it",
            ),
            pytest.param(
                JobSpec(python=FUNCTION, target=Target(path="a")),
                (),
                "403 ana may submit spec.target.path below a path of theirs",
                id="of a target, and no path",
            ),
            pytest.param(
                JobSpec(process=ProcessSpec(command=("id",))),
                ("a",),
                "403 ana may submit spec.python alone: a function that workers have loaded",
                id="a program",
            ),
            pytest.param(
                JobSpec(python=FUNCTION, parent="other"),
                ("a",),
                "403 ana may submit neither spec.locks nor spec.parent",
                id="a part of something",
            ),
            pytest.param(JobSpec(process=ProcessSpec(command=("id",))), ("/",), "", id="all"),
        ],
    )
    def test_what_is_taken(self, spec: JobSpec, paths: tuple[str, ...], refusal: str) -> None:
        assert self.refused(spec, *paths) == refusal

    def test_an_admin_submits_anything(self) -> None:
        program = JobSpec(process=ProcessSpec(command=("id",)))
        assert self.refused(program, right=Access.ADMIN) == ""
