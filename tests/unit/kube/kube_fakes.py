"""An API server that answers as it was told, on a socket of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from aiohttp import web

from interlock.control.clock import SystemClock
from interlock.kube.client.api_client import Client, Patience
from interlock.kube.client.config import ClusterConfig, User
from interlock.kube.store.cluster_store import KubernetesStore

#: Nothing here takes long; this only keeps a broken client from hanging the tests.
PATIENCE_S = 120.0
PATIENT = Patience(timeout_s=PATIENCE_S, attempts=6)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """Answers the requests in order with what is in the script; the last answer is repeated."""

    def __init__(self, *script: Handler) -> None:
        self._script = list(script)
        self.requests: list[web.Request] = []
        self.url = ""

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.requests.append(request)
        handler = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return await handler(request)

    async def start(self) -> web.AppRunner:
        """Listen on a free port."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return runner


def says(body: Any, code: int = 200, **headers: str) -> Handler:
    """Answer with this."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(
            status=code, text=json.dumps(body), content_type="application/json", headers=headers
        )

    return answer


def refuses(code: int, reason: str, message: str = "no", **more: Any) -> Handler:
    """Answer with a Status."""
    headers = more.pop("headers", {})
    return says(a_status(code, reason, message, **more), code, **headers)


def a_status(code: int, reason: str, message: str = "no", **details: Any) -> dict[str, Any]:
    """A refusal."""
    status: dict[str, Any] = {"kind": "Status", "status": "Failure", "code": code}
    return status | {"reason": reason, "message": message, "details": details}


def hangs_up() -> Handler:
    """Close the connection instead of answering."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    return answer


def streams(*pieces: bytes, then: str = "ends") -> Handler:
    """Answer piece by piece; then end, be cut, or stay silent until the client leaves."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        if then == "cut":
            assert request.transport is not None
            request.transport.close()
        elif then == "silent":
            await asyncio.Event().wait()
        return response

    return answer


def a_wire_job(name: str, version: int, **more: Any) -> dict[str, Any]:
    """A Job as an API server sends it, with what only the server needs."""
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": "2026-01-05T12:00:00Z",
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:x": {}}}],
    }
    job = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": metadata}
    return job | {"spec": {"noop": {}}} | more


def a_line(type: str, thing: Any) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": type, "object": thing}, separators=(",", ":")).encode() + b"\n"


def a_bookmark(version: int) -> bytes:
    """A line that only says how far the server is."""
    metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    return a_line("BOOKMARK", {"kind": "Job", "metadata": metadata})


def a_list(*items: Any, token: str = "", left: int = 0, version: int = 9) -> dict[str, Any]:
    """A list as an API server sends it, or part of one."""
    shown: dict[str, Any] = {"resourceVersion": str(version)}
    if token:
        shown["continue"] = token
    if left:
        shown["remainingItemCount"] = left
    return {"kind": "JobList", "apiVersion": "v1", "metadata": shown, "items": list(items)}


@asynccontextmanager
async def serving(*script: Handler) -> AsyncIterator[ScriptedServer]:
    """A server that follows the script."""
    server = ScriptedServer(*script)
    runner = await server.start()
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def a_client(url: str, user: User | None = None, **options: Any) -> AsyncIterator[Client]:
    """A client of the server."""
    clock = SystemClock()
    config = ClusterConfig(server=url, source="a test", user=user or User())
    client = Client(config, clock, Random(7), patience=lambda _: PATIENT, **options)
    try:
        yield client
    finally:
        await client.close()
        clock.close()


@asynccontextmanager
async def a_store(*script: Handler) -> AsyncIterator[tuple[KubernetesStore, ScriptedServer]]:
    """A store on a server that follows the script."""
    async with serving(*script) as server, a_client(server.url) as client:
        yield KubernetesStore(client, SystemClock(), Random(7)), server


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test."""

    async def patiently() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test()

    asyncio.run(patiently())
