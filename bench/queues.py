"""What a look at a Queue costs, by how many Jobs wait in it and of how many sorts they are.

One Job ends and one is let in, again and again, as in a Queue that is full all day: of tasks, or of
another resource, of which Jobs of the many sorts ask for different amounts. Time is told as a ratio
to a short line: it may grow with neither the Jobs nor their sorts.

Then, on servers in processes of their own: what a hundred thousand parked Jobs cost while nothing
happens, beside an empty server in the same seconds.

    python -m bench queues [--turns N] [--parked N] [--quick]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from bench.kueue import QUEUES
from bench.load import client_of, costs_of, creation, peak_memory_mib, request
from bench.scale import settle
from bench.table import show
from interlock.admission.queues.desk import QUOTA_INDEXES, QueueDesk
from interlock.admission.reconciler import AdmissionReconciler
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import RecordStatus
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobPhase, JobSpec, JobStatus
from interlock.resources.metadata import Key, Metadata
from interlock.resources.process import NoopSpec
from interlock.resources.queue import Queue, QueueQuota, QueueSpec, QuotaSpec
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.values.amounts import Amount
from interlock.testing.serving import Server

NOW = datetime(2026, 1, 5, tzinfo=UTC)
RECORD = Key("QueueQuota", "", "queue.q")
#: So many Jobs are let in at the same time.
RUNNING = 16
#: So many requests to create are under way at a time.
CONNECTIONS = 64
_OURS = {"apiVersion": "interlock.dev/v1alpha1"}


class Line:
    """A full Queue with many Jobs before it."""

    def __init__(self, jobs: int, sorts: int, full: str = "tasks") -> None:
        #: What Jobs of the first sort ask for; those of each other sort ask for a little more.
        self._least = 1000
        self.jobs: Cache[Job] = Cache("Job")
        queues: Cache[Queue] = Cache("Queue")
        self.quotas: Cache[QueueQuota] = Cache("QueueQuota", QUOTA_INDEXES)
        self.room = AdmissionReconciler(
            self.jobs, {}, queues=QueueDesk(self.jobs, queues, self.quotas)
        )
        self.version = 1
        has = {"tasks": Amount(RUNNING * 1000), "gpu": Amount(10**9)}
        if full == "gpu":
            first = sum(self._least + number % sorts for number in range(RUNNING))
            has = {"tasks": Amount(10**9), "gpu": Amount(first)}
        queues.note(Queue(metadata=self._metadata("q", ""), spec=QueueSpec(resources=has)))
        self.quotas.note(
            QueueQuota(metadata=self._metadata(RECORD.name, ""), spec=QuotaSpec(queue="q"))
        )
        began = time.thread_time()
        for number in range(jobs):
            self.put(self._job(number, number % sorts))
        self.joining_us = (time.thread_time() - began) / jobs * 1e6
        self.held = self.grant()

    def _metadata(self, name: str, namespace: str = "default") -> Metadata:
        self.version += 1
        return Metadata(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            resource_version=str(self.version),
            generation=1,
            creation_timestamp=NOW,
        )

    def _job(self, number: int, sort: int) -> Job:
        spec = JobSpec(noop=NoopSpec(), queue="q", resources={"gpu": Amount(self._least + sort)})
        metadata = self._metadata(f"job-{number}")
        status = JobStatus(admission=AdmissionStatus(sequence=self.version))
        return Job(metadata=metadata, spec=spec, status=status)

    def put(self, resource: Job | QueueQuota) -> None:
        """Take in a change, as the loop does."""
        cache = self.jobs if isinstance(resource, Job) else self.quotas
        before = cache.note(resource)  # type: ignore[arg-type]
        for _ in self.room.wakes(Change(before, resource)):
            pass

    def grant(self) -> list[str]:
        """Look at the quota, and write what is decided; who was let in."""
        [action] = self.room.look(RECORD, NOW).actions
        assert isinstance(action, RecordStatus)
        self.version += 1
        record = self.quotas.get(RECORD)
        assert record is not None
        known = {holder.token for holder in record.status.holders}
        metadata = replace(record.metadata, resource_version=str(self.version))
        self.put(replace(record, metadata=metadata, status=action.status))
        new = [h for h in action.status.holders if h.token not in known]  # type: ignore[attr-defined]
        return [holder.job for holder in new]

    def end(self, name: str) -> None:
        """One of those who were let in ends."""
        job = self.jobs.get(Key("Job", "default", name))
        assert job is not None
        self.version += 1
        admission = replace(job.status.admission, phase=AdmissionPhase.ADMITTED)
        execution = ExecutionStatus(total=1, result=JobResult.SUCCEEDED, ended_at=NOW)
        status = JobStatus(phase=JobPhase.SUCCEEDED, admission=admission, execution=execution)
        metadata = replace(job.metadata, resource_version=str(self.version))
        self.put(replace(job, metadata=metadata, status=status))

    def turn_us(self, turns: int) -> float:
        """How long one end and one admission take, in the middle of many."""
        took = []
        for _ in range(turns):
            began = time.thread_time()
            self.end(self.held.pop(0))
            self.held += self.grant()
            took.append(time.thread_time() - began)
        return median(took) * 1e6


def looks(turns: int, most: int) -> None:
    """Print what a look costs."""
    rows = []
    for full in ("tasks", "gpu"):
        base = Line(max(10, RUNNING + turns), 1, full).turn_us(turns)
        for jobs, sorts in ((100, 1), (most // 10, 1), (most, 1), (most, 10), (most, 1000)):
            line = Line(max(jobs, RUNNING + turns), sorts, full)
            took = line.turn_us(turns)
            joining, ratio = f"{line.joining_us:.0f}", f"{took / base:.2f}x"
            rows.append((full, f"{jobs:,}", f"{sorts:,}", joining, f"{took:.0f}", ratio))
    show(
        "One Job ends, one is let in: processor time of a look at a full Queue",
        ("full of", "waiting", "sorts", "us to join", "us a turn", "of a short line"),
        rows,
    )


def idle(place: Path, parked: int, idle_s: float) -> None:
    """Park Jobs in a Queue that is full, and print what the server does while nothing happens."""
    with (
        Server(place / "empty") as empty,
        Server(place / "full") as full,
        client_of(full, CONNECTIONS) as client,
    ):
        spec = {"resources": {"tasks": 1}}
        queue: dict[str, object] = {
            **_OURS,
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": spec,
        }
        client.create(request("POST", QUEUES, json.dumps(queue).encode()))
        client.create(creation({"queue": "q", "process": {"command": ["sleep", "9999"]}}, "holder"))
        job: dict[str, object] = {"queue": "q", "noop": {}}
        client.create_all([creation(job, f"parked-{number}") for number in range(parked)])
        for server in (empty, full):
            settle(server)
        before = [costs_of(server) for server in (empty, full)]
        time.sleep(idle_s)
        taken = [
            costs_of(server).since(was) for server, was in zip((empty, full), before, strict=True)
        ]
        memory = [peak_memory_mib(server) for server in (empty, full)]
    names = ("empty server", f"{parked:,} parked Jobs")
    rows = [
        (name, f"{cost.server / idle_s:.3%}", cost.server_switches / idle_s, mib)
        for name, cost, mib in zip(names, taken, memory, strict=True)
    ]
    show(
        f"Nothing happens, over {idle_s:.0f} s",
        ("", "server cpu", "wakes/s", "peak MiB"),
        rows,
    )


def main(argv: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench queues", description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--parked", type=int, default=100_000)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds to look on")
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    parked = 5_000 if given.quick else given.parked
    looks(50 if given.quick else given.turns, 10_000 if given.quick else 100_000)
    with tempfile.TemporaryDirectory() as place:
        idle(Path(place), parked, 5.0 if given.quick else given.idle)
