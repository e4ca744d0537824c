"""As many requests are under way as the server answers quickly."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.client.adaptive_limit import LEAST, MOST, AdaptiveLimit
from interlock.testing.builders import T0


class Server:
    """Answers take a while, and the longer the more requests it has beyond what it can do."""

    def __init__(self, *, answer_s: float, able: int) -> None:
        self._loop = SimLoop(Random(0))
        self.places = AdaptiveLimit(SimClock(self._loop, self._loop.world, T0))
        self._answer_s = answer_s
        self._able = able
        self._asked = 0
        self.most = 0

    async def ask(self, *, counts: bool = True) -> None:
        async with self.places.place(counts=counts):
            self._asked += 1
            self.most = max(self.most, self._asked)
            await asyncio.sleep(self._answer_s * max(1.0, self._asked / self._able))
            self._asked -= 1

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            self._loop.run(work, within=1e6)
        finally:
            self._loop.close()


@pytest.mark.parametrize("answer_s", [0.005, 0.1, 1.0])
def test_a_server_that_keeps_up_gets_more(answer_s: float) -> None:
    server = Server(answer_s=answer_s, able=1000)

    async def check() -> None:
        await asyncio.gather(*(server.ask() for _ in range(4000)))

    server.run(check())
    assert server.most == MOST


def test_a_server_that_does_not_keep_up_gets_fewer() -> None:
    server = Server(answer_s=0.005, able=1)

    async def check() -> None:
        await server.ask()
        await asyncio.gather(*(server.ask() for _ in range(2000)))

    server.run(check())
    assert server.places.limit < LEAST + 4


def test_one_that_gets_slow_is_left_alone_soon() -> None:
    server = Server(answer_s=0.005, able=1000)

    async def check() -> None:
        await asyncio.gather(*(server.ask() for _ in range(4000)))
        assert server.places.limit == MOST
        server._able = 1
        await asyncio.gather(*(server.ask() for _ in range(100)))

    server.run(check())
    assert server.places.limit == LEAST


def test_lists_say_nothing_about_how_busy_a_server_is() -> None:
    server = Server(answer_s=0.005, able=1)

    async def check() -> None:
        await asyncio.gather(*(server.ask(counts=False) for _ in range(100)))

    server.run(check())
    assert server.places.limit == server.most == LEAST


def test_whoever_gives_up_waiting_leaves_the_place_to_the_next() -> None:
    server = Server(answer_s=1.0, able=1000)

    async def check() -> None:
        asked = [asyncio.ensure_future(server.ask()) for _ in range(3 * LEAST)]
        await asyncio.sleep(0.5)
        for task in asked[LEAST : 2 * LEAST]:
            task.cancel()
        # These give up in the very moment in which their turn comes.
        asked[0].add_done_callback(lambda _: asked[2 * LEAST].cancel())
        told = await asyncio.gather(*asked, return_exceptions=True)
        ended = [isinstance(each, BaseException) for each in told]
        assert ended == [False] * LEAST + [True] * LEAST + [True] + [False] * (LEAST - 1)
        async with server.places.place(counts=False):
            assert server.places._taken == 1

    server.run(check())
