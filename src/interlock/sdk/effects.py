"""Effects: what a plan asks its driver to do. A plan knows no socket, thread or event loop.

A plan is a generator. It yields an effect, is sent what came of it, and returns its result, so that
the client with threads and the one with an event loop carry out the very same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from interlock.client.api import Api

T = TypeVar("T")

JSON = "application/json"


class Call(Struct, frozen=True, kw_only=True):
    """A request whose whole answer is wanted, or that opens a stream."""

    method: str
    path: str
    #: What is None or empty is left out.
    query: Mapping[str, object] = {}
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    headers: Mapping[str, str] = {}
    #: Whether it may be sent again when it is not known whether it was carried out.
    repeatable: bool = True
    #: The server may take so much longer than usual, because it was asked to hold the answer.
    held_s: float = 0.0


class Reply(Struct, frozen=True):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Pause(Struct, frozen=True):
    """Let so many seconds pass."""

    seconds: float


class Tick(Struct, frozen=True):
    """Read a clock that only ever rises, in seconds."""


class Renew(Struct, frozen=True):
    """Find out anew what proves who asks; comes to whether that can have changed anything."""


class Open(Struct, frozen=True):
    """Open a stream in the place of any other of this plan; comes to its `Reply`.

    The body of a refusal is read whole, that of a stream is left to `Receive`.
    """

    call: Call


class Receive(Struct, frozen=True):
    """Read on in the stream: comes to the next part, None at its end, or `OVERDUE`."""

    timeout_s: float | None = None


class Overdue(Struct, frozen=True):
    """Nothing came in time."""


class Emit(Struct, frozen=True):
    """Hand a value to whoever iterates."""

    value: Any


class Work(Struct, frozen=True):
    """Have the command line's client work something out from what a cluster stores."""

    do: Callable[[Api], Any]


OVERDUE = Overdue()
Effect: TypeAlias = Call | Pause | Tick | Renew | Open | Receive | Emit | Work
Plan: TypeAlias = Generator[Effect, Any, T]
