"""A write that waited is not sent once its guard refuses; reads are nobody's concern."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from kube_fakes import Handler, a_client, a_wire_job, refuses, run, says, serving

from interlock.errors import FencedError
from interlock.kube.client.api_client import Call
from interlock.kube.client.guarded import GuardedClient
from interlock.resources.metadata import Key

KEY = Key("Job", "default", "a")
GET = Call(method="GET", path="/x", key=KEY)
PUT = Call(method="PUT", path="/x", key=KEY, body=b"{}")
GOOD = says(a_wire_job("a", 8))
BUSY = refuses(429, "TooManyRequests", headers={"Retry-After": "0"})


class Lead:
    """Something that holds until it does not."""

    def __init__(self, passes: int = 1 << 30) -> None:
        self.passes = passes

    def check(self) -> None:
        self.passes -= 1
        if self.passes < 0:
            raise FencedError("another leads")


def test_while_it_holds_everything_passes() -> None:
    async def check() -> None:
        async with serving(GOOD) as server, a_client(server.url) as client:
            guarded = GuardedClient(client, Lead().check)
            await guarded.send(PUT)
            await guarded.send(GET)
            assert await server.requests[0].read() == b"{}"
            assert len(server.requests) == 2

    run(check)


@pytest.mark.parametrize(
    ("passes", "script", "sent"),
    [
        pytest.param(0, (GOOD,), 0, id="before it is sent"),
        pytest.param(1, (GOOD,), 0, id="while a connection is made"),
        pytest.param(2, (BUSY, GOOD), 1, id="between two attempts"),
        pytest.param(3, (BUSY, GOOD), 1, id="while it is sent again"),
    ],
)
def test_a_write_does_not_go_out_after_the_lead_was_lost(
    passes: int, script: tuple[Handler, ...], sent: int
) -> None:
    async def check() -> None:
        async with serving(*script) as server, a_client(server.url) as client:
            guarded = GuardedClient(client, Lead(passes).check)
            with pytest.raises(FencedError, match="another leads"):
                await guarded.send(PUT)
            # The server saw no whole request beyond those that were let pass.
            assert len(server.requests) == sent
            await guarded.send(GET)

    run(check)


def test_a_write_that_waited_for_a_free_place_is_checked_again() -> None:
    async def check() -> None:
        lead, go_on = Lead(), asyncio.Event()

        async def wait(request: web.Request) -> web.StreamResponse:
            if request.path == "/slow":
                await go_on.wait()
            return await GOOD(request)

        async with serving(wait) as server, a_client(server.url, at_once=1) as client:
            guarded = GuardedClient(client, lead.check)
            first = asyncio.create_task(client.send(Call(method="GET", path="/slow", key=KEY)))
            while not server.requests:
                await asyncio.sleep(0.01)
            second = asyncio.create_task(guarded.send(PUT))
            await asyncio.sleep(0)
            lead.passes = 0
            go_on.set()
            await first
            with pytest.raises(FencedError):
                await second
            assert [request.path for request in server.requests] == ["/slow"]

    run(check)
