"""The change stream: what happens to Jobs, as it happens, by SSE and by WebSocket.

Both carry the same bytes. A reader that is too slow is cut off by the store's own bound on
what it keeps for a watcher; it resumes from the last version it saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from interlock.api.answers import bad_request, refusal_of, too_many
from interlock.api.requests import Receive, Request, Send
from interlock.control.clock import Clock
from interlock.errors import ExpiredError, InterlockError
from interlock.reporting.parameters import STREAM, check_known
from interlock.reporting.summaries import Encoded
from interlock.resources.job import Job
from interlock.store.contract import Event, EventType, Selection, Store

#: A comment line that keeps idle connections open through proxies.
_HEART_BEAT = b": still here\n\n"
_HEART_BEAT_S = 15.0

_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Streams:
    """Serves the change stream of Jobs."""

    def __init__(self, store: Store, clock: Clock, *, most: int = 1000) -> None:
        self._store = store
        self._clock = clock
        self._encoded = Encoded()
        self._most = most
        self._open = 0

    async def serve_events(self, request: Request, send: Send) -> None:
        """Answer with Server-Sent Events until the client or the server goes."""
        since, selection = await self._start(request.query, request.headers.get(b"last-event-id"))
        self._open += 1
        begun = False
        try:
            async with self._store.watch("Job", selection, since=since) as batches:
                begun = True
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                await _send_part(send, self._as_sse(_sync(since)))
                parts = self._parts(batches, self._as_sse)
                await self._pump(parts, lambda part: _send_part(send, part), request.gone())
        except ExpiredError:
            if not begun:
                raise
            # Too slow: told so, and let go. It lists again, or resumes from its last version.
            await _send_part(send, b"event: expired\ndata: {}\n\n")
        finally:
            self._open -= 1
        await send({"type": "http.response.body", "body": b""})

    async def serve_socket(self, request: Request, send: Send) -> None:
        """Send the same events as text messages, several to a message, one a line."""
        since, selection = await self._start(request.query, None)
        receive = request.receive
        await receive()
        self._open += 1
        code, begun = 1001, False
        try:
            async with self._store.watch("Job", selection, since=since) as batches:
                begun = True
                await send({"type": "websocket.accept"})
                await _send_text(send, self._as_line(_sync(since)))
                parts = self._parts(batches, self._as_line)
                await self._pump(parts, lambda part: _send_text(send, part), _closed(receive))
        except ExpiredError:
            if not begun:
                raise
            code = 1013
            await _send_text(send, b'{"type":"expired"}\n')
        finally:
            self._open -= 1
        with suppress(Exception):  # The client may be gone already.
            await send({"type": "websocket.close", "code": code})

    async def _start(
        self, query: Mapping[str, str], last_id: bytes | None
    ) -> tuple[int, Selection]:
        """From which version, and of which Jobs."""
        if self._open >= self._most:
            raise too_many(f"{self._most} streams are open already")
        check_known(query, STREAM)
        fields = f"status.phase={query['state']}" if query.get("state") else ""
        selection = Selection(
            namespace=query.get("namespace") or None,
            labels=query.get("label", ""),
            fields=fields,
        )
        given = (last_id or query.get("since", "").encode()).strip()
        if given:
            if not given.isdigit() or len(given) > 18:
                raise bad_request(f"since: expected a version, got {given[:40]!r}")
            return int(given), selection
        try:
            page = await self._store.list("Job", selection, limit=1)
        except InterlockError as error:
            raise refusal_of(error) from error
        return page.version, selection

    async def _parts(
        self,
        batches: AsyncIterator[Sequence[Event]],
        form: Callable[[Event], bytes],
    ) -> AsyncIterator[bytes]:
        async for batch in batches:
            part = b"".join(form(event) for event in batch)
            if part:
                yield part

    async def _pump(
        self,
        parts: AsyncIterator[bytes],
        put: Callable[[bytes], Awaitable[None]],
        gone: Awaitable[None],
    ) -> None:
        """Send what comes, and a heart-beat when nothing does, until the client is gone."""
        left = asyncio.ensure_future(gone)
        coming: asyncio.Future[bytes] | None = None
        try:
            while not left.done():
                coming = coming or asyncio.ensure_future(anext(parts))
                done, _ = await asyncio.wait(
                    (left, coming), timeout=_HEART_BEAT_S, return_when=asyncio.FIRST_COMPLETED
                )
                if coming in done:
                    await put(coming.result())
                    coming = None
                elif not done:
                    await put(_HEART_BEAT)
        except StopAsyncIteration:
            return
        finally:
            left.cancel()
            if coming is not None:
                coming.cancel()

    def _as_sse(self, event: Event) -> bytes:
        if event.type is EventType.BOOKMARK or not isinstance(event.resource, Job):
            return b"id: %d\nevent: sync\ndata: {}\n\n" % event.version
        body = self._encoded(event.resource)
        kind = event.type.value.lower().encode()
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.version, kind, body)

    def _as_line(self, event: Event) -> bytes:
        if event.type is EventType.BOOKMARK or not isinstance(event.resource, Job):
            return b'{"version":"%d","type":"sync"}\n' % event.version
        body = self._encoded(event.resource)
        kind = event.type.value.lower().encode()
        return b'{"version":"%d","type":"%s","job":%s}\n' % (event.version, kind, body)


def _sync(version: int) -> Event:
    """That everything up to a version was seen: how every stream begins."""
    return Event(EventType.BOOKMARK, None, version)


async def _send_part(send: Send, part: bytes) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": True})


async def _send_text(send: Send, part: bytes) -> None:
    if part and part is not _HEART_BEAT:
        await send({"type": "websocket.send", "text": part.decode()})


async def _closed(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass
