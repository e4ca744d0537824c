"""Requests and answers of the servers that parts of a cluster ask: bodies, whole and bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from interlock.errors import BadRequestError

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


async def read_body(receive: Receive, most_bytes: int) -> bytes:
    """The whole body of a request.

    Raises:
        BadRequestError: It is too large, or was broken off.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequestError("the connection was closed")
        part = message.get("body", b"")
        size += len(part)
        if size > most_bytes:
            raise BadRequestError(f"the request is larger than {most_bytes} bytes")
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def send_answer(
    send: Send, status: int, body: bytes, media: bytes = b"application/json"
) -> None:
    """Answer with this."""
    headers = [(b"content-type", media), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_text(send: Send, status: int, text: str) -> None:
    """Answer with a line for people."""
    await send_answer(send, status, f"{text}\n".encode(), b"text/plain")
