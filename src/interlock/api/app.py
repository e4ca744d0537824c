"""The server's one application: the Kubernetes-shaped API, health, metrics, and what is mounted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime

from prometheus_client import CollectorRegistry

from interlock.api.answers import Answer, RefusedError, bad_request, refusal, refusal_of
from interlock.api.documents import Documents
from interlock.api.encodings import Encodings
from interlock.api.measures import Measures
from interlock.api.reads import Reads
from interlock.api.requests import Handler, Receive, Request, Scope, Send
from interlock.api.routing import Target, find_target
from interlock.api.security import Guard, Security
from interlock.api.views import Views
from interlock.api.watches import MAX_WATCHES, Watches
from interlock.api.writes import Writes
from interlock.resources.errors import InterlockError
from interlock.resources.modes import Mode
from interlock.store.contract import Now, Store

_LOG = logging.getLogger("interlock.api")

#: Tells what is not ready yet; nothing means ready.
Ready = Callable[[], Sequence[str]]


class ApiApp:
    """An ASGI application on a store.

    Nothing that a client sends may raise past it: every refusal is a `Status`, and whatever
    goes wrong inside is logged and answered with 500.
    """

    def __init__(
        self,
        store: Store,
        now: Now,
        *,
        security: Guard | None = None,
        mounts: Mapping[str, Handler] | None = None,
        ready: Ready = lambda: (),
        metrics: CollectorRegistry | None = None,
        most_watches: int = MAX_WATCHES,
        mode: Mode = Mode.EMBEDDED,
    ) -> None:
        self._security: Guard = security or Security()
        self._date = HttpDate(now)
        encodings = Encodings()
        views = Views(encodings, now)
        self._reads = Reads(store, views)
        self._writes = Writes(store, views, mode)
        self._watches = Watches(store, views, most=most_watches)
        registry = metrics if metrics is not None else CollectorRegistry()
        self._measures = Measures(registry, self._watches)
        # Longer prefixes are tried first, so that a mount may lie inside another.
        self._mounts = tuple(sorted((mounts or {}).items(), key=lambda item: -len(item[0])))
        self._documents = Documents(registry, ready, tuple(mounts or ()))

    def stop(self) -> None:
        """End all watches and take no new ones. Other requests go on."""
        self._watches.stop()

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
            await self._security.admit(request)
            mounted = self._mounted(request.path)
            if mounted is not None:
                await mounted(scope, receive, sent)
                return
            target = find_target(request.path)
            if target is None:
                answer = await self._documents.answer(request)
            else:
                verb = verb_of(target, request)
                answer = await self._resource(verb, target, request, sent)
        except RefusedError as error:
            answer = refusal(error)
        except InterlockError as error:
            kind, name = (target.kind, target.name) if target else (None, "")
            answer = refusal(refusal_of(error, kind, name))
        except asyncio.CancelledError:
            raise
        except Exception:
            # The path tells where to look; headers are never logged, for they hold the token.
            _LOG.exception("%s %s failed", request.method, request.path)
            answer = refusal(RefusedError(500, "an internal error occurred; the log tells more"))
        if answer is not None and not sent.begun:
            await _send(answer, self._date.now(), send)
            self._measures.note(verb, answer.status, asyncio.get_running_loop().time() - begun)
        elif answer is None:
            self._measures.note(verb, 200, None)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket belongs to a mount; the same rules let it in."""
        try:
            await self._security.admit(Request({**scope, "method": "GET"}, receive))
            mounted = self._mounted(scope["path"])
        except (RefusedError, InterlockError):
            mounted = None
        if mounted is None:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await mounted(scope, receive, send)

    def _mounted(self, path: str) -> Handler | None:
        for prefix, handler in self._mounts:
            if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
                return handler
        return None

    async def _resource(
        self, verb: str, target: Target, request: Request, send: Send
    ) -> Answer | None:
        match verb:
            case "get":
                return await self._reads.get(_in_namespace(target), request)
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
        raise RefusedError(405, "the server does not allow this method on the requested resource")


def verb_of(target: Target, request: Request) -> str:
    """What a request wants done, in the words of Kubernetes; empty when nothing that there is."""
    named = bool(target.name)
    match request.method:
        case "GET" | "HEAD":
            if request.query_string and request.flag("watch"):
                return "watch"
            return "get" if named else "list"
        case "POST":
            return "" if named else "create"
        case "PUT":
            return "update" if named else ""
        case "PATCH":
            return "patch" if named else ""
        case "DELETE":
            return "delete" if named else "deletecollection"
    return ""


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


def _in_namespace(target: Target) -> Target:
    if target.kind.namespaced and target.namespace is None:
        raise bad_request(f"{target.kind.plural} are read by name in one namespace")
    return target


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
