"""A process that runs out of room, goes on reading, and goes on writing when there is room."""

from __future__ import annotations

import asyncio
import json
import resource
import sys

from interlock.errors import UnavailableError
from interlock.resources.metadata import Key
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import SqliteStore
from interlock.testing.builders import T0
from interlock.testing.store_contract.suite import new_job

LIMIT_BYTES = 300_000


async def fill(store: SqliteStore, acknowledged: list[str]) -> str:
    """Write until a write fails; returns what it said."""
    for number in range(100_000):
        names = [f"job-{number}-{part}" for part in range(10)]
        writes = (store.create(new_job("default", name)) for name in names)
        results = await asyncio.gather(*writes, return_exceptions=True)
        failed = [result for result in results if isinstance(result, BaseException)]
        for name, result in zip(names, results, strict=True):
            if not isinstance(result, BaseException):
                acknowledged.append(name)
        if failed:
            assert all(isinstance(error, UnavailableError) for error in failed), failed
            return str(failed[0])
    raise AssertionError("there was no end to the room")


async def run(path: str) -> dict[str, object]:
    """Fill the room, read, fail again, make room, go on."""
    store = await SqliteStore.open(path, lambda: T0, RandomIdentities())
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard))
    acknowledged: list[str] = []
    said = await fill(store, acknowledged)
    listed = {job.metadata.name for job in (await store.list("Job")).items}
    assert listed == set(acknowledged)
    assert (await store.get(Key("Job", "default", acknowledged[0]))).version > 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for number in range(20):
        made = await store.create(new_job("default", f"after-{number}"))
        acknowledged.append(made.metadata.name)
    await store.close()
    return {"acknowledged": acknowledged, "said": said}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(run(sys.argv[1]))))
