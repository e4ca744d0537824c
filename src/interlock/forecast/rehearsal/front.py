"""The server of a rehearsal: the real API on the rehearsed store, asked without a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from interlock.api.callers import trusted
from interlock.forecast.rehearsal.world import Plane, World

if TYPE_CHECKING:
    from interlock.api.app import ApiApp
    from interlock.api.requests import Request
    from interlock.api.routing import Route

#: Who gives the orders of a scenario.
SOMEBODY = "scenario"
#: What only a control plane can answer.
_OF_PLANE = ("/jobs", "/jobconfigs", "/controlledjobs", "/locks", "/history", "/next", "/timeline")
#: Queries whose answers would go on as time does.
_ENDLESS = ("watch=1", "watch=true", "follow=1", "follow=true")


class Answer(Struct, frozen=True):
    """What the server said."""

    status: int
    headers: dict[str, str]
    data: bytes


class NoLogs:
    """Nothing is executed, so nothing is printed."""

    def newest_attempt(self, job_uid: str, task: int) -> int | None:  # noqa: ARG002
        """There is no log of anything."""
        return None

    async def read(
        self,
        job_uid: str,  # noqa: ARG002
        task: int,  # noqa: ARG002
        attempt: int,  # noqa: ARG002
        *,
        since: datetime | None,  # noqa: ARG002
        tail: int | None,  # noqa: ARG002
        follow: bool,  # noqa: ARG002
    ) -> AsyncIterator[bytes]:
        """Nothing."""
        nothing: tuple[bytes, ...] = ()
        for part in nothing:
            yield part


class _Door:
    """Nobody connects, and a scenario plays the same for whoever plays it."""

    async def admit(self, request: Request) -> None:
        """Let everything in."""
        request.caller = trusted(SOMEBODY)


class Front:
    """Answers requests at the moment it is, as the server would."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._app: ApiApp | None = None
        self._plane: Plane | None = None

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer one request."""
        place, _, query = path.partition("?")
        if any(word in query.split("&") for word in _ENDLESS):
            return _refusal(400, "time stands still while a verb of a scenario runs: nothing comes")
        if self._world.plane is None and place.startswith(_OF_PLANE):
            return _refusal(503, "the control plane is down")
        scope = {
            "type": "http",
            "method": method,
            "path": _unquoted(place),
            "query_string": query.encode("latin-1"),
            "headers": [
                (b"host", b"127.0.0.1"),
                (b"content-length", str(len(body)).encode()),
                *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            ],
        }
        return self._serve(scope, body)

    def _serve(self, scope: dict[str, Any], body: bytes) -> Answer:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        app = self._current_app()
        try:
            self._world.loop.run(app(scope, receive, send), within=0.0)
        except TimeoutError:
            return _refusal(400, "time stands still while a verb of a scenario runs: nothing comes")
        head, *parts = sent
        return Answer(
            head["status"],
            {name.decode(): value.decode("latin-1") for name, value in head["headers"]},
            b"".join(part.get("body", b"") for part in parts),
        )

    def _current_app(self) -> ApiApp:
        """The application beside the control plane that runs now."""
        from interlock.api.app import ApiApp

        world = self._world
        if self._app is None or self._plane is not world.plane:
            self._plane = world.plane
            routes = () if world.plane is None else self._routes(world.plane)
            self._app = ApiApp(
                world.store, world.now, security=_Door(), routes=routes, mode=world.mode
            )
        return self._app

    def _routes(self, life: Plane) -> tuple[Route, ...]:
        from interlock.forecast.service import Forecasting
        from interlock.reporting.service import Reporting
        from interlock.resources.default_queue import default_queue_in

        caches = life.plane.caches
        reporting = Reporting(
            store=self._world.store,
            caches=caches,
            roster=life.roster,
            journal=self._world.journal,
            logs=NoLogs(),
            clock=life.clock,
            default_queue=default_queue_in(self._world.mode),
        )
        forecasting = Forecasting(caches=caches, clock=life.clock, mode=self._world.mode)
        return (*reporting.routes(), *forecasting.routes())


def _refusal(status: int, message: str) -> Answer:
    body = {"kind": "Status", "status": "Failure", "code": status, "message": message}
    return Answer(status, {"content-type": "application/json"}, json.dumps(body).encode())


def _unquoted(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path)
