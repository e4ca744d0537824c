"""The connection pool's sockets: kept alive, and all of them closed when the client is."""

from __future__ import annotations

import contextlib
import socket
from typing import Any
from weakref import WeakSet

from interlock.control.clock import Clock, pause

#: A silent connection is probed by the kernel after this, this often, this many times.
_PROBING = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
)
#: What was sent and is not acknowledged for so long ends the connection, and is sent no more. The
#: kernel would go on for a quarter of an hour: the writes of a leader that was cut off would arrive
#: long after another one has taken over.
_UNACKNOWLEDGED_MS = 10_000
#: How long, and how often, to look whether everything is closed.
_LOOKS, _LOOK_S = 200, 0.01


class Sockets:
    """Makes sockets, and knows those that are still open.

    Encrypted connections say goodbye before they close, in their own time. Whoever stops the
    event loop right after closing a client would leave those sockets open.
    """

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        """A socket for an address."""
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _PROBING:
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
        self._made.add(made)
        return made

    @property
    def open(self) -> list[socket.socket]:
        """Those that are not closed."""
        return [made for made in self._made if made.fileno() >= 0]

    async def close(self, clock: Clock) -> None:
        """End every conversation and wait until its owner has closed its socket."""
        for made in self.open:
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
        for _ in range(_LOOKS):
            if not self.open:
                return
            await pause(clock, _LOOK_S)
