"""One connection from the server to the keeper: requests are pipelined, answers numbered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from msgspec import MsgspecError

from interlock.errors import FencedError, UnavailableError
from interlock.resources.tasks import TaskReport
from interlock.runtimes.keeper.protocol import (
    Answer,
    Done,
    Frames,
    Refusal,
    Request,
    Tell,
    Told,
    frame,
)

Reports = tuple[TaskReport, ...]


class Link(asyncio.Protocol):
    """A connection; once lost it stays so, and another one is made."""

    def __init__(self, hear: Callable[[Reports], None], lost: Callable[[Link], None]) -> None:
        loop = asyncio.get_running_loop()
        self._hear = hear
        self._when_lost = lost
        self._frames = Frames(Answer)
        self._waiting: dict[int, asyncio.Future[Done | Reports]] = {}
        self._told: dict[int, list[TaskReport]] = {}
        #: Answers that are heard like news.
        self._in_turn: set[int] = set()
        self._seq = 0
        self._transport: asyncio.WriteTransport | None = None
        self._gone: asyncio.Future[None] = loop.create_future()

    @property
    def is_lost(self) -> bool:
        """Whether the connection broke."""
        return self._gone.done()

    async def ask(self, request: Callable[[int], Request]) -> Done:
        """Send a request, which is built with its number, and wait until it is carried out.

        Raises:
            FencedError: A newer server has taken over.
            UnavailableError: It was refused, or the connection broke and nothing is known.
        """
        answer = await self._send(request)
        assert isinstance(answer, Done)
        return answer

    async def tell(self) -> Reports:
        """Ask for everything that is known. Raises as `ask` does.

        What is news comes apart from the answer: whoever asks may have heard of something newer
        by the time that they get it.
        """
        answer = await self._send(Tell)
        assert not isinstance(answer, Done)
        return answer

    async def hear_all(self) -> None:
        """Have everything that is known heard, in its turn: news after it is newer.

        Raises as `ask` does.
        """
        answer = self._send(Tell)
        self._in_turn.add(self._seq)
        await answer

    async def close(self) -> None:
        """Hang up, and wait until that is done."""
        if self._transport is not None:
            self._transport.close()
            await self._gone

    def abort(self) -> None:
        """Hang up at once, whatever is still unsent."""
        if self._transport is not None:
            self._transport.abort()

    def _send(self, request: Callable[[int], Request]) -> asyncio.Future[Done | Reports]:
        future: asyncio.Future[Done | Reports] = asyncio.get_running_loop().create_future()
        if self._transport is None or self.is_lost:
            future.set_exception(UnavailableError("the connection to the keeper is lost"))
            return future
        self._seq += 1
        self._waiting[self._seq] = future
        self._transport.write(frame(request(self._seq)))
        return future

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        # Not checked: the transports of other event loops are of no class of asyncio's.
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand answers to those who wait for them, and news to the listeners."""
        try:
            for answer in self._frames.feed(data):
                self._take(answer)
        except (ValueError, MsgspecError):
            assert self._transport is not None
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  Given by asyncio.
        """Nothing is known any more of what was asked."""
        waiting, self._waiting = self._waiting, {}
        self._gone.set_result(None)
        for future in waiting.values():
            if not future.done():
                future.set_exception(UnavailableError("the connection to the keeper broke"))
        self._when_lost(self)

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, Told):
            self._take_reports(answer)
            return
        future = self._waiting.pop(answer.seq, None)
        if future is None or future.done():
            return
        if isinstance(answer, Done):
            future.set_result(answer)
        elif answer.refusal is Refusal.FENCED:
            future.set_exception(FencedError(answer.message))
        else:
            future.set_exception(UnavailableError(answer.message))

    def _take_reports(self, told: Told) -> None:
        if told.seq == 0:
            self._hear(told.reports)
            return
        parts = self._told.setdefault(told.seq, [])
        parts.extend(told.reports)
        if told.last:
            future = self._waiting.pop(told.seq, None)
            reports = tuple(self._told.pop(told.seq))
            if told.seq in self._in_turn:
                self._in_turn.discard(told.seq)
                self._hear(reports)
            if future is not None and not future.done():
                future.set_result(reports)
