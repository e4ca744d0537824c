"""The server's one application: the Kubernetes-shaped API, health, metrics, and others' routes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime

from prometheus_client import CollectorRegistry

from interlock.api.actions import Actions
from interlock.api.answers import Answer, RefusedError, refusal, refusal_of
from interlock.api.checking import Checks
from interlock.api.documents import Documents
from interlock.api.encodings import Encodings
from interlock.api.lasting import ExpelledError, Lasting
from interlock.api.measures import Measures
from interlock.api.reads import Reads
from interlock.api.requests import Receive, Request, Scope, Send
from interlock.api.routing import Route, Router, Serve, Target, resource_routes
from interlock.api.security import Guard, Security
from interlock.api.submitting import Desk, Submitting
from interlock.api.views import Views
from interlock.api.watches import MAX_WATCHES, Watches
from interlock.api.writes import Writes
from interlock.errors import InterlockError
from interlock.resources.modes import Mode
from interlock.store.contract import Journal, Now, Store

_LOG = logging.getLogger("interlock.api")


class ApiApp:
    """An ASGI application on a store.

    Nothing that a client sends may raise past it: every refusal is a `Status`, and whatever
    goes wrong inside is logged and answered with 500. Nothing is served that is not a route with
    a right, and the guard sees the route before anybody else sees the request.
    """

    def __init__(
        self,
        store: Store,
        now: Now,
        *,
        security: Guard | None = None,
        routes: Sequence[Route] = (),
        ready: Checks = lambda: (),
        metrics: CollectorRegistry | None = None,
        most_watches: int = MAX_WATCHES,
        mode: Mode = Mode.EMBEDDED,
        journal: Journal | None = None,
        desk: Desk | None = None,
    ) -> None:
        self._security: Guard = security or Security()
        self._date = HttpDate(now)
        encodings = Encodings()
        views = Views(encodings, now)
        self._reads = Reads(store, views)
        self._writes = Writes(store, views, now, mode, journal)
        self._watches = Watches(store, views, most=most_watches)
        registry = metrics if metrics is not None else CollectorRegistry()
        self._measures = Measures(registry, self._watches)
        self._desk = desk
        actions = Actions(store, self._writes, now).routes()
        if desk is not None:
            actions = (*actions, *Submitting(store, self._writes, desk, mode).routes())
        documents = Documents(registry, ready, (*routes, *actions))
        self._lasting = Lasting()
        #: Everything that is served.
        self.router = Router(
            (*resource_routes(self._answering), *documents.routes(), *routes, *actions)
        )

    def expel(self, unwanted: Callable[[Request], bool]) -> None:
        """End the watches and streams of those who are not wanted any more."""
        self._lasting.end(unwanted)

    def stop(self) -> None:
        """End all watches and take no new ones. Other requests go on."""
        self._watches.stop()
        if self._desk is not None:
            self._desk.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = asyncio.get_running_loop().time()
        request = Request(scope, receive)
        verb = ""
        answer: Answer | None = None
        target: Target | None = None
        sent = _Sent(send)
        try:
            request.match = match = self.router.match(request)
            verb, target = match.route.verb, match.target
            await self._security.admit(request)
            if match.route.lasts:
                async with self._lasting.held(request):
                    answer = await match.route.serve(request, sent)
            else:
                answer = await match.route.serve(request, sent)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            answer = refusal(_refused(error, request, target))
            if sent.begun and isinstance(error, ExpelledError):
                await send({"type": "http.response.body", "body": b""})
        if answer is not None and not sent.begun:
            await _send(answer, self._date.now(), send)
            self._measures.note(verb, answer.status, asyncio.get_running_loop().time() - begun)
        elif answer is None:
            self._measures.note(verb, 200, None)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a WebSocket where the table has one; the same guard lets it in."""
        request = Request(scope, receive)
        sent = _Sent(send)
        try:
            request.match = match = self.router.match(request)
            await self._security.admit(request)
            async with self._lasting.held(request):
                await match.route.serve(request, sent)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            refused = _refused(error, request)
            if sent.begun:
                code = 1008 if isinstance(error, ExpelledError) else 1011
                await send({"type": "websocket.close", "code": code})
            else:
                await _refuse_socket(refused, scope, send)

    def _answering(self, verb: str) -> Serve:
        """Who answers for a verb on resources."""

        async def serve(request: Request, send: Send) -> Answer | None:
            target = request.match.target
            assert target is not None, "a route of resources has a kind"
            return await self._resource(verb, target, request, send)

        return serve

    async def _resource(
        self, verb: str, target: Target, request: Request, send: Send
    ) -> Answer | None:
        match verb:
            case "get":
                return await self._reads.get(target, request)
            case "list":
                return await self._reads.list(target, request)
            case "watch":
                return await self._watches.serve(target, request, send)
            case "create":
                return await self._writes.create(target, request)
            case "update":
                return await self._writes.update(target, request)
            case "patch":
                return await self._writes.patch(target, request)
            case "delete":
                return await self._writes.delete(target, request)
            case "deletecollection":
                return await self._writes.delete_collection(target, request)
        raise AssertionError(f"{verb} is no verb")


def _refused(error: Exception, request: Request, target: Target | None = None) -> RefusedError:
    """What a client is told when something was raised."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, InterlockError):
        kind, name = (target.kind, target.name) if target else (None, "")
        return refusal_of(error, kind, name)
    # The path tells where to look; headers are never logged, for they hold the token.
    _LOG.error("%s %s failed", request.method, request.path, exc_info=error)
    return RefusedError(500, "an internal error occurred; the log tells more")


async def _refuse_socket(error: RefusedError, scope: Scope, send: Send) -> None:
    """Refuse the handshake with the code and the words that a plain request would get."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    answer = refusal(error)
    headers = [(b"content-type", answer.content_type), *answer.headers]
    code = answer.status
    await send({"type": "websocket.http.response.start", "status": code, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": answer.body})


class HttpDate:
    """The time as HTTP writes it, worked out once a second; clients tell moments by it."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._at = datetime.min.replace(tzinfo=UTC)
        self._text = b""

    def now(self) -> bytes:
        """The value of a Date header."""
        at = self._now().replace(microsecond=0)
        if at != self._at:
            self._at = at
            self._text = format_datetime(at, usegmt=True).encode()
        return self._text


class _Sent:
    """Remembers whether an answer has begun: a second head would break the connection."""

    __slots__ = ("_send", "begun")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    def __call__(self, message: Scope) -> Awaitable[None]:
        self.begun = True
        return self._send(message)


async def _send(answer: Answer, date: bytes, send: Send) -> None:
    body = answer.body
    headers = [(b"content-type", answer.content_type), (b"date", date), *answer.headers]
    if isinstance(body, bytes):
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    for part in body:
        await send({"type": "http.response.body", "body": part, "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})
