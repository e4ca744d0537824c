"""The cluster says who asks and what they may do; its word is kept shortly, and not too much."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from kube_fakes import Handler, ScriptedServer, a_client, refuses, run, says, serving

from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.client.reviews import (
    ALLOWED_S,
    KNOWN_S,
    UNKNOWN_S,
    Deed,
    NotReviewedError,
    Person,
    Remembered,
    Reviews,
)
from interlock.testing.builders import T0

KNOWN = says({"status": {"authenticated": True, "user": {"username": "ann", "groups": ["a"]}}})
UNKNOWN = says({"status": {"error": "no such token"}})
ALLOWED = says({"status": {"allowed": True}})
DENIED = says({"status": {"allowed": False, "reason": "no"}})
ANN = Person(username="ann", groups=("a",))
LIST = Deed(verb="list", group="interlock.dev", resource="jobs", namespace="x")


class Clock(SimClock):
    """A clock that moves when told to, apart from any event loop."""

    def __init__(self) -> None:
        loop = SimLoop(Random(0))
        super().__init__(loop, loop.start_process("test"), T0)
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


@asynccontextmanager
async def reviews(*script: Handler) -> AsyncIterator[tuple[Reviews, ScriptedServer, Clock]]:
    clock = Clock()
    async with serving(*script) as server, a_client(server.url) as client:
        yield Reviews(client, clock), server, clock


async def body_of(server: ScriptedServer, number: int) -> Any:
    return json.loads(await server.requests[number].read())


def test_a_token_is_shown_to_the_cluster_and_the_answer_kept_for_a_while() -> None:
    async def check() -> None:
        async with reviews(KNOWN) as (asked, server, clock):
            assert await asked.who("t") == ANN
            clock.at += KNOWN_S - 0.1
            assert await asked.who("t") == ANN
            assert len(server.requests) == 1
            assert (await body_of(server, 0))["spec"] == {"token": "t"}
            clock.at += 0.1
            assert await asked.who("t") == ANN
            assert await asked.who("another") == ANN
            assert len(server.requests) == 3

    run(check)


def test_a_token_that_is_not_known_is_asked_about_again_sooner() -> None:
    async def check() -> None:
        async with reviews(UNKNOWN, KNOWN) as (asked, server, clock):
            assert await asked.who("t") is None
            assert await asked.who("t") is None
            assert len(server.requests) == 1
            clock.at += UNKNOWN_S
            assert await asked.who("t") == ANN

    run(check)


def test_rights_are_those_of_the_very_person_for_the_very_deed() -> None:
    async def check() -> None:
        async with reviews(ALLOWED, DENIED, DENIED, DENIED) as (asked, server, clock):
            assert await asked.may(ANN, LIST)
            assert await asked.may(ANN, LIST)
            assert not await asked.may(Person(username="ann"), LIST)
            assert not await asked.may(ANN, Deed(verb="get", path="/metrics"))
            assert len(server.requests) == 3
            spec = (await body_of(server, 0))["spec"]
            assert (spec["user"], spec["groups"]) == ("ann", ["a"])
            assert spec["resourceAttributes"]["namespace"] == "x"
            plain = (await body_of(server, 2))["spec"]["nonResourceAttributes"]
            assert plain == {"path": "/metrics", "verb": "get"}
            clock.at += ALLOWED_S
            assert not await asked.may(ANN, LIST)

    run(check)


def test_a_controller_that_may_not_ask_says_what_it_needs() -> None:
    async def check() -> None:
        async with reviews(refuses(403, "Forbidden", "cannot create")) as (asked, _, _clock):
            with pytest.raises(NotReviewedError, match="system:auth-delegator"):
                await asked.who("t")

    run(check)


def test_no_more_is_kept_than_was_said() -> None:
    kept: Remembered[int, str] = Remembered(Clock(), most=3)
    for number in range(10):
        kept.put(number, "x", 60.0)
        kept.get(0)
    assert len(kept) == 3
    # What is asked for stays; what nobody asks for goes.
    assert kept.get(0) == "x"
    assert kept.get(9) == "x"
    assert kept.get(5) is None
