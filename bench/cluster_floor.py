"""What our writes cost the cluster when nobody decides: the floor for any controller of Jobs.

A driver makes the same requests as a controller would, for nothing: a Job, a pod behind its gate,
the records in between. Told is the processor time of the control plane alone, so neither a busy
machine nor the driver counts for much; plain pods are measured in the same run.

    python -m bench cluster_floor [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.cluster import _a_job, _is_running, _jobs, _pods, _timed
from bench.kube_load import Clocks, Load, load_on, on_a_cluster
from bench.table import show
from support.kube import Cluster
from support.kube.pods import Play, a_pod

EACH = 300
QUICK = 40
#: So many are under way at a time: the pods run for a second.
AT_ONCE = 120

_T = "2026-01-01T00:00:00.123456Z"
_OURS = ("driver", "controller")


class Protocol(NamedTuple):
    """What is done for each."""

    name: str
    #: A pod is made behind a gate and with a finalizer; a second write lets it go.
    gated: bool = False
    #: A Job is made, and its status written at its start and its end.
    job: bool = False


PROTOCOLS = (
    Protocol("a pod, to its end"),
    Protocol("a pod behind its gate, to its end", gated=True),
    Protocol("a Job with such a pod, to its end", gated=True, job=True),
)


def _status(name: str, *, ended: bool) -> dict[str, Any]:
    """The status of a Job, as large as a controller writes it."""
    task = {"name": f"{name}-0", "index": 0, "attempt": 0}
    execution: dict[str, Any] = {"startedAt": _T, "total": 1, "attempts": 1}
    if ended:
        execution |= {"endedAt": _T, "succeeded": "0", "result": "Succeeded", "reason": "Completed"}
        execution["ended"] = [
            {**task, "result": "Succeeded", "startedAt": _T, "endedAt": _T, "exitCode": 0}
        ]
    else:
        execution["active"] = [{**task, "state": "Starting", "createdAt": _T}]
    return {
        "phase": "Succeeded" if ended else "Pending",
        "admission": {"phase": "Admitted", "sequence": 12345, "admittedAt": _T},
        "execution": execution,
    }


class Driver:
    """Does for some pods or Jobs what a controller would."""

    def __init__(self, load: Load, namespace: str, protocol: Protocol) -> None:
        self._load = load
        self._jobs, self._pods = _jobs(namespace), _pods(namespace)
        self._protocol = protocol
        self._ended: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def run(self, names: Sequence[str]) -> None:
        """Bring all to their end."""
        left = iter(names)

        async def work() -> None:
            for name in left:
                await self._one(name)

        watching = asyncio.create_task(self._load.until(self._pods, len(names), self._has_ended))
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        await watching

    async def _one(self, name: str) -> None:
        job: dict[str, Any] = {}
        if self._protocol.job:
            body = _a_job(name, {Play.RUNS_FOR: "1s"})
            job = json.loads(await self._load.send("POST", self._jobs, body))
            job = await self._tell(job, name, ended=False)
        await self._make(name, job)
        await self._ended[f"{name}-0"].wait()
        if job:
            await self._tell(job, name, ended=True)
        if self._protocol.gated:
            await self._change(name, {"metadata": {"finalizers": []}})

    async def _make(self, name: str, job: dict[str, Any]) -> None:
        pod = a_pod(f"{name}-0", {Play.RUNS_FOR: "1s"})
        if self._protocol.gated:
            pod["metadata"]["finalizers"] = ["interlock.dev/pod"]
            pod["spec"]["schedulingGates"] = [{"name": "interlock.dev/launch"}]
        await self._load.send("POST", self._pods, pod)
        if self._protocol.gated:
            if job:
                await self._load.send("GET", f"{self._jobs}/{name}")
            await self._change(name, {"spec": {"schedulingGates": []}})

    async def _tell(self, job: dict[str, Any], name: str, *, ended: bool) -> dict[str, Any]:
        body = job | {"status": _status(name, ended=ended)}
        made: dict[str, Any] = json.loads(
            await self._load.send("PUT", f"{self._jobs}/{name}/status", body)
        )
        return made

    async def _change(self, name: str, change: dict[str, Any]) -> None:
        await self._load.send("PATCH", f"{self._pods}/{name}-0", change)

    def _has_ended(self, line: bytes) -> bool:
        if b'"phase":"Succeeded"' not in line:
            return False
        self._ended[json.loads(line)["object"]["metadata"]["name"]].set()
        return True


async def _measure(cluster: Cluster, namespace: str, each: int) -> None:
    rows: list[tuple[str, float, str]] = []
    async with load_on(cluster.access) as load:
        names = [f"bench-{number}" for number in range(each)]
        clocks = Clocks(cluster, os.getpid())
        pods = [a_pod(name) for name in names]
        await _timed(load, _pods(namespace), pods, _is_running)
        plain = _sum(clocks, each)
        rows.append(("a pod, to Running", plain, "100%"))
        for protocol in PROTOCOLS:
            await _clear(load, namespace)
            clocks = Clocks(cluster, os.getpid())
            await Driver(load, namespace, protocol).run(names)
            taken = _sum(clocks, each)
            rows.append((protocol.name, taken, f"{plain / taken:.0%}"))
    show(
        f"Processor time of the control plane for each of {each}, without a controller",
        ("", "ms", "rate at best"),
        rows,
    )


def _sum(clocks: Clocks, each: int) -> float:
    taken = clocks.taken()
    return sum(s for name, s in taken.items() if name not in _OURS) / each * 1e3


async def _clear(load: Load, namespace: str) -> None:
    for path in (_jobs(namespace), _pods(namespace)):
        await load.send("DELETE", path, {"gracePeriodSeconds": 0})
        while b'"items":[]' not in await load.send("GET", f"{path}?limit=1"):
            await asyncio.sleep(0.5)


def main(argv: Sequence[str] = ()) -> None:
    """Measure, if there is a control plane to measure on."""
    parser = argparse.ArgumentParser(prog="bench cluster_floor", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    each = QUICK if given.quick else EACH
    on_a_cluster(lambda cluster, namespace: _measure(cluster, namespace, each))


if __name__ == "__main__":
    main()
