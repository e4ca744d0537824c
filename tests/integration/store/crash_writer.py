"""A process to kill: it writes without end, and tells of each write once it is acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime

from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.store.contract import JournalEntry
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import SqliteStore
from interlock.testing.builders import T0
from interlock.testing.store_contract.suite import new_job

WRITERS = 12
#: A job is created at step 0, changed until the last, and then (every other one) deleted.
LAST_STEP = 3
DELETED_STEP = LAST_STEP + 1


def tell(*words: object) -> None:
    """One write, so that a line is told whole or not at all."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def live(store: SqliteStore, name: str, is_deleted: bool) -> None:
    """Lead one job through its steps."""
    job: Job = await store.create(new_job("default", name))
    tell(name, 0, job.version)
    for step in range(1, LAST_STEP + 1):
        store.journal.append(_entry(name, step))
        job = await store.update(replace(job, spec=replace(job.spec, priority=step)))
        tell(name, step, job.version)
    if is_deleted:
        gone = await store.delete(job.key)
        tell(name, DELETED_STEP, gone.version)


def _entry(name: str, step: int) -> JournalEntry:
    return JournalEntry(
        at=T0,
        kind="Job",
        namespace="default",
        name=name,
        room="test",
        actions=(),
        reason="step",
        version=step,
    )


async def write(path: str, prefix: str) -> None:
    """Write until killed."""
    store = await SqliteStore.open(path, lambda: datetime.now(UTC), RandomIdentities())  # noqa: TID251

    async def work(writer: int) -> None:
        number = 0
        while True:
            await live(store, f"{prefix}-{writer}-{number}", bool(number % 2))
            number += 1

    await asyncio.gather(*(work(writer) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2]))
