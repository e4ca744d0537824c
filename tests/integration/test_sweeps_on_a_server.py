"""Sweeps on a real server: what is under way is left alone, and nothing is run by them."""

from __future__ import annotations

import http.client
import json
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from interlock.testing.serving import PATIENCE_S, Server

API = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"


def until(true: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up, f"this never came: {what}"
        select.select([], [], [], 0.02)


def ask(server: Server, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """What the server answers."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    try:
        headers = {"content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def told(server: Server, method: str, path: str, body: object = None) -> Any:
    """The data of an answer that is no refusal."""
    status, data = ask(server, method, path, body)
    assert status < 300, data
    return json.loads(data)


def an_operation(name: str, target: str, command: list[str], **step: Any) -> dict[str, Any]:
    steps = [{"name": "one", "run": {"process": {"command": command}}, **step}]
    return {"metadata": {"name": name}, "spec": {"target": {"path": target}, "steps": steps}}


STUCK: dict[str, Any] = {
    "metadata": {"name": "stuck"},
    "spec": {
        "target": {"path": "gears/17"},
        "steps": [
            {
                "name": "one",
                "run": {"process": {"command": ["true"]}},
                "undo": {"process": {"command": ["false"]}},
            },
            {"name": "two", "run": {"process": {"command": ["false"]}}},
        ],
    },
}


class Shop:
    """A server with an operation of each sort: under way, waiting for its retry, stuck, behind."""

    def __init__(self, server: Server) -> None:
        self.server = server
        for job in (
            STUCK,
            an_operation("behind", "gears/17", ["true"]),
            an_operation("long", "gears/18", ["sleep", "600"]),
            an_operation(
                "waiting", "cogs/1", ["false"], retries={"limit": 5, "delay": "1h"}
            ),
        ):  # fmt: skip
            told(server, "POST", API, job)
        until(self._is_settled, "every operation is where it is to be")

    def _is_settled(self) -> bool:
        def operation(name: str) -> dict[str, Any]:
            job = told(self.server, "GET", f"{API}/{name}")
            return dict((job["status"].get("execution") or {}).get("operation") or {})

        job = told(self.server, "GET", f"{API}/long")
        return (
            "stuckAt" in operation("stuck")
            and operation("waiting").get("retryCount") == 1
            and "nextAttemptAt" in operation("waiting")
            and job["status"]["phase"] == "Running"
        )

    def versions(self) -> dict[str, str]:
        items = told(self.server, "GET", API)["items"]
        return {job["metadata"]["name"]: job["metadata"]["resourceVersion"] for job in items}

    def sweep(self, query: str = "") -> Any:
        return told(self.server, "POST", f"/operations/sweep{query}")


def names(found: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in found]


def test_a_sweep_wakes_what_was_left_alone_and_runs_nothing(tmp_path: Path) -> None:
    with Server(tmp_path / "data", "--sweep-every", "0") as server:
        shop = Shop(server)
        before = shop.versions()
        usual = shop.sweep()
        assert (usual["operations"], usual["underWay"], usual["stuckCount"]) == (4, 1, 1)
        assert (usual["woken"], names(usual["stuck"])) == ([], ["stuck"])
        of_any_age = shop.sweep("?olderThan=0")
        assert names(of_any_age["woken"]) == ["waiting"]
        assert of_any_age["posted"] == {
            "NeverSeen": 0, "Untouched": 0, "RetryOverdue": 1, "UndoOverdue": 0,
        }  # fmt: skip
        of_gears = shop.sweep("?olderThan=0&target=gears")
        assert (of_gears["operations"], of_gears["woken"]) == (3, [])
        assert names(of_gears["stuck"]) == ["stuck"]
        for _ in range(10):
            shop.sweep("?olderThan=0")
        assert shop.versions() == before
        assert server.stop() == 0


def test_a_server_sweeps_by_itself(tmp_path: Path) -> None:
    options = ("--sweep-every", "0.05", "--sweep-older-than", "0.2")
    with Server(tmp_path / "data", *options) as server:
        shop = Shop(server)
        before = shop.versions()

        def metrics() -> str:
            return ask(server, "GET", "/metrics")[1].decode()

        def woken() -> float:
            lines = metrics().splitlines()
            start = 'interlock_sweep_wakeups_total{reason="RetryOverdue"}'
            return next((float(one.split()[-1]) for one in lines if one.startswith(start)), 0.0)

        # Its retry is due in an hour: only what is older than that would be woken.
        until(lambda: "interlock_operations_stuck 1.0" in metrics(), "the gauge")
        log = server.data / "server.log"
        until(lambda: "1 operation stuck, new ones: default/stuck" in log.read_text(), "a word")
        assert woken() == 0
        assert shop.versions() == before
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?olderThan=soon", "olderThan: expected a duration"),
        ("?older=1s", "older: unknown parameter"),
    ],
)
def test_what_a_sweep_does_not_understand_is_refused(
    tmp_path: Path, query: str, expected: str
) -> None:
    with Server(tmp_path / "data") as server:
        status, answer = ask(server, "POST", f"/operations/sweep{query}")
        assert status == 400
        assert expected in answer.decode()
