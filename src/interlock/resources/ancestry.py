"""Ancestry: the operations that a Job is a part of, and whether it would wait for one of them.

An operation is over after its parts. So a part that is done to the target of an operation above it
would wait for that to end, which waits for the part: neither ever would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from interlock.resources.job import Job, is_operation
from interlock.resources.metadata import Key, Resource
from interlock.resources.transitions import has_ended

#: Finds a Job by its key, when there is one.
Find = Callable[[Key], Resource | None]


def parent_key(job: Job) -> Key | None:
    """The Job that this one is a part of."""
    parent = job.spec.parent
    return None if parent is None else Key("Job", job.metadata.namespace, parent)


def ancestors(job: Job, find: Find) -> Iterator[Job]:
    """The operations that are over only after this Job: its parent, that one's, and so forth."""
    seen: set[Key] = set()
    key = parent_key(job)
    while key is not None and key not in seen:
        seen.add(key)
        above = find(key)
        if not isinstance(above, Job) or has_ended(above) or not is_operation(above.spec):
            return
        yield above
        key = parent_key(above)


def held_above(job: Job, find: Find) -> Job | None:
    """The operation above a Job that is done to the same target, so that it would never start."""
    target = job.spec.target
    if target is None or job.spec.parent is None:
        return None
    for above in ancestors(job, find):
        other = above.spec.target
        if other is not None and other.path == target.path and above.key != job.key:
            return above
    return None


def wait_for_ever(path: str, above: str) -> str:
    """Why a part cannot be done to a target, in words."""
    return (
        f"job/{above}, which it is a part of, is done to {path} too and ends only after its parts:"
        " it would wait for ever"
    )
