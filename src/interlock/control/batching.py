"""Batching: calls that are made in the same turn of the event loop become one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Batcher(Generic[T]):
    """One call for many callers: each call to a runtime is a durable round trip.

    All callers of one turn wait for the same call, and share what it raises.
    """

    def __init__(self, call: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        self._call = call
        self._things: list[T] = []
        self._over: asyncio.Future[None] | None = None
        #: Keeps the calls under way from being collected.
        self._calls: dict[asyncio.Task[None], None] = {}

    async def add(self, things: Sequence[T]) -> None:
        """Have these in the next call, and wait for it."""
        if self._over is None:
            loop = asyncio.get_running_loop()
            self._over = loop.create_future()
            loop.call_soon(self._flush)
        self._things.extend(things)
        # A caller that is cancelled must not take the call away from the others.
        await asyncio.shield(self._over)

    def _flush(self) -> None:
        things, over = self._things, self._over
        self._things, self._over = [], None
        assert over is not None
        task = asyncio.get_running_loop().create_task(self._run(things, over))
        self._calls[task] = None
        task.add_done_callback(self._calls.pop)

    async def _run(self, things: list[T], over: asyncio.Future[None]) -> None:
        try:
            await self._call(things)
        except asyncio.CancelledError:
            over.cancel()
            raise
        except Exception as error:
            over.set_exception(error)
            # Every caller may be gone; then nobody else would ask for it.
            over.exception()
        else:
            over.set_result(None)
