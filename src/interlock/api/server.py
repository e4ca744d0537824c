"""The HTTP server around an application: bounded, quiet when idle, and clean when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Any, Protocol, cast

import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from interlock.api.connections import Complaints, Connections, Limits
from interlock.api.requests import Receive, Scope, Send
from interlock.api.socket_diag import PEER, peer_at
from interlock.errors import InterlockError

#: What a request line and all headers may take together.
MAX_HEAD = 64 * 1024
#: Clients keep idle connections for 90 s; the side that opened one should be the one to close it.
KEEP_ALIVE_S = 120
#: Requests under way get this long to finish when the server stops.
FINISH_S = 20
#: So many connections are accepted before others get their turn.
_ACCEPTED_AT_ONCE = 64
#: When there are no descriptors, it is looked again after this.
_ACCEPT_AGAIN_S = 0.5
_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


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


class _Phase(Enum):
    """What a connection is waited on for, and so how long."""

    #: Nobody waits for the client: it is being answered, or idles between requests.
    NONE = auto()
    FIRST_BYTE = auto()
    HEAD = auto()
    BODY = auto()


class _BoundedProtocol(HttpToolsProtocol):
    """Reads requests, and refuses what goes on and on: a head without end, or one that trickles."""

    def __init__(self, *args: Any, limits: Limits, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head = 0
        self._piece = 0
        self._phase = _Phase.FIRST_BYTE
        self._timed = _Phase.NONE
        self._timer: asyncio.TimerHandle | None = None
        #: Whether the connection is there, and no WebSocket.
        self._is_ours = True
        self._times = {
            _Phase.FIRST_BYTE: limits.first_byte_s,
            _Phase.HEAD: limits.head_s,
            _Phase.BODY: limits.body_s,
        }
        #: Called when the connection is no more.
        self.on_gone: Callable[[], None] = lambda: None

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered. Half a request is none."""
        return self._phase is not _Phase.BODY and self._is_answered

    @property
    def _is_answered(self) -> bool:
        return bool(getattr(self.cycle, "response_complete", True))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ours = False
        self._phase = _Phase.NONE
        self.wait()
        super().connection_lost(exc)
        self.on_gone()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        # Asked at once: a client may be gone before its request is whole. An upgrade keeps it.
        self.app_state = {**self.app_state, PEER: peer_at(transport)}

    def data_received(self, data: bytes) -> None:
        self._piece = len(data)
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()
        self.wait()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._phase = _Phase.HEAD
        # What came before in the same piece belongs to another request.
        self._head = -self._piece if self._head else 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head = 1
        self._phase = _Phase.BODY
        super().on_headers_complete()
        # An upgrade makes no new cycle, and the answer to HEAD has no body to wait for.
        is_new = getattr(self.cycle, "transport", None) is self.transport
        if is_new and self.scope["method"] != "HEAD":
            self.cycle.transport = _WholeAnswers(self.transport)

    def on_message_complete(self) -> None:
        self._phase = _Phase.NONE
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._is_ours = False
        self._phase = _Phase.NONE
        super().handle_websocket_upgrade()
        taken_over = self.transport.get_protocol()
        assert isinstance(taken_over, _SocketProtocol)
        taken_over.on_gone = self.on_gone

    def wait(self) -> None:
        """Wait for what is to come next, and no longer than it may take from its beginning.

        A request that comes whole needs no timer at all.
        """
        phase = self._phase
        idles = self._is_ours and self._is_answered and self.timeout_keep_alive_task is None
        if phase is _Phase.NONE and idles:
            # Bytes between two requests end uvicorn's wait for the next and begin none.
            phase = _Phase.FIRST_BYTE
        if phase is self._timed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = phase
        if phase is not _Phase.NONE:
            self._timer = self.loop.call_later(self._times[phase], self._give_up)

    def _give_up(self) -> None:
        if self.transport.is_closing():
            return
        if self._timed is _Phase.HEAD and self._is_answered:
            self.transport.write(_TOO_SLOW)
        self.transport.close()


class _SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket; it may last as long as it likes."""

    #: Called when the connection is no more.
    on_gone: Callable[[], None] = staticmethod(lambda: None)
    is_idle = False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.on_gone()


class _Connection:
    """One accepted connection, from the first packet to the last."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.protocol: _BoundedProtocol | None = None
        self.opening: asyncio.Task[None] | None = None
        self._is_told = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked for that is still being answered, and it was not told to go."""
        transport = self.protocol.transport if self.protocol is not None else None
        if transport is None or self._is_told:
            return not self._is_told
        return not transport.is_closing() and bool(getattr(transport.get_protocol(), "is_idle", 0))

    def close(self) -> None:
        """Hang up, now or while it is still being agreed on how to encrypt."""
        self._is_told = True
        if self.protocol is not None and self.protocol.transport is not None:
            self.protocol.transport.close()
        elif self.opening is not None:
            self.opening.cancel()


class _Door:
    """Accepts connections as long as there is room for them."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], _BoundedProtocol],
        tls: ssl.SSLContext | None,
        limits: Limits,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make = make
        self._tls = tls
        self._handshake_s = limits.handshake_s
        self._connections = Connections(limits)
        self._complaints = Complaints(self._loop.time)
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False

    def open(self) -> None:
        """Begin to accept."""
        if not self._closed:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Accept nobody any more; those who are in stay."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._listener.fileno())
        for opening in self._opening:
            opening.cancel()

    async def wait_closed(self) -> None:
        """Wait for those who were on their way in."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Others wait in the kernel's line. Trying at once would only burn the processor.
                self._complaints.tell("no connection can be accepted: %s", error.strerror)
                self._loop.remove_reader(self._listener.fileno())
                self._loop.call_later(_ACCEPT_AGAIN_S, self.open)
                return
            accepted.setblocking(False)
            self._take_in(accepted, peer[0] if isinstance(peer, tuple) else "")

    def _take_in(self, accepted: socket.socket, address: str) -> None:
        connection = _Connection(address)
        goes = self._connections.enter(connection)
        if goes is not None:
            counts = len(self._connections) - 1, self._connections.most
            self._complaints.tell(
                "there are too many connections (%d of %d, at most %d from one address, this one"
                " from %s): one that asked for nothing is closed, or the newest",
                *counts, self._connections.most_each, address,
            )  # fmt: skip
        if goes is connection:
            self._connections.leave(connection)
            accepted.close()
            return
        if isinstance(goes, _Connection):
            goes.close()
        connection.opening = self._loop.create_task(self._begin(connection, accepted))
        self._opening.add(connection.opening)
        connection.opening.add_done_callback(self._opening.discard)

    async def _begin(self, connection: _Connection, accepted: socket.socket) -> None:
        def make() -> _BoundedProtocol:
            connection.protocol = protocol = self._make()
            protocol.on_gone = lambda: self._connections.leave(connection)
            return protocol

        try:
            await self._loop.connect_accepted_socket(
                make,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._handshake_s if self._tls else None,
            )
        except (OSError, asyncio.CancelledError):
            # The handshake failed, took too long, or had to make room.
            accepted.close()
            self._connections.leave(connection)
        else:
            if connection.protocol is not None:
                connection.protocol.wait()


class _Server(uvicorn.Server):
    """uvicorn with our door, without its signal handlers and without its ten ticks a second."""

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.ending = asyncio.Event()
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.server_state.default_headers = [(b"x-content-type-options", b"nosniff")]
        doors = [
            _Door(listener, self._make_protocol, self.config.ssl, self._limits)
            for listener in sockets or ()
        ]
        ours: Any = self
        ours.servers = doors  # uvicorn closes them, and waits until they are closed.
        for door in doors:
            door.open()
        self.started = True
        self.ready.set()

    def _make_protocol(self) -> _BoundedProtocol:
        return _BoundedProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            limits=self._limits,
        )

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
        limits: Limits | None = None,
    ) -> None:
        self._app = app
        files = tls if isinstance(tls, Tls) else None
        context = tls if isinstance(tls, ssl.SSLContext) else None
        self._listener = listener
        config = uvicorn.Config(
            app,
            http=_BoundedProtocol,
            ws=_SocketProtocol,
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
        self._server = _Server(config, limits or Limits())
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
