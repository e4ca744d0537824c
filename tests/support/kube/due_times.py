"""Was every due time of a JobConfig accounted for once? Asked of what the API server told alone.

A due time is accounted for by a Job that was written down for it, or by a skip. Both are told by
some state of the JobConfig; which Jobs ran is told by the Jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from support.kube.access import Document
from support.kube.verdict import Seen

_SCHEDULED_AT = "interlock.dev/scheduled-at"


class Stretch(NamedTuple):
    """Due times that were skipped, all for one reason."""

    begin: datetime
    end: datetime
    reason: str


class DueTimes:
    """What became of the due times of one JobConfig."""

    def __init__(self, name: str, history: Iterable[Seen]) -> None:
        self._name = name
        self.created: datetime | None = None
        #: The newest due time that became a Job, and how far the books go.
        self.last: datetime | None = None
        self.accounted_to: datetime | None = None
        #: The Jobs that were written down for each due time, and those that ran, by uid.
        self.written: defaultdict[datetime, set[str]] = defaultdict(set)
        self.ran: defaultdict[datetime, set[str]] = defaultdict(set)
        self.skips: set[Stretch] = set()
        #: What went backwards.
        self._faults: list[str] = []
        for seen in history:
            if seen.kind == "JobConfig" and seen.object["metadata"]["name"] == name:
                self._config(seen)
            if seen.kind == "Job":
                self._job(seen.object)

    def faults(self, every: timedelta) -> list[str]:
        """What was broken, of a config that is due whenever so much time has passed."""
        return [*self._faults, *self._doubled(), *self._unwritten(), *self._lost(every)]

    def _config(self, seen: Seen) -> None:
        self.created = _moment(seen.object["metadata"]["creationTimestamp"])
        status = seen.object.get("status") or {}
        books = status.get("books") or {}
        accounted_to = _known(books.get("accountedTo"))
        if self.accounted_to and (accounted_to is None or accounted_to < self.accounted_to):
            self._faults.append(f"the books went back from {self.accounted_to} to {accounted_to}")
        self.accounted_to = accounted_to
        self.last = _known(status.get("lastScheduled"))
        for one in books.get("expected", ()):
            self.written[_moment(one["scheduledAt"])].add(one["uid"])
        for skip in status.get("skips", ()):
            begin = _moment(skip["at"])
            end = _moment(skip.get("until") or skip["at"])
            self.skips.add(Stretch(begin, end, skip["reason"]))

    def _job(self, job: Document) -> None:
        metadata = job["metadata"]
        due = (metadata.get("annotations") or {}).get(_SCHEDULED_AT)
        owners = {owner["name"] for owner in metadata.get("ownerReferences", ())}
        execution = (job.get("status") or {}).get("execution") or {}
        if due and self._name in owners and execution.get("startedAt"):
            self.ran[_moment(due)].add(metadata["uid"])

    def _doubled(self) -> Iterator[str]:
        for due, jobs in sorted(self.ran.items()):
            if len(jobs) > 1:
                yield f"{due}: {len(jobs)} Jobs ran"
        for due, jobs in sorted(self.written.items()):
            if len(jobs) > 1:
                yield f"{due}: {len(jobs)} Jobs were written down"
            if self._is_skipped(due):
                yield f"{due}: was skipped, and a Job was written down"

    def _unwritten(self) -> Iterator[str]:
        for due, jobs in sorted(self.ran.items()):
            if jobs - self.written[due]:
                yield f"{due}: a Job ran that was never written down"

    def _lost(self, every: timedelta) -> Iterator[str]:
        """Due times from the creation to the last that became a Job, and became nothing."""
        if self.created is None or self.last is None:
            yield f"jobconfig/{self._name} never was, or was never due"
            return
        step = every.total_seconds()
        due = self.created - timedelta(seconds=self.created.timestamp() % step) + every
        while due <= self.last:
            if not self.written.get(due) and not self._is_skipped(due):
                yield f"{due}: became neither a Job nor a skip"
            due += every

    def _is_skipped(self, due: datetime) -> bool:
        return any(skip.begin <= due <= skip.end for skip in self.skips)


def _known(text: str | None) -> datetime | None:
    return _moment(text) if text else None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
