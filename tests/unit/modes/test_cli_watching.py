"""A feed tells every change once, whatever becomes of the watch and of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from interlock.client.api import Api
from interlock.client.errors import AnswerError, UnreachableError
from interlock.client.kinds import JOBS
from interlock.client.watching import Change, Feed


def item(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}}


def event(type: str, name: str, version: int) -> bytes:
    return json.dumps({"type": type, "object": item(name, version)}).encode() + b"\n"


class ScriptedAnswer:
    """A watch that sends what it was given, then ends."""

    waiting = True

    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts = list(parts)

    def ready(self, timeout_s: float | None) -> bool:
        return True

    def receive(self) -> bytes | None:
        part = self._parts.pop(0) if self._parts else None
        if isinstance(part, Exception):
            raise part
        return part

    def close(self) -> None:
        pass


class ScriptedApi:
    """A server that answers lists and watches in the order it was given."""

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self._lists = lists
        self._watches = watches
        self.since: list[str] = []

    def pages(self, *_: object, **__: object) -> Iterator[dict[str, Any]]:
        items, version = self._lists.pop(0)
        yield {"items": items, "metadata": {"resourceVersion": str(version)}}

    def stream(self, method: str, path: str, query: dict[str, str]) -> ScriptedAnswer:
        self.since.append(query["resourceVersion"])
        answer = self._watches.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, ScriptedAnswer)
        return answer


def told(changes: list[Change] | None) -> list[tuple[str, str]]:
    return [(type, one["metadata"]["name"]) for type, one in changes or []]


def feed_on(api: ScriptedApi) -> Feed:
    return Feed(cast(Api, api), JOBS, "default")


def test_a_watch_that_ends_is_taken_up_where_it_was() -> None:
    first = ScriptedAnswer(event("MODIFIED", "a", 5)[:9], event("MODIFIED", "a", 5)[9:])
    second = ScriptedAnswer(event("BOOKMARK", "", 9), event("DELETED", "a", 10))
    api = ScriptedApi([([item("a", 3)], 4)], [first, second])
    feed = feed_on(api)

    assert told(feed.start()) == [("ADDED", "a")]
    found = [told(feed.next(None)) for _ in range(5)]
    assert found == [[], [("MODIFIED", "a")], [], [], [("DELETED", "a")]]
    assert api.since == ["4", "5"]


def test_a_place_that_is_forgotten_is_listed_anew_and_the_differences_told() -> None:
    api = ScriptedApi(
        [([item("a", 1), item("b", 2), item("c", 3)], 3), ([item("b", 2), item("c", 8)], 9)],
        [ScriptedAnswer(b'{"type":"ERROR","object":{"code":410}}\n'), ScriptedAnswer()],
    )
    feed = feed_on(api)
    feed.start()

    assert told(feed.next(None)) == [("DELETED", "a"), ("MODIFIED", "c")]
    assert api.since == ["3", "9"]


def test_the_same_when_the_server_says_so_at_once() -> None:
    gone = AnswerError(410, {"reason": "Expired"}, "too old", 5)
    api = ScriptedApi([([], 3), ([item("a", 8)], 9)], [ScriptedAnswer(), gone, ScriptedAnswer()])
    feed = feed_on(api)
    feed.start()

    assert told(feed.next(None)) == [("ADDED", "a")]


@pytest.mark.parametrize("loss", [ConnectionResetError(), None], ids=["cut off", "closed"])
def test_a_server_that_is_away_is_waited_for(loss: Exception | None) -> None:
    lost = ScriptedAnswer(loss) if loss else ScriptedAnswer()
    back = ScriptedAnswer(event("MODIFIED", "a", 6))
    api = ScriptedApi([([item("a", 1)], 3)], [lost, UnreachableError("away"), back])
    feed = feed_on(api)
    feed.start()

    assert told(feed.next(None)) == []
    assert told(feed.next(None)) == [("MODIFIED", "a")]
    assert api.since == ["3", "3", "3"]
