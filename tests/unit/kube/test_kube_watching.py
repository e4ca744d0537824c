"""A watch goes on through lost connections, and says what cannot be resumed."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from kube_fakes import (
    Handler,
    a_bookmark,
    a_client,
    a_line,
    a_status,
    a_store,
    a_wire_job,
    refuses,
    run,
    serving,
    streams,
)

from interlock.control.clock import SystemClock
from interlock.errors import ExpiredError, ForbiddenError, UnavailableError
from interlock.kube.client.api_client import Call
from interlock.kube.store.codec import WIRES
from interlock.kube.store.watching import ATTEMPTS, Lines, Watch
from interlock.resources.metadata import Key
from interlock.store.contract import Event, EventType, Selection

ONE = a_line("ADDED", a_wire_job("one", 10))
TWO = a_line("ADDED", a_wire_job("two", 11))
BAD = a_line("MODIFIED", a_wire_job("bad", 12, spec={"invented": True}))
SILENT = streams(then="silent")


async def watched(script: list[Handler], until: int, **selection: Any) -> tuple[Any, list[Any]]:
    """The events of a watch up to a version, and the versions it asked the server for."""
    events: list[Event] = []
    async with a_store(*script) as (store, server):
        async with store.watch("Job", Selection(**selection), since=9) as batches:
            async for batch in batches:
                events.extend(batch)
                if events[-1].version >= until:
                    break
        asked = [request.query["resourceVersion"] for request in server.requests]
    return events, asked


def told(events: list[Event]) -> list[tuple[str, str, int]]:
    """What was told, in short."""
    return [
        (event.type.value, event.resource.key.name if event.resource else "", event.version)
        for event in events
    ]


@pytest.mark.parametrize("ending", ["ends", "cut"])
def test_a_watch_that_ends_is_resumed(ending: str) -> None:
    async def check() -> None:
        script = [streams(ONE, then=ending), streams(TWO, then="silent")]
        events, asked = await watched(script, 11)
        assert told(events) == [("ADDED", "one", 10), ("ADDED", "two", 11)]
        assert asked == ["9", "10"]

    run(check)


def test_half_a_line_is_told_again_whole() -> None:
    async def check() -> None:
        script = [streams(ONE + TWO[:40], then="cut"), streams(TWO, then="silent")]
        events, asked = await watched(script, 11)
        assert told(events) == [("ADDED", "one", 10), ("ADDED", "two", 11)]
        assert asked == ["9", "10"]

    run(check)


def test_bookmarks_say_where_to_resume() -> None:
    async def check() -> None:
        script = [streams(a_bookmark(77)), streams(a_bookmark(80), then="silent")]
        events, asked = await watched(script, 80)
        assert told(events) == [("BOOKMARK", "", 77), ("BOOKMARK", "", 80)]
        assert asked == ["9", "77"]

    run(check)


def test_a_silent_watch_is_taken_for_dead() -> None:
    """A connection whose other end is gone says nothing for ever."""

    async def check() -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            # By version and not in order: on a slow machine even the first may seem dead.
            line = ONE if request.query["resourceVersion"] == "9" else TWO
            return await streams(line, then="silent")(request)

        async with serving(answer) as server, a_client(server.url) as client:
            call = Call(method="GET", path="/x", key=Key("Job", "", ""), version=9)
            read = WIRES["Job"].happening
            watch = Watch(client, call, read, SystemClock(), Random(1), silent_s=0.2)
            await watch.open()
            try:
                first, second = await anext(watch), await anext(watch)
            finally:
                watch.close()
            assert [first[-1].version, second[-1].version] == [10, 11]
            assert watch.resumed >= 1

    run(check)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([refuses(410, "Expired")], id="refused"),
        pytest.param([streams(a_line("ERROR", a_status(410, "Expired")))], id="told"),
        pytest.param([streams(), refuses(410, "Expired")], id="on resuming"),
    ],
)
def test_a_version_that_is_too_old_is_told(script: list[Handler]) -> None:
    async def check() -> None:
        with pytest.raises(ExpiredError):
            await watched(script, 11)

    run(check)


def test_an_error_of_the_server_is_resumed() -> None:
    async def check() -> None:
        broken = a_line("ERROR", a_status(500, "InternalError", "etcd is away"))
        events, asked = await watched([streams(ONE + broken), streams(TWO, then="silent")], 11)
        assert [event.version for event in events] == [10, 11]
        assert asked == ["9", "10"]

    run(check)


def test_a_line_that_is_no_json_is_asked_for_again() -> None:
    async def check() -> None:
        script = [streams(ONE + b"<html>\n" + TWO), streams(TWO, then="silent")]
        events, asked = await watched(script, 11)
        assert [event.version for event in events] == [10, 11]
        assert asked == ["9", "10"]

    run(check)


def test_a_server_that_stays_away_is_told() -> None:
    async def check() -> None:
        away = refuses(503, "ServiceUnavailable", headers={"Retry-After": "0"})
        with pytest.raises(UnavailableError):
            await watched([streams(ONE), away], 11)

    run(check)


def test_who_may_not_watch_is_told_at_once() -> None:
    async def check() -> None:
        with pytest.raises(ForbiddenError):
            await watched([refuses(403, "Forbidden")], 11)

    run(check)


def test_a_server_that_drops_every_watch_is_not_asked_for_ever() -> None:
    """Empty watches are resumed, with pauses, for as long as the server takes them."""

    async def check() -> None:
        script = [streams()] * (ATTEMPTS - 2) + [streams(ONE, then="silent")]
        events, asked = await watched(script, 10)
        assert told(events) == [("ADDED", "one", 10)]
        assert asked == ["9"] * (ATTEMPTS - 1)

    run(check)


def test_a_bad_object_is_passed_over_and_remembered() -> None:
    async def check() -> None:
        last = a_line("ADDED", a_wire_job("last", 13))
        async with a_store(streams(ONE + BAD + last, then="silent")) as (store, _):
            async with store.watch("Job", since=9) as batches:
                events = list(await anext(batches))
                while events[-1].version < 13:
                    events += await anext(batches)
            assert told(events) == [
                ("ADDED", "one", 10),
                ("BOOKMARK", "", 12),
                ("ADDED", "last", 13),
            ]
            (bad,) = store.undecodable
            assert bad.key.name == "bad"
            assert "invented" in bad.problem

    run(check)


def test_a_bad_object_that_goes_is_told() -> None:
    async def check() -> None:
        gone = a_line("DELETED", a_wire_job("bad", 13, spec={"invented": True}))
        async with a_store(streams(BAD, gone, then="silent")) as (store, _):
            async with store.watch("Job", since=9) as batches:
                events = list(await anext(batches))
                while events[-1].version < 13:
                    events += await anext(batches)
            assert told(events) == [("BOOKMARK", "", 12), ("DELETED", "bad", 13)]
            assert store.undecodable == ()

    run(check)


def test_fields_that_the_server_cannot_select() -> None:
    """What comes into sight is added, what leaves it is deleted, the rest is only a version."""

    def moved(type: str, name: str, version: int, phase: str) -> bytes:
        return a_line(type, a_wire_job(name, version, status={"phase": phase}))

    lines = [
        moved("ADDED", "a", 10, "Queued"),
        moved("MODIFIED", "a", 11, "Running"),
        moved("MODIFIED", "a", 12, "Running"),
        moved("MODIFIED", "a", 13, "Failed"),
        moved("MODIFIED", "a", 14, "Failed"),
        moved("DELETED", "a", 15, "Failed"),
        moved("MODIFIED", "from-before", 16, "Failed"),
        moved("DELETED", "from-before-too", 17, "Failed"),
    ]

    async def check() -> None:
        events, _ = await watched(
            [streams(*lines, then="silent")], 17, fields="status.phase=Running"
        )
        assert told(events) == [
            ("BOOKMARK", "", 10),
            ("ADDED", "a", 11),
            ("MODIFIED", "a", 12),
            ("DELETED", "a", 13),
            ("BOOKMARK", "", 14),
            ("BOOKMARK", "", 15),
            ("DELETED", "from-before", 16),
            ("DELETED", "from-before-too", 17),
        ]

    run(check)


def test_a_watch_asks_for_bookmarks_and_an_end() -> None:
    async def check() -> None:
        async with a_store(streams(ONE, then="silent")) as (store, server):
            chosen = Selection(namespace="n", labels="a=b", fields="metadata.name=x,spec.title=y")
            async with store.watch("Job", chosen, since=9):
                pass
            (request,) = server.requests
            query = dict(request.query)
            assert 300 <= int(query.pop("timeoutSeconds")) <= 600
            assert query == {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "9",
                "labelSelector": "a=b",
                "fieldSelector": "metadata.name=x",
            }
            assert request.path == "/apis/interlock.dev/v1alpha1/namespaces/n/jobs"

    run(check)


def test_a_watch_from_nothing_is_refused() -> None:
    """An API server would tell everything there is, in any order."""

    async def check() -> None:
        async with a_store(SILENT) as (store, _):
            with pytest.raises(ExpiredError):
                async with store.watch("Job", since=0):
                    pass

    run(check)


def test_leaving_a_watch_closes_its_connection() -> None:
    async def check() -> None:
        left = asyncio.Event()

        async def notice(request: web.Request) -> web.StreamResponse:
            transport = request.transport
            assert transport is not None
            response = await streams(ONE)(request)
            while not transport.is_closing():
                await asyncio.sleep(0.01)
            left.set()
            return response

        async with a_store(notice) as (store, _):
            async with store.watch("Job", since=9):
                pass
            await left.wait()

    run(check)


@given(
    lines=st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line)),
    cuts=st.lists(st.integers(0, 200)),
)
def test_lines_are_the_same_however_they_come(lines: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    taken = Lines()
    found = []
    for start, end in pairwise(places):
        found += taken.take(whole[start:end])

    assert found == lines


def test_events_are_read_whatever_the_order_of_fields() -> None:
    job = a_wire_job("one", 10)
    line = json.dumps({"object": job, "type": "ADDED"}).encode()
    bookmark = json.dumps({"object": {"metadata": {"resourceVersion": "5"}}, "type": "BOOKMARK"})

    wire = WIRES["Job"]
    assert wire.happening(line).version == 10
    assert wire.happening(bookmark.encode())[:3] == (EventType.BOOKMARK, None, 5)
