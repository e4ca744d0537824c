"""The door of workers: only a server that leads serves them; others send them on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

import pytest

from interlock.api.answers import RefusedError
from interlock.api.requests import Request
from interlock.api.workers import WorkerDoor
from interlock.control.clock import SystemClock
from interlock.errors import FencedError
from interlock.runtimes.workers.dispatcher import Dispatcher
from interlock.runtimes.workers.protocol import PATH, PROTOCOL, Hello, Touch, encode
from interlock.runtimes.workers.runtime import WorkerRuntime

DEADLINE_S = 120.0


class Lead:
    """Says whether this server leads."""

    def __init__(self) -> None:
        self.lost = ""

    def check(self) -> None:
        if self.lost:
            raise FencedError(self.lost)


class Wire:
    """The two ends of one connection."""

    def __init__(self) -> None:
        self.to_server: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self.to_worker: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.to_server.put_nowait({"type": "websocket.connect"})

    def say(self, message: bytes) -> None:
        self.to_server.put_nowait({"type": "websocket.receive", "text": message.decode()})

    async def hear(self, type: str) -> Mapping[str, Any]:
        async with asyncio.timeout(DEADLINE_S):
            while (told := await self.to_worker.get())["type"] != type:
                pass
        return told

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.to_worker.put_nowait(message)

    def request(self) -> Request:
        scope = {"type": "websocket", "path": PATH, "query_string": b"", "headers": []}
        return Request(scope, self.to_server.get)


HELLO = encode(
    Hello(protocol=PROTOCOL, worker="w", incarnation="i", app="a:a", functions=("make",))
)


def serve_of(door: WorkerDoor) -> Any:
    (route,) = (one for one in door.routes() if one.path == PATH and one.lasts)
    return route.serve


def test_a_server_that_does_not_lead_refuses_with_words() -> None:
    wire = Wire()

    with pytest.raises(RefusedError, match="does not lead") as refused:
        asyncio.run(serve_of(WorkerDoor(lambda: None))(wire.request(), wire.send))

    assert refused.value.status.code == 503
    assert (b"retry-after", b"1") in refused.value.headers
    assert wire.to_worker.empty()


def test_whoever_loses_the_lead_sends_workers_on_at_their_next_word() -> None:
    async def story() -> None:
        lead, wire = Lead(), Wire()
        runtime = WorkerRuntime(SystemClock(), lead.check, Dispatcher())
        serving = asyncio.create_task(
            serve_of(WorkerDoor(lambda: runtime))(wire.request(), wire.send)
        )
        wire.say(HELLO)
        await wire.hear("websocket.send")
        assert len(runtime.workers()) == 1
        lead.lost = "another server leads"
        wire.say(encode(Touch()))

        closed = await wire.hear("websocket.close")
        await serving

        assert (closed["code"], closed["reason"]) == (1013, "another server leads")
        assert runtime.is_over
        with pytest.raises(FencedError):
            await runtime.reports()

    asyncio.run(story())


def test_the_end_of_a_term_cuts_nothing_off() -> None:
    """What a worker has it goes on with: the next leader hears of it."""

    async def story() -> None:
        wire = Wire()
        heard: list[object] = []
        runtime = WorkerRuntime(SystemClock(), lambda: None, Dispatcher())
        runtime.subscribe(heard.extend)
        serving = asyncio.create_task(
            serve_of(WorkerDoor(lambda: runtime))(wire.request(), wire.send)
        )
        wire.say(HELLO)
        await wire.hear("websocket.send")
        runtime.close("this server leads anew")
        closed = await wire.hear("websocket.close")
        await serving

        assert closed["reason"] == "this server leads anew"
        assert heard == []

    asyncio.run(story())
