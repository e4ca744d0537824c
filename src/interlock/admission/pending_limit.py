"""The pending limit: at most so many unfinished Jobs for one target, whichever way they come in.

It is counted where writes are decided, in the order in which they are, and not from what a cache
has heard: so it is exact, however many submit at once. What was decided and did not become durable
is counted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from interlock.errors import InvalidError, Problem, TooManyPendingError
from interlock.resources.ancestry import held_above, wait_for_ever
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.transitions import has_ended


class PendingLimit:
    """Counts the unfinished Jobs of every target, and refuses one too many.

    Refused is also what would wait in the line of a target for ever.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    def begin(self, resources: Iterable[Resource]) -> None:
        """Count anew."""
        self._open = {}
        for resource in resources:
            self.decided(None, resource)

    def admit(self, new: Resource, newest: Callable[[Key], Resource | None]) -> None:
        """Let a new resource in.

        Raises:
            TooManyPendingError: As many as there may be for its target are unfinished.
            InvalidError: It would wait for an operation that waits for it.
        """
        path = open_target(new)
        if not path or not isinstance(new, Job):
            return
        check_ancestry(new, newest)
        if not is_part(new, newest):
            check_room(new, self._open.get(path, 0), self._most)

    def decided(self, before: Resource | None, after: Resource | None) -> None:
        """Take in that something was written."""
        was, now = open_target(before), open_target(after)
        if was == now:
            return
        if was:
            left = self._open[was] - 1
            if left:
                self._open[was] = left
            else:
                del self._open[was]
        if now:
            self._open[now] = self._open.get(now, 0) + 1


def check_room(job: Job, there: int, most: int) -> None:
    """Refuse a Job when there are as many before it as there may be.

    Raises:
        TooManyPendingError: There are.
    """
    target = job.spec.target
    assert target is not None, "only what has a target is counted"
    limit = most if target.max_pending is None else min(most, target.max_pending)
    if there >= limit:
        raise TooManyPendingError(target.path, limit)


def check_ancestry(job: Job, newest: Callable[[Key], Resource | None]) -> None:
    """Refuse a part of an operation that is done to the target of that, or of one above it.

    Raises:
        InvalidError: It is.
    """
    above, target = held_above(job, newest), job.spec.target
    if above is not None and target is not None:
        told = wait_for_ever(target.path, above.metadata.name)
        problem = Problem("spec.target.path", told, target.path)
        raise InvalidError(job.key.kind, job.metadata.name, (problem,))


def open_target(resource: Resource | None) -> str:
    """The path of the target of a Job that is not over; empty for everything else."""
    if not isinstance(resource, Job) or resource.spec.target is None or has_ended(resource):
        return ""
    return resource.spec.target.path


def is_part(job: Job, newest: Callable[[Key], Resource | None]) -> bool:
    """Whether a Job is a part of another that is not over: that was let in with its parts."""
    parent = job.spec.parent
    if parent is None:
        return False
    of = newest(Key("Job", job.metadata.namespace, parent))
    return isinstance(of, Job) and not has_ended(of)
