"""The keeper's socket: who is connected, with which term, and what they are still to be sent."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import MsgspecError

from interlock.runtimes.keeper.protocol import SOCKET_NAME, Answer, Frames, Request, frame

#: A server that does not read (one that is stopped, say) is cut off rather than buffered for.
MAX_UNSENT = 32 << 20


class Connection:
    """One server."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.frames = Frames(Request)
        #: None until its hello is durable.
        self.term: int | None = None
        self.fenced = False
        self.unsent = bytearray()
        #: Whether the socket took no more, and the poll tells when it does again.
        self.is_blocked = False
        self.closed = False

    def send(self, answer: Answer) -> None:
        """Have an answer sent; a closed connection swallows it."""
        if not self.closed:
            self.unsent += frame(answer)


class Connections:
    """Accepts servers, reads their requests, sends their answers."""

    def __init__(self, data_dir: Path, poll: select.epoll) -> None:
        self._poll = poll
        self.open: dict[int, Connection] = {}
        self.listener = listen(data_dir)
        poll.register(self.listener.fileno(), select.EPOLLIN)

    def accept(self) -> None:
        """Let in everyone who waits at the door."""
        while True:
            try:
                sock, _ = self.listener.accept()
            except (BlockingIOError, ConnectionAbortedError, OSError):
                return
            sock.setblocking(False)
            self.open[sock.fileno()] = Connection(sock)
            self._poll.register(sock.fileno(), select.EPOLLIN)

    def receive(self, fd: int, handle: Callable[[Connection, Request], None]) -> None:
        """Read what a server sent and hand over each whole request."""
        connection = self.open[fd]
        try:
            data = connection.sock.recv(1 << 18)
            for request in connection.frames.feed(data):
                handle(connection, request)
            if not data:
                self.close(connection)
        except BlockingIOError:
            return
        except (OSError, ValueError, MsgspecError):
            self.close(connection)

    def flush(self) -> None:
        """Send what can be sent without waiting."""
        for connection in list(self.open.values()):
            if connection.unsent:
                self._send(connection)

    def close(self, connection: Connection) -> None:
        """Part with a server."""
        if not connection.closed:
            connection.closed = True
            del self.open[connection.sock.fileno()]
            self._poll.unregister(connection.sock.fileno())
            connection.sock.close()

    def close_all(self) -> None:
        """Shut the door for good."""
        for connection in list(self.open.values()):
            self.close(connection)
        self.listener.close()

    def _send(self, connection: Connection) -> None:
        unsent = connection.unsent
        try:
            while unsent:
                sent = connection.sock.send(unsent[: 1 << 18])
                del unsent[:sent]
        except BlockingIOError:
            if len(unsent) > MAX_UNSENT:
                self.close(connection)
                return
        except OSError:
            self.close(connection)
            return
        if bool(unsent) != connection.is_blocked:
            connection.is_blocked = bool(unsent)
            wanted = select.EPOLLIN | (select.EPOLLOUT if unsent else 0)
            self._poll.modify(connection.sock.fileno(), wanted)


def listen(data_dir: Path) -> socket.socket:
    """A socket in the data directory that only its owner may use."""
    with short_path(data_dir) as place:
        path = f"{place}/{SOCKET_NAME}"
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(mask)
    listener.listen(16)
    listener.setblocking(False)
    return listener


@contextlib.contextmanager
def short_path(data_dir: Path) -> Iterator[str]:
    """A short name for a directory: the path of a socket has at most 107 bytes."""
    fd = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
