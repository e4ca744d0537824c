"""Watches: changes as they happen, one JSON line each, until the client has enough."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from interlock.api.answers import (
    JSON,
    Answer,
    as_object,
    bad_request,
    refusal_of,
    too_many,
    unavailable,
)
from interlock.api.reads import selection_of, version_of
from interlock.api.requests import Form, Request, Send, negotiate
from interlock.api.routing import Target
from interlock.api.views import Views, include_object
from interlock.errors import InterlockError
from interlock.resources.codec import encode
from interlock.resources.kinds import Kind
from interlock.store.contract import Event, EventType, Selection, Store

#: More watches than this at a time are refused, and may be tried again later.
MAX_WATCHES = 1024
#: A watch ends by itself after this; clients resume it.
LONGEST_S = 3600
#: Marks the bookmark after which a watcher knows everything that was there.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: How many events are sent as one piece.
BATCH = 500


class Asked(Struct, frozen=True):
    """What a watch is to tell, and how."""

    kind: Kind
    selection: Selection
    form: Form
    include: str
    #: None begins with everything that is there.
    since: int | None
    bookmarks: bool
    #: Whether to tell when everything that was there has been told.
    marks_start: bool
    timeout_s: float


def read_watch(target: Target, request: Request) -> Asked:
    """What a request to watch asks for."""
    version = version_of(request)
    request.number("limit")
    send_initial = request.query.get("sendInitialEvents")
    marks_start = send_initial is not None and request.flag("sendInitialEvents")
    if send_initial is not None:
        if request.query.get("resourceVersionMatch", "") != "NotOlderThan":
            raise bad_request("sendInitialEvents requires resourceVersionMatch=NotOlderThan")
    elif "resourceVersionMatch" in request.query:
        raise bad_request("resourceVersionMatch is forbidden for watch without sendInitialEvents")
    bookmarks = request.flag("allowWatchBookmarks")
    # Nothing and "0" mean: begin with what there is, unless the client wants nothing of that.
    since = None if marks_start or not version else version
    if send_initial is not None and not marks_start and not version:
        since = -1
    return Asked(
        kind=target.kind,
        selection=_selection(target, request),
        form=negotiate(request.accept),
        include=include_object(request),
        since=since,
        bookmarks=bookmarks,
        marks_start=marks_start and bookmarks,
        timeout_s=min(request.number("timeoutSeconds") or LONGEST_S, LONGEST_S),
    )


def _selection(target: Target, request: Request) -> Selection:
    selection = selection_of(target, request)
    if not target.name:
        return selection
    fields = f"metadata.name={target.name}"
    if selection.fields:
        fields = f"{selection.fields},{fields}"
    return Selection(namespace=selection.namespace, labels=selection.labels, fields=fields)


class Watches:
    """Everyone who watches over HTTP, so that they can be counted and ended."""

    def __init__(self, store: Store, views: Views, *, most: int = MAX_WATCHES) -> None:
        self._store = store
        self._views = views
        self._most = most
        self._open: set[asyncio.Task[None]] = set()
        self._stopping = False

    def __len__(self) -> int:
        return len(self._open)

    def stop(self) -> None:
        """End every watch; clients see a clean end and resume elsewhere, or later."""
        self._stopping = True
        for stream in self._open:
            stream.cancel()

    async def serve(self, target: Target, request: Request, send: Send) -> Answer | None:
        """Tell changes until the client leaves, time is up, or the server stops.

        Returns an answer instead when the watch cannot begin.
        """
        asked = read_watch(target, request)
        if self._stopping:
            raise unavailable("the server is stopping")
        if len(self._open) >= self._most:
            raise too_many(f"there are {len(self._open)} watches already; try again later")
        begun = asyncio.get_running_loop().create_future()
        stream = asyncio.create_task(self._stream(asked, send, begun))
        self._open.add(stream)
        leaving = asyncio.create_task(request.gone())
        try:
            await asyncio.wait(
                (stream, leaving), timeout=asked.timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._open.discard(stream)
            leaving.cancel()
            stream.cancel()
            await asyncio.gather(stream, leaving, return_exceptions=True)
        if not begun.done():
            error = stream.exception() if not stream.cancelled() else None
            raise error or unavailable("the server is stopping")
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None

    async def _stream(self, asked: Asked, send: Send, begun: asyncio.Future[None]) -> None:
        first: Sequence[Event] = ()
        since = asked.since
        if since is None or since < 0:
            page = await self._store.list(asked.kind.name, asked.selection)
            if since is None:
                first = [Event(EventType.ADDED, item, page.version) for item in page.items]
            since = page.version
        async with self._store.watch(asked.kind.name, asked.selection, since=since) as changes:
            headers = [(b"content-type", JSON)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            begun.set_result(None)
            # An empty piece makes the server send the head now and not with the first event.
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            await self._tell(asked, send, first)
            if asked.marks_start:
                await _send_lines(send, _bookmark(asked.kind, asked.form, since, start=True))
            try:
                async for batch in changes:
                    await self._tell(asked, send, batch)
            except InterlockError as error:
                await _send_lines(send, encode(as_object(refusal_of(error).status)) + b"\n")

    async def _tell(self, asked: Asked, send: Send, events: Sequence[Event]) -> None:
        for start in range(0, len(events), BATCH):
            lines = b"".join(self._line(asked, event) for event in events[start : start + BATCH])
            if lines:
                await _send_lines(send, lines)
                await asyncio.sleep(0)

    def _line(self, asked: Asked, event: Event) -> bytes:
        if event.resource is None:
            if not asked.bookmarks:
                return b""
            return _bookmark(asked.kind, asked.form, event.version)
        shown = self._views.event_object(asked.kind, asked.form, asked.include, event.resource)
        return b'{"type":"%s","object":%s}\n' % (event.type.value.encode(), shown)


async def _send_lines(send: Send, lines: bytes) -> None:
    await send({"type": "http.response.body", "body": lines, "more_body": True})


def _bookmark(kind: Kind, form: Form, version: int, *, start: bool = False) -> bytes:
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if start:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    shown: dict[str, object] = {
        "kind": kind.name,
        "apiVersion": kind.api_version,
        "metadata": metadata,
    }
    if form is Form.TABLE:
        shown = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": None,
            "rows": [],
        }
    elif form is not Form.PLAIN:
        shown["kind"], shown["apiVersion"] = Form.PARTIAL.value, "meta.k8s.io/v1"
    return encode({"type": EventType.BOOKMARK, "object": shown}) + b"\n"
