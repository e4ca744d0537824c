"""Slots on a real cluster: how fast the extender answers, and what it costs a scheduler to ask.

Fake nodes with four slots each. Pods of a slot's size go to the cluster's own scheduler first, then
as many to that of slots: where ghosts fill the nodes, so that each pod has one evicted and is
looked at twice, and where there is room beside them. All in one run on one machine.

    python -m bench cluster_slots [--nodes N] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.kube_load import load_on
from bench.table import show
from interlock.kube.slots import naming
from support.kube import Access, Cluster, find
from support.kube.access import Document
from support.kube.binaries import HELP
from support.kube.pods import a_node, a_pod
from support.kube.slot_stage import Place, Stage, slot_stage

NODES, QUICK = 250, 20
PER_NODE = 4
#: A quarter of a node: four of them leave no room. And less than a fifth.
FULL, ROOMY = "250", "180"
_ASKED = 500


def main(argv: Sequence[str] = ()) -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(prog="bench cluster_slots", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    programs = find()
    if programs is None:
        print(f"nothing measured: {HELP}")
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(programs.folder, Path(folder)) as cluster,
        slot_stage(cluster) as stage,
    ):
        _measure(stage, [f"slots-{at}" for at in range(QUICK if given.quick else given.nodes)])


def _measure(stage: Stage, nodes: list[str]) -> None:
    access = stage.access
    for node in nodes:
        access.create("/api/v1/nodes", a_node(node))
    for node in nodes:
        access.wait_for(f"/api/v1/nodes/{node}", lambda found: "allocatable" in found["status"])
    count = len(nodes) * PER_NODE
    rows: list[tuple[object, ...]] = []
    with access.namespace() as namespace:
        took = _placed(access, namespace, count, lambda name: _plain(name, nodes))
        rows.append(("the cluster's own scheduler, no slots", count / took, took))
    access.wait_until_gone(f"/api/v1/namespaces/{namespace}")
    answers: list[tuple[object, ...]] = []
    for told, cpu in (("nodes full of ghosts", FULL), ("room beside them", ROOMY)):
        with access.namespace() as namespace:
            place, begun = Place(stage, namespace), time.perf_counter()
            place.has_bed("bed", PER_NODE, cpu, nodes)
            made = time.perf_counter() - begun
            if cpu == FULL:
                rows.append(("ghosts made and placed", count / made, made))
                answers = list(_answers(stage, place, nodes))
            took = _placed(access, namespace, count, partial(_tenant, cpu=cpu))
            rows.append((f"that of slots, {told}", count / took, took))
        access.wait_until_gone(f"/api/v1/namespaces/{namespace}")
    show(
        f"Pods placed: {count:,} on {len(nodes):,} nodes, {PER_NODE} slots each",
        ("by", "a second", "seconds"),
        rows,
    )
    show(
        f"Answers of the extender, asked about {len(nodes):,} nodes, one after another",
        ("", "times", "p50 ms", "p99 ms"),
        answers,
    )


def _plain(name: str, nodes: list[str]) -> Document:
    pod = a_pod(name)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": FULL}}
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [there]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pod["spec"]["affinity"] = affinity
    return pod


def _tenant(name: str, cpu: str, *, scheduler: str = naming.SCHEDULER) -> Document:
    pod = a_pod(name, schedulerName=scheduler)
    pod["metadata"]["annotations"] = {naming.TEST_BED: "bed"}
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return pod


def _placed(access: Access, namespace: str, count: int, make: Callable[[str], Document]) -> float:
    """How long it takes until so many pods are placed, from the first that is created."""
    pods = f"/api/v1/namespaces/{namespace}/pods"

    async def measure() -> float:
        async with load_on(access) as load:
            seen = asyncio.ensure_future(
                load.until(pods, count, lambda line: b'"nodeName":"' in line)
            )
            await asyncio.sleep(0)
            begun = time.perf_counter()
            await load.create_all(pods, (make(f"bench-{at}") for at in range(count)))
            return await seen - begun

    return asyncio.run(measure())


def _answers(stage: Stage, place: Place, nodes: list[str]) -> Iterator[tuple[object, ...]]:
    """How long the extender takes, for pods that have no slot yet and for those that have."""
    count = min(_ASKED, len(nodes) * PER_NODE)
    pods = [
        place.access.create(place.pods, _tenant(f"asks-{at}", FULL, scheduler="nobody"))
        for at in range(count)
    ]
    trusted = ssl.create_default_context(cafile=str(place.access.authority))
    connection = http.client.HTTPSConnection("127.0.0.1", stage.ports[0], context=trusted)
    for told in ("a slot is reserved, and told", "it has its slot"):
        took = [_asked(connection, pod, nodes) for pod in pods]
        percentiles = statistics.quantiles(took, n=100)
        yield told, count, percentiles[49] * 1000, percentiles[98] * 1000
    connection.close()
    for pod in pods:
        place.access.remove(f"{place.pods}/{pod['metadata']['name']}", gracePeriodSeconds=0)
    for node in nodes:
        for number in range(PER_NODE):
            place.has_ghost("bed", f"{node}/{number}")


def _asked(connection: http.client.HTTPSConnection, pod: Document, nodes: list[str]) -> float:
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": nodes})
    begun = time.perf_counter()
    connection.request("POST", "/extender/filter", body)
    answer: Any = json.loads(connection.getresponse().read())
    took = time.perf_counter() - begun
    assert answer["NodeNames"], answer
    return took
