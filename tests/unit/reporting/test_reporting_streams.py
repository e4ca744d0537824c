"""The change stream: a reader that is too slow is cut off, never buffered without bound."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest

from interlock.api.answers import RefusedError
from interlock.api.requests import Request
from interlock.control.clock import SystemClock
from interlock.errors import ExpiredError
from interlock.reporting.streams import Streams
from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Metadata
from interlock.resources.process import NoopSpec
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.asking import in_time, scope_of
from interlock.testing.builders import T0

BUFFERED = 10


def a_store() -> MemoryStore:
    return MemoryStore(
        lambda: T0, SeededIdentities(Random(1)), remembered=BUFFERED, buffered=BUFFERED
    )


async def create(store: MemoryStore, count: int) -> None:
    for number in range(count):
        metadata = Metadata(name=f"job-{number}", namespace="default")
        await store.create(Job(metadata=metadata, spec=JobSpec(noop=NoopSpec())))


async def never() -> Any:
    await asyncio.Event().wait()


class SlowReader:
    """Takes the head and one part, and the rest only once it is let go."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.stuck = asyncio.Event()
        self.let_go = asyncio.Event()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            self.parts.append(message.get("body", b""))
            if len(self.parts) == 2:
                self.stuck.set()
                await self.let_go.wait()


def test_a_slow_reader_is_told_and_let_go() -> None:
    async def scene() -> list[bytes]:
        store, reader = a_store(), SlowReader()
        streams = Streams(store, SystemClock())
        request = Request(scope_of("GET", "/jobs/stream"), never)
        serving = asyncio.ensure_future(streams.serve_events(request, reader.send))
        while not reader.parts:
            await asyncio.sleep(0)
        await create(store, 1)
        await reader.stuck.wait()
        metadata = Metadata(namespace="default", generate_name="more-")
        for _ in range(3 * BUFFERED):
            await store.create(Job(metadata=metadata, spec=JobSpec(noop=NoopSpec())))
        reader.let_go.set()
        await serving
        return reader.parts

    parts = in_time(scene())

    assert parts[-2:] == [b"event: expired\ndata: {}\n\n", b""]
    assert sum(part.count(b"event: added") for part in parts) <= 1 + BUFFERED


def test_a_version_that_is_too_old_is_refused_before_anything_is_sent() -> None:
    async def scene() -> None:
        store, reader = a_store(), SlowReader()
        await create(store, 3 * BUFFERED)
        request = Request(scope_of("GET", "/jobs/stream?since=1"), never)
        with pytest.raises(ExpiredError):
            await Streams(store, SystemClock()).serve_events(request, reader.send)
        assert reader.parts == []

    in_time(scene())


async def nothing(message: Any) -> None:
    raise AssertionError(f"this was sent: {message}")


def a_socket(since: str = "") -> Request:
    scope = {**scope_of("GET", f"/jobs/stream{since}"), "type": "websocket"}
    return Request(scope, connected())


def connected() -> Any:
    """What a client sends: that it is there, and nothing more."""
    waiting = [{"type": "websocket.connect"}]

    async def receive() -> Any:
        return waiting.pop() if waiting else await never()

    return receive


def test_a_socket_that_is_too_slow_is_told_as_a_stream_is() -> None:
    async def scene() -> list[Any]:
        store = a_store()
        sent: list[Any] = []
        stuck, let_go = asyncio.Event(), asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message)
            if len(sent) == 2:
                stuck.set()
                await let_go.wait()

        serving = asyncio.ensure_future(
            Streams(store, SystemClock()).serve_socket(a_socket(), send)
        )
        await stuck.wait()
        await create(store, 3 * BUFFERED)
        let_go.set()
        await serving
        return sent

    sent = in_time(scene())

    assert [message["type"] for message in sent[:2]] == ["websocket.accept", "websocket.send"]
    assert json.loads(sent[1]["text"])["type"] == "sync"
    assert sent[-2]["text"] == '{"type":"expired"}\n'
    assert sent[-1] == {"type": "websocket.close", "code": 1013}


def test_a_socket_of_a_version_that_is_too_old_is_refused_before_it_is_open() -> None:
    async def scene() -> None:
        store = a_store()
        await create(store, 3 * BUFFERED)
        with pytest.raises(ExpiredError):
            await Streams(store, SystemClock()).serve_socket(a_socket("?since=1"), nothing)

    in_time(scene())


def test_there_are_only_so_many_streams() -> None:
    async def scene() -> None:
        streams = Streams(a_store(), SystemClock(), most=0)
        request = Request(scope_of("GET", "/jobs/stream"), never)
        with pytest.raises(RefusedError, match="streams are open already") as refused:
            await streams.serve_events(request, SlowReader().send)
        assert refused.value.status.code == 429
        assert (b"retry-after", b"1") in refused.value.headers

    in_time(scene())
