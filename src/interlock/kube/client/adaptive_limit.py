"""An adaptive concurrency limit: as many requests at once as the server answers quickly.

More than that only wait in the server, where they are in the way of everybody's: of the renewal of
our own lease, too. What quick is differs from server to server, so it is measured against the
quickest answer of the last minutes. The number creeps up while answers are quick and drops as soon
as they are not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from interlock.control.clock import Clock

#: So many are under way at first, and at the least.
LEAST = 8
#: More than this are not worth their connections.
MOST = 64
#: Answers within so many times the quickest one, and a little, are quick; beyond that slow.
_QUICK, _QUICK_S = 2.0, 0.02
_SLOW, _SLOW_S = 4.0, 0.05
#: What a slow answer leaves of the number.
_LESS = 0.95
#: The quickest answer is forgotten after this time: servers, and ways to them, change.
_WINDOW_S = 120.0


class AdaptiveLimit:
    """AdaptiveLimit for requests; whoever finds none waits in line."""

    def __init__(self, clock: Clock, least: int = LEAST, most: int = MOST) -> None:
        self._clock = clock
        self._least = least
        self._most = max(least, most)
        self._limit = float(least)
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        #: The quickest answers of this window and of the one before, and when this one began.
        self._quickest_s: float | None = None
        self._before_s: float | None = None
        self._since = clock.monotonic()

    @property
    def limit(self) -> int:
        """How many requests may be under way now."""
        return int(self._limit)

    @asynccontextmanager
    async def place(self, *, counts: bool) -> AsyncGenerator[None, None]:
        """Have a place; with `counts`, how long it was needed tells how busy the server is."""
        await self._enter()
        began = self._clock.monotonic()
        try:
            yield
        finally:
            if counts:
                self._learn(self._clock.monotonic() - began)
            self._taken -= 1
            self._let_in()

    async def _enter(self) -> None:
        if self._taken < self.limit and not self._waiting:
            self._taken += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Its turn had come: somebody else takes it.
                self._taken -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and self._taken < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)

    def _learn(self, took_s: float) -> None:
        now = self._clock.monotonic()
        if now - self._since >= _WINDOW_S:
            self._before_s, self._quickest_s, self._since = self._quickest_s, None, now
        known = [took_s, *(s for s in (self._quickest_s, self._before_s) if s is not None)]
        self._quickest_s = min(took_s, self._quickest_s or took_s)
        quickest_s = min(known)
        if took_s > quickest_s * _SLOW + _SLOW_S:
            self._limit = max(self._limit * _LESS, self._least)
        elif took_s <= quickest_s * _QUICK + _QUICK_S and self._taken >= self.limit:
            self._limit = min(self._limit + 1.0 / self._limit, self._most)
