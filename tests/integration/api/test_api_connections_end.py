"""Connections over real sockets: silent and slow ones end, those who wait for news do not."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interlock.api.connections import Limits
from interlock.api.server import HttpServer, bind
from interlock.testing.asking import JOB, JOBS, Asker, in_time

PLACE = Path(__file__).parent / "certificate"
#: Whoever says nothing is let go at once; whoever says half of something, too.
SILENT, SLOW = Limits(first_byte_s=0.0), Limits(head_s=0.0, body_s=0.0)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Served:
    """A server in this process, and connections to it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: list[asyncio.StreamWriter] = []

    async def connect(self, say: bytes = b"") -> Pipe:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._open.append(writer)
        if say:
            writer.write(say)
        return reader, writer

    def hang_up(self) -> None:
        for writer in self._open:
            writer.close()


@asynccontextmanager
async def serving(limits: Limits, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    listener = bind("127.0.0.1", 0)
    server = HttpServer(Asker().app, listener, tls, limits)
    served = Served(listener.getsockname()[1])
    await server.start()
    try:
        yield served
    finally:
        served.hang_up()
        await server.stop()


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(
    ("limits", "said", "answer"),
    [
        pytest.param(SILENT, b"", b"", id="nothing"),
        pytest.param(SILENT, b"\r\n", b"", id="an empty line"),
        pytest.param(SLOW, b"GET /healthz HT", b"HTTP/1.1 408", id="half a line"),
        pytest.param(SLOW, b"GET / HTTP/1.1\r\nHost: local", b"HTTP/1.1 408", id="half a head"),
        pytest.param(
            SLOW,
            f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{{".encode(),
            b"",
            id="half a body",
        ),
    ],
)
def test_who_does_not_say_what_they_want_is_let_go(
    limits: Limits, said: bytes, answer: bytes
) -> None:
    async def story() -> bytes:
        async with serving(limits) as served:
            reader, _ = await served.connect(said)
            return await until_closed(reader)

    assert in_time(story()).startswith(answer)


def test_who_waits_for_news_is_not_let_go() -> None:
    async def story() -> bytes:
        async with serving(SLOW) as served:
            watching = f"GET {JOBS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            reader, _ = await served.connect(watching)
            await reader.readuntil(b"\r\n\r\n")
            slow, _ = await served.connect(b"GET")
            await until_closed(slow)
            body = json.dumps(JOB)
            await served.connect(
                (
                    f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                ).encode()
            )
            return await reader.readuntil(b'"name":"hello"')

    assert b'"type":"ADDED"' in in_time(story())


def test_who_asked_for_nothing_makes_room() -> None:
    async def story() -> tuple[bytes, bytes]:
        async with serving(Limits(most=2, most_each=2)) as served:
            first, _ = await served.connect()
            await served.connect()
            reader, _ = await served.connect(HEALTH)
            return await until_closed(first), await reader.readuntil(b"\r\n\r\nok")

    closed, answer = in_time(story())

    assert closed == b""
    assert answer.startswith(b"HTTP/1.1 200")


def test_when_all_are_being_answered_the_newest_goes() -> None:
    async def story() -> tuple[bytes, bytes]:
        async with serving(Limits(most=1)) as served:
            watching = f"GET {JOBS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            watch, _ = await served.connect(watching)
            head = await watch.readuntil(b"\r\n\r\n")
            newest, _ = await served.connect(HEALTH)
            return head, await until_closed(newest)

    head, newest = in_time(story())

    assert head.startswith(b"HTTP/1.1 200")
    assert newest == b""


def test_a_handshake_that_never_ends_is_ended() -> None:
    async def story() -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(PLACE / "localhost.crt", PLACE / "localhost.key")
        async with serving(Limits(handshake_s=0.01), context) as served:
            reader, _ = await served.connect()
            return await until_closed(reader)

    assert in_time(story()) == b""


def test_every_answer_says_that_it_is_what_it_says() -> None:
    async def story() -> list[bytes]:
        async with serving(Limits()) as served:
            heads = []
            for path in ("/", "/healthz", "/nothing", JOBS, f"{JOBS}?watch=true"):
                reader, _ = await served.connect(
                    f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
                )
                heads.append(await reader.readuntil(b"\r\n\r\n"))
            reader, _ = await served.connect(b"nonsense\r\n\r\n")
            return [*heads, await until_closed(reader)]

    heads = in_time(story())

    assert all(b"x-content-type-options: nosniff" in head for head in heads)
