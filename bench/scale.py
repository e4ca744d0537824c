"""Many Jobs: queued on locks, finished long ago, or only waiting.

Three questions: how long a queue of Jobs on a thousand locks takes to drain and how much memory
that needs; whether a Job costs more when there are many finished ones; what waiting Jobs cost.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.jobs import NOOP, PROCESS, Round, whole_path
from bench.load import client_of, costs_of, creation, peak_memory_mib
from bench.table import show
from interlock.testing.serving import Server

#: So many requests to create are under way at a time.
CONNECTIONS = 64
LOCKS = 1_000
#: So many of them are held by one Job while the queue grows.
LOCKS_EACH = 50


class Sizes(NamedTuple):
    """How much of each."""

    queued: int = 100_000
    finished: int = 100_000
    waiting: int = 10_000
    #: Jobs in each round of those that are compared.
    sample: int = 2_000
    rounds: int = 5
    idle_s: float = 20.0


QUICK = Sizes(queued=5_000, finished=5_000, waiting=1_000, sample=300, rounds=3, idle_s=5.0)


def _on_lock(number: int) -> dict[str, object]:
    return {**NOOP, "locks": [{"key": f"bench-{number % LOCKS}", "limit": 1}]}


def drain(place: Path, sizes: Sizes) -> None:
    """Queue Jobs behind locks that are held, free all at once, and print how long they take."""
    gate = place / "gate"
    script = f"while [ ! -e {gate} ]; do sleep 0.2; done"
    with Server(place / "drain") as server, client_of(server, CONNECTIONS) as client:
        client.create_all([_holder(script, first) for first in range(0, LOCKS, LOCKS_EACH)])
        queue = [creation(_on_lock(number), f"queued-{number}") for number in range(sizes.queued)]
        queued_s = client.create_all(queue)
        assert client.ended == 0, "Jobs ran although their locks were held"
        before = costs_of(server)
        begun = time.perf_counter()
        gate.touch()
        client.await_ended(LOCKS // LOCKS_EACH + sizes.queued)
        took = time.perf_counter() - begun
        server_us = costs_of(server).since(before).server * 1e6 / sizes.queued
        row = (queued_s, took, sizes.queued / took, server_us, peak_memory_mib(server))
    show(
        f"{sizes.queued} Jobs queued on {LOCKS} locks, one at a time on each",
        ("to queue s", "to drain s", "per s", "server us", "peak MiB"),
        [row],
    )


def _holder(script: str, first: int) -> bytes:
    locks = [{"key": f"bench-{number}", "limit": 1} for number in range(first, first + LOCKS_EACH)]
    spec: dict[str, object] = {
        "process": {"command": ["/bin/sh", "-c", script]},
        "locks": locks,
    }
    return creation(spec, f"holder-{first}")


def one_more(place: Path, sizes: Sizes) -> None:
    """Run the same Jobs on an empty and on a full store, in turns, and print what one costs."""
    with (
        Server(place / "empty") as empty,
        Server(place / "full") as full,
        client_of(empty, CONNECTIONS) as of_empty,
        client_of(full, CONNECTIONS) as of_full,
    ):
        of_full.create_and_await(
            [creation(NOOP, f"finished-{number}") for number in range(sizes.finished)]
        )
        rounds: list[tuple[Round, Round]] = []
        for number in range(sizes.rounds):
            fresh = whole_path(empty, of_empty, PROCESS, f"more-{number}", sizes.sample)
            laden = whole_path(full, of_full, PROCESS, f"more-{number}", sizes.sample)
            rounds.append((fresh, laden))
        names = ("empty store", f"{sizes.finished} finished Jobs")
        sides = zip(names, zip(*rounds, strict=True), strict=True)
        rows = [(name, *sorted(side)[len(side) // 2].row()[:2]) for name, side in sides]
        ratio = statistics.median(
            laden.costs.server / fresh.costs.server for fresh, laden in rounds
        )
    show("One more Job", ("", "per s", "server us"), rows)
    print(f"  a Job costs {ratio - 1:+.0%} of the server's time on the full store")


def waiting(place: Path, sizes: Sizes) -> None:
    """Have Jobs wait for a lock, and print what the server does meanwhile."""
    with Server(place / "waiting") as server, client_of(server, CONNECTIONS) as client:
        client.create_all([_holder("sleep 100000", 0)])
        client.create_all([creation(_on_lock(0), f"w-{number}") for number in range(sizes.waiting)])
        settle(server)
        before = costs_of(server)
        time.sleep(sizes.idle_s)
        taken = costs_of(server).since(before)
    share = (taken.server / sizes.idle_s, taken.keeper / sizes.idle_s)
    show(
        f"{sizes.waiting} waiting Jobs, over {sizes.idle_s:.0f} s",
        ("server cpu", "keeper cpu", "server wakes/s", "keeper wakes/s"),
        [
            (
                *(f"{part:.2%}" for part in share),
                taken.server_switches / sizes.idle_s,
                taken.keeper_switches / sizes.idle_s,
            )
        ],
    )


def settle(server: Server) -> None:
    """Wait until the server has nothing left to do."""
    while True:
        before = costs_of(server).server
        time.sleep(1.0)
        if costs_of(server).server - before < 0.02:
            return


def main(argv: Sequence[str] = ()) -> None:
    """Answer the three questions, or one of them."""
    questions = {"drain": drain, "one-more": one_more, "waiting": waiting}
    parser = argparse.ArgumentParser(prog="bench scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    parser.add_argument("--only", choices=questions)
    given = parser.parse_args(argv)
    for name, question in questions.items():
        if given.only in (None, name):
            with tempfile.TemporaryDirectory() as place:
                question(Path(place), QUICK if given.quick else Sizes())
