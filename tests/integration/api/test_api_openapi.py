"""The OpenAPI documents against a real server: what it answers is what they declare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from interlock.testing.clients import Client
from interlock.testing.serving import PATIENCE_S, Server

#: Words that are good for some parameter, and words that are good for none.
VALUES = ("true", "false", "1", "0", "null", "", "All", "Exact", "Object", "Foreground", "Strict",
          "-1", "99999999999999999999", "2026-01-05T12:00:00Z", "2026-01-05T12:00:00", "Job",
          "Running", "a=b", "=", "metadata.name=x", "nothing-of-the-sort")  # fmt: skip
BODIES: tuple[tuple[str, bytes], ...] = (
    ("application/json", b"{}"),
    ("application/json", b"["),
    ("application/json", b'{"kind":"Nothing"}'),
    ("application/json", b'{"metadata":{"name":"made"},"spec":{"noop":{},"suspend":true}}'),
    ("application/json", b'{"metadata":{"name":"Not A Name"},"spec":{}}'),
    ("application/yaml", b"a: [1"),
    ("application/merge-patch+json", b'{"spec":{"suspend":true}}'),
    ("application/merge-patch+json", b'{"metadata":{"resourceVersion":"1"}}'),
    ("application/json-patch+json", b'[{"op":"remove","path":"/nothing"}]'),
    ("application/apply-patch+yaml", b"{}"),
    ("text/plain", b"hello"),
)


#: Headers that say something of the one answer that they are on.
TELLING = {"location", "retry-after", "www-authenticate", "preference-applied"}


class Operation(NamedTuple):
    """One operation of a document."""

    method: str
    path: str
    told: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("openapi") / "data") as running:
        client = Client(running.url)
        client.create("hello", process={"command": ["echo", "hello"]})
        client.phase("hello", "Succeeded")
        yield running


def operations(server: Server) -> list[Operation]:
    """All that any document tells of."""
    client = Client(server.url)
    _, index = client.ask("GET", "/openapi/v3")
    found = []
    for entry in index["paths"].values():
        _, document = client.ask("GET", entry["serverRelativeURL"])
        for path, item in document["paths"].items():
            for method, told in item.items():
                if method != "parameters":
                    found.append(Operation(method.upper(), path, told))
    return found


class Asking:
    """Asks on one connection, and holds each answer against what is declared."""

    def __init__(self, server: Server) -> None:
        self._place = urlsplit(server.url).netloc
        self._connection = HTTPConnection(self._place, timeout=PATIENCE_S)
        self.codes: set[int] = set()

    def ask(
        self, operation: Operation, name: str, query: str, media: str = "", body: bytes = b""
    ) -> set[str]:
        """Hold one answer against what is declared; the names of its headers come back."""
        path = operation.path.replace("{namespace}", "default").replace("{name}", name)
        path = path.replace("{group}", "interlock.dev").replace("{version}", "v1alpha1")
        path = path.replace("{uid}", name) + (f"?{query}" if query else "")
        headers = {"content-type": media} if media else {}
        self._connection.request(operation.method, path, body or None, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        declared = operation.told["responses"]
        where = f"{operation.method} {path} {media} {body!r}: {answer.status} {text[:200]!r}"
        assert str(answer.status) in declared, where
        assert answer.status != 500, where
        kind = answer.getheader("content-type", "").partition(";")[0]
        assert kind in declared[str(answer.status)]["content"], where
        told = {name: one.get("required") for name, one in _headers(declared, answer).items()}
        given = {name.lower() for name, _ in answer.getheaders()}
        assert given & TELLING <= set(told), where
        assert {name for name, is_always in told.items() if is_always} <= given, where
        if answer.status >= 400 and kind == "application/json":
            status = json.loads(text)
            assert (status["kind"], status["code"]) == ("Status", answer.status), where
        self.codes.add(answer.status)
        return given

    def close(self) -> None:
        self._connection.close()


def _headers(responses: dict[str, Any], answer: HTTPResponse) -> dict[str, Any]:
    """The headers that are declared for an answer, by their names in lower case."""
    headers: dict[str, Any] = responses[str(answer.status)].get("headers", {})
    return {name.lower(): told for name, told in headers.items()}


def test_every_answer_is_declared(server: Server) -> None:
    asking = Asking(server)
    for operation in operations(server):
        if operation.path == "/jobs/stream":
            continue  # It goes on for ever.
        bodies = BODIES if "requestBody" in operation.told else (("", b""),)
        names = ("hello", "nobody") if "{" in operation.path else ("",)
        for name in names:
            for media, body in bodies:
                asking.ask(operation, name, "", media, body)
            for parameter in operation.told["parameters"]:
                asked = parameter["name"]
                for value in VALUES:
                    if asked in ("watch", "follow") and value in ("true", "1"):
                        continue  # The same.
                    asking.ask(operation, name, f"{asked}={value}", *bodies[0])
                asking.ask(operation, name, f"{asked}=1&{asked}=1", *bodies[0])
    asking.close()
    assert {200, 201, 202, 400, 403, 404, 409, 415, 422} <= asking.codes


@pytest.mark.parametrize(
    ("query", "command", "code", "headers"),
    [
        pytest.param("", "true", 202, {"location", "retry-after"}, id="accepted"),
        pytest.param("wait=100s", "true", 200, {"location"}, id="done"),
        pytest.param("wait=100s", "false", 422, {"location"}, id="failed"),
    ],
)
def test_where_it_is_and_when_to_ask_are_declared(
    server: Server, query: str, command: str, code: int, headers: set[str]
) -> None:
    (operation,) = (one for one in operations(server) if str(one) == "POST /operations")
    asking = Asking(server)
    body = json.dumps({"spec": {"process": {"command": [command]}}}).encode()
    given = asking.ask(operation, "", query, "application/json", body)
    asking.close()

    assert asking.codes == {code}
    assert given & TELLING == headers


def test_who_is_to_come_again_is_told_when(server: Server) -> None:
    """No document leaves out the header of a refusal that always has one."""
    for operation in operations(server):
        for code, header in (("401", "WWW-Authenticate"), ("429", "Retry-After")):
            told = operation.told["responses"].get(code)
            assert told is None or told["headers"][header]["required"], (str(operation), code)


def test_what_a_parameter_may_not_say_is_refused(server: Server) -> None:
    """Of those whose values are known, none is passed over."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    for operation in operations(server):
        if operation.method != "GET" or "{" in operation.path:
            continue
        for parameter in operation.told["parameters"]:
            schema = parameter["schema"]
            if not schema.keys() & {"enum", "anyOf", "minimum", "pattern", "format"}:
                continue
            connection.request("GET", f"{operation.path}?{parameter['name']}=nothing+of+it")
            answer = connection.getresponse()
            answer.read()
            assert (str(operation), parameter["name"], answer.status) == (
                str(operation),
                parameter["name"],
                400,
            )
    connection.close()


def test_every_route_is_in_a_document(server: Server) -> None:
    """The reference of routes is made of the router's own table."""
    declared = {(one.method, one.path) for one in operations(server)}
    page = (Path(__file__).parents[3] / "docs/reference/routes.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `/")]
    # A document has no word for a part of several words.
    paths = [(method.strip(), path.replace("...}", "}")) for path, method in rows]
    served = {(method, path.strip(" `").partition("?")[0]) for method, path in paths}
    undeclared = {(method, path) for method, path in served - declared if method != "WebSocket"}
    # Whoever writes a status is told why that is refused; it is not offered.
    assert all(path.endswith("/status") for _, path in undeclared), undeclared
    assert served >= declared
