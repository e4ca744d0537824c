"""Jobs through the whole path: created durably through HTTP, run, and their end seen on a watch.

In the same run, in turns: a bare `posix_spawn` loop of /bin/true, Jobs that run /bin/true, and
Jobs without a process. Then, one at a time on an idle server, how long a Job takes to start.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from bench.load import Client, Costs, client_of, costs_of, creation
from bench.processes import bare
from bench.table import show
from interlock.testing.serving import Server

PROCESS: dict[str, object] = {"process": {"command": ["/bin/true"]}}
NOOP: dict[str, object] = {"noop": {}}
#: So many requests to create are under way at a time.
CONNECTIONS = 16
#: An idle server rests so long before it is asked again.
_REST_S = 0.05


class Round(NamedTuple):
    """What a number of Jobs came to."""

    per_second: float
    costs: Costs
    jobs: int

    def row(self) -> tuple[object, ...]:
        """Rate, processor time per Job in microseconds, and wakings per Job."""
        server, keeper, client, *switches = self.costs
        per_job = [taken * 1e6 / self.jobs for taken in (server, keeper, client)]
        return (self.per_second, *per_job, *(n / self.jobs for n in switches))


def whole_path(
    server: Server, client: Client, spec: dict[str, object], prefix: str, count: int
) -> Round:
    """Create so many Jobs and see all of them end."""
    requests = [creation(spec, f"{prefix}-{number}") for number in range(count)]
    before = costs_of(server)
    took = client.create_and_await(requests)
    return Round(count / took, costs_of(server).since(before), count)


def _median(rounds: Sequence[Round]) -> Round:
    return sorted(rounds)[len(rounds) // 2]


def compare(server: Server, client: Client, count: int, rounds: int) -> None:
    """Print the three side by side."""
    alive = 2 * (os.cpu_count() or 1)
    whole_path(server, client, PROCESS, "warm", count // 10)
    loops: list[float] = []
    loops_us: list[float] = []
    jobs: list[Round] = []
    noops: list[Round] = []
    for number in range(rounds):
        before = _processor_s()
        loops.append(bare(count, alive))
        loops_us.append((_processor_s() - before) * 1e6 / count)
        jobs.append(whole_path(server, client, PROCESS, f"process-{number}", count))
        noops.append(whole_path(server, client, NOOP, f"noop-{number}", count))
    rate, rate_us = statistics.median(loops), statistics.median(loops_us)
    median, nothing = _median(jobs), ("", "")
    show(
        f"{count} Jobs, the median of {rounds} rounds",
        ("", "per s", "server us", "keeper us", "client us", "server wakes", "keeper wakes"),
        [
            (f"posix_spawn, {alive} alive", rate, *nothing, rate_us, *nothing),
            ("Jobs, whole path", *median.row()),
            ("Jobs without a process", *_median(noops).row()),
        ],
    )
    ratio = statistics.median(job.per_second / one for job, one in zip(jobs, loops, strict=True))
    spent = (median.costs.server + median.costs.keeper) * 1e6 / count
    show(
        "Jobs beside the bare loop",
        ("", "times"),
        [("Jobs per s", ratio), ("processor time of server and keeper", spent / rate_us)],
    )


def _processor_s() -> float:
    """What this process and the children that are over have taken of a processor so far."""
    taken = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in taken)


class Idle(NamedTuple):
    """Milliseconds that one Job on an idle server took."""

    created: float
    started: float
    ended: float
    seen: float


def idle_latency(client: Client, count: int) -> None:
    """Run Jobs one at a time, with a pause between them, and print how long they took."""
    found = []
    for number in range(count):
        name = f"idle-{number}"
        request = creation(PROCESS, name)
        time.sleep(_REST_S)
        begun = time.perf_counter()
        client.create(request)
        created = time.perf_counter()
        client.await_ended(client.ended + 1)
        seen = time.perf_counter()
        found.append(_idle(client.get(name), (created - begun) * 1e3, (seen - begun) * 1e3))
    columns = ("create to", "p50 ms", "p90 ms")
    names = ("answered", "started (status)", "ended (status)", "end seen by the client")
    times = zip(*found, strict=True)
    rows = [(name, *_spread(each)) for name, each in zip(names, times, strict=True)]
    show(f"{count} Jobs, one at a time on an idle server", columns, rows)


def _idle(job: dict[str, object], created: float, seen: float) -> Idle:
    status, metadata = job["status"], job["metadata"]
    assert isinstance(status, dict)
    assert isinstance(metadata, dict)
    begun = datetime.fromisoformat(metadata["creationTimestamp"])
    task = status["execution"]["ended"][0]
    since = [
        (datetime.fromisoformat(moment) - begun).total_seconds() * 1e3
        for moment in (task["startedAt"], status["execution"]["endedAt"])
    ]
    return Idle(created, since[0], since[1], seen)


def _spread(times: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(times)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.9)]


def main(argv: Sequence[str] = ()) -> None:
    """Start a server, measure, print."""
    parser = argparse.ArgumentParser(prog="bench jobs", description=__doc__)
    parser.add_argument("--count", type=int, default=4000, help="Jobs in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    count, rounds = (500, 3) if given.quick else (given.count, given.rounds)
    with (
        tempfile.TemporaryDirectory() as place,
        Server(Path(place) / "data") as server,
        client_of(server, given.connections) as client,
    ):
        idle_latency(client, 50 if given.quick else 200)
        compare(server, client, count, rounds)
