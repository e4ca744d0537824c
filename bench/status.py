"""The status API beside a large archive, and beside many Jobs that are not over.

The archive is filled directly, as removals fill it; the server then starts on that file. Each row
is asked for again and again over one connection; the table shows what half of the answers, and what
99 of 100, took at most. Run with `python -m bench status [FINISHED] [LIVE]`.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

import msgspec

from bench.table import show
from interlock.modes.embedded import STORE_FILE
from interlock.reporting.finished_jobs import number_of
from interlock.reporting.job_record import record_of, view_of
from interlock.resources.codec import encode
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobPhase, JobSpec, JobStatus
from interlock.resources.metadata import Metadata
from interlock.resources.operation import CompletionState, OperationState, OperationStatus
from interlock.resources.process import NoopSpec
from interlock.resources.steps import Target
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite.archive import Archived, write
from interlock.store.sqlite.file import open_for_writing
from interlock.store.sqlite.store import SqliteStore
from interlock.testing.serving import Server

FINISHED, LIVE = 1_000_000, 100_000
ROUNDS = 400
DOMAINS, APPLICATIONS, PEOPLE = 1_000, 20, 500
_CHUNK = 10_000


def main(argv: Sequence[str]) -> None:
    """Measure, and print a line for each question."""
    finished = int(argv[0]) if argv else FINISHED
    live = int(argv[1]) if len(argv) > 1 else LIVE
    rows: list[tuple[object, ...]] = []
    for name, kept, there in (("empty", 0, 0), ("archive", finished, 0), ("Jobs", 0, live)):
        rows += _measure(name, kept, there)
    head = ("beside", "question", "p50 ms", "p99 ms", "server RSS MiB", "ready after s")
    show("the status API, one client, warm", head, rows)


def _measure(name: str, kept: int, live: int) -> list[tuple[object, ...]]:
    place = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent))
    try:
        data = place / "data"
        asyncio.run(_fill(data, live))
        ids = _archive(data / STORE_FILE, kept)
        if not ids:
            ids = asyncio.run(_live_ids(data))
        begun = time.monotonic()
        with Server(data) as server:
            ready = time.monotonic() - begun
            _wait_until_idle(server)
            rows: list[tuple[object, ...]] = [
                (f"{max(kept, live):,} {name}", question, *times, _rss(server), f"{ready:.1f}")
                for question, times in _ask(server.url, ids)
            ]
        size = (data / STORE_FILE).stat().st_size / (1 << 20)
        print(f"{name}: the file has {size:.0f} MiB")
        return rows
    finally:
        shutil.rmtree(place)


def _ask(url: str, ids: Sequence[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    connection = HTTPConnection(urlsplit(url).netloc)
    luck = random.Random(3)

    def domain() -> str:
        return f"/domains/d{luck.randrange(DOMAINS)}/jobs?limit=50"

    questions: dict[str, Callable[[], str]] = {
        "GET /jobs/ID": lambda: f"/jobs/{luck.choice(ids)}" if ids else "/jobs/none",
        "page of 50 by path": domain,
        "page of 50 below all": lambda: "/domains/jobs?limit=50",
        "page of 50 by creator": lambda: f"/jobs?limit=50&creator=p{luck.randrange(PEOPLE)}",
        "page of 50, failed": lambda: "/jobs?limit=50&completion_state=failed",
        "page of 50, path and creator": lambda: f"{domain()}&creator=p{luck.randrange(PEOPLE)}",
        "50 ids": lambda: f"/jobs?ids={','.join(luck.sample(ids, min(50, len(ids)))) or 'none'}",
    }
    for question, path in questions.items():
        taken = []
        for _ in range(ROUNDS):
            asked = path()
            begun = time.perf_counter()
            connection.request("GET", asked)
            answer = connection.getresponse()
            answer.read()
            taken.append(1000 * (time.perf_counter() - begun))
            assert answer.status in (200, 404), asked
        cuts = quantiles(taken, n=100)
        yield question, (f"{cuts[49]:.2f}", f"{cuts[98]:.2f}")


def _wait_until_idle(server: Server) -> None:
    """Wait until the server has looked at everything there is."""
    stat = Path(f"/proc/{server.process.pid}/stat")
    used = -100
    while True:
        fields = stat.read_text().rpartition(")")[2].split()
        now = int(fields[11]) + int(fields[12])
        if now - used < 5:
            return
        used = now
        time.sleep(1.0)


def _rss(server: Server) -> str:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return f"{int(line.split()[1]) / 1024:.0f}"


async def _fill(data: Path, live: int) -> None:
    """A store with so many Jobs that wait."""
    data.mkdir(mode=0o700, parents=True)
    store = await SqliteStore.open(data / STORE_FILE, lambda: datetime.now(UTC), RandomIdentities())
    for start in range(0, live, 1_000):
        jobs = [_job(at) for at in range(start, min(start + 1_000, live))]
        await asyncio.gather(*(store.create(job) for job in jobs))
    await store.close()


async def _live_ids(data: Path) -> list[str]:
    store = await SqliteStore.open(data / STORE_FILE, lambda: datetime.now(UTC), RandomIdentities())
    page = await store.list("Job")
    await store.close()
    return [job.metadata.uid for job in page.items]


def _job(at: int) -> Job:
    path = f"domains/d{at % DOMAINS}/applications/a{at % APPLICATIONS}"
    notes = {CREATOR_ANNOTATION: f"p{at % PEOPLE}"}
    spec = JobSpec(
        noop=NoopSpec(),
        suspend=True,
        target=Target(path=path, type="application"),
        title="Create an application",
        owner=f"p{at * 7 % PEOPLE}",
        args={"size": "small", "region": "emea"},
    )
    return Job(
        metadata=Metadata(name=f"op-{at}", namespace="default", annotations=notes), spec=spec
    )


def _archive(path: Path, count: int) -> list[str]:
    """Put so many finished operations into the archive; returns some of their ids."""
    if not count:
        return []
    connection = open_for_writing(path)
    identities, began = RandomIdentities(), datetime.now(UTC) - timedelta(days=20)
    ids: list[str] = []
    for start in range(0, count, _CHUNK):
        rows = [
            _row(at, identities.uid(), began + at * timedelta(milliseconds=1500))
            for at in range(start, min(start + _CHUNK, count))
        ]
        connection.execute("BEGIN IMMEDIATE")
        write(connection, rows)
        connection.execute("COMMIT")
        ids += [row.id for row in rows[::100]]
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return ids


def _row(at: int, uid: str, made: datetime) -> Archived:
    job, ended = _job(at), made + timedelta(seconds=3)
    failed = at % 10_000 == 0
    completion = CompletionState.FAILED if failed else CompletionState.SUCCESS
    operation = OperationStatus(
        state=OperationState.COMPLETE, completion_state=completion, result='{"gear":"g-17"}'
    )
    result = JobResult.FAILED if failed else JobResult.SUCCEEDED
    execution = ExecutionStatus(
        total=5, started_at=made, ended_at=ended, result=result, operation=operation
    )
    status = JobStatus(phase=JobPhase(result.value), execution=execution)
    metadata = msgspec.structs.replace(job.metadata, uid=uid, creation_timestamp=made)
    job = Job(metadata=metadata, spec=job.spec, status=status)
    target = job.spec.target
    assert target is not None
    return Archived(
        id=uid,
        created=number_of(made),
        ended=number_of(ended),
        name=f"default/{metadata.name}",
        parent="",
        creator=metadata.annotations[CREATOR_ANNOTATION],
        owner=job.spec.owner,
        path=target.path,
        alias="",
        completion=completion.value,
        phase=result.value,
        digest="",
        record=encode(view_of(job, record_of(job))),
    )
