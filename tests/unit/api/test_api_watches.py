"""Watches: what they tell, in which form, and how they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interlock.testing.asking import JOB, JOBS, Asker, in_time, reply_of, scope_of

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Watching:
    """A watch under way, as a client sees it."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        self.leaving = asyncio.Event()
        self._told: list[dict[str, Any]] = []
        self._begun = False

    async def receive(self) -> dict[str, Any]:
        if not self._begun:
            self._begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.leaving.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)
        lines = message.get("body", b"").splitlines()
        self._told += [json.loads(line) for line in lines]
        self._news.set()

    async def next(self) -> dict[str, Any]:
        """The next event."""
        while not self._told:
            self._news.clear()
            await self._news.wait()
        return self._told.pop(0)


@asynccontextmanager
async def watching(
    asker: Asker, query: str = "", accept: str = "", path: str = JOBS
) -> AsyncIterator[tuple[Watching, asyncio.Task[None]]]:
    watch = Watching()
    scope = scope_of("GET", f"{path}?watch=true&{query}", headers={"accept": accept})
    task = asyncio.create_task(asker.app(scope, watch.receive, watch.send))
    try:
        yield watch, task
    finally:
        watch.leaving.set()
        await task


def named(name: str, **more: Any) -> dict[str, Any]:
    return {**JOB, "metadata": {"name": name, **more}}


def test_a_watch_begins_with_what_is_there_and_goes_on() -> None:
    async def story() -> None:
        asker = Asker()
        await asker.ask("POST", JOBS, named("a"))
        async with watching(asker) as (watch, _):
            first = await watch.next()
            assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
            await asker.ask("POST", JOBS, named("b"))
            assert (await watch.next())["object"]["metadata"]["name"] == "b"
            await asker.ask("DELETE", f"{JOBS}/b")
            assert (await watch.next())["type"] == "MODIFIED"

    in_time(story())


def test_a_watch_resumes_after_a_version() -> None:
    async def story() -> None:
        asker = Asker()
        first = (await asker.ask("POST", JOBS, named("a"))).json
        await asker.ask("POST", JOBS, named("b"))
        version = first["metadata"]["resourceVersion"]
        async with watching(asker, f"resourceVersion={version}") as (watch, _):
            assert (await watch.next())["object"]["metadata"]["name"] == "b"

    in_time(story())


def test_a_watch_of_one_sees_nothing_else() -> None:
    async def story() -> None:
        asker = Asker()
        for name in ("a", "b"):
            await asker.ask("POST", JOBS, named(name))
        async with watching(asker, path=f"{JOBS}/b") as (watch, _):
            assert (await watch.next())["object"]["metadata"]["name"] == "b"

    in_time(story())


def test_selectors_hold_for_watches() -> None:
    async def story() -> None:
        asker = Asker()
        async with watching(asker, "labelSelector=color%3Dred") as (watch, _):
            await asker.ask("POST", JOBS, named("a", labels={"color": "blue"}))
            await asker.ask("POST", JOBS, named("b", labels={"color": "red"}))
            assert (await watch.next())["object"]["metadata"]["name"] == "b"

    in_time(story())


def test_initial_events_end_with_a_marked_bookmark() -> None:
    async def story() -> None:
        asker = Asker()
        await asker.ask("POST", JOBS, named("a"))
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with watching(asker, query) as (watch, _):
            assert (await watch.next())["type"] == "ADDED"
            mark = await watch.next()
            assert mark["type"] == "BOOKMARK"
            assert mark["object"]["kind"] == "Job"
            metadata = mark["object"]["metadata"]
            assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert metadata["resourceVersion"]

    in_time(story())


@pytest.mark.parametrize("wanted", [True, False])
def test_bookmarks_come_only_when_asked_for(wanted: bool) -> None:
    async def story() -> None:
        asker = Asker()
        query = f"allowWatchBookmarks={str(wanted).lower()}"
        async with watching(asker, query) as (watch, _):
            while not watch.messages:
                await asyncio.sleep(0)
            leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
            body = {"kind": "Lease", "metadata": {"name": "l"}}
            await asker.ask("POST", leases, body)
            asker.store.tick()
            await asker.ask("POST", JOBS, named("a"))
            assert (await watch.next())["type"] == ("BOOKMARK" if wanted else "ADDED")

    in_time(story())


def test_a_table_watch_tells_rows() -> None:
    async def story() -> None:
        asker = Asker()
        await asker.ask("POST", JOBS, named("a"))
        async with watching(asker, accept=TABLE) as (watch, _):
            told = (await watch.next())["object"]
            assert told["kind"] == "Table"
            assert told["rows"][0]["cells"][0] == "a"
            assert told["columnDefinitions"][0]["name"] == "Name"

    in_time(story())


def test_a_version_that_is_not_remembered_is_gone() -> None:
    async def story() -> None:
        answer = await Asker().ask("GET", f"{JOBS}?watch=1&resourceVersion=99999")
        assert (answer.status, answer.json["reason"]) == (410, "Expired")

    in_time(story())


def test_too_many_watches_are_told_to_come_back() -> None:
    async def story() -> None:
        asker = Asker(most_watches=1)
        async with watching(asker) as (watch, _):
            while not watch.messages:
                await asyncio.sleep(0)
            answer = await asker.ask("GET", f"{JOBS}?watch=1")
            assert (answer.status, answer.json["reason"]) == (429, "TooManyRequests")
            assert answer.header("retry-after") == "1"
        assert (await asker.ask("GET", f"{JOBS}?watch=1&timeoutSeconds=1")).status == 200

    in_time(story())


def test_watches_end_cleanly_when_the_server_stops() -> None:
    async def story() -> None:
        asker = Asker()
        async with watching(asker) as (watch, task):
            while not watch.messages:
                await asyncio.sleep(0)
            asker.app.stop()
            await task
            assert reply_of(watch.messages).status == 200
        refused = await asker.ask("GET", f"{JOBS}?watch=1")
        assert (refused.status, refused.header("retry-after")) == (503, "1")
        assert (await asker.ask("GET", JOBS)).status == 200

    in_time(story())


def test_a_watcher_that_is_too_slow_is_told_so_and_cut_off() -> None:
    async def story() -> None:
        asker = Asker()
        asker.store._hub._buffered = 3
        async with watching(asker) as (watch, task):
            while not watch.messages:
                await asyncio.sleep(0)
            creating = [asker.store.create(_job(str(n))) for n in range(9)]
            # No turn for the watcher in between: the store never waits for it.
            for work in creating:
                with pytest.raises(StopIteration):
                    work.send(None)
            last = await watch.next()
            assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
            await task

    in_time(story())


def _job(name: str) -> Any:
    from interlock.resources.door.validation import read_resource

    return read_resource(named(f"job-{name}", namespace="default"))[0]


@pytest.mark.parametrize(
    "query",
    [
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "resourceVersion=abc",
        "labelSelector=%3D%3D",
        "includeObject=Everything",
        "timeoutSeconds=soon",
    ],
)
def test_a_watch_that_makes_no_sense_is_refused(query: str) -> None:
    answer = in_time(Asker().ask("GET", f"{JOBS}?watch=true&{query}"))
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
