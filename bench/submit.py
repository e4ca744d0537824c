"""Thousands of durable Jobs from a Python program, beside a bare loop of durable commits.

In the same run, in turns: `Client.submit_many` of operations that are suspended, so that making
them durable is all that happens, `Client.submit` one after the other, and a loop on SQLite that
commits the same manifests one by one, with the durability of the server's own store.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.table import show
from interlock.sdk.client import Client
from interlock.sdk.errors import Refused
from interlock.testing.serving import Server

#: So many of them are submitted one by one.
_SINGLY = 20


def operation(number: int) -> dict[str, Any]:
    """An operation of two steps that waits for a person to resume it."""
    run = {"process": {"command": ["/bin/true"]}}
    steps = [{"name": name, "run": run, "undo": run} for name in ("reserve", "announce")]
    target = {"path": f"domains/bench/applications/app-{number}"}
    return {"spec": {"steps": steps, "target": target, "suspend": True}}


def bare_loop(place: Path, manifests: Sequence[dict[str, Any]]) -> float:
    """Items a second that SQLite makes durable, one commit each."""
    connection = sqlite3.connect(place, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE item (name TEXT PRIMARY KEY, body BLOB)")
        begun = time.perf_counter()
        for number, manifest in enumerate(manifests):
            connection.execute("BEGIN")
            body = json.dumps(manifest).encode()
            connection.execute("INSERT INTO item VALUES (?, ?)", (str(number), body))
            connection.execute("COMMIT")
        return len(manifests) / (time.perf_counter() - begun)
    finally:
        connection.close()


def many(client: Client, manifests: Sequence[dict[str, Any]]) -> float:
    """Items a second, all in one call."""
    begun = time.perf_counter()
    made = client.submit_many(manifests)
    took = time.perf_counter() - begun
    refused = [one for one in made if isinstance(one, Refused)]
    assert not refused, refused[:1]
    assert len({one.id for one in made if not isinstance(one, Refused)}) == len(manifests)
    return len(manifests) / took


def singly(client: Client, manifests: Sequence[dict[str, Any]]) -> float:
    """Items a second, one after the other."""
    begun = time.perf_counter()
    for manifest in manifests:
        client.submit(manifest)
    return len(manifests) / (time.perf_counter() - begun)


def main(argv: Sequence[str] = ()) -> None:
    """Start servers, measure, print."""
    parser = argparse.ArgumentParser(prog="bench submit", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="operations in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    count, rounds = (1000, 3) if given.quick else (given.count, given.rounds)
    manifests = [operation(number) for number in range(count)]
    found: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            with Server(place / "data") as server, Client(server.url) as client:
                bare = bare_loop(place / "bare.db", manifests)
                one = singly(client, manifests[: count // _SINGLY])
                found.append((bare, one, many(client, manifests)))
    bares, ones, manys = zip(*found, strict=True)
    show(
        f"{count} durable operations, the median of {rounds} rounds",
        ("", "per s", "of the loop"),
        [
            ("SQLite, a commit each", statistics.median(bares), 1.0),
            ("submit", statistics.median(ones), _ratio(ones, bares)),
            ("submit_many", statistics.median(manys), _ratio(manys, bares)),
        ],
    )


def _ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(rates, others, strict=True))
