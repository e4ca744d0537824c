"""The pending limit where the store does not count: in a cluster, by the controller that leads.

What its cache knows counts, and what it was asked for and has not heard of yet; so there are never
more than may be, as far as all come in here. What comes in otherwise is refused by the admission
room, by what the Job itself says (`spec.target.maxPending`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from interlock.admission.pending_limit import check_ancestry, check_room, is_part, open_target
from interlock.reporting.job_index import OPEN, JobIndex
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource


class PendingPlaces:
    """Gives out places in the lines of targets."""

    def __init__(
        self, roster: JobIndex, newest: Callable[[Key], Resource | None], most: int
    ) -> None:
        self._roster = roster
        self._newest = newest
        self._most = most
        #: How many were let in for each target and are not in the cache yet.
        self._coming: dict[str, int] = {}

    @contextmanager
    def held(self, job: Job) -> Iterator[None]:
        """Hold a place for a Job until the cache has heard of it.

        Raises:
            TooManyPendingError: There is none.
            InvalidError: It would wait for an operation that waits for it.
        """
        check_ancestry(job, self._newest)
        path = open_target(job)
        if not path or is_part(job, self._newest):
            yield
            return
        coming = self._coming.get(path, 0)
        check_room(job, len(self._roster.under(OPEN, path)) + coming, self._most)
        self._coming[path] = coming + 1
        try:
            yield
        finally:
            self._coming[path] -= 1
            if not self._coming[path]:
                del self._coming[path]
