"""The store: durable writes beside bare SQLite, and what 100,000 Jobs cost."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import uvloop

from bench.table import medians, show
from interlock.resources.codec import encode
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Resource
from interlock.store.contract import Selection
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite.file import open_for_writing
from interlock.store.sqlite.seals import Row, Sums
from interlock.store.sqlite.store import SqliteStore
from interlock.store.sqlite.writer import Batch, commit
from interlock.testing.builders import a_job

ROUNDS = 7
MANY = 100_000
#: How many writes each number of writers makes in a round.
WRITES = {1: 600, 16: 6_400, 256: 25_600}


def _now() -> datetime:
    return datetime.now(UTC)


def _fresh() -> Path:
    # Beside this file and not in a directory that may be in memory: durability costs real disk.
    return Path(tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent))


def _jobs(count: int) -> list[Job]:
    return [a_job(f"job-{number:06}", args={"region": "emea"}) for number in range(count)]


def _running(job: Job) -> Job:
    status = JobStatus(phase=JobPhase.RUNNING)
    return Job(metadata=job.metadata, spec=job.spec, status=status)


def through_the_store(writers: int, taken: list[float]) -> float:
    """Durable writes per second: each writer creates a Job and then moves its status, in turns.

    The processor time for each write, in microseconds, is added to `taken`.
    """
    place = _fresh()
    try:
        return float(uvloop.run(_write(place / "store.db", writers, taken)))
    finally:
        shutil.rmtree(place)


async def _write(path: Path, writers: int, taken: list[float]) -> float:
    store = await SqliteStore.open(path, _now, RandomIdentities())
    jobs = _jobs(WRITES[writers] // 2)

    async def work(mine: Sequence[Job]) -> None:
        for job in mine:
            await store.update_status(_running(await store.create(job)))

    gc.collect()
    before, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work(jobs[start::writers]) for start in range(writers)))
    took = time.perf_counter() - began
    taken.append((time.process_time() - before) * 1e6 / (2 * len(jobs)))
    await store.close()
    return 2 * len(jobs) / took


def bare(writers: int, insert: Callable[[sqlite3.Connection, list[Row]], None]) -> float:
    """Writes per second of a loop that only hands bytes to SQLite, in groups of this size."""
    place = _fresh()
    try:
        connection = open_for_writing(place / "store.db")
        connection.executescript(OBJECT_TABLES)
        data = encode(a_job("job-000000", args={"region": "emea"}))
        groups: list[list[Row]] = [
            [(start + row + 1, "Job", 0, data) for row in range(writers)]
            for start in range(0, WRITES[writers], writers)
        ]
        began = time.perf_counter()
        for group in groups:
            insert(connection, group)
        took = time.perf_counter() - began
        connection.close()
        return WRITES[writers] / took
    finally:
        shutil.rmtree(place)


def _append(connection: sqlite3.Connection, group: list[Row]) -> None:
    """The very statements of the store."""
    batch = Batch(_loop(), 0)
    batch.rows = group
    commit(connection, batch, Sums())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One that nobody runs: a bare loop waits for nothing."""
    made = asyncio.new_event_loop()
    atexit.register(made.close)
    return made


OBJECT_TABLES = """
CREATE TABLE objects (kind TEXT, namespace TEXT, name TEXT, version INTEGER, data BLOB,
    PRIMARY KEY (kind, namespace, name)) WITHOUT ROWID;
CREATE TABLE changes (version INTEGER PRIMARY KEY, kind TEXT, namespace TEXT, name TEXT);
"""


def _compare_and_set(connection: sqlite3.Connection, group: list[Row]) -> None:
    """What one would write first: a table of objects, compared in SQL, and one of changes."""
    connection.execute("BEGIN")
    for number, _, _, data in group:
        name = f"job-{(number + 1) // 2 * 2654435761 % 2**32:08x}"
        if number % 2:
            made = ("Job", "default", name, number, data)
            connection.execute("INSERT INTO objects VALUES (?,?,?,?,?)", made)
        else:
            moved = (number, data, "Job", "default", name, number - 1)
            connection.execute(
                "UPDATE objects SET version = ?, data = ?"
                " WHERE kind = ? AND namespace = ? AND name = ? AND version = ?",
                moved,
            )
        connection.execute("INSERT INTO changes VALUES (?,?,?,?)", (number, "Job", "default", name))
    connection.execute("COMMIT")


def show_writes(rounds: int) -> None:
    """Print writes per second beside bare loops."""
    rows = []
    for writers in WRITES:
        taken: list[float] = []
        found = medians(
            {
                "store": partial(through_the_store, writers, taken),
                "bare": partial(bare, writers, _append),
                "compared": partial(bare, writers, _compare_and_set),
            },
            rounds,
        )
        rows.append(
            (
                writers,
                found["store"],
                statistics.median(taken),
                found["compared"],
                f"{100 * found['store'] / found['compared']:.0f} %",
                found["bare"],
                f"{100 * found['store'] / found['bare']:.0f} %",
            )
        )
    show(
        f"durable writes per second (median of {rounds} rounds in turns, "
        f"SQLite {sqlite3.sqlite_version}, WAL, FULL)",
        (
            "writers",
            "store",
            "processor us",
            "bare compare-and-set",
            "share",
            "bare append",
            "share",
        ),
        rows,
    )


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def _fill(path: Path, count: int) -> None:
    store = await SqliteStore.open(path, _now, RandomIdentities())
    jobs = _jobs(count)
    for start in range(0, count, 1000):
        made = await asyncio.gather(*(store.create(job) for job in jobs[start : start + 1000]))
        await asyncio.gather(*(store.update_status(_running(job)) for job in made))
    await store.close()


async def _measure_many(path: Path) -> None:
    """Print what many Jobs cost; in a process of its own, so that the memory is theirs."""
    before = _resident_mib()
    rows: list[Sequence[object]] = []

    async def timed(name: str, what: Callable[[], object]) -> object:
        taken, began = time.process_time(), time.perf_counter()
        found = what()
        result = await found if asyncio.iscoroutine(found) else found
        took, taken = time.perf_counter() - began, time.process_time() - taken
        rows.append((name, took * 1e3, taken * 1e3, _resident_mib() - before))
        return result

    opened = await timed("open", lambda: SqliteStore.open(path, _now, RandomIdentities()))
    assert isinstance(opened, SqliteStore)
    await timed("list", lambda: opened.list("Job"))
    await timed("list again", lambda: opened.list("Job"))
    await timed("list one label", lambda: opened.list("Job", Selection(labels="a=b")))
    await timed("list in parts of 500", lambda: _list_in_parts(opened))
    await timed("watch 10,000 changes", lambda: _watch_changes(opened, 10_000))
    await opened.close()
    show(f"{MANY:,} Jobs", ("what", "ms", "processor ms", "MiB since start"), rows)


async def _list_in_parts(store: SqliteStore) -> int:
    page = await store.list("Job", limit=500)
    count = len(page.items)
    while page.continue_token:
        page = await store.list("Job", limit=500, continue_token=page.continue_token)
        count += len(page.items)
    return count


async def _watch_changes(store: SqliteStore, count: int) -> None:
    page = await store.list("Job", limit=count)
    async with store.watch("Job", since=store.version) as batches:
        moved = [_queued(job) for job in page.items]
        writes = asyncio.gather(*(store.update_status(job) for job in moved))
        seen = 0
        async for batch in batches:
            seen += len(batch)
            if seen >= count:
                break
        await writes


def _queued(job: Resource) -> Job:
    assert isinstance(job, Job)
    return Job(metadata=job.metadata, spec=job.spec, status=JobStatus())


def show_many() -> None:
    """Print what many Jobs cost."""
    place = _fresh()
    try:
        asyncio.run(_fill(place / "store.db", MANY))
        size = (place / "store.db").stat().st_size / 2**20
        print(f"\nthe file has {size:.0f} MiB")
        order = [sys.executable, "-m", "bench", "store", "--many", str(place / "store.db")]
        subprocess.run(order, check=True)
    finally:
        shutil.rmtree(place)


def main(argv: Sequence[str]) -> None:
    """Measure the store; `--rounds N` for another number of rounds."""
    if argv[:1] == ["--many"]:
        asyncio.run(_measure_many(Path(argv[1])))
        return
    show_writes(int(argv[1]) if argv[:1] == ["--rounds"] else ROUNDS)
    show_many()
