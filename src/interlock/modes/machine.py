"""The control plane on one machine: the rooms, the keeper's processes, and what is told of them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from prometheus_client import CollectorRegistry

from interlock.api.checking import Check
from interlock.api.routing import Route
from interlock.api.submitting import Desk
from interlock.api.workers import WorkerDoor
from interlock.control.clock import Clock, pause
from interlock.control.lease import Election
from interlock.control.reconciler import Change
from interlock.control.runtime import Runtime
from interlock.control.stopping import end_task
from interlock.control.write_fence import WriteFence
from interlock.errors import InterlockError
from interlock.forecast.service import Forecasting
from interlock.modes.phases import JobsByPhase
from interlock.modes.queue_metrics import QueueMetrics, QueueMoveMetrics
from interlock.modes.settings import Sweeping
from interlock.modes.sweeper import Sweeper
from interlock.modes.worker_metrics import WorkerMetrics
from interlock.plane import ControlPlane, PlaneSettings
from interlock.reporting.finished_jobs import FinishedJobs
from interlock.reporting.job_index import JobIndex
from interlock.reporting.live_jobs import LiveJobs
from interlock.reporting.queue_moves import QueueMoves
from interlock.reporting.service import Reporting
from interlock.reporting.statuses import Waiters
from interlock.resources.default_queue import DEFAULT_QUEUE
from interlock.resources.job import Job
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.tasks import TaskId
from interlock.resources.work_types import WORKERS
from interlock.runtimes.health import PATIENCE_S, Health
from interlock.runtimes.logs import LogReader
from interlock.runtimes.processes import ProcessRuntime
from interlock.runtimes.router import Router
from interlock.runtimes.workers.dispatcher import LEASE_S
from interlock.runtimes.workers.output import WorkerOutput
from interlock.runtimes.workers.terms import WorkerTerms
from interlock.store.sqlite import SqliteStore

logger = logging.getLogger("interlock.server")

_PIECE = 1 << 20
#: For how long the statuses of Jobs are kept that are over and were removed.
KEEP_FINISHED_S = 30 * 86_400.0
#: How long a start waits for the control plane to be at work.
AT_WORK_S = 10.0


class Followers:
    """Those who follow the output of attempts, each to be told when its attempt is over."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[tuple[int, int], list[asyncio.Event]]] = {}

    def add(self, task: TaskId, over: asyncio.Event) -> None:
        """Tell this one when the attempt is over."""
        attempts = self._waiting.setdefault(task.job_uid, {})
        attempts.setdefault((task.task, task.attempt), []).append(over)

    def remove(self, task: TaskId, over: asyncio.Event) -> None:
        """Tell this one nothing any more."""
        attempts = self._waiting.get(task.job_uid, {})
        waiting = attempts.get((task.task, task.attempt), [])
        waiting.remove(over)
        if not waiting:
            attempts.pop((task.task, task.attempt), None)
        if not attempts:
            self._waiting.pop(task.job_uid, None)

    def observe(self, change: Change) -> None:
        """Tell whoever follows an attempt that this change shows to be over."""
        job = change.after or change.before
        if not self._waiting or not isinstance(job, Job):
            return
        for attempt, waiting in self._waiting.get(job.metadata.uid, {}).items():
            if change.after is None or not is_active(job, *attempt):
                for over in waiting:
                    over.set()


def is_active(job: Job, task: int, attempt: int) -> bool:
    """Whether an attempt is not known to be over."""
    return any((one.index, one.attempt) == (task, attempt) for one in job.status.execution.active)


class Removals:
    """Removes the logs of Jobs that are gone: the log of a Job lives as long as the Job."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._under_way: set[asyncio.Task[None]] = set()

    def observe(self, change: Change) -> None:
        """Remove what a Job wrote once it is gone, or another has taken its name."""
        before, after = change.before, change.after
        if isinstance(before, Job) and (after is None or after.metadata.uid != before.metadata.uid):
            self._remove(before.metadata.uid)

    def sweep(self, roster: JobIndex) -> None:
        """Remove the logs of Jobs that went while nobody looked."""
        for uid in self._reader.jobs():
            if roster.key_of(uid) is None:
                self._remove(uid)

    def _remove(self, uid: str) -> None:
        task = asyncio.get_running_loop().create_task(self._reader.remove(uid))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


class MachineLogs:
    """The output of tasks, as the reporting room asks for it."""

    def __init__(self, data: Path, roster: JobIndex) -> None:
        self._reader = LogReader(data)
        self._roster = roster
        self.followers = Followers()
        self.removals = Removals(self._reader)
        self.plane: ControlPlane | None = None

    def newest_attempt(self, job_uid: str, task: int) -> int | None:
        """The newest attempt of a task that has a log, or None."""
        attempts = [one.attempt for one in self._reader.attempts(job_uid) if one.task == task]
        return max(attempts, default=None)

    async def read(
        self,
        job_uid: str,
        task: int,
        attempt: int,
        *,
        since: datetime | None,
        tail: int | None,
        follow: bool,
    ) -> AsyncIterator[bytes]:
        """The output, part by part; with `follow`, until the attempt is over."""
        wanted = TaskId(job_uid, task, attempt)
        if not follow:
            async for part in self._reader.stream(wanted, tail=tail, since=since):
                yield part
            return
        over = asyncio.Event()
        self.followers.add(wanted, over)
        try:
            if not self._runs(wanted):
                over.set()
            async for part in self._reader.stream(wanted, tail=tail, since=since, over=over):
                yield part
        finally:
            self.followers.remove(wanted, over)

    def _runs(self, task: TaskId) -> bool:
        key = self._roster.key_of(task.job_uid)
        if self.plane is None or key is None:
            return False
        job = self.plane.cache(Job).get(key)
        return job is not None and is_active(job, task.task, task.attempt)


def _election(store: SqliteStore, clock: Clock) -> Election:
    """The data directory is locked, so there is nobody else to elect."""
    identity = f"{socket.gethostname()}-{os.getpid()}"
    return Election(store, clock, Random(), WriteFence(clock), identity, sole=True)


class Machine:
    """Everything that runs beside the API in the embedded server."""

    def __init__(
        self,
        store: SqliteStore,
        clock: Clock,
        data: Path,
        registry: CollectorRegistry,
        *,
        keeper_patience_s: float = PATIENCE_S,
        worker_lease_s: float = LEASE_S,
        sweeping: Sweeping = Sweeping(),  # noqa: B008 (it cannot be changed)
        keep_finished_s: float = KEEP_FINISHED_S,
        wait_for_pods_ready: WaitForPodsReady | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._keep_finished_s = keep_finished_s
        self._pruning: asyncio.Task[None] | None = None
        self._health = Health(keeper_patience_s)
        self._data = data
        self._runtime: ProcessRuntime | None = None
        self._workers = WorkerTerms(clock, lease_s=worker_lease_s)
        output = WorkerOutput(data, clock)
        self._door = WorkerDoor(lambda: self._workers.runtime, output)
        roster = self._roster = JobIndex(DEFAULT_QUEUE)
        waiters = Waiters()
        logs = self._logs = MachineLogs(data, roster)
        moves = QueueMoves(clock.now(), lambda: self.plane.fence.is_open)
        self.plane = logs.plane = ControlPlane(
            store=store,
            journal=store.journal,
            clock=clock,
            luck=Random(),
            connect=self._connect,
            election=_election(store, clock),
            observers=(
                roster.observe,
                waiters.observe,
                moves.observe,
                self._observe,
                logs.followers.observe,
                logs.removals.observe,
            ),
            settings=PlaneSettings(wait_for_pods_ready=wait_for_pods_ready),
            restored=store,
        )
        registry.register(self.plane.metrics.registry)
        registry.register(JobsByPhase(roster))
        registry.register(WorkerMetrics(self._workers))
        jobs = self.plane.cache(Job)
        self._finished = FinishedJobs(store, LiveJobs(roster, jobs))
        store.keeps = self._finished.keep
        self._reporting = Reporting(
            store=store,
            caches=self.plane.caches,
            roster=roster,
            journal=store.journal,
            logs=logs,
            clock=clock,
            backup=self._backup,
            stalled=self._stalled,
            waiters=waiters,
            archive=self._finished,
            system=wait_for_pods_ready,
            default_queue=DEFAULT_QUEUE,
        )
        registry.register(QueueMetrics(self._reporting.queues))
        registry.register(QueueMoveMetrics(moves))
        self._forecasting = Forecasting(caches=self.plane.caches, clock=clock)
        jobs = self.plane.cache(Job)
        self._sweeper = Sweeper(lambda: self.plane.loop, jobs, roster, clock, sweeping)
        registry.register(self._sweeper)
        self._sweeps: asyncio.Task[None] | None = None

    @property
    def routes(self) -> Sequence[Route]:
        """What it answers itself, and for whom."""
        reports = (*self._reporting.routes(), *self._forecasting.routes())
        return (*reports, *self._door.routes(), *self._sweeper.routes())

    @property
    def desk(self) -> Desk:
        """Knows how Jobs are."""
        return self._reporting.statuses

    def checks(self) -> Sequence[Check]:
        """What has to be well, and what is not ready yet or no longer."""
        store = self._store.trouble
        return (
            Check("store", store and f"nothing can be written: {store}"),
            Check("keeper", self._health.trouble),
            Check("control-plane", self._plane_trouble()),
        )

    def _plane_trouble(self) -> str:
        if self.plane.at_work.is_set():
            return ""
        if strangers := self.plane.strangers:
            who = f"{strangers[0].namespace}/{strangers[0].job}"
            return f"{len(strangers)} tasks of before the restore are being stopped ({who}, ...)"
        return "the control plane is starting"

    def _stalled(self) -> str:
        """Why nothing is started, whatever else a Job waits for; empty when nothing is in the way.

        The first that is wrong: what is wrong after it mostly comes of it.
        """
        return next((check.trouble for check in self.checks() if check.trouble), "")

    async def ready(self) -> None:
        """Wait until it is at work, be it for the first time."""
        await self.plane.at_work.wait()

    async def start(self) -> None:
        """Begin to work; without a keeper the API is served all the same, and says so."""
        self.plane.start()
        await self.plane.synced()
        self._logs.removals.sweep(self._roster)
        self._sweeps = asyncio.create_task(self._sweeper.run())
        self._pruning = asyncio.create_task(self._prune())
        wanted = (self.plane.at_work, self._health.troubled)
        waits = [asyncio.create_task(event.wait()) for event in wanted]
        await asyncio.wait(waits, timeout=AT_WORK_S, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def stop(self) -> None:
        """Stop working; tasks go on under their keeper."""
        if self._sweeps is not None:
            await end_task(self._sweeps)
        if self._pruning is not None:
            await end_task(self._pruning)
        await self.plane.stop()
        self._workers.end("the server stops")
        if self._runtime is not None:
            await self._runtime.close()

    async def _prune(self) -> None:
        """Let go of what was kept for long enough, now and again."""
        every_s = max(60.0, min(3600.0, self._keep_finished_s / 24))
        while True:
            before = self._clock.now() - timedelta(seconds=self._keep_finished_s)
            try:
                await self._finished.prune(before, self._roster, self.plane.cache(Job))
            except InterlockError as error:
                logger.warning("what is over cannot be let go of: %s", error)
            await pause(self._clock, every_s)

    def reopen_logs(self) -> None:
        """Have the keeper go on in a new file where its log was moved away."""
        if self._runtime is not None:
            self._runtime.reopen_log()

    async def _connect(self, term: int) -> Runtime:
        if self._runtime is not None:
            self._runtime.abandon()
        self._runtime = await ProcessRuntime.connect(self._data, term=term, health=self._health)
        check = self.plane.fence.check
        workers = self._workers.lead(check, self.plane.cache(Job))
        return Router({"processes": self._runtime, WORKERS: workers}, own="processes", check=check)

    def _observe(self, change: Change) -> None:
        """What is durable now, workers may be told to do."""
        if isinstance(change.after, Job):
            self._workers.heard(change.after)

    async def _backup(self) -> AsyncIterator[bytes]:
        """A copy of the store, part by part. It is made whole first: a client may be slow."""
        # Not in the data directory when that was deleted: then this may be all that is left.
        where = self._data if self._data.is_dir() else None
        with tempfile.TemporaryDirectory(dir=where) as place:
            copy = Path(place) / "copy.db"
            await self._store.back_up(copy)
            with copy.open("rb") as file:
                while piece := await asyncio.to_thread(file.read, _PIECE):
                    yield piece
