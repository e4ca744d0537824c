"""The workers of a server from term to term: at most one runtime gives them orders at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from interlock.control.clock import Clock
from interlock.resources.job import Job
from interlock.runtimes.workers.attempts import Counts
from interlock.runtimes.workers.dispatcher import LEASE_S, QUIET_S, Dispatcher
from interlock.runtimes.workers.runtime import WorkerRuntime

#: How often an attempt is touched while its lease lasts.
_TOUCHES = 3


class WorkerTerms:
    """Makes a runtime for each term, and ends the one before."""

    def __init__(self, clock: Clock, *, lease_s: float = LEASE_S) -> None:
        self._clock = clock
        self._lease_s = lease_s
        self._heard_until = 0.0
        self.counts = Counts()
        self.runtime: WorkerRuntime | None = None

    def lead(self, check: Callable[[], None], jobs: Iterable[Job]) -> WorkerRuntime:
        """Begin a term with what Jobs have at work by their statuses.

        `check` raises `FencedError` once the term is over.
        """
        self.end("this server leads anew")
        dispatcher = Dispatcher(
            lease_s=self._lease_s,
            touch_every_s=self._lease_s / _TOUCHES,
            quiet_s=QUIET_S,
            counts=self.counts,
        )
        self.runtime = WorkerRuntime(self._clock, check, dispatcher)
        self.runtime.inherit(jobs)
        self._heard_until = self._clock.monotonic() + self._lease_s
        return self.runtime

    def heard(self, job: Job) -> None:
        """Take in what a Job has at work, by its newest status that is stored.

        What another server recorded may be heard of late, but not later than a lease takes.
        """
        runtime = self.runtime
        if runtime is None:
            return
        runtime.heard(job)
        if job.status.execution.active and self._clock.monotonic() < self._heard_until:
            runtime.inherit((job,))

    def end(self, why: str) -> None:
        """End the present term: workers are sent away, and go where the next one is."""
        if self.runtime is not None:
            self.runtime.close(why)
