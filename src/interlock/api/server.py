"""The HTTP server around an application: bounded, quiet when idle, and clean when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlock.api.requests import Receive, Scope, Send
from interlock.resources.errors import InterlockError

#: What a request line and all headers may take together.
MAX_HEAD = 64 * 1024
#: Clients keep idle connections for 90 s; the side that opened one should be the one to close it.
KEEP_ALIVE_S = 120
#: Requests under way get this long to finish when the server stops.
FINISH_S = 20
_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class ListenError(InterlockError):
    """An address that cannot be listened on."""


class Tls(Struct, frozen=True):
    """The files of a certificate and its key."""

    cert: Path
    key: Path


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; its own name tells the port when 0 was asked for.

    Raises:
        ListenError: The address is taken, foreign or no address at all.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ListenError(f"{host}: {error.strerror or error}") from error
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2048)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return made


class _WholeAnswers(asyncio.Transport):
    """Sends the head of an answer together with its body: one call to the kernel, not two.

    That wakes a client once instead of twice. A head without a length begins a stream, and whoever
    reads a stream waits for its head.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def is_closing(self) -> bool:
        """Whether the connection is closed or about to be."""
        return self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send, or keep the head until its body comes."""
        data = bytes(data)
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.startswith(b"HTTP/1.1 ") and b"\r\ncontent-length: " in data:
            self._head = data
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Hang up; a head whose body never came is sent all the same."""
        if self._head:
            self.write(b"")
        self._transport.close()


class _BoundedProtocol(HttpToolsProtocol):
    """Reads requests, and refuses a head that goes on and on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head = 0
        self._piece = 0

    def data_received(self, data: bytes) -> None:
        self._piece = len(data)
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        # What came before in the same piece belongs to another request.
        self._head = -self._piece if self._head else 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head = 1
        super().on_headers_complete()
        # An upgrade makes no new cycle, and the answer to HEAD has no body to wait for.
        is_new = getattr(self.cycle, "transport", None) is self.transport
        if is_new and self.scope["method"] != "HEAD":
            self.cycle.transport = _WholeAnswers(self.transport)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers and without its ten ticks a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.ending = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.ending.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Application(Protocol):
    """What is served."""

    def stop(self) -> None:
        """End what would go on for ever."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ...


class HttpServer:
    """Serves an application on a socket, as an asynchronous context.

    With a TLS context instead of files, whoever has the context may replace the certificate in it
    while the server runs.
    """

    def __init__(
        self,
        app: Application,
        listener: socket.socket,
        tls: Tls | ssl.SSLContext | None = None,
    ) -> None:
        self._app = app
        files = tls if isinstance(tls, Tls) else None
        context = tls if isinstance(tls, ssl.SSLContext) else None
        self._listener = listener
        config = uvicorn.Config(
            app,
            http=_BoundedProtocol,
            ws="websockets-sansio",
            loop="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=FINISH_S,
            ssl_certfile=files.cert if files else None,
            ssl_keyfile=files.key if files else None,
            ssl_context_factory=(lambda *_: context) if context else None,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to serve; connections are accepted when it returns."""
        self._serving = asyncio.create_task(self._server.serve([self._listener]))
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait((self._serving, ready), return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            await self._serving

    async def stop(self) -> None:
        """Take no new requests, let those under way finish, end watches."""
        self._app.stop()
        self._server.ending.set()
        if self._serving is not None:
            await self._serving

    def force(self) -> None:
        """Wait for nothing any more."""
        self._server.force_exit = True
