"""The embedded server of `python -m bench kueue`: all of it is real but the tasks, which only last.

Store, commits, loop, rooms and API are those of `interlock up`. In the place of the keeper stands
a machine that is played: a task is a timer, and lasts as long as its `sleep` would. Beside them
a watch of the store writes down what the judge wants to know, and it is put into a file at the end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from bench.kueue_history import Granted, History, JobChange, RecordChange, Run
from interlock.control.clock import Clock
from interlock.control.runtime import Listener, Runtime, TaskStop
from interlock.control.stopping import end_task
from interlock.modes.embedded import serve
from interlock.modes.machine import Machine
from interlock.modes.settings import EmbeddedSettings
from interlock.plane import PlaneSettings
from interlock.resources.job import Job
from interlock.resources.queue import QueueQuota, QuotaHolder
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport, process_of
from interlock.store.contract import EventType
from interlock.store.sqlite import SqliteStore

HISTORY = "history.json"
#: The machine that is played is as large as any quota here.
MOST_TASKS = 100_000
_SIGTERM = 15


class PlayedRuntime:
    """Implements `control.runtime.Runtime` with timers."""

    groups_orders = True

    def __init__(self) -> None:
        self._known: dict[TaskId, TaskReport] = {}
        self._timers: dict[TaskId, asyncio.TimerHandle] = {}
        self._listeners: list[Listener] = []
        self._news: list[TaskReport] = []
        self.runs: list[Run] = []

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Start attempts that last as long as they say."""
        events = asyncio.get_running_loop()
        now = datetime.now(UTC)
        for order in orders:
            if order.id in self._known:
                continue
            self._tell(_report(order, ReportState.RUNNING, now))
            lasts = float(process_of(order).command[-1])
            self._timers[order.id] = events.call_later(lasts, self._end, order.id, None)

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Stop attempts; they go at once."""
        for stop in stops:
            if stop.task in self._timers:
                self._end(stop.task, _SIGTERM)
            elif stop.task not in self._known:
                self._tell(_never(stop))

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Drop what is known of attempts that are over."""
        for task in tasks:
            if task not in self._timers:
                self._known.pop(task, None)

    async def reports(self) -> Sequence[TaskReport]:
        """All that is known."""
        return tuple(self._known.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell what happens, all of a turn at once."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _end(self, task: TaskId, signal: int | None) -> None:
        self._timers.pop(task).cancel()
        was, now = self._known[task], datetime.now(UTC)
        began = was.started_at
        assert began is not None
        self.runs.append(Run(was.job, began.timestamp(), now.timestamp()))
        self._tell(
            msgspec.structs.replace(
                was,
                state=ReportState.ENDED,
                ended_at=now,
                exit_code=0 if signal is None else None,
                signal=signal,
                stopped=signal is not None,
            )
        )

    def _tell(self, report: TaskReport) -> None:
        self._known[report.id] = report
        if not self._news:
            asyncio.get_running_loop().call_soon(self._flush)
        self._news.append(report)

    def _flush(self) -> None:
        news, self._news = self._news, []
        for listener in tuple(self._listeners):
            listener(news)


def _report(order: TaskOrder, state: ReportState, now: datetime) -> TaskReport:
    return TaskReport(
        job_uid=order.job_uid,
        index=order.index,
        attempt=order.attempt,
        namespace=order.namespace,
        job=order.job,
        state=state,
        started_at=now,
        job_version=order.job_version,
    )


def _never(stop: TaskStop) -> TaskReport:
    uid, index, attempt = stop.task
    return TaskReport(
        job_uid=uid,
        index=index,
        attempt=attempt,
        namespace=stop.namespace,
        job=stop.job,
        state=ReportState.NOT_STARTED,
        stopped=True,
    )


class Recorder:
    """Writes down what watches of the store tell; it works nothing out while it is measured."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._records: list[tuple[int, str, tuple[QuotaHolder, ...]]] = []
        self._jobs: list[tuple[int, Job, bool]] = []
        self._known: dict[str, tuple[object, ...]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to watch."""
        events = asyncio.get_running_loop()
        for kind in ("Job", "QueueQuota"):
            self._tasks.append(events.create_task(self._watch(kind)))

    async def stop(self) -> None:
        """Watch no more."""
        for task in self._tasks:
            await end_task(task)

    async def _watch(self, kind: str) -> None:
        page = await self._store.list(kind)
        async with self._store.watch(kind, since=page.version) as changes:
            async for events in changes:
                for event in events:
                    resource = event.resource
                    is_gone = event.type is EventType.DELETED
                    if isinstance(resource, Job):
                        self._note_job(event.version, resource, is_gone)
                    elif isinstance(resource, QueueQuota):
                        holders = () if is_gone else resource.status.holders
                        self._records.append((event.version, resource.metadata.name, holders))

    def _note_job(self, version: int, job: Job, is_gone: bool) -> None:
        admission, ended = job.status.admission, job.status.execution.ended_at
        news = (admission.epoch, admission.admitted_at, ended, is_gone)
        if self._known.get(job.metadata.uid) != news:
            self._known[job.metadata.uid] = news
            self._jobs.append((version, job, is_gone))

    def records(self) -> list[RecordChange]:
        """Each version of each record, as the difference to the one before."""
        before: dict[str, dict[int, Granted]] = {}
        found = []
        for version, name, holders in self._records:
            was = before.get(name, {})
            now = {one.token: was.get(one.token) or _granted(one) for one in holders}
            came = tuple(part for token, part in now.items() if token not in was)
            went = tuple(token for token in was if token not in now)
            found.append(RecordChange(version, name, came, went))
            before[name] = now
        return found

    def jobs(self) -> list[JobChange]:
        """Whatever became of each Job."""
        return [_job_change(*noted) for noted in self._jobs]


def _granted(holder: QuotaHolder) -> Granted:
    cpu = holder.each["cpu"].milli
    return Granted(holder.token, holder.queue, holder.uid, holder.epoch, holder.tasks, cpu)


def _job_change(version: int, job: Job, is_gone: bool) -> JobChange:
    admission, ended = job.status.admission, job.status.execution.ended_at
    created = job.metadata.creation_timestamp
    assert created is not None
    return JobChange(
        version,
        job.metadata.uid,
        job.metadata.name,
        admission.epoch,
        is_gone or ended is not None,
        created.timestamp(),
        admission.admitted_at.timestamp() if admission.admitted_at is not None else None,
        ended.timestamp() if ended is not None else None,
    )


class PlayedMachine(Machine):
    """The embedded server's machine, with a runtime that is played."""

    def __init__(
        self, store: SqliteStore, clock: Clock, data: Path, registry: CollectorRegistry
    ) -> None:
        super().__init__(store, clock, data, registry)
        self.plane._settings = PlaneSettings(most_tasks=MOST_TASKS)
        self._played = PlayedRuntime()
        self._recorder = Recorder(store)
        self._file = data / HISTORY

    async def start(self) -> None:
        """Begin to work and to write down."""
        self._recorder.start()
        await super().start()

    async def stop(self) -> None:
        """Stop, and leave what was written down in a file."""
        await super().stop()
        await self._recorder.stop()
        history = History(
            records=self._recorder.records(), jobs=self._recorder.jobs(), runs=self._played.runs
        )
        self._file.write_bytes(msgspec.json.encode(history))

    async def _connect(self, term: int) -> Runtime:  # noqa: ARG002 - there is no other server
        return self._played


def _played(
    store: SqliteStore, clock: Clock, settings: EmbeddedSettings, registry: CollectorRegistry
) -> PlayedMachine:
    return PlayedMachine(store, clock, settings.data, registry)


if __name__ == "__main__":
    # As `interlock up --data DIR --listen HOST:PORT`, and nothing else.
    given = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    asked = EmbeddedSettings(data=Path(given["--data"]), listen=given["--listen"])
    sys.exit(serve(asked, _played))
