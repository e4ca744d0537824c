"""Requests are sent again exactly when that is safe, and refused in our words."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from kube_fakes import (
    Handler,
    a_client,
    a_wire_job,
    hangs_up,
    refuses,
    run,
    says,
    serving,
)

from interlock.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InterlockError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from interlock.kube.client.api_client import Call, path_of
from interlock.kube.client.config import User
from interlock.kube.client.errors import NotServedError, UnknownCallerError
from interlock.resources.metadata import Key

KEY = Key("Job", "default", "a")
GET = Call(method="GET", path="/x", key=KEY)
PUT = Call(method="PUT", path="/x", key=KEY, body=b"{}", expected="7")
GOOD = says(a_wire_job("a", 8))
BUSY = refuses(429, "TooManyRequests", headers={"Retry-After": "0"})
AWAY = refuses(503, "ServiceUnavailable", headers={"Retry-After": "0"})


async def sent(call: Call, *script: Handler) -> int:
    """How often a request was sent until it went well."""
    async with serving(*script) as server, a_client(server.url) as client:
        await client.send(call)
        return len(server.requests)


async def refused(call: Call, *script: Handler) -> tuple[InterlockError, int]:
    """What a request was refused with, and how often it was sent."""
    async with serving(*script) as server, a_client(server.url) as client:
        with pytest.raises(InterlockError) as caught:
            await client.send(call)
        return caught.value, len(server.requests)


@pytest.mark.parametrize(
    ("call", "answer", "times"),
    [
        pytest.param(GET, BUSY, 2, id="a busy server is read again"),
        pytest.param(PUT, BUSY, 2, id="a busy server did nothing, so it is written again"),
        pytest.param(GET, AWAY, 2, id="a server that is away is read again"),
        pytest.param(GET, hangs_up(), 2, id="a lost read is sent again"),
    ],
)
def test_it_is_sent_again(call: Call, answer: Handler, times: int) -> None:
    async def check() -> None:
        assert await sent(call, answer, GOOD) == times

    run(check)


POST = Call(method="POST", path="/x", key=KEY, body=b"{}")


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param(PUT, AWAY, id="503"),
        pytest.param(PUT, refuses(500, "InternalError"), id="500"),
        pytest.param(PUT, says("upstream", 502), id="a proxy without a Status"),
        pytest.param(POST, hangs_up(), id="a lost create"),
    ],
)
def test_a_write_that_may_have_happened_is_not_repeated(call: Call, answer: Handler) -> None:
    async def check() -> None:
        error, times = await refused(call, answer, GOOD)
        assert isinstance(error, UnavailableError)
        assert times == 1

    run(check)


def test_a_server_that_stays_busy_is_given_up() -> None:
    async def check() -> None:
        error, times = await refused(GET, BUSY)
        assert isinstance(error, UnavailableError)
        assert times == 6

    run(check)


CAUSES = [{"reason": "FieldValueInvalid", "message": "must be small", "field": "spec.priority"}]
ABSENT = {"name": "a", "kind": "jobs", "group": "interlock.dev"}


@pytest.mark.parametrize(
    ("answer", "expected", "told"),
    [
        (refuses(404, "NotFound", **ABSENT), NotFoundError, "job/default/a"),
        (
            refuses(404, "NotFound", name="default", kind="namespaces"),
            NotFoundError,
            "namespace/default",
        ),
        (refuses(409, "AlreadyExists", name="a"), AlreadyExistsError, "job/default/a"),
        (refuses(409, "Conflict", "object was modified"), ConflictError, "caller read 7"),
        (refuses(409, "Conflict", "Precondition failed: UID"), ConflictError, "another object"),
        (
            refuses(410, "Expired", "too old resource version: 3 (9)"),
            ExpiredError,
            "too old resource version: 3 (9)",
        ),
        (refuses(422, "Invalid", causes=CAUSES), InvalidError, "spec.priority: must be small"),
        (refuses(422, "Invalid", "just so"), InvalidError, "just so"),
        (refuses(403, "Forbidden", "may not"), ForbiddenError, "may not"),
        (refuses(400, "BadRequest", "nonsense"), BadRequestError, "nonsense"),
        (refuses(401, "Unauthorized", "who?"), UnknownCallerError, "who?"),
    ],
)
def test_refusals_in_our_words(answer: Handler, expected: type[InterlockError], told: str) -> None:
    async def check() -> None:
        error, times = await refused(PUT, answer)
        assert type(error) is expected
        assert told in str(error)
        assert times == 1

    run(check)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(says("404 page not found", 404), id="no Status"),
        pytest.param(refuses(404, "NotFound", "could not find the resource"), id="no name"),
    ],
)
def test_a_kind_that_is_not_served_is_no_proof_of_absence(answer: Handler) -> None:
    """A Job that counts as gone loses its locks; a missing definition must not do that."""

    async def check() -> None:
        error, _ = await refused(GET, answer)
        assert isinstance(error, NotServedError)
        assert isinstance(error, UnavailableError)
        assert "definitions installed" in str(error)

    run(check)


def test_nobody_listens() -> None:
    async def check() -> None:
        async with serving(GOOD) as server:
            url = server.url
        async with a_client(url) as client:
            with pytest.raises(UnavailableError, match="does not answer"):
                await client.send(PUT)
            assert client.answers[("Job", "PUT", 0)] == 6

    run(check)


def test_a_token_is_read_again_when_it_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")

    async def renew(request: web.Request) -> web.StreamResponse:
        file.write_text("new\n")
        return await refuses(401, "Unauthorized")(request)

    async def check() -> None:
        user = User(token_file=file)
        async with serving(renew, GOOD) as server, a_client(server.url, user) as client:
            await client.send(PUT)
            told = [request.headers["Authorization"] for request in server.requests]
            assert told == ["Bearer old", "Bearer new"]

    run(check)


def test_a_storm_about_one_kind_leaves_room_for_others() -> None:
    """Every place of one kind is taken by requests that hang; another kind is served."""

    async def check() -> None:
        gate = asyncio.Event()

        async def wait(request: web.Request) -> web.StreamResponse:
            if request.path == "/slow":
                await gate.wait()
            return await GOOD(request)

        async with serving(wait) as server, a_client(server.url, at_once=2) as client:
            slow = Call(method="GET", path="/slow", key=KEY)
            storm = [asyncio.create_task(client.send(slow)) for _ in range(10)]
            await client.send(Call(method="GET", path="/quick", key=Key("Lock", "default", "a")))
            assert sum(request.path == "/slow" for request in server.requests) <= 2
            gate.set()
            await asyncio.gather(*storm)
            assert client.answers[("Job", "GET", 200)] == 10

    run(check)


def test_what_is_sent() -> None:
    async def check() -> None:
        async with serving(GOOD) as server, a_client(server.url, User(token="t")) as client:
            query = {"labelSelector": "a in (b, c),d!=e", "continue": "ä/+="}
            await client.send(
                Call(method="PATCH", path="/x", key=KEY, query=query, body=b"{}", media="a/b")
            )
            (request,) = server.requests
            assert dict(request.query) == query
            assert request.headers["Authorization"] == "Bearer t"
            assert request.headers["Content-Type"] == "a/b"
            assert request.headers["Accept"] == "application/json"
            assert await request.read() == b"{}"

    run(check)


def test_basic_and_impersonation_headers() -> None:
    async def check() -> None:
        groups = (("Impersonate-Group", "x"), ("Impersonate-Group", "y"))
        user = User(username="me", password="pw", impersonation=groups)
        async with serving(GOOD) as server, a_client(server.url, user) as client:
            await client.send(GET)
            (request,) = server.requests
            assert request.headers["Authorization"] == "Basic bWU6cHc="
            assert request.headers.getall("Impersonate-Group") == ["x", "y"]

    run(check)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("", "v1", "namespaces", "", "a", ""), "/api/v1/namespaces/a"),
        (
            ("interlock.dev", "v1alpha1", "jobs", "n", "a", "status"),
            "/apis/interlock.dev/v1alpha1/namespaces/n/jobs/a/status",
        ),
        (("g", "v1", "jobs", "", "", ""), "/apis/g/v1/jobs"),
        (("g", "v1", "jobs", "n", "../secrets", ""), "/apis/g/v1/namespaces/n/jobs/..%2Fsecrets"),
    ],
)
def test_paths(given: tuple[str, str, str, str, str, str], expected: str) -> None:
    group, version, plural, namespace, name, part = given
    assert path_of(group, version, plural, namespace=namespace, name=name, part=part) == expected
