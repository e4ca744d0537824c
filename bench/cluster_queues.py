"""Jobs through a Queue on a real cluster, beside plain pods, and with the gate of readiness on.

In each round, on one control plane: plain pods to Running, Jobs without a Queue to their end, Jobs
through a Queue of a hundred, and the same with `waitForPodsReady` and `blockAdmission`, where the
next is let in when the one before it is ready. What Kueue came to with the same pods on two such
processors stands beside it. It needs the programs that `make kube` brings.

    python -m bench cluster_queues [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bench.cluster import _a_job, _clear, _is_over, _is_running, _jobs, _pods
from bench.kube_load import Clocks, Load, load_on, on_a_cluster
from bench.table import show
from support.kube import Cluster
from support.kube.controllers import Controller
from support.kube.pods import Play, a_pod

QUEUES = "/apis/interlock.dev/v1alpha1/queues"
#: So many Jobs are let in at a time, as there.
QUOTA = 100
GATE = {"enable": True, "blockAdmission": True}
_PLAIN, _JOBS, _QUEUED, _GATED = (
    "plain pods, to Running",
    "Jobs without a Queue, to their end",
    "Jobs through a Queue, admitted",
    "the same with the gate, admitted",
)
#: What was measured of Kueue, and what is promised beside it.
KUEUE = {_QUEUED: (10.3, 3.0), _GATED: (0.8, 20.0)}


class Sizes(NamedTuple):
    """How much of each."""

    each: int = 1_000
    rounds: int = 3


QUICK = Sizes(each=100, rounds=1)


def _is_admitted(line: bytes) -> bool:
    return b'"admittedAt":"' in line


async def _timed(
    load: Load, path: str, bodies: list[dict[str, Any]], holds: Callable[[bytes], bool]
) -> float:
    """How many a second, from the first create until the last was seen to be as wanted."""
    watching = asyncio.create_task(load.until(path, len(bodies), holds))
    begun = time.perf_counter()
    await load.create_all(path, iter(bodies))
    return len(bodies) / (await watching - begun)


async def _measure(cluster: Cluster, namespace: str, sizes: Sizes) -> None:
    found: dict[str, list[float]] = {name: [] for name in (_PLAIN, _JOBS, _QUEUED, _GATED)}
    taken: dict[str, float] = {}
    folder = cluster.folder / "controllers"
    async with load_on(cluster.access) as load:
        for name, more in (("open", {}), ("gated", {"waitForPodsReady": GATE})):
            spec = {"resources": {"tasks": QUOTA}, **more}
            await load.send("POST", QUEUES, _ours("Queue", name, spec))
        with Controller(cluster.access, folder, namespace=namespace) as controller:
            await asyncio.to_thread(controller.wait_until_leading)
            for number in range(sizes.rounds):
                names = [f"bench-{number}-{one}" for one in range(sizes.each)]
                pods = [a_pod(name) for name in names]
                found[_PLAIN].append(await _timed(load, _pods(namespace), pods, _is_running))
                await _clear(load, namespace)
                for way, queue, holds in (
                    (_JOBS, {}, _is_over),
                    (_QUEUED, {"queue": "open"}, _is_admitted),
                    (_GATED, {"queue": "gated"}, _is_admitted),
                ):
                    clocks = Clocks(cluster, controller.pid)
                    jobs = [_a_job(name, {Play.RUNS_FOR: "1s"}, **queue) for name in names]
                    found[way].append(await _timed(load, _jobs(namespace), jobs, holds))
                    taken[way] = clocks.taken()["controller"] / sizes.each * 1e3
                    await _until_over(load, namespace, sizes.each)
                    await _clear(load, namespace)
    _tell(sizes, found, taken)


async def _until_over(load: Load, namespace: str, each: int) -> None:
    """Wait for the Jobs that were let in and have not ended."""
    while (await load.send("GET", _jobs(namespace))).count(b'"result":"Succeeded","') < each:
        await asyncio.sleep(1.0)


def _ours(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _tell(sizes: Sizes, found: dict[str, list[float]], taken: dict[str, float]) -> None:
    plain = found[_PLAIN]
    rows = []
    for way, rates in found.items():
        rate = statistics.median(rates)
        share = statistics.median(one / other for one, other in zip(rates, plain, strict=True))
        theirs, aim = KUEUE.get(way, (0.0, 0.0))
        beside = (f"{theirs:.1f}", f"{rate / theirs:.1f}x", f"{aim:.0f}x") if theirs else ("",) * 3
        spent = f"{taken[way]:.1f}" if way in taken else ""
        rows.append((way, rate, f"{share:.0%}", spent, *beside))
    show(
        f"{sizes.each} at once, medians of {sizes.rounds}; quota {QUOTA}",
        ("", "per s", "of plain", "controller ms", "Kueue", "times", "aim"),
        rows,
    )
    print(f"  load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def main(argv: Sequence[str] = ()) -> None:
    """Measure, if there is a control plane to measure on."""
    parser = argparse.ArgumentParser(prog="bench cluster_queues", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    sizes = QUICK if given.quick else Sizes()
    on_a_cluster(lambda cluster, namespace: _measure(cluster, namespace, sizes))


if __name__ == "__main__":
    main()
