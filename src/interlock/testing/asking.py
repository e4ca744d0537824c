"""Asks the application directly: no socket, no server, no waiting for either."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from interlock.api.app import ApiApp
from interlock.api.routing import Route
from interlock.api.security import Guard
from interlock.api.socket_diag import PEER, Peer
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.builders import T0

T = TypeVar("T")

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
JOB: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "hello"},
    "spec": {"process": {"command": ["true"]}},
}


class Reply(NamedTuple):
    """What the application answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)

    def header(self, name: str) -> str:
        """A header, empty when it is not there."""
        return dict(self.headers).get(name, "")


def a_store() -> MemoryStore:
    """An empty store, at one moment for ever."""
    return MemoryStore(lambda: T0, SeededIdentities(Random(7)))


class Asker:
    """A client of one application on one memory store."""

    def __init__(
        self,
        *,
        security: Guard | None = None,
        routes: Sequence[Route] = (),
        store: MemoryStore | None = None,
        **options: Any,
    ) -> None:
        self.store = store or a_store()
        self.app = ApiApp(self.store, lambda: T0, security=security, routes=routes, **options)

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        peer: Peer | None = None,
    ) -> Reply:
        """Ask and wait for the whole answer."""
        sent: list[dict[str, Any]] = []
        data = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        waiting: list[dict[str, Any]] = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop(0)
            await asyncio.Event().wait()
            raise AssertionError("nobody comes here")

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope_of(method, path, data, headers, peer), receive, send)
        return reply_of(sent)


def scope_of(
    method: str,
    path: str,
    data: bytes = b"",
    headers: dict[str, str] | None = None,
    peer: Peer | None = None,
) -> dict[str, Any]:
    """A request as a server hands it over; from our own user when nobody else is named."""
    place, _, query = path.partition("?")
    given = {"host": "127.0.0.1:8470", "content-length": str(len(data)), **(headers or {})}
    return {
        "type": "http",
        "method": method,
        "path": place,
        "query_string": query.encode("latin-1", "replace"),
        "headers": [(k.encode(), v.encode("latin-1", "replace")) for k, v in given.items()],
        "state": {PEER: peer or Peer(os.geteuid())},
    }


def reply_of(sent: list[dict[str, Any]]) -> Reply:
    """The answer that a list of messages makes; it has one head, and an end."""
    assert [message["type"] for message in sent[1:]] == ["http.response.body"] * (len(sent) - 1)
    assert sent[0]["type"] == "http.response.start"
    assert not sent[-1].get("more_body", False)
    headers = [(k.decode(), v.decode("latin-1")) for k, v in sent[0]["headers"]]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Reply(sent[0]["status"], headers, body)


Ask = Callable[..., Reply]


def asking(asker: Asker) -> Ask:
    """Ask an application without awaiting."""

    def ask(
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        peer: Peer | None = None,
    ) -> Reply:
        return in_time(asker.ask(method, path, body, headers, peer))

    return ask


def in_time(work: Coroutine[Any, Any, T]) -> T:
    """Run something that must end."""

    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await work

    return asyncio.run(bounded())
