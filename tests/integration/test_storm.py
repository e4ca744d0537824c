"""Storms of real faults over a real server, as `make storm` lets them pass for longer.

They are measured in faults and Jobs, never in seconds: a slow machine takes longer, and no less is
checked. What is asserted is what was promised; how much was done is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from support.storm.__main__ import lines_of
from support.storm.fuzz import Connection, Fuzzer, FuzzPlan, Request, Route, run_fuzz
from support.storm.kills import StormPlan, run_storm
from support.storm.weather import Keepers


@pytest.mark.parametrize("keepers", [Keepers.RARELY, Keepers.SPARED])
def test_no_promise_is_broken_in_a_storm(keepers: Keepers, tmp_path: Path) -> None:
    outcome = run_storm(StormPlan(seed=1, jobs=45, faults=7, keepers=keepers, where=tmp_path))

    assert not outcome.broken, "\n".join(lines_of(outcome))


def test_a_promise_that_is_broken_is_seen_by_the_tasks(tmp_path: Path) -> None:
    """Two Jobs are let in side by side where the evidence has room for one."""
    outcome = run_storm(StormPlan(seed=1, jobs=3, faults=0, is_planted=True, where=tmp_path))

    found = {check.name: check.faults for check in outcome.broken}
    assert "found no free place of ledger" in found["overlaps"][0]
    # Two at once begin in any order, and so may their tokens be found. On a machine that stands
    # still for seconds a window may be told of to nobody: the storm above says when that is wrong.
    assert set(found) <= {"overlaps", "fences that do not rise", "windows unaccounted"}


def test_nonsense_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    outcome = run_fuzz(FuzzPlan(seed=1, requests=3_000, where=tmp_path))

    assert not outcome.broken, "\n".join(lines_of(outcome))


def test_a_seed_always_asks_the_same() -> None:
    routes = [Route("/jobs/{namespace}/{name}", ("GET", "PATCH")), Route("/locks", ("GET",))]
    first, again = (list(Fuzzer(Random("seed"), routes).requests(500)) for _ in range(2))

    assert first == again
    assert len(set(first)) > 300


class Broken(BaseHTTPRequestHandler):
    """Answers with the code that its path says."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def broken() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Broken) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_internal_error_is_found(broken: str) -> None:
    line = Connection(broken)
    for number, path in enumerate(("/200", "/422", "/503", "/500", "/502")):
        line.send(number, Request("GET", path, (), b""))
    line.close()

    assert line.answers == {200: 1, 422: 1, 503: 1, 500: 1, 502: 1}
    assert [fault.split(" is answered ")[0] for fault in line.faults] == ["request 3", "request 4"]
