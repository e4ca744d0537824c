"""The ledger: every attempt that is known, what was said last of each, and what is forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from interlock.resources.tasks import TaskId, TaskReport
from interlock.runtimes.workers.attempts import Attempt, Phase

#: So many attempts that are forgotten are known by their names: orders may be late by seconds.
_FORGOTTEN = 65_536


class Ledger:
    """The attempts of one term."""

    def __init__(self) -> None:
        self._attempts: dict[TaskId, Attempt] = {}
        self._of_job: dict[str, dict[TaskId, Attempt]] = {}
        #: Whose result counted of attempts that are forgotten, the oldest first.
        self._forgotten: dict[TaskId, str] = {}
        self._news: dict[TaskId, TaskReport] = {}
        self._arrivals = 0
        #: The process that was given the last attempt of a Job.
        self.last: dict[str, str] = {}
        #: The turns of Jobs: whose place among all orders theirs have, and until when.
        self._turns: dict[str, tuple[int, float]] = {}

    def add(self, task: TaskId, phase: Phase, report: TaskReport) -> Attempt:
        """Take in an attempt: it comes after all others."""
        self._arrivals += 1
        attempt = Attempt(task, phase, report, self._arrivals)
        self._attempts[task] = attempt
        self._of_job.setdefault(task.job_uid, {})[task] = attempt
        return attempt

    def keep_turn(self, attempt: Attempt, tick: float) -> None:
        """Have an order come in the turn of its Job, if that is not over."""
        arrival, until = self._turns.get(attempt.id.job_uid, (attempt.arrival, tick))
        if tick < until:
            attempt.arrival = arrival

    def begin_turn(self, attempt: Attempt, tick: float, lasts_s: float) -> None:
        """A worker has an order: those of its Job have its place for a while from now on."""
        _, until = self._turns.get(attempt.id.job_uid, (0, tick))
        if tick >= until:
            self._turns[attempt.id.job_uid] = (attempt.arrival, tick + lasts_s)

    def drop(self, attempt: Attempt) -> None:
        """Know an attempt no more."""
        attempt.phase = Phase.OVER
        del self._attempts[attempt.id]
        self._news.pop(attempt.id, None)
        others = self._of_job[attempt.id.job_uid]
        del others[attempt.id]
        if not others:
            del self._of_job[attempt.id.job_uid]
            self.last.pop(attempt.id.job_uid, None)
            self._turns.pop(attempt.id.job_uid, None)

    def forget(self, attempt: Attempt) -> None:
        """Know an attempt by its name alone, and whose result counted."""
        self.drop(attempt)
        self._forgotten[attempt.id] = attempt.teller
        if len(self._forgotten) > _FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]

    def get(self, task: TaskId) -> Attempt | None:
        """An attempt that is known."""
        return self._attempts.get(task)

    def is_forgotten(self, task: TaskId) -> bool:
        """Whether an attempt was known once."""
        return task in self._forgotten

    def teller_of(self, task: TaskId) -> str:
        """The process whose result of an attempt counted, known or forgotten; empty for nobody."""
        attempt = self._attempts.get(task)
        return attempt.teller if attempt is not None else self._forgotten.get(task, "")

    def of_job(self, job_uid: str) -> Iterable[Attempt]:
        """The attempts of a Job."""
        return self._of_job.get(job_uid, {}).values()

    def tell(self, attempt: Attempt, **changes: object) -> None:
        """Say something new of an attempt."""
        attempt.report = replace(attempt.report, **changes)
        self._news[attempt.id] = attempt.report

    def is_news(self, attempt: Attempt) -> bool:
        """Whether something is to be told of an attempt."""
        return attempt.id in self._news

    def take_news(self) -> Sequence[TaskReport]:
        """Reports that are new, one for each attempt."""
        news, self._news = list(self._news.values()), {}
        return news

    def reports(self) -> Sequence[TaskReport]:
        """What is known of every attempt."""
        return [attempt.report for attempt in self._attempts.values()]
