"""Capacity: how many tasks the machine can still take, and who is next when some ends."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.tasks import TaskStatus
from interlock.resources.work_types import WORKERS


class Rank(NamedTuple):
    """A Job's place among those that wait for room: smaller goes first."""

    #: Higher priorities are smaller.
    urgency: int
    sequence: int
    key: Key


def rank_of(job: Job) -> Rank:
    """Priority first, then the order of creation."""
    return Rank(-job.spec.priority, job.status.admission.sequence, job.key)


def taken(tasks: Iterable[TaskStatus]) -> int:
    """How many of these attempts take room here: what workers do takes none, also while it waits
    for one of them.
    """
    return sum(task.runtime != WORKERS for task in tasks)


class Capacity:
    """Counts attempts by Job, and keeps the Jobs that found no room in order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._held: dict[Key, int] = {}
        self._line: list[Rank] = []
        self._ranks: dict[Key, Rank] = {}
        #: Waiting Jobs that were woken and have not looked yet.
        self._woken: set[Key] = set()

    @property
    def used(self) -> int:
        """How many attempts are under way, or about to be."""
        return self._used

    @property
    def free(self) -> int:
        """How many further attempts fit; negative when there are more than should be."""
        return self._most - self._used

    def hold(self, key: Key, attempts: int) -> None:
        """A Job has, or is about to have, so many attempts under way."""
        before = self._held.pop(key, 0)
        if attempts:
            self._held[key] = attempts
        self._used += attempts - before

    def left_for(self, rank: Rank) -> int:
        """What a Job may take: all that is free, but one for each that is before it in line."""
        return self.free - bisect_left(self._line, rank)

    def wait(self, rank: Rank) -> None:
        """Put a Job in the line."""
        self.leave(rank.key)
        insort(self._line, rank)
        self._ranks[rank.key] = rank

    def leave(self, key: Key) -> None:
        """Take a Job out of the line, if it is in it."""
        self._woken.discard(key)
        rank = self._ranks.pop(key, None)
        if rank is not None:
            del self._line[bisect_left(self._line, rank)]

    def next(self) -> Iterator[Key]:
        """Whom to wake: the first in line, one for each place that is free."""
        for rank in self._line[: max(0, self.free)]:
            if rank.key not in self._woken:
                self._woken.add(rank.key)
                yield rank.key
