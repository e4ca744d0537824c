"""The body of a write that is checked once more when it is about to leave.

A request waits in many places after it was decided on: for a free place, between two attempts,
for a connection. Whoever may no longer write by then must not, and the last moment to find that
out is when the body is handed to a connection. A request whose body never comes does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from interlock.errors import FencedError

if TYPE_CHECKING:
    import aiohttp

#: Lets a write pass, or raises `FencedError`.
Guard = Callable[[], None]


def guarded(body: bytes, guard: Guard) -> aiohttp.BytesPayload:
    """A body that asks the guard at the moment it is sent, each time it is."""
    made: aiohttp.BytesPayload = _guarded_type()(body, guard)
    return made


def fence_of(error: BaseException | None) -> FencedError | None:
    """The guard's refusal behind an error of the connection, if there is one."""
    while error is not None:
        if isinstance(error, FencedError):
            return error
        error = error.__cause__
    return None


@lru_cache(maxsize=1)
def _guarded_type() -> Any:
    """The type of guarded bodies, made when it is first needed: the library is slow to load."""
    import aiohttp

    class Guarded(aiohttp.BytesPayload):
        """Bytes with a guard in front of them."""

        def __init__(self, body: bytes, guard: Guard) -> None:
            super().__init__(body)
            self._guard = guard

        async def write(self, writer: Any) -> None:
            """Send everything, if that may be done."""
            self._guard()
            await super().write(writer)

        async def write_with_length(self, writer: Any, content_length: int | None) -> None:
            """Send everything, if that may be done."""
            self._guard()
            await super().write_with_length(writer, content_length)

    return Guarded
