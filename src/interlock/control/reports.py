"""Task reports: what the runtime knows of every attempt, kept at hand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from types import MappingProxyType

from interlock.control.backoff import Backoff
from interlock.control.clock import Clock, pause
from interlock.control.runtime import PartOfReportsError, Runtime
from interlock.errors import InterlockError
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport

logger = logging.getLogger("interlock.reports")

_NOTHING: Mapping[tuple[int, int], TaskReport] = MappingProxyType({})

#: A report never takes an attempt back to a state before the one it had. A fate that could not
#: be told may still become known, so Unknown and Running may follow each other.
_RANK = {
    ReportState.ACCEPTED: 0,
    ReportState.RUNNING: 1,
    ReportState.UNKNOWN: 1,
    ReportState.NOT_STARTED: 2,
    ReportState.ENDED: 2,
}


class Reports:
    """The newest report of every attempt, by the uid of its Job.

    Everything is read once at the start and again whenever the runtime could not be reached;
    in between the runtime tells. Nothing may be concluded from an attempt that is missing here
    unless `complete` says so.
    """

    def __init__(self, runtime: Runtime, clock: Clock, luck: Random) -> None:
        self._runtime = runtime
        self._clock = clock
        self._backoff = Backoff(luck)
        #: Called with what is new, and whenever everything was read; the loop puts itself here.
        self.publish: Callable[[Sequence[TaskReport]], None] = lambda _: None
        self.on_complete: Callable[[], None] = lambda: None
        self._held: dict[str, dict[tuple[int, int], TaskReport]] = {}
        self._counts = dict.fromkeys(ReportState, 0)
        #: Attempts told of while everything is being read: what was read of them may be older.
        self._touched: dict[TaskId, None] | None = None
        #: Runtimes that could not be reached while everything is being read.
        self._suspected: set[str] = set()
        self._must_read = asyncio.Event()
        self._must_read.set()
        #: The runtimes that have not told all they know; None when nobody was asked yet.
        self._unheard: frozenset[str] | None = None
        #: Set once everything was read for the first time.
        self.synced = asyncio.Event()

    @property
    def complete(self) -> bool:
        """Whether everything that the runtimes know was read."""
        return self._unheard is not None and not self._unheard

    def has_heard(self, runtime: str) -> bool:
        """Whether everything that one runtime knows was read: others may be out of reach."""
        return self._unheard is not None and runtime not in self._unheard

    def of(self, job_uid: str) -> Mapping[tuple[int, int], TaskReport]:
        """The reports of a Job's attempts, by task index and attempt number."""
        return self._held.get(job_uid, _NOTHING)

    def count(self, state: ReportState) -> int:
        """How many known attempts are in a state."""
        return self._counts[state]

    def launched(self, orders: Iterable[TaskOrder]) -> None:
        """Attempts were handed to the runtime durably: they are known, whatever else is."""
        for order in orders:
            known = self._held.get(order.job_uid)
            if known is None or (order.index, order.attempt) not in known:
                self._put(_accepted(order))
            self._touch(order.id)

    def forgotten(self, tasks: Iterable[TaskId]) -> None:
        """The runtime was told to forget these attempts."""
        for task in tasks:
            self._touch(task)
            self._remove(task)

    def suspect(self, runtime: str = "") -> None:
        """A runtime could not be reached: read everything again before trusting what it told."""
        if self._unheard is not None:
            self._unheard |= {runtime}
        self._suspected.add(runtime)
        self._must_read.set()

    async def run(self) -> None:
        """Keep up to date until cancelled."""
        unsubscribe = self._runtime.subscribe(self._hear)
        try:
            while True:
                await self._must_read.wait()
                try:
                    await self._read()
                except InterlockError as error:
                    delay = self._backoff.failed()
                    logger.warning("reading reports failed, again in %.2f s: %s", delay, error)
                    await pause(self._clock, delay)
        finally:
            unsubscribe()

    async def _read(self) -> None:
        """Read everything, or as much of it as can be.

        Raises:
            PartOfReportsError: Some runtimes could not be asked; the others are heard.
            InterlockError: Nothing was read.
        """
        self._must_read.clear()
        self._touched = {}
        self._suspected = set()
        missing: PartOfReportsError | None = None
        try:
            reports = await self._runtime.reports()
        except PartOfReportsError as error:
            reports, missing = error.reports, error
            self._must_read.set()
        except BaseException:
            self._touched = None
            self._must_read.set()
            raise
        touched, self._touched = self._touched, None
        silent = missing.silent if missing is not None else frozenset()
        news = self._replace(reports, touched, silent)
        # Suspected meanwhile: what was read may be of before the interruption.
        before, self._unheard = self._unheard, silent | self._suspected
        if news:
            self.publish(news)
        if self.complete:
            self._backoff.reset()
            self.synced.set()
        if self.complete or before is None or before - self._unheard:
            self.on_complete()
        if missing is not None:
            raise missing

    def _replace(
        self,
        reports: Sequence[TaskReport],
        touched: Mapping[TaskId, None],
        silent: frozenset[str],
    ) -> list[TaskReport]:
        """Hold what was read; returns what is new, and what is no longer known.

        What a runtime knows that could not be asked stays as it was.
        """
        news = [report for report in reports if report.id not in touched and self._note(report)]
        told = {report.id: None for report in reports}
        vanished = [
            report
            for attempts in self._held.values()
            for report in attempts.values()
            if report.id not in told and report.id not in touched and report.runtime not in silent
        ]
        for report in vanished:
            self._remove(report.id)
        return news + vanished

    def _hear(self, reports: Sequence[TaskReport]) -> None:
        news = []
        for report in reports:
            self._touch(report.id)
            if self._note(report):
                news.append(report)
        if news:
            self.publish(news)

    def _note(self, report: TaskReport) -> bool:
        """Hold a report unless a better one is held; returns whether it is news."""
        held = self._held.get(report.job_uid, _NOTHING).get((report.index, report.attempt))
        if held is not None and (held == report or _RANK[held.state] > _RANK[report.state]):
            return False
        self._put(report)
        return True

    def _put(self, report: TaskReport) -> None:
        attempts = self._held.setdefault(report.job_uid, {})
        before = attempts.get((report.index, report.attempt))
        if before is not None:
            self._counts[before.state] -= 1
        attempts[report.index, report.attempt] = report
        self._counts[report.state] += 1

    def _remove(self, task: TaskId) -> None:
        attempts = self._held.get(task.job_uid)
        if attempts is None:
            return
        report = attempts.pop((task.task, task.attempt), None)
        if report is not None:
            self._counts[report.state] -= 1
        if not attempts:
            del self._held[task.job_uid]

    def _touch(self, task: TaskId) -> None:
        if self._touched is not None:
            self._touched[task] = None


def _accepted(order: TaskOrder) -> TaskReport:
    return TaskReport(
        job_uid=order.job_uid,
        index=order.index,
        attempt=order.attempt,
        namespace=order.namespace,
        job=order.job,
        state=ReportState.ACCEPTED,
        runtime=order.runtime,
        job_version=order.job_version,
    )
