"""Closing a client leaves no socket open, whatever was under way."""

from __future__ import annotations

import asyncio
import gc
import socket

from kube_fakes import a_client, run, serving, streams

from interlock.kube.client.api_client import Call, Client
from interlock.kube.client.sockets import Sockets
from interlock.resources.metadata import Key

CALL = Call(method="GET", path="/x", key=Key("Job", "", ""))


def test_streams_and_cancelled_requests_leave_nothing() -> None:
    async def begin(client: Client) -> None:
        stream = await client.stream(CALL, silent_s=60.0)
        await stream.read()
        stream.close()

    async def check() -> None:
        async with serving(streams(b"x", then="silent")) as server:
            async with a_client(server.url) as client:
                await begin(client)
                sending = asyncio.create_task(client.send(CALL))
                while len(server.requests) < 2:
                    await asyncio.sleep(0.01)
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            assert client.open_sockets == 0

    run(check)
    gc.collect()


def test_what_nobody_acknowledges_is_not_sent_for_long() -> None:
    """The last writes of a leader that was cut off must not arrive under the next one."""
    made = Sockets().make((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", None))
    with made:
        limit_ms = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert 0 < limit_ms <= 15_000
