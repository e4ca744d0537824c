"""History limits: which ended Jobs of a config are old enough to go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from interlock.resources.job import Job, JobPhase
from interlock.resources.schedule import HistoryLimits
from interlock.resources.transitions import ended_at, has_ended

#: So many are deleted at a look; the first that is gone brings the next look.
AT_ONCE = 50

_EVER = datetime.min.replace(tzinfo=UTC)


def too_old(jobs: Iterable[Job], limits: HistoryLimits) -> Iterator[Job]:
    """The ended Jobs beyond the limits, oldest first, without those that are going already."""
    ended = [job for job in jobs if has_ended(job) and not job.is_going]
    good = [job for job in ended if job.status.phase is JobPhase.SUCCEEDED]
    bad = [job for job in ended if job.status.phase is not JobPhase.SUCCEEDED]
    for some, kept in ((good, limits.succeeded), (bad, limits.failed)):
        some.sort(key=_age)
        yield from some[: max(0, len(some) - max(0, kept))]


def _age(job: Job) -> tuple[datetime, int]:
    return ended_at(job) or _EVER, job.version
