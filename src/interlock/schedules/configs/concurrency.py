"""Concurrency: whether one more Job of a config may be made beside those there are."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from interlock.resources.job import Job, WhenTaken
from interlock.resources.job_config import JobConfig, Skip, SkipReason
from interlock.schedules.configs.counting import runs, waits


class Occupancy:
    """Counts the Jobs of a config as further ones are made.

    A Job that would only be refused is not made: its due time is skipped instead.
    """

    def __init__(self, config: JobConfig, jobs: Iterable[Job], now: datetime) -> None:
        self._config = config
        jobs = tuple(jobs)
        self._active = [job.metadata.name for job in jobs if runs(job)]
        waiting = [job for job in jobs if waits(job)]
        self._waiting = len(waiting)
        #: Those that could start now if there were room.
        self._in_line = [job.metadata.name for job in waiting if not _is_held(job, now)]

    def add(self, job: Job, now: datetime) -> None:
        """A further Job waits."""
        self._waiting += 1
        if not _is_held(job, now):
            self._in_line.append(job.metadata.name)

    def why_not(self, at: datetime) -> Skip | None:
        """Why no Job is made for a due time; None when one may be."""
        concurrency = self._config.spec.concurrency
        standing = [*self._active, *self._in_line]
        is_taken = len(standing) >= concurrency.max_concurrency
        if concurrency.policy is WhenTaken.FORBID and is_taken:
            names = ", ".join(f"job/{name}" for name in standing[:3])
            message = f"{names} runs or is about to" if names else "no Job may run"
            return Skip(at=at, reason=SkipReason.CONCURRENCY, message=message)
        if self._is_full(is_taken):
            message = f"{self._waiting} Jobs wait already"
            return Skip(at=at, reason=SkipReason.QUEUE_FULL, message=message)
        return None

    def _is_full(self, is_taken: bool) -> bool:
        most = self._config.spec.concurrency.max_queued
        match self._config.spec.concurrency.policy:
            case WhenTaken.ENQUEUE:
                return self._waiting >= most and (is_taken or self._waiting > len(self._in_line))
            case WhenTaken.REPLACE:
                # Those in line make way for the new one.
                return self._waiting - len(self._in_line) >= max(most, 1)
            case _:
                return self._waiting >= max(most, 1)


def _is_held(job: Job, now: datetime) -> bool:
    """Whether the Job does not stand in line: a person or its start time holds it back."""
    after = job.spec.start_after
    return job.spec.suspend or job.is_going or (after is not None and after > now)
