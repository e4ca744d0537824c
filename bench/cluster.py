"""Jobs on a real cluster: how many a second beside plain pods, what each writes, what many cost.

The pods are played by kwok, everything shares this machine's cores, and both sides of a comparison
are measured in turns in one run. It needs the programs that `make kube` brings.

    python -m bench cluster [--only rate|scale|takeover] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.kube_load import Clocks, Load, load_on, memory_mib, processor_s
from bench.table import show
from interlock.kube.install.installation import Installation
from interlock.kube.install.policy import policy
from support.cluster_store import install
from support.kube import Cluster, find
from support.kube.binaries import HELP
from support.kube.controllers import Controller
from support.kube.pods import Play, a_pod

LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/interlock"


class Sizes(NamedTuple):
    """How much of each."""

    #: Pods, and Jobs, of one round.
    each: int = 1_000
    rounds: int = 3
    waiting: int = 5_000
    pods: int = 20_000
    idle_s: float = 30.0
    kills: int = 50


QUICK = Sizes(each=200, rounds=2, waiting=300, pods=600, idle_s=5.0, kills=4)


_POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"


def _jobs(namespace: str) -> str:
    return f"/apis/interlock.dev/v1alpha1/namespaces/{namespace}/jobs"


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def _a_job(name: str, played: dict[Play, str], **spec: Any) -> dict[str, Any]:
    pod = a_pod("", played)
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"pod": template, **spec},
    }


def _is_running(line: bytes) -> bool:
    return b'"phase":"Running"' in line


def _is_over(line: bytes) -> bool:
    return b'"result":"' in line


async def _timed(
    load: Load, path: str, bodies: list[dict[str, Any]], holds: Callable[[bytes], bool]
) -> float:
    """How many a second, from the first create until the last was seen to be as wanted."""
    watching = asyncio.create_task(load.until(path, len(bodies), holds))
    begun = time.perf_counter()
    await load.create_all(path, iter(bodies))
    return len(bodies) / (await watching - begun)


# How many a second


async def rate(cluster: Cluster, controller: Controller, namespace: str, sizes: Sizes) -> None:
    """Plain pods to Running and Jobs to their end, in turns; and what a Job writes.

    First as everywhere, then where the API server completes Jobs by itself (`manifests --only
    policy`).
    """
    await _rate(cluster, controller, namespace, sizes, "without the policy")
    async with load_on(cluster.access) as load:
        await _install_policy(load, namespace)
    await _rate(cluster, controller, namespace, sizes, "with the policy")


async def _install_policy(load: Load, namespace: str) -> None:
    for path, one in zip((_POLICIES, _BINDINGS), policy(Installation()), strict=True):
        await load.send("POST", path, one)
    probe, place = _a_job("probe", {}), f"{_jobs(namespace)}?dryRun=All"
    while True:
        try:
            if b"interlock.dev/tasks" in await load.send("POST", place, probe):
                return
        except AssertionError:
            # It has not read the definitions yet that it just took.
            pass
        await asyncio.sleep(0.2)


async def _rate(
    cluster: Cluster, controller: Controller, namespace: str, sizes: Sizes, how: str
) -> None:
    found: dict[str, list[float]] = {"plain pods, to Running": [], "Jobs, to their end": []}
    writes: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    async with load_on(cluster.access) as load:
        for number in range(sizes.rounds):
            names = [f"bench-{number}-{one}" for one in range(sizes.each)]
            pods = [a_pod(name) for name in names]
            found["plain pods, to Running"].append(
                await _timed(load, _pods(namespace), pods, _is_running)
            )
            await load.send("DELETE", _pods(namespace), {"gracePeriodSeconds": 0})
            clocks, before = Clocks(cluster, controller.pid), await load.writes()
            jobs = [_a_job(name, {Play.RUNS_FOR: "1s"}) for name in names]
            found["Jobs, to their end"].append(await _timed(load, _jobs(namespace), jobs, _is_over))
            writes += await load.writes() - before
            taken += Counter(clocks.taken())
            await _clear(load, namespace)
    medians = {name: statistics.median(values) for name, values in found.items()}
    plain = medians["plain pods, to Running"]
    total = sizes.rounds * sizes.each
    rows = [(name, value, f"{value / plain:.0%}") for name, value in medians.items()]
    title = f"{sizes.each} at once, medians of {sizes.rounds}, {how}"
    show(title, ("", "per s", "of plain"), rows)
    for values in found.items():
        print("  ", *values)
    show(
        "API writes for each Job, everybody's",
        ("", "each"),
        [(name, count / total) for name, count in writes.most_common() if count >= total / 20]
        + [("all", sum(writes.values()) / total)],
    )
    show(
        "Processor time for each Job",
        ("", "ms"),
        [(name, spent / total * 1e3) for name, spent in taken.most_common()],
    )


async def _clear(load: Load, namespace: str) -> None:
    """Delete all Jobs, and wait until they and their pods are gone."""
    await load.send("DELETE", _jobs(namespace))
    await load.send("DELETE", _pods(namespace), {"gracePeriodSeconds": 0})
    for path in (_jobs(namespace), _pods(namespace)):
        while b'"items":[]' not in await load.send("GET", f"{path}?limit=1"):
            await asyncio.sleep(0.5)


# How much there may be


async def scale(cluster: Cluster, controller: Controller, namespace: str, sizes: Sizes) -> None:
    """Many running pods and many waiting Jobs: the controller's memory and processor time."""
    rows: list[tuple[Any, ...]] = [_state("nothing", controller, await _idle(controller, 5.0))]
    async with load_on(cluster.access) as load:
        begun = time.perf_counter()
        parts = max(1, sizes.pods // 1_000)
        each = sizes.pods // parts
        wide = [_a_job(f"bench-{one}", {}, parallelism={"count": each}) for one in range(parts)]
        running = asyncio.create_task(load.until(_pods(namespace), parts * each, _is_running))
        first = processor_s(controller.pid)
        await load.create_all(_jobs(namespace), iter(wide))
        await running
        took = time.perf_counter() - begun
        busy = (processor_s(controller.pid) - first) / took
        rows.append(_state(f"{parts * each} pods started in {took:.0f} s", controller, busy))
        locked = {"locks": [{"key": "bench"}]}
        await load.send("POST", _jobs(namespace), _a_job("holder", {}, **locked))
        begun, first = time.perf_counter(), processor_s(controller.pid)
        waiting = (_a_job(f"waits-{one}", {}, **locked) for one in range(sizes.waiting))
        await load.create_all(_jobs(namespace), waiting)
        took = time.perf_counter() - begun
        busy = (processor_s(controller.pid) - first) / took
        rows.append(_state(f"{sizes.waiting} Jobs created in {took:.0f} s", controller, busy))
        await _settle(controller)
        rows.append(_state("settled", controller, await _idle(controller, sizes.idle_s)))
        jobs = [_a_job(f"bench-99-{one}", {Play.RUNS_FOR: "1s"}) for one in range(sizes.each)]
        begun, first = time.perf_counter(), processor_s(controller.pid)
        per_s = await _timed(load, _jobs(namespace), jobs, _is_over)
        busy = (processor_s(controller.pid) - first) / (time.perf_counter() - begun)
        rows.append(_state(f"{sizes.each} more Jobs, {per_s:.0f}/s", controller, busy))
    show(
        f"{sizes.pods} running pods and {sizes.waiting} waiting Jobs",
        ("", "controller cpu", "MiB now", "MiB at most"),
        rows,
    )


def _state(name: str, controller: Controller, busy: float) -> tuple[Any, ...]:
    pid = controller.pid
    return (name, f"{busy:.1%}", memory_mib(pid), memory_mib(pid, "VmHWM"))


async def _idle(controller: Controller, seconds: float) -> float:
    before = processor_s(controller.pid)
    await asyncio.sleep(seconds)
    return (processor_s(controller.pid) - before) / seconds


async def _settle(controller: Controller) -> None:
    while await _idle(controller, 2.0) > 0.05:
        pass


# How long nobody leads


async def takeover(cluster: Cluster, namespace: str, sizes: Sizes) -> None:
    """Kill the leader again and again; how long until another leads, and until a Job has ended."""
    leads: list[float] = []
    works: list[float] = []
    async with load_on(cluster.access) as load:
        pair = [_controller(cluster, namespace).start() for _ in range(2)]
        try:
            for number in range(sizes.kills):
                holder = await _holder(load, namespace, "")
                leader = next(one for one in pair if f"-{one.pid}-" in holder)
                other = pair[1 - pair.index(leader)]
                await asyncio.to_thread(other.wait_until_ready)
                name = f"bench-{number}-0"
                leader.kill()
                begun = time.perf_counter()
                job = {**_a_job(name, {}), "spec": {"noop": {}}}
                ended = asyncio.create_task(load.until(_jobs(namespace), 1, _is_over))
                await load.send("POST", _jobs(namespace), job)
                await _holder(load, namespace, holder)
                leads.append(time.perf_counter() - begun)
                works.append(await ended - begun)
                pair[pair.index(leader)] = _controller(cluster, namespace).start()
        finally:
            for one in pair:
                one.stop()
    show(
        f"{sizes.kills} times kill -9 of the leader, seconds from the kill",
        ("", "least", "median", "p90", "most"),
        [(name, *_spread(values)) for name, values in (("leads", leads), ("has run a Job", works))],
    )


def _spread(values: list[float]) -> tuple[float, ...]:
    ordered = sorted(values)
    p90 = ordered[int(len(ordered) * 0.9)]
    return ordered[0], statistics.median(ordered), p90, ordered[-1]


async def _holder(load: Load, namespace: str, before: str) -> str:
    """Who leads, once that is somebody else than before."""
    while True:
        try:
            told = await load.send("GET", LEASE.format(namespace))
        except AssertionError:
            told = b""
        found = told.partition(b'"holderIdentity":"')[2].partition(b'"')[0].decode()
        if found and found != before:
            return found
        await asyncio.sleep(0.02)


def _controller(cluster: Cluster, namespace: str) -> Controller:
    return Controller(cluster.access, cluster.folder / "controllers", namespace=namespace)


Question = Callable[[Cluster, Controller, str, Sizes], Coroutine[Any, Any, None]]


def _with_controller(question: Question, cluster: Cluster, sizes: Sizes) -> None:
    with cluster.namespace() as namespace, _controller(cluster, namespace) as controller:
        asyncio.run(question(cluster, controller, namespace, sizes))


def main(argv: Sequence[str] = ()) -> None:
    """Answer the questions, or one of them."""
    parser = argparse.ArgumentParser(prog="bench cluster", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    parser.add_argument("--only", choices=("rate", "scale", "takeover"))
    given = parser.parse_args(argv)
    sizes = QUICK if given.quick else Sizes()
    programs = find()
    if programs is None:
        print(f"nothing measured: {HELP}")
        return
    for name in _chosen(given.only):
        with (
            tempfile.TemporaryDirectory() as folder,
            Cluster(programs.folder, Path(folder)) as cluster,
        ):
            install(cluster.access)
            if name == "takeover":
                with cluster.namespace() as namespace:
                    asyncio.run(takeover(cluster, namespace, sizes))
            else:
                _with_controller({"rate": rate, "scale": scale}[name], cluster, sizes)


def _chosen(only: str | None) -> Iterator[str]:
    yield from (only,) if only else ("rate", "scale", "takeover")


if __name__ == "__main__":
    main()
