"""What the Kubernetes store costs: CPU per list item and watch event, creates a second.

The list and the watch are read from a server in another process that replays prepared bytes, so
that only our side is measured; the rates are those of a real control plane, through the store
and through plain requests that decode nothing, and need the programs that `make kube` brings.

    python -m bench.kube_store [--objects N] [--at-once N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from interlock.control.clock import SystemClock
from interlock.kube.client.api_client import Call, Client
from interlock.kube.client.config import ClusterConfig
from interlock.kube.store.cluster_store import KubernetesStore
from interlock.resources.cluster import Namespace
from interlock.resources.codec import encode
from interlock.resources.job import Job, JobPhase, JobSpec, JobStatus
from interlock.resources.metadata import Key, Metadata
from interlock.resources.process import ProcessSpec
from interlock.testing.builders import a_job
from support.cluster_store import install, store_on
from support.kube import Cluster, find
from support.kube.binaries import HELP

ROUNDS = 3
PART = 1000


def _wire(number: int) -> bytes:
    """A Job as an API server sends it, with an entry of managed fields for each of two writers."""
    job = a_job(
        f"job-{number:06}",
        version=number + 10,
        status=JobStatus(phase=JobPhase.RUNNING),
        metadata={"labels": {"team": "red", "tier": "web"}},
    )
    shown = json.loads(encode(job))
    fields: dict[str, object] = {f"f:field{place}": {} for place in range(12)}
    shown["metadata"]["managedFields"] = [
        {"manager": name, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
        for name in ("kubectl", "interlock")
    ]
    return json.dumps(shown, separators=(",", ":")).encode()


def _replay(objects: int, pipe: Connection) -> None:
    """Serve one list in parts and one watch, both prepared."""
    from aiohttp import web

    wires = [_wire(number) for number in range(objects)]
    lines = [b'{"type":"MODIFIED","object":%s}\n' % wire for wire in wires]

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            for start in range(0, objects, 4):
                await response.write(b"".join(lines[start : start + 4]))
            await asyncio.Event().wait()
            return response
        start = int(request.query.get("continue") or 0)
        end = start + PART
        token = f',"continue":"{end}"' if end < objects else ""
        head = b'{"metadata":{"resourceVersion":"9"%s},"items":[' % token.encode()
        return web.Response(body=head + b",".join(wires[start:end]) + b"]}")

    async def serve() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())


async def _read_replayed(port: int, objects: int) -> None:
    clock, luck = SystemClock(), Random(7)
    config = ClusterConfig(server=f"http://127.0.0.1:{port}", source="the benchmark")
    store = KubernetesStore(Client(config, clock, luck), clock, luck)
    listed, watched = [], []
    for _ in range(ROUNDS):
        began = time.process_time()
        page = await store.list("Job")
        listed.append(time.process_time() - began)
        assert len(page.items) == objects
        seen = 0
        began = time.process_time()
        async with store.watch("Job", since=9) as batches:
            async for batch in batches:
                seen += len(batch)
                if seen >= objects:
                    break
        watched.append(time.process_time() - began)
    await store.close()
    clock.close()
    print(f"list   {min(listed) / objects * 1e6:6.1f} µs CPU an item   best of {ROUNDS}")
    print(f"watch  {min(watched) / objects * 1e6:6.1f} µs CPU an event  best of {ROUNDS}")


def read_replayed(objects: int) -> None:
    """Measure our side of lists and watches."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_replay, args=(objects, theirs), daemon=True)
    server.start()
    try:
        asyncio.run(_read_replayed(ours.recv(), objects))
    finally:
        server.terminate()
        server.join()


def _a_job(namespace: str, name: str) -> Job:
    return Job(
        metadata=Metadata(name=name, namespace=namespace),
        spec=JobSpec(process=ProcessSpec(command=("true",))),
    )


async def _each(one: Callable[[int], Awaitable[None]], numbers: Iterator[int]) -> None:
    """Do it for number after number; those that share the numbers share the work."""
    for number in numbers:
        await one(number)


async def _rates(cluster: Cluster, objects: int, at_once: int) -> None:
    async with store_on(cluster.access) as store:
        made = await store.create(Namespace(metadata=Metadata(generate_name="bench-")))
        namespace = made.metadata.name
        path = f"/apis/interlock.dev/v1alpha1/namespaces/{namespace}/jobs"

        async def through_store(number: int) -> None:
            await store.create(_a_job(namespace, f"store-{number}"))

        async def plain(number: int) -> None:
            body = encode(_a_job(namespace, f"plain-{number}"))
            key = Key("Job", namespace, "")
            await store.client.send(Call(method="POST", path=path, key=key, body=body))

        async def move(number: int) -> None:
            job = _a_job(namespace, f"store-{number}")
            found = await store.get(job.key)
            assert isinstance(found, Job)
            status = JobStatus(phase=JobPhase.RUNNING)
            await store.update_status(Job(metadata=found.metadata, spec=found.spec, status=status))

        for name, one in (
            ("create, plain", plain),
            ("create, store", through_store),
            ("get and status, store", move),
        ):
            numbers = iter(range(objects))

            cpu, began = time.process_time(), time.perf_counter()
            await asyncio.gather(*(_each(one, numbers) for _ in range(at_once)))
            took_s = time.perf_counter() - began
            used = (time.process_time() - cpu) / objects * 1e6
            print(f"{name:22} {objects / took_s:7.0f}/s  {used:6.0f} µs CPU of ours each")
        print(dict(store.client.answers))


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--at-once", type=int, default=32)
    given = parser.parse_args()
    read_replayed(given.objects)
    programs = find()
    if programs is None:
        print(f"no rates: {HELP}")
        return
    with tempfile.TemporaryDirectory() as folder, Cluster(programs.folder, Path(folder)) as cluster:
        install(cluster.access)
        asyncio.run(_rates(cluster, min(given.objects, 2000), given.at_once))


if __name__ == "__main__":
    main()
