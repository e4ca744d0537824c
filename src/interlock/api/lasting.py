"""Open streams: who is being told, so that one who may not any more is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from interlock.api.answers import RefusedError
from interlock.api.requests import Request


class ExpelledError(RefusedError):
    """Whoever was being told something may not ask for it any more."""

    def __init__(self) -> None:
        challenge = ((b"www-authenticate", b"Bearer"),)
        super().__init__(401, "the token is not valid any more, or allows less", headers=challenge)


class Lasting:
    """The requests whose answers go on, each with what answers it."""

    def __init__(self) -> None:
        self._answering: dict[Request, asyncio.Task[object]] = {}
        self._expelled: set[Request] = set()

    @asynccontextmanager
    async def held(self, request: Request) -> AsyncIterator[None]:
        """Remember a request while it is being answered.

        Raises:
            ExpelledError: It was ended meanwhile.
        """
        task = asyncio.current_task()
        assert task is not None, "requests are answered by tasks"
        self._answering[request] = task
        try:
            yield
        except asyncio.CancelledError:
            if request not in self._expelled:
                raise
            task.uncancel()
            raise ExpelledError from None
        finally:
            del self._answering[request]
            self._expelled.discard(request)

    def end(self, unwanted: Callable[[Request], bool]) -> None:
        """End the answers to those who are not wanted."""
        for request, task in self._answering.items():
            if request not in self._expelled and unwanted(request):
                self._expelled.add(request)
                task.cancel()
